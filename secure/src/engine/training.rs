//! Training: single steps on batches of the client's, and many steps on a data set that stays shared.

use super::worker::{Answer, Job};
use super::{Engine, StepReport, check_size, pair, split_spent};
use crate::client::{check_messages, put_together, reused, sent};
use crate::cost::Spent;
use crate::error::{Error, Result};
use std::time::Instant;

impl Engine {
    /// One recorded or unrecorded step on a batch that is shared for it: x row-major units (batch, in), labels in
    /// 0..classes.
    ///
    /// # Errors
    /// Sizes or labels that do not fit; those of the parties; with recording on, a message that its receiver declared
    /// otherwise than its sender.
    pub fn step(&mut self, x: &[i64], labels: &[usize]) -> Result<StepReport> {
        self.check_batch(labels.len())?;
        let (inputs, classes) = (self.spec.network.inputs(), self.spec.network.classes());
        check_size(x, labels.len(), inputs)?;
        let y = self.deal_labels(labels, classes)?;
        self.check_loaded()?;
        let x = self.deal(labels.len(), inputs, x)?;
        let record = self.record;
        let start = Instant::now();
        let jobs = pair(x, y).map(|(x, y)| Job::Step { x, y, record });
        let answers = self.all(jobs, |answer| match answer {
            Answer::Step(spent, record) => Some((spent, record)),
            _ => None,
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let (spent, mut records) = split_spent(answers);
        check_messages(&records)?;
        let (sent, reused) = (sent(&mut records), reused(&records));
        let (probes, rounding) = put_together(records, self.spec.rounding)?;
        Ok(StepReport { probes, rounding, sent, reused, spent, seconds })
    }

    /// The learning rate is encoded for batches of one size.
    fn check_batch(&self, rows: usize) -> Result<()> {
        let batch = self.spec.sgd.batch;
        if rows == batch { Ok(()) } else { Err(Error::misuse(format!("a batch of {rows} rows; it must have {batch}"))) }
    }

    /// Shares a data set that stays shared: x row-major units (rows, in).
    ///
    /// # Errors
    /// Sizes or labels that do not fit.
    pub fn load_data(&mut self, x: &[i64], labels: &[usize]) -> Result<()> {
        // Words dealt at a time, so that nobody holds the shares of all rows at once.
        const DEALT: usize = 1 << 17;
        let (inputs, classes) = (self.spec.network.inputs(), self.spec.network.classes());
        let rows = labels.len();
        check_size(x, rows, inputs)?;
        let y = self.deal_labels(labels, classes)?;
        // What was there before makes room.
        self.rows = None;
        self.all_do([(); 3].map(|()| Job::NoData(rows)))?;
        for x in x.chunks((DEALT / inputs).max(1) * inputs) {
            let dealt = self.deal(x.len() / inputs, inputs, x)?;
            self.all_do(dealt.map(Job::MoreData))?;
        }
        self.all_do(y.map(Job::Labels))?;
        self.rows = Some(rows);
        Ok(())
    }

    /// Trains on batches of rows of the shared data set. Returns what it cost.
    ///
    /// # Errors
    /// No data, row numbers that do not fit; those of the parties.
    pub fn train(&mut self, batches: &[Vec<u32>]) -> Result<Spent> {
        batches.iter().try_for_each(|rows| self.check_batch(rows.len()))?;
        let rows = self.rows.ok_or_else(|| Error::misuse("no data shared; load_data first"))?;
        self.check_loaded()?;
        if let Some(bad) = batches.iter().flatten().find(|&&r| r as usize >= rows) {
            return Err(Error::misuse(format!("row {bad} of a data set of {rows}")));
        }
        self.all_spent([(); 3].map(|()| Job::Train(batches.to_vec())))
    }
}
