//! One party at work: what the client can ask of it ([`Job`]), what it answers ([`Answer`]), and the loop between the
//! two.
//!
//! A job is data, so it can come from another thread or over a connection. A party sees its own shares and its
//! neighbours' messages; what the client opens it hands out as shares.

use super::state::{Kept, Position, StateFolder};
use crate::buffer::erase;
use crate::clock::Phase;
use crate::cost::Spent;
use crate::error::{Error, Result};
use crate::fault::faulty;
use crate::nn::dense::LayerShare;
use crate::nn::{heads, train};
use crate::party::{Party, Record};
use crate::protocol::input::Dealt;
use crate::protocol::matmul::Left;
use crate::share::{Factor, Share, same_shape};
use serde::{Deserialize, Serialize};
use spec::TrainSpec;
use std::collections::BTreeMap;
use std::time::Duration;

/// A job that the client gives a party. All three get the same job at the same place of their order, each with its own
/// shares.
#[derive(Serialize, Deserialize)]
pub enum Job {
    /// Take these parameters: of each layer W, b, V_W, V_b.
    Load(Vec<[Dealt; 4]>),
    /// Take these shares of the parameters.
    LoadShares(Vec<LayerShare>),
    /// Hand out the shares of the parameters.
    Shares,
    /// Forget the data set and make room for one of so many rows.
    NoData(usize),
    /// These are the next rows of the data set.
    MoreData(Dealt),
    /// These are the labels of all its rows, one-hot.
    Labels(Dealt),
    /// Train on these rows of the data set, a list a step.
    Train(Vec<Vec<u32>>),
    /// Take one step on this batch.
    Step {
        /// The batch, (batch, in).
        x: Dealt,
        /// Its labels, one-hot.
        y: Dealt,
        /// Hand out probes and views of truncations.
        record: bool,
    },
    /// Predict the classes of these rows.
    Predict(Dealt),
    /// Count the rows that are predicted as labelled, and add them to those counted since the last answer.
    Count {
        /// Rows, (rows, in).
        x: Dealt,
        /// Their labels, one-hot.
        y: Dealt,
        /// Hand out the sum.
        last: bool,
    },
    /// Compute the head on given logits.
    Head {
        /// (batch, classes).
        logits: Dealt,
        /// One-hot, (batch, classes).
        labels: Dealt,
    },
    /// Keep the shares of the parameters on the party's own disk.
    Keep {
        /// The run.
        run: String,
        /// Its steps so far.
        step: u64,
        /// Secrets that the client has dealt so far.
        dealt: u64,
    },
    /// Tell which states of this run are kept.
    Kept(String),
    /// Take the shares of a state that was kept.
    Resume {
        /// The run.
        run: String,
        /// After which step.
        step: u64,
    },
    /// Tell where the time went.
    Times,
    /// Tell what was spent.
    Spent,
    /// Panic, if this is party 1.
    #[cfg(test)]
    Panic,
}

/// A party's answer to a job.
#[derive(Serialize, Deserialize)]
pub enum Answer {
    /// It is done.
    Done,
    /// Shares of the parameters.
    Shares(Vec<LayerShare>),
    /// The cost of a step, and the record of it.
    Step(Spent, Record),
    /// The cost since the start.
    Spent(Spent),
    /// A share of the predicted classes.
    Classes(Share),
    /// A share of the number of rows that are predicted as labelled.
    RightRows(Share),
    /// Shares of a head's results.
    Head(Box<HeadShares>, Record),
    /// States that are kept.
    Kept(Vec<Kept>),
    /// Where the time went.
    Times(BTreeMap<Phase, Duration>),
}

/// One party's shares of a head's results.
#[derive(Serialize, Deserialize)]
pub struct HeadShares {
    /// (batch, classes), scale f.
    pub probabilities: Share,
    /// (batch, classes), scale f.
    pub gradient: Share,
    /// Values, scale f, and indicators that they are finite, if the head has a loss.
    pub loss: Option<(Share, Share)>,
}

/// A party and what it holds between jobs.
pub struct Worker {
    party: Party,
    spec: TrainSpec,
    layers: Vec<LayerShare>,
    data: Option<Factor>,
    /// Rows that the data set is to have.
    room: usize,
    labels: Option<Share>,
    hits: Option<Share>,
    /// Where states are kept, if anywhere.
    states: Option<StateFolder>,
    /// Whether the streams come from a seed that was asked for.
    seeded: bool,
    /// Whether the client may have what it could put the parties' views together from.
    may_record: bool,
}

impl Worker {
    /// A party that holds nothing yet.
    pub fn new(party: Party, spec: TrainSpec) -> Self {
        let (layers, data, room, labels, hits, states) = (Vec::new(), None, 0, None, None, None);
        Worker { party, spec, layers, data, room, labels, hits, states, seeded: false, may_record: true }
    }

    /// A party that keeps states there.
    #[must_use]
    pub fn with_states(self, states: Option<StateFolder>) -> Self {
        Worker { states, ..self }
    }

    /// A party whose streams come from a seed that was asked for: where it resumes a run, they go on where they were.
    #[must_use]
    pub fn seeded(self, seeded: bool) -> Self {
        Worker { seeded, ..self }
    }

    /// A party that refuses to hand out probes and its views of the coins.
    #[must_use]
    pub fn without_records(self) -> Self {
        Worker { may_record: false, ..self }
    }

    /// Works until there are no more jobs, or one fails: then its neighbours are told why, for they would wait. Its
    /// memory is erased as far as [`crate::buffer`] says.
    pub fn work(mut self, mut next: impl FnMut() -> Option<Job>, mut answer: impl FnMut(Result<Answer>)) {
        while let Some(job) = next() {
            let done = self.perform(job);
            let reason = done.as_ref().err().cloned();
            if let Some(reason) = &reason {
                self.party.stop(reason);
            }
            answer(done);
            if reason.is_some() {
                break;
            }
        }
        drop(self);
        erase();
    }

    /// Performs one job. The client knows what a party holds and checks every job before it sends it; what is refused
    /// here is refused because client and party, or the parties, disagree.
    fn perform(&mut self, job: Job) -> Result<Answer> {
        let records = matches!(job, Job::Step { record: true, .. } | Job::Head { .. });
        if records && !self.may_record {
            return Err(Error::misuse(format!("party {} does not record; start it with record = true", self.party.id)));
        }
        match job {
            Job::Load(layers) => self.load(layers)?,
            Job::LoadShares(layers) => self.load_shares(layers)?,
            Job::Shares => return Ok(Answer::Shares(self.layers.clone())),
            Job::NoData(rows) => self.forget_data(rows)?,
            Job::MoreData(x) => self.more_data(x)?,
            Job::Labels(y) => self.labels = Some(self.all_labels(y)?),
            Job::Train(batches) => return self.train(&batches).map(Answer::Spent),
            Job::Step { x, y, record } => return self.step(x, y, record),
            Job::Predict(x) => {
                let (rows, _) = x.shape();
                let x = taken(x, "rows to predict", rows, self.spec.network.inputs())?;
                return self.party.run(train::predict(&self.party, &self.layers, Left::from(&x))).map(Answer::Classes);
            }
            Job::Count { x, y, last } => return self.count(x, y, last),
            Job::Head { logits, labels } => return self.head(logits, labels),
            Job::Keep { run, step, dealt } => {
                let at = Position { step, calls: self.party.calls(), dealt };
                return Ok(Answer::Kept(vec![self.states()?.keep(&run, at, &self.layers)?]));
            }
            Job::Kept(run) => return Ok(Answer::Kept(self.states()?.list(&run)?)),
            Job::Resume { run, step } => self.resume(&run, step)?,
            Job::Times => return Ok(Answer::Times(self.party.times())),
            Job::Spent => return Ok(Answer::Spent(self.party.spent())),
            #[cfg(test)]
            Job::Panic => assert!(self.party.id != crate::id::PartyId::P1, "planted"),
        }
        Ok(Answer::Done)
    }

    fn states(&self) -> Result<&StateFolder> {
        let none =
            || Error::misuse(format!("party {} has no folder for states; set states in its file", self.party.id));
        self.states.as_ref().ok_or_else(none)
    }

    fn resume(&mut self, run: &str, step: u64) -> Result<()> {
        let (kept, layers) = self.states()?.read(run, step)?;
        self.states()?.clear(run);
        self.load_shares(layers)?;
        // Fresh keys begin wherever they are: what they mask has never been masked before.
        if self.seeded {
            self.party.go_on_at(kept.at.calls);
        }
        Ok(())
    }

    fn load(&mut self, layers: Vec<[Dealt; 4]>) -> Result<()> {
        let network = &self.spec.network;
        same_shape("layers", (layers.len(), 1), (network.layers(), 1))?;
        let layer = |(l, [w, b, vw, vb]): (usize, [Dealt; 4])| {
            let (rows, cols) = network.shape(l);
            Ok(LayerShare {
                weights: taken(w, "weights", rows, cols)?,
                bias: taken(b, "bias", 1, cols)?,
                weight_velocity: taken(vw, "weight_velocity", rows, cols)?,
                bias_velocity: taken(vb, "bias_velocity", 1, cols)?,
            })
        };
        self.layers = (1..).zip(layers).map(layer).collect::<Result<_>>()?;
        Ok(())
    }

    /// Takes shares of the parameters that were handed out before.
    fn load_shares(&mut self, layers: Vec<LayerShare>) -> Result<()> {
        let network = &self.spec.network;
        same_shape("layers", (layers.len(), 1), (network.layers(), 1))?;
        for (l, LayerShare { weights, bias, weight_velocity, bias_velocity }) in (1..).zip(&layers) {
            let (rows, cols) = network.shape(l);
            for share in [weights, weight_velocity] {
                same_shape("weights", share.shape(), (rows, cols))?;
            }
            for share in [bias, bias_velocity] {
                same_shape("bias", share.shape(), (1, cols))?;
            }
        }
        self.layers = layers;
        Ok(())
    }

    fn forget_data(&mut self, rows: usize) -> Result<()> {
        (self.data, self.labels) = (None, None);
        let inputs = self.spec.network.inputs();
        if rows.checked_mul(inputs).is_none_or(|n| n > MOST_DATA) {
            return Err(Error::misuse(format!(
                "a data set of {rows} rows of {inputs}; {MOST_DATA} numbers are the most"
            )));
        }
        // A number alone takes little memory; what it promises makes room when it comes.
        self.data = Some(Factor::with_capacity(self.party.id, rows.min(RESERVED / inputs.max(1)), inputs));
        self.room = rows;
        Ok(())
    }

    fn more_data(&mut self, x: Dealt) -> Result<()> {
        let data = self.data.as_mut().ok_or_else(|| Error::misuse("rows of no data set"))?;
        let (rows, _) = x.shape();
        if rows > self.room - data.rows {
            return Err(Error::misuse(format!(
                "{rows} more rows of a data set of {}, {} are here",
                self.room, data.rows
            )));
        }
        let x = taken(x, "rows", rows, self.spec.network.inputs())?;
        data.make_room(rows, self.room);
        data.extend(&x)
    }

    fn all_labels(&self, y: Dealt) -> Result<Share> {
        let rows = self.data.as_ref().ok_or_else(|| Error::misuse("labels of no data set"))?.rows;
        taken(y, "labels", rows, self.spec.network.classes())
    }

    fn train(&mut self, batches: &[Vec<u32>]) -> Result<Spent> {
        let (Some(x), Some(y)) = (&self.data, &self.labels) else {
            return Err(Error::misuse("no data shared; load_data first"));
        };
        let rows = x.rows.min(y.rows);
        if let Some(bad) = batches.iter().flatten().find(|&&r| r as usize >= rows) {
            return Err(Error::misuse(format!("row {bad} of a data set of {rows}")));
        }
        let batch = self.spec.sgd.batch;
        batches.iter().try_for_each(|rows| same_shape("batches", (rows.len(), 1), (batch, 1)))?;
        let before = self.party.spent();
        for rows in batches {
            let images = faulty!(StaleBatch => crate::fault::batch::stale(batches, rows), rows);
            let (x, y) = (x.gather(images), y.gather(rows));
            self.party.run(train::step(&self.party, &self.spec, &mut self.layers, Left::from(&x), &y))?;
        }
        Ok(self.party.spent().since(&before))
    }

    fn step(&mut self, x: Dealt, y: Dealt, record: bool) -> Result<Answer> {
        let (rows, inputs, classes) = (self.spec.sgd.batch, self.spec.network.inputs(), self.spec.network.classes());
        let (x, y, p) = (taken(x, "batch", rows, inputs)?, taken(y, "labels", rows, classes)?, &self.party);
        p.record(record);
        let before = p.spent();
        let done = p.run(train::step(p, &self.spec, &mut self.layers, Left::from(&x), &y));
        let record = p.record(false);
        done?;
        Ok(Answer::Step(p.spent().since(&before), record))
    }

    fn count(&mut self, x: Dealt, y: Dealt, last: bool) -> Result<Answer> {
        let ((rows, _), inputs, classes) = (x.shape(), self.spec.network.inputs(), self.spec.network.classes());
        let (x, y, p) = (taken(x, "rows", rows, inputs)?, taken(y, "labels", rows, classes)?, &self.party);
        let mut hits = p.run(train::count_correct(p, &self.layers, Left::from(&x), &y))?;
        if let Some(before) = self.hits.take() {
            hits.add_assign(&before)?;
        }
        if last {
            return Ok(Answer::RightRows(hits));
        }
        self.hits = Some(hits);
        Ok(Answer::Done)
    }

    fn head(&self, logits: Dealt, labels: Dealt) -> Result<Answer> {
        let (p, head, epsilon) = (&self.party, self.spec.head, self.spec.epsilon_units());
        same_shape("logits and labels", logits.shape(), labels.shape())?;
        let (x, y) = (logits.share()?, labels.share()?);
        p.record(true);
        let shares = p.run(async {
            let out = heads::gradient(p, head, epsilon, &x, &y).await?;
            let probabilities = heads::probabilities(p, &out).await?;
            let loss = heads::loss(p, head, epsilon, &out, &x, &y).await?;
            Ok(HeadShares { probabilities, gradient: out.gradient, loss })
        });
        let record = p.record(false);
        Ok(Answer::Head(Box::new(shares?), record))
    }
}

/// The share of a dealt matrix that must have this shape, which is looked at before its keys are expanded.
fn taken(dealt: Dealt, what: &str, rows: usize, cols: usize) -> Result<Share> {
    same_shape(what, dealt.shape(), (rows, cols))?;
    dealt.share()
}

/// Numbers of a data set that a party takes: 32 GiB of them.
const MOST_DATA: usize = 1 << 32;

/// Numbers of a data set that a party makes room for before any has come: 16 MiB of them.
const RESERVED: usize = 1 << 21;

#[cfg(test)]
mod tests;
