//! The finished cells of one evaluation: what tables and claims are made from, and nothing else.

use super::cell::{Cell, Setup};
use super::machine::Machine;
use super::time_cell::TimeCell;

/// All finished cells of one setup.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Common to all cells.
    pub setup: Setup,
    /// Training runs, in order.
    pub cells: Vec<Cell>,
    /// Secure configurations timed by themselves, in order.
    pub times: Vec<TimeCell>,
}

impl Finished {
    /// Cells without timing cells.
    pub fn new(setup: &Setup, cells: &[Cell]) -> Self {
        Finished { setup: setup.clone(), cells: cells.to_vec(), times: Vec::new() }
    }

    /// Where cells ran, each machine once.
    pub fn machines(&self) -> Vec<Machine> {
        let mut machines: Vec<Machine> = Vec::new();
        for machine in self.cells.iter().map(|c| &c.machine).chain(self.times.iter().map(|t| &t.machine)) {
            if !machines.contains(machine) {
                machines.push(machine.clone());
            }
        }
        machines
    }
}
