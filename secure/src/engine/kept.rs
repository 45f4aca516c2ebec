//! States that the parties keep on their own disks, so that a run can be resumed.

use super::Engine;
use super::state::{Kept, Position, newest_common};
use super::worker::{Answer, Job};
use crate::error::Result;

impl Engine {
    /// Has each party keep its shares of the parameters on its own disk, as the state of `run` after `step` steps.
    /// Nothing is opened.
    ///
    /// # Errors
    /// Those of the parties: one that has no folder for states, a full disk.
    pub fn keep(&mut self, run: &str, step: u64) -> Result<()> {
        self.check_loaded()?;
        let dealt = self.dealt;
        self.all_kept([(); 3].map(|()| Job::Keep { run: run.to_owned(), step, dealt })).map(drop)
    }

    /// After how many steps of `run` all three parties have last kept a state, and agree; `None`: nothing is kept.
    /// Nothing changes.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn kept(&mut self, run: &str) -> Result<Option<u64>> {
        Ok(self.newest(run)?.map(|at| at.step))
    }

    fn newest(&mut self, run: &str) -> Result<Option<Position>> {
        Ok(newest_common(&self.all_kept([(); 3].map(|()| Job::Kept(run.to_owned())))?))
    }

    /// Has the parties take up `run` where all three have last kept it and agree. After how many steps that is; `None`:
    /// nothing is kept. With a seed, the run goes on with the shares and coins that it would have had, if it has shared
    /// the same things before.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn resume(&mut self, run: &str) -> Result<Option<u64>> {
        let Some(Position { step, dealt, .. }) = self.newest(run)? else { return Ok(None) };
        self.all_do([(); 3].map(|()| Job::Resume { run: run.to_owned(), step }))?;
        self.loaded = true;
        if self.seed.is_some() {
            self.dealt = dealt;
        }
        Ok(Some(step))
    }

    fn all_kept(&mut self, jobs: [Job; 3]) -> Result<[Vec<Kept>; 3]> {
        self.all(jobs, |answer| match answer {
            Answer::Kept(kept) => Some(kept),
            _ => None,
        })
    }
}
