//! Which cells there are, and running those that are missing.

use super::cell::{Cell, Id, Setup, Side};
use super::data::Data;
use super::store::Store;
use super::time_cell::Configuration;
use super::train::{self, Event};
use crate::error::{CellError, Error};
use reference::spec::{Head, Rounding};
use std::collections::HashSet;
use std::sync::Mutex;

/// The grid of cells: every dimension that is varied, with its values in the order in which cells run.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The sides that train.
    pub sides: Vec<Side>,
    /// The depths of the networks, in dense layers.
    pub layers: Vec<usize>,
    /// The output heads.
    pub heads: Vec<Head>,
    /// Whether relu-grad is trained in the order of the published code as well, by the integer side.
    pub published: bool,
    /// Roundings; cells in real numbers have none and occur once.
    pub roundings: Vec<Rounding>,
    /// The seeds, each a training of its own.
    pub seeds: Vec<u64>,
    /// Epochs of an attempt.
    pub epochs: usize,
    /// Extra velocity bits; cells in real numbers occur once.
    pub velocity_bits: Vec<u32>,
    /// The only rate that is tried, in units of 2^-16; without it, the setup's and its halves.
    pub rate: Option<u32>,
}

impl Grid {
    /// Every cell once.
    pub fn cells(&self) -> Vec<Id> {
        let mut seen = HashSet::new();
        let sides = self.sides.iter().flat_map(|&side| self.seeds.iter().map(move |&seed| (side, seed)));
        let all = sides.flat_map(|(side, seed)| self.of(side, seed));
        all.filter(|id| seen.insert(id.clone())).collect()
    }

    /// The secure configurations, each once, whatever the sides and seeds.
    pub fn configurations(&self) -> Vec<Configuration> {
        let mut all: Vec<Configuration> = Vec::new();
        for id in self.of(Side::Secure, 0) {
            let found = id.rounding.map(|rounding| Configuration { head: id.head, layers: id.layers, rounding });
            all.extend(found.filter(|c| !all.contains(c)));
        }
        all
    }

    /// The cells of a side and seed, those in real numbers more than once.
    fn of(&self, side: Side, seed: u64) -> impl Iterator<Item = Id> {
        let networks = self.layers.iter().flat_map(|&l| self.roundings.iter().map(move |&r| (l, r)));
        networks.flat_map(move |(layers, rounding)| {
            let heads = self.heads.iter().flat_map(move |&head| {
                let codes = self.published && head == Head::ReluGrad && side == Side::Integer;
                let codes = if codes { &[false, true][..] } else { &[false] };
                codes.iter().map(move |&code| (head, code))
            });
            heads.flat_map(move |(head, code)| {
                self.velocity_bits.iter().map(move |&velocity_bits| {
                    let rounding = Some(rounding);
                    let (epochs, rate) = (self.epochs, self.rate);
                    let id = Id { side, head, code, layers, rounding, seed, epochs, velocity_bits, rate };
                    id.on(side)
                })
            })
        })
    }
}

/// How a step of a cell compares with others in time, roughly: for an estimate of the time left.
pub fn weight(id: &Id) -> u64 {
    let deep = usize::min(id.layers, 3) - 1;
    match id.side {
        Side::Secure => [4, 12, 15][deep] * if id.rounding == Some(Rounding::Nearest) { 2 } else { 1 },
        Side::Integer => [3, 10, 14][deep],
        Side::Real => [1, 2, 3][deep],
    }
}

/// Which of `ids` are still to be run.
///
/// # Errors
/// Without `resume`, a cell that is finished already; with it, one of another setup.
pub fn missing(ids: &[Id], setup: &Setup, store: &Store, resume: bool) -> Result<Vec<Id>, Error> {
    store.refuse_others(setup)?;
    let mut missing = Vec::new();
    for id in ids {
        match store.load(id, setup)? {
            None => missing.push(id.clone()),
            Some(_) if resume => {}
            Some(_) => {
                return Err(CellError::Finished { id: id.to_string(), folder: store.dir().into() }.into());
            }
        }
    }
    Ok(missing)
}

/// Which of the configurations are still to be timed.
///
/// # Errors
/// Without `resume`, one that is timed already; with it, one of another setup. A measurement that is not clean is to be
/// taken again.
pub fn untimed(all: &[Configuration], setup: &Setup, store: &Store, resume: bool) -> Result<Vec<Configuration>, Error> {
    store.refuse_others(setup)?;
    let mut missing = Vec::new();
    for &of in all {
        match store.load_time(of, setup)? {
            Some(_) if !resume => {
                return Err(CellError::Timed { configuration: of.to_string(), folder: store.dir().into() }.into());
            }
            Some(found) if found.clean().is_ok() => {}
            _ => missing.push(of),
        }
    }
    Ok(missing)
}

/// Runs cells and stores each as it is finished. Secure cells run one at a time, for three parties share the machine
/// and their seconds are results; then plaintext cells, as many at a time as there are processors.
///
/// # Errors
/// The first cell that fails; those that finished before are stored.
pub fn run(
    ids: &[Id],
    setup: &Setup,
    data: &Data,
    store: &Store,
    tell: &(dyn Fn(&Id, Event) + Sync),
    finished: &(dyn Fn(&Cell) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let one = |id: &Id| {
        // Another process on the same folder may have finished it since.
        if store.load(id, setup)?.is_some() {
            return Ok(());
        }
        let cell = train::run(id, setup, data, &|event| tell(id, event))?;
        store.save(&cell)?;
        finished(&cell)
    };
    let (secure, plain): (Vec<_>, Vec<_>) = ids.iter().partition(|id| id.side == Side::Secure);
    secure.into_iter().try_for_each(&one)?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(plain.len());
    let queue = Mutex::new(plain.into_iter());
    let next = || queue.lock().unwrap_or_else(|e| e.into_inner()).next();
    let work = || {
        while let Some(id) = next() {
            if let Err(e) = one(id) {
                // The others end after the cell that they are at.
                while next().is_some() {}
                return Err(e);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let start = |n| std::thread::Builder::new().name(format!("cells {n}")).spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (0..workers).map_while(start).collect();
        if threads.is_empty() {
            // The system gives no thread beside this one, or there is nothing to do.
            return work();
        }
        threads.into_iter().try_for_each(|t| t.join().unwrap_or_else(|_| Err(CellError::Panicked.into())))
    })
}

#[cfg(test)]
mod tests {
    use super::super::cell::setup::tests::setup;
    use super::*;

    fn grid() -> Grid {
        Grid {
            sides: Side::ALL.to_vec(),
            layers: vec![1, 2, 3],
            heads: Head::ALL.to_vec(),
            roundings: Rounding::ALL.to_vec(),
            published: false,
            seeds: vec![1],
            epochs: 20,
            velocity_bits: vec![0],
            rate: None,
        }
    }

    #[test]
    fn the_grid_of_the_paper_has_75_cells() {
        let cells = grid().cells();
        let count = |side| cells.iter().filter(|c| c.side == side).count();
        assert_eq!(Side::ALL.map(count), [30, 30, 15]);
        let distinct: std::collections::HashSet<_> = cells.iter().map(ToString::to_string).collect();
        assert_eq!(distinct.len(), 75);
        assert_eq!(Grid { velocity_bits: vec![0, 8], ..grid() }.cells().len(), 135);
        assert_eq!(Grid { seeds: vec![2, 3], ..grid() }.cells().len(), 150);
        assert_eq!(Grid { published: true, ..grid() }.cells().len(), 75 + 6);
        assert_eq!(Grid { sides: vec![], ..grid() }.configurations().len(), 30);
        let one = Grid { rate: Some(128), layers: vec![2], heads: vec![Head::ReluGrad], ..grid() }.cells();
        assert_eq!(one[0].to_string(), "secure-relu-grad-l2-prob-s1-e20-r128");
    }

    #[test]
    fn a_finished_cell_is_not_run_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        let data = Data::new(fixtures::mnist().unwrap(), Some(32));
        let (train_rows, test_rows) = data.rows();
        let setup = Setup { train_rows, test_rows, data: data.digest().into(), ..setup() };
        let ids = Grid { sides: vec![Side::Integer, Side::Real], layers: vec![1], epochs: 1, ..grid() }.cells();
        let count = Mutex::new(0);
        let go = |ids: &[Id]| {
            run(ids, &setup, &data, &store, &|_, _| (), &|_| {
                *count.lock().unwrap() += 1;
                Ok(())
            })
        };
        go(&missing(&ids[..4], &setup, &store, false).unwrap()).unwrap();
        assert!(missing(&ids, &setup, &store, false).unwrap_err().to_string().contains("--resume"));
        let rest = missing(&ids, &setup, &store, true).unwrap();
        assert_eq!(rest, ids[4..]);
        go(&rest).unwrap();
        assert_eq!((*count.lock().unwrap(), ids.len()), (15, 15));
        assert!(missing(&ids, &setup, &store, true).unwrap().is_empty());
        let error = missing(&ids, &Setup { batch: 8, ..setup.clone() }, &store, true).unwrap_err().to_string();
        assert!(error.contains("batch 8 against 16"), "{error}");
    }
}
