//! The client of three parties: it deals secrets, asks for steps and receives what is opened.
//!
//! A request of the client goes to all three parties as the same [`worker::Job`]. Each party hands its shares, probes
//! and views of coins to the client apart, and the client puts them together ([`crate::client`]); no party does. The
//! parties run as threads of this process (`local.rs`) or elsewhere ([`remote`]).

mod config;
pub mod disclosed;
mod kept;
pub mod link;
mod local;
mod prediction;
pub mod remote;
pub mod state;
mod terms;
mod training;
pub mod worker;

pub use crate::opened::{HeadReport, LayerUnits, ParameterUnits, Probe, RoundingRecord, StepReport};
pub use config::EngineConfig;
pub(crate) use local::keep_freed_memory;
pub(crate) use terms::{Terms, party_seed, run_party};

use crate::client::{check_replicas, differ, open_parameters, reconstruct, tensors};
use crate::clock::Phase;
use crate::cost::Spent;
use crate::error::{Error, Result};
use crate::id::PartyId;
use crate::nn::dense::LayerShare;
use crate::pool::Pool;
use crate::protocol::input::{Dealt, deal_keyed};
use crate::share::Share;
use link::Link;
use spec::TrainSpec;
use std::collections::BTreeMap;
use std::time::Duration;
use terms::mix;
use worker::{Answer, Job};

/// Three parties and their client.
pub struct Engine {
    spec: TrainSpec,
    seed: Option<u64>,
    dealt: u64,
    record: bool,
    /// Dropped before the pool, which waits for the parties: without further jobs they end.
    links: [Box<dyn Link>; 3],
    _pool: Option<Pool>,
    broken: bool,
    /// Rows of the shared data set, if there is one.
    rows: Option<usize>,
    loaded: bool,
}

impl Engine {
    /// The client of three parties that run elsewhere, each behind a link that will first answer that it is ready.
    ///
    /// # Errors
    /// A specification that cannot be carried out; a party that did not start.
    pub fn connect(spec: TrainSpec, seed: Option<u64>, record: bool, links: [Box<dyn Link>; 3]) -> Result<Self> {
        spec.validate().map_err(|e| Error::misuse(e.to_string()))?;
        Self::over(spec, seed, record, links, None)
    }

    fn over(
        spec: TrainSpec,
        seed: Option<u64>,
        record: bool,
        links: [Box<dyn Link>; 3],
        pool: Option<Pool>,
    ) -> Result<Self> {
        let (rows, loaded, broken) = (None, false, false);
        let mut engine = Engine { spec, seed, dealt: 0, record, links, _pool: pool, broken, rows, loaded };
        engine.collect(|answer| matches!(answer, Answer::Done).then_some(()))?;
        Ok(engine)
    }

    /// The specification that this engine trains.
    pub fn spec(&self) -> &TrainSpec {
        &self.spec
    }

    /// Gives each party its job, and collects of each the answer that the job has.
    fn all<T>(&mut self, jobs: [Job; 3], take: impl Fn(Answer) -> Option<T>) -> Result<[T; 3]> {
        if self.broken {
            return Err(Error::misuse("the engine stopped after an earlier error; start a new one"));
        }
        for (link, job) in self.links.iter_mut().zip(jobs) {
            disclosed::note_job(&job);
            link.ask(job);
        }
        self.collect(take)
    }

    fn collect<T>(&mut self, take: impl Fn(Answer) -> Option<T>) -> Result<[T; 3]> {
        let (mut results, mut errors) = (Vec::new(), Vec::new());
        for (party, link) in PartyId::ALL.into_iter().zip(&mut self.links) {
            let answered = link.answer().inspect(disclosed::note_answer);
            let answered = answered.and_then(|answer| take(answer).ok_or(Error::PartyStopped { party }));
            match answered {
                Ok(v) => results.push(v),
                Err(e) => errors.push(e),
            }
        }
        // A party that failed has left.
        self.broken = !errors.is_empty();
        if let Some(e) = Error::cause(errors) {
            return Err(e);
        }
        results.try_into().map_err(|_| Error::misuse("three parties answer"))
    }

    fn all_do(&mut self, jobs: [Job; 3]) -> Result<()> {
        self.all(jobs, |answer| matches!(answer, Answer::Done).then_some(())).map(drop)
    }

    /// Splits a secret for the three parties.
    fn deal(&mut self, rows: usize, cols: usize, units: &[i64]) -> Result<[Dealt; 3]> {
        check_size(units, rows, cols)?;
        self.dealt += 1;
        let seed = self.seed.map(|s| mix(s, 3 + self.dealt));
        deal_keyed(rows, cols, units, seed)
    }

    fn deal_labels(&mut self, labels: &[usize], classes: usize) -> Result<[Dealt; 3]> {
        if let Some(bad) = labels.iter().find(|&&l| l >= classes) {
            return Err(Error::misuse(format!("label {bad} with {classes} classes")));
        }
        let mut one_hot = vec![0; labels.len() * classes];
        for (row, &l) in labels.iter().enumerate() {
            one_hot[row * classes + l] = 1;
        }
        self.deal(labels.len(), classes, &one_hot)
    }

    /// Shares the parameters of the network.
    ///
    /// # Errors
    /// Sizes that do not fit the network.
    pub fn load(&mut self, parameters: &ParameterUnits) -> Result<()> {
        let network = self.spec.network.clone();
        if parameters.layers.len() != network.layers() {
            return Err(Error::misuse(format!(
                "{} layers of parameters for a network of {}",
                parameters.layers.len(),
                network.layers()
            )));
        }
        let mut shares: [Vec<[Dealt; 4]>; 3] = Default::default();
        for (l, layer) in (1..).zip(&parameters.layers) {
            let (rows, cols) = network.shape(l);
            let w = self.deal(rows, cols, &layer.weights)?;
            let b = self.deal(1, cols, &layer.bias)?;
            let vw = self.deal(rows, cols, &layer.weight_velocity)?;
            let vb = self.deal(1, cols, &layer.bias_velocity)?;
            for ((((mine, w), b), vw), vb) in shares.iter_mut().zip(w).zip(b).zip(vw).zip(vb) {
                mine.push([w, b, vw, vb]);
            }
        }
        self.all_do(shares.map(Job::Load))?;
        self.loaded = true;
        Ok(())
    }

    /// Fails with a caller's mistake where parameters are needed and none are loaded.
    fn check_loaded(&self) -> Result<()> {
        if self.loaded { Ok(()) } else { Err(Error::misuse("no parameters shared; load first")) }
    }

    /// The shares of the parameters that each party holds; nothing is opened.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn shares(&mut self) -> Result<[Vec<LayerShare>; 3]> {
        let shares = self.all([(); 3].map(|()| Job::Shares), |answer| match answer {
            Answer::Shares(layers) => Some(layers),
            _ => None,
        })?;
        match self.unfit(&shares) {
            // A party that was given no parameters has none.
            Some(what) if self.loaded => Err(differ("parameters", what)),
            _ => Ok(shares),
        }
    }

    /// Whose shares do not fit the network, if anybody's.
    fn unfit(&self, shares: &[Vec<LayerShare>; 3]) -> Option<String> {
        let network = &self.spec.network;
        let fits = |(layer, l): (&LayerShare, usize)| {
            let (rows, cols) = network.shape(l);
            let whole = |s: &Share| s.rows.checked_mul(s.cols).is_some_and(|n| [s.own.len(), s.next.len()] == [n; 2]);
            let all_whole = tensors(layer).iter().all(|(_, share)| whole(share));
            let [w, b, vw, vb] = tensors(layer).map(|(_, share)| share.shape());
            all_whole && (w, vw, b, vb) == ((rows, cols), (rows, cols), (1, cols), (1, cols))
        };
        let bad = PartyId::ALL
            .into_iter()
            .zip(shares)
            .find(|(_, layers)| layers.len() != network.layers() || !layers.iter().zip(1..).all(fits));
        bad.map(|(id, _)| format!("the shares of party {id} do not fit a network of {:?}", network.widths))
    }

    /// Gives each party its shares of the parameters, as [`Engine::shares`] handed them out; nothing is opened.
    ///
    /// # Errors
    /// Shapes that do not fit the network, copies of a component that differ.
    pub fn load_shares(&mut self, shares: [Vec<LayerShare>; 3]) -> Result<()> {
        if let Some(what) = self.unfit(&shares) {
            return Err(Error::misuse(what));
        }
        check_replicas(&shares).map_err(Error::misuse)?;
        self.all_do(shares.map(Job::LoadShares))?;
        self.loaded = true;
        Ok(())
    }

    fn all_spent(&mut self, jobs: [Job; 3]) -> Result<Spent> {
        let answers = self.all(jobs, |answer| match answer {
            Answer::Spent(spent) => Some((spent, ())),
            _ => None,
        })?;
        Ok(split_spent(answers).0)
    }

    /// Asks for something of `elements` elements of which each party hands out a share, and opens it.
    fn opened(&mut self, jobs: [Job; 3], what: &str, elements: usize) -> Result<Vec<i64>> {
        let shares = self.all(jobs, |answer| match answer {
            Answer::Classes(share) | Answer::RightRows(share) => Some(share),
            _ => None,
        })?;
        open(what, &shares, elements)
    }

    /// The parameters, opened to the client: every party hands it its shares. No message carries them, and no party
    /// learns what it did not hold.
    ///
    /// # Errors
    /// Those of the parties; two copies of a component that differ.
    pub fn parameters(&mut self) -> Result<ParameterUnits> {
        open_parameters(&self.shares()?)
    }

    /// Where the parties' time went since the start, added up over the three.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn times(&mut self) -> Result<BTreeMap<Phase, Duration>> {
        let mut total = BTreeMap::new();
        let answers = self.all([(); 3].map(|()| Job::Times), |answer| match answer {
            Answer::Times(times) => Some(times),
            _ => None,
        })?;
        for (phase, time) in answers.into_iter().flatten() {
            let sum: &mut Duration = total.entry(phase).or_default();
            *sum = sum.saturating_add(time);
        }
        Ok(total)
    }

    /// The cost since the start, of all parties; the set-up is not counted.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn spent(&mut self) -> Result<Spent> {
        self.all_spent([(); 3].map(|()| Job::Spent))
    }
}

/// The value of `elements` elements behind three shares that the parties handed out.
fn open(what: &str, shares: &[Share; 3], elements: usize) -> Result<Vec<i64>> {
    if shares[0].len() != elements {
        return Err(differ(what, format!("the parties hand out {} elements, not {elements}", shares[0].len())));
    }
    reconstruct(shares).map_err(|how| differ(what, how))
}

/// Whether there are as many values as the matrix has elements.
fn check_size(units: &[i64], rows: usize, cols: usize) -> Result<()> {
    if units.len() == rows * cols {
        return Ok(());
    }
    Err(Error::misuse(format!("{} values for a {rows} x {cols} matrix", units.len())))
}

fn pair<A, B>(a: [A; 3], b: [B; 3]) -> [(A, B); 3] {
    let ([a0, a1, a2], [b0, b1, b2]) = (a, b);
    [(a0, b0), (a1, b1), (a2, b2)]
}

fn split_spent<T>(answers: [(Spent, T); 3]) -> (Spent, Vec<T>) {
    let mut total = Spent::default();
    let mut rest = Vec::new();
    for (spent, t) in answers {
        total.join(&spent);
        rest.push(t);
    }
    (total, rest)
}

#[cfg(test)]
mod tests;
