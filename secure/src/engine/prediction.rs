//! Answers that the client opens: predicted classes, the number of right ones, and a head on given logits.

use super::worker::{Answer, Job};
use super::{Engine, HeadReport, check_size, open, pair};
use crate::client::{check_messages, put_together};
use crate::error::{Error, Result};
use crate::share::Share;

impl Engine {
    /// The predicted class of each row of x (row-major units, (rows, in)), opened to the client.
    ///
    /// # Errors
    /// Sizes that do not fit; those of the parties.
    pub fn predict(&mut self, x: &[i64]) -> Result<Vec<usize>> {
        let inputs = self.spec.network.inputs();
        self.check_loaded()?;
        let rows = x.len() / inputs.max(1);
        let x = self.deal(rows, inputs, x)?;
        let classes = self.opened(x.map(Job::Predict), "predicted classes", rows)?;
        Ok(classes.into_iter().map(|c| c as usize).collect())
    }

    /// How many rows are predicted as labelled, in batches of 1,000 rows. The parties add their shares of the numbers
    /// up; only the sum is opened, and only to the client.
    ///
    /// # Errors
    /// Sizes or labels that do not fit; those of the parties.
    pub fn count_correct(&mut self, x: &[i64], labels: &[usize]) -> Result<usize> {
        const ROWS: usize = 1000;
        let (inputs, classes) = (self.spec.network.inputs(), self.spec.network.classes());
        if x.len() != labels.len() * inputs {
            return Err(Error::misuse(format!("{} values for {} rows of {inputs}", x.len(), labels.len())));
        }
        if let Some(bad) = labels.iter().find(|&&l| l >= classes) {
            return Err(Error::misuse(format!("label {bad} with {classes} classes")));
        }
        self.check_loaded()?;
        let pieces = labels.len().div_ceil(ROWS);
        let mut total = 0;
        for (k, (x, labels)) in (1..).zip(x.chunks(ROWS * inputs).zip(labels.chunks(ROWS))) {
            let x = self.deal(labels.len(), inputs, x)?;
            let y = self.deal_labels(labels, classes)?;
            let last = k == pieces;
            let jobs = pair(x, y).map(|(x, y)| Job::Count { x, y, last });
            if last {
                total = self.opened(jobs, "number of right rows", 1)?[0] as usize;
            } else {
                self.all_do(jobs)?;
            }
        }
        Ok(total)
    }

    /// The head on given logits (row-major units, (rows, classes), any class count from 2): probabilities, loss and
    /// gradient, all opened to the client.
    ///
    /// # Errors
    /// Sizes or labels that do not fit; those of the parties.
    pub fn head(&mut self, logits: &[i64], classes: usize, labels: &[usize]) -> Result<HeadReport> {
        if classes < 2 {
            return Err(Error::misuse(format!("{classes} classes; a head has at least 2")));
        }
        check_size(logits, labels.len(), classes)?;
        let y = self.deal_labels(labels, classes)?;
        let x = self.deal(labels.len(), classes, logits)?;
        let answers =
            self.all(pair(x, y).map(|(logits, labels)| Job::Head { logits, labels }), |answer| match answer {
                Answer::Head(shares, record) => Some((shares, record)),
                _ => None,
            })?;
        let (mut probabilities, mut gradient, mut loss, mut records) = (vec![], vec![], vec![], vec![]);
        for (shares, record) in answers {
            probabilities.push(shares.probabilities);
            gradient.push(shares.gradient);
            loss.push(shares.loss);
            records.push(record);
        }
        check_messages(&records)?;
        let (_, rounding) = put_together(records, self.spec.rounding)?;
        let loss = match loss.into_iter().collect::<Option<Vec<_>>>() {
            None => None,
            Some(both) => {
                let (values, finite): (Vec<_>, Vec<_>) = both.into_iter().unzip();
                let finite = open_all("finite losses", finite, labels.len())?;
                let values = open_all("losses", values, labels.len())?;
                Some(values.into_iter().zip(finite).map(|(v, f)| (f == 1).then_some(v)).collect())
            }
        };
        let probabilities = open_all("probabilities", probabilities, logits.len())?;
        let gradient = open_all("gradient", gradient, logits.len())?;
        Ok(HeadReport { probabilities, loss, gradient, rounding })
    }
}

fn open_all(what: &str, shares: Vec<Share>, elements: usize) -> Result<Vec<i64>> {
    open(what, &shares.try_into().map_err(|_| Error::misuse("three parties answer"))?, elements)
}
