//! Three parties in this process: three long-lived threads of one pool, each with its own [`Party`] and its own shares, behind an in-memory
//! transport; and the client outside them, who deals secrets and receives what is revealed.
//!
//! The parties share no state: messages go through the transport, threads take pieces of one another's products (`crew.rs`) and memory that was
//! emptied before ([`crate::words`]). What the client asks for is sent to all three as the same job; shares, probes and views of coins are handed to the
//! client by each party apart and put together there ([`crate::client`]), never by a party.

use crate::client::{check_replicas, open_parameters, put_together, spoken, tensors};
use crate::clock::Phase;
use crate::cost::Spent;
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::kernel::{CtrKey, Kernel};
use crate::net::Channel;
use crate::net::memory::network;
use crate::net::recorded::{Recorded, Said, Transcript};
use crate::nn::dense::LayerShare;
use crate::nn::{heads, train};
use crate::party::{Party, PartyId};
use crate::prg::{Seed, seed_of};
use crate::protocol::input::deal;
use crate::protocol::matmul::Left;
use crate::protocol::reveal::reveal;
use crate::share::{Factor, Share};
use core_affinity::CoreId;
use spec::{Head, ProbePoint, TrainSpec};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How to start an [`Engine`].
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// What is trained.
    pub spec: TrainSpec,
    /// `None`: randomness from the operating system. A fixed seed makes runs repeatable and the sharing worthless: say so.
    pub seed: Option<u64>,
    /// Hand out probes and the views of truncations with every step.
    pub record: bool,
    /// How long a party waits for a message.
    pub deadline: Duration,
    /// Threads that share the work of the matrix products, parties that wait for a message among them. The results do not depend on it.
    pub threads: usize,
    /// Where there are two cores, keep parties 0 and 1 on the first and party 2 on the second: for long runs that have
    /// the machine for themselves.
    pub settled: bool,
    /// Keep a copy of every message here.
    pub transcript: Option<Transcript>,
}

impl EngineConfig {
    /// Operating-system randomness, no recording, a deadline of a minute, all of the machine's cores.
    pub fn new(spec: TrainSpec) -> Self {
        EngineConfig {
            spec,
            seed: None,
            record: false,
            deadline: Duration::from_secs(60),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            settled: false,
            transcript: None,
        }
    }
}

/// The opened parameters of one layer, row-major ring units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerUnits {
    /// W, (in, out), scale f.
    pub weights: Vec<i64>,
    /// b, scale f.
    pub bias: Vec<i64>,
    /// V_W, (in, out), scale f + extra velocity bits.
    pub weight_velocity: Vec<i64>,
    /// V_b, scale f + extra velocity bits.
    pub bias_velocity: Vec<i64>,
}

/// The opened parameters of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterUnits {
    /// One entry a layer.
    pub layers: Vec<LayerUnits>,
}

/// An opened probed tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Which tensor.
    pub point: ProbePoint,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Row-major, at the point's scale.
    pub units: Vec<i64>,
}

/// The rounding of one truncation, put together from the views of parties 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundingRecord {
    /// The truncation's name.
    pub name: String,
    /// Bits that were cut off.
    pub shift: u32,
    /// c of each element (empty with nearest rounding).
    pub coins: Vec<bool>,
    /// (index, e) of each element whose operand left the range so that the protocol's borrow was wrong.
    pub wraps: Vec<(usize, i8)>,
    /// V of each element, modulo 2^64.
    pub operands: Vec<i64>,
}

/// What one recorded step produced.
#[derive(Debug, Clone, Default)]
pub struct StepReport {
    /// Probed tensors, in the order of execution.
    pub probes: Vec<Probe>,
    /// Roundings, in the order of execution.
    pub rounding: Vec<RoundingRecord>,
    /// Who wrote which words of the messages.
    pub said: Vec<(PartyId, Said)>,
    /// The first party, if any, that drew the same words of a stream twice in this step: the call's number and the purpose.
    pub reused: Option<String>,
    /// What the step cost, all parties.
    pub spent: Spent,
    /// Wall time of the step.
    pub seconds: f64,
}

/// A head on given logits.
#[derive(Debug, Clone)]
pub struct HeadReport {
    /// (batch, classes), scale f.
    pub probabilities: Vec<i64>,
    /// Per row, scale f; the inner `None` is an infinite loss; `None` if the head has no loss.
    pub loss: Option<Vec<Option<i64>>>,
    /// (batch, classes), scale f.
    pub gradient: Vec<i64>,
    /// The rounding of every truncation.
    pub rounding: Vec<RoundingRecord>,
}

/// One party's thread state.
struct Worker {
    party: Party,
    spec: TrainSpec,
    layers: Vec<LayerShare>,
    data: Option<(Factor, Share)>,
    failed: bool,
}

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// Three parties and their client.
pub struct Engine {
    spec: TrainSpec,
    seed: Option<u64>,
    dealt: u64,
    record: bool,
    /// Dropped before the crew, which waits for the parties: without further jobs they end.
    jobs: Vec<Sender<Job>>,
    _crew: Crew,
    broken: bool,
}

impl Engine {
    /// Starts three parties.
    ///
    /// # Errors
    /// A specification that cannot be carried out, a kernel that was asked for and is not there, no randomness.
    pub fn start(config: EngineConfig) -> Result<Self> {
        config.spec.validate().map_err(|e| Error::misuse(e.0))?;
        Kernel::select().map_err(|e| Error::misuse(e.to_string()))?;
        keep_freed_memory();
        let cores = if config.settled { two_cores() } else { None };
        let (mut jobs, mut ready) = (Vec::new(), Vec::new());
        let parties = network(config.deadline).map(|link| {
            let id = link.id();
            let (spec, seed) = (config.spec.clone(), config.seed.map(|s| party_seed(s, id)));
            // Twice as many as threads, so that nobody waits long for what another has taken.
            let pieces = if config.threads > 1 { 2 * config.threads } else { 1 };
            let link = if cores.is_some() && id == ALONE { link.patient() } else { link };
            let link: Box<dyn Channel> = match &config.transcript {
                Some(transcript) => Box::new(Recorded::new(link, id, transcript.clone())),
                None => Box::new(link),
            };
            let (send_job, get_job) = channel::<Job>();
            let (send_ready, get_ready) = channel();
            jobs.push(send_job);
            ready.push(get_ready);
            let body: Box<dyn FnOnce() + Send> = Box::new(move || {
                if let Some(cores) = cores {
                    core_affinity::set_for_current(cores[usize::from(id == ALONE)]);
                }
                party_thread(id, spec, pieces, link, seed, &get_job, &send_ready);
            });
            body
        });
        let crew = Crew::start(config.threads, parties).map_err(|e| {
            Error::misuse(format!("cannot start {} threads: {e}; ask for fewer", config.threads.max(3)))
        })?;
        let EngineConfig { spec, seed, record, .. } = config;
        let engine = Engine { spec, seed, dealt: 0, record, jobs, _crew: crew, broken: false };
        let started = PartyId::ALL.into_iter().zip(ready);
        let errors = started.filter_map(|(party, r)| r.recv().unwrap_or(Err(Error::PartyStopped { party })).err());
        match Error::cause(errors) {
            Some(e) => Err(e),
            None => Ok(engine),
        }
    }

    /// What is trained.
    pub fn spec(&self) -> &TrainSpec {
        &self.spec
    }

    /// Runs the same job at all parties, each with its own input, and collects their answers in order.
    fn all<I: Send + 'static, T: Send + 'static>(
        &mut self,
        inputs: [I; 3],
        job: impl Fn(&mut Worker, I) -> Result<T> + Send + Sync + 'static,
    ) -> Result<[T; 3]> {
        if self.broken {
            return Err(Error::misuse("the engine stopped after an earlier error; start a new one"));
        }
        let job = Arc::new(job);
        let answers: Vec<Receiver<Result<T>>> = self
            .jobs
            .iter()
            .zip(inputs)
            .map(|(party, input)| {
                let (send, receive) = channel();
                let job = Arc::clone(&job);
                let task: Job = Box::new(move |w| {
                    let answer = job(w, input);
                    w.failed |= answer.as_ref().is_err_and(|e| !matches!(e, Error::Misuse(_)));
                    let _ = send.send(answer);
                });
                // A party whose thread is gone answers by its closed channel.
                let _ = party.send(task);
                receive
            })
            .collect();
        let (mut results, mut errors) = (Vec::new(), Vec::new());
        for (party, answer) in PartyId::ALL.into_iter().zip(answers) {
            match answer.recv().unwrap_or(Err(Error::PartyStopped { party })) {
                Ok(v) => results.push(v),
                Err(e) => errors.push(e),
            }
        }
        // A mistake that all three refuse leaves them where they were.
        let refused = results.is_empty() && errors.iter().all(|e| matches!(e, Error::Misuse(_)));
        self.broken = !errors.is_empty() && !refused;
        if let Some(e) = Error::cause(errors) {
            return Err(e);
        }
        results.try_into().map_err(|_| Error::misuse("three parties answer"))
    }

    /// Splits a secret for the three parties.
    fn deal(&mut self, rows: usize, cols: usize, units: &[i64]) -> Result<[Share; 3]> {
        check_size(units, rows, cols)?;
        self.dealt += 1;
        let seed = self.seed.map(|s| mix(s, 3 + self.dealt));
        deal(rows, cols, units, seed)
    }

    fn deal_labels(&mut self, labels: &[usize], classes: usize) -> Result<[Share; 3]> {
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
        let mut shares: [Vec<LayerShare>; 3] = Default::default();
        for (l, layer) in (1..).zip(&parameters.layers) {
            let (rows, cols) = network.shape(l);
            let w = self.deal(rows, cols, &layer.weights)?;
            let b = self.deal(1, cols, &layer.bias)?;
            let vw = self.deal(rows, cols, &layer.weight_velocity)?;
            let vb = self.deal(1, cols, &layer.bias_velocity)?;
            for ((((mine, weights), bias), weight_velocity), bias_velocity) in
                shares.iter_mut().zip(w).zip(b).zip(vw).zip(vb)
            {
                mine.push(LayerShare { weights, bias, weight_velocity, bias_velocity });
            }
        }
        self.all(shares, |w, layers| {
            w.layers = layers;
            Ok(())
        })?;
        Ok(())
    }

    /// What each party holds of the parameters; nothing is opened.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn shares(&mut self) -> Result<[Vec<LayerShare>; 3]> {
        self.all([(); 3], |w, ()| Ok(w.layers.clone()))
    }

    /// Gives each party its shares of the parameters, as [`Engine::shares`] handed them out; nothing is opened.
    ///
    /// # Errors
    /// Shapes that do not fit the network, copies of a component that differ.
    pub fn load_shares(&mut self, shares: [Vec<LayerShare>; 3]) -> Result<()> {
        let network = &self.spec.network;
        for (id, layers) in PartyId::ALL.into_iter().zip(&shares) {
            let expected = (1..=network.layers()).map(|l| network.shape(l));
            let fits = |(layer, (rows, cols)): (&LayerShare, (usize, usize))| {
                let whole = |s: &Share| [s.own.len(), s.next.len()] == [s.rows * s.cols; 2];
                let all_whole = tensors(layer).iter().all(|(_, share)| whole(share));
                let [w, b, vw, vb] = tensors(layer).map(|(_, share)| share.shape());
                all_whole && (w, vw, b, vb) == ((rows, cols), (rows, cols), (1, cols), (1, cols))
            };
            if layers.len() != network.layers() || !layers.iter().zip(expected).all(fits) {
                return Err(Error::misuse(format!(
                    "the shares of party {id} do not fit a network of {:?}",
                    network.widths
                )));
            }
        }
        check_replicas(&shares).map_err(Error::misuse)?;
        self.all(shares, |w, layers| {
            w.layers = layers;
            Ok(())
        })?;
        Ok(())
    }

    /// One recorded or unrecorded step on a batch that is shared for it: x row-major units (batch, in), labels in 0..classes.
    ///
    /// # Errors
    /// Sizes or labels that do not fit; those of the parties.
    pub fn step(&mut self, x: &[i64], labels: &[usize]) -> Result<StepReport> {
        self.check_batch(labels.len())?;
        let (inputs, classes) = (self.spec.network.inputs(), self.spec.network.classes());
        let x = self.deal(labels.len(), inputs, x)?;
        let y = self.deal_labels(labels, classes)?;
        let record = self.record;
        let start = Instant::now();
        let answers = self.all(pair(x, y), move |w, (x, y)| {
            w.party.record(record);
            let before = w.party.spent();
            let done = w.party.run(train::step(&w.party, &w.spec, &mut w.layers, Left::from(&x), &y));
            let record = w.party.record(false);
            done?;
            Ok((w.party.spent().since(&before), record))
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let (spent, mut records) = split_spent(answers);
        let (said, reused) = spoken(&mut records);
        let (probes, rounding) = put_together(records, self.spec.rounding)?;
        Ok(StepReport { probes, rounding, said, reused, spent, seconds })
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
        self.all([(); 3], |w, ()| {
            w.data = None;
            Ok(())
        })?;
        let mut dealt = PartyId::ALL.map(|id| Factor::with_capacity(id, rows, inputs));
        for x in x.chunks((DEALT / inputs).max(1) * inputs) {
            let shares = self.deal(x.len() / inputs, inputs, x)?;
            dealt.iter_mut().zip(&shares).try_for_each(|(data, share)| data.extend(share))?;
        }
        self.all(pair(dealt, y), |w, data| {
            w.data = Some(data);
            Ok(())
        })?;
        Ok(())
    }

    /// Trains on batches of rows of the shared data set. Returns what it cost.
    ///
    /// # Errors
    /// No data, row numbers that do not fit; those of the parties.
    pub fn train(&mut self, batches: &[Vec<u32>]) -> Result<Spent> {
        batches.iter().try_for_each(|rows| self.check_batch(rows.len()))?;
        let batches: Arc<[Vec<u32>]> = batches.into();
        let answers = self.all([(); 3], move |w, ()| {
            let Some((x, y)) = &w.data else {
                return Err(Error::misuse("no data shared; load_data first"));
            };
            if let Some(bad) = batches.iter().flatten().find(|&&r| r as usize >= x.rows) {
                return Err(Error::misuse(format!("row {bad} of a data set of {}", x.rows)));
            }
            let before = w.party.spent();
            for (k, rows) in batches.iter().enumerate() {
                let stale = planted(Fault::StaleBatch) && k > 0 && k + 1 == batches.len();
                let (x, y) = (x.gather(if stale { &batches[k - 1] } else { rows }), y.gather(rows));
                w.party.run(train::step(&w.party, &w.spec, &mut w.layers, Left::from(&x), &y))?;
            }
            Ok((w.party.spent().since(&before), ()))
        })?;
        Ok(split_spent(answers).0)
    }

    /// The parameters, opened to the client: every party hands it its shares. No message carries them, and no party learns what it did not hold.
    ///
    /// # Errors
    /// Those of the parties; two copies of a component that differ.
    pub fn parameters(&mut self) -> Result<ParameterUnits> {
        open_parameters(&self.shares()?)
    }

    /// The predicted class of each row of x (row-major units, (rows, in)): revealed.
    ///
    /// # Errors
    /// Sizes that do not fit; those of the parties.
    pub fn predict(&mut self, x: &[i64]) -> Result<Vec<usize>> {
        let inputs = self.spec.network.inputs();
        let x = self.deal(x.len() / inputs.max(1), inputs, x)?;
        let [classes, ..] = self.all(x, |w, x| w.party.run(train::predict(&w.party, &w.layers, Left::from(&x))))?;
        Ok(classes.into_iter().map(|c| c as usize).collect())
    }

    /// How many rows are predicted as labelled: only the number is revealed. In batches of 1,000 rows.
    ///
    /// # Errors
    /// Sizes or labels that do not fit; those of the parties.
    pub fn count_correct(&mut self, x: &[i64], labels: &[usize]) -> Result<usize> {
        const ROWS: usize = 1000;
        let (inputs, classes) = (self.spec.network.inputs(), self.spec.network.classes());
        if x.len() != labels.len() * inputs {
            return Err(Error::misuse(format!("{} values for {} rows of {inputs}", x.len(), labels.len())));
        }
        let mut total = 0;
        for (x, labels) in x.chunks(ROWS * inputs).zip(labels.chunks(ROWS)) {
            let x = self.deal(labels.len(), inputs, x)?;
            let y = self.deal_labels(labels, classes)?;
            let [hits, ..] = self.all(pair(x, y), |w, (x, y)| {
                w.party.run(train::count_correct(&w.party, &w.layers, Left::from(&x), &y))
            })?;
            total += hits as usize;
        }
        Ok(total)
    }

    /// The head on given logits (row-major units, (rows, classes), any class count from 2): probabilities, loss and gradient, all
    /// revealed.
    ///
    /// # Errors
    /// Sizes or labels that do not fit; those of the parties.
    pub fn head(&mut self, logits: &[i64], classes: usize, labels: &[usize]) -> Result<HeadReport> {
        if classes < 2 {
            return Err(Error::misuse(format!("{classes} classes; a head has at least 2")));
        }
        let x = self.deal(labels.len(), classes, logits)?;
        let y = self.deal_labels(labels, classes)?;
        let (head, epsilon): (Head, i64) = (self.spec.head, self.spec.epsilon_units());
        let answers = self.all(pair(x, y), move |w, (x, y)| {
            let p = &w.party;
            p.record(true);
            let opened = p.run(async {
                let out = heads::gradient(p, head, epsilon, &x, &y).await?;
                let probabilities = heads::probabilities(p, &out).await?;
                let loss = heads::loss(p, head, epsilon, &out, &x, &y).await?;
                let gradient = reveal(p, &out.gradient).await?;
                let probabilities = reveal(p, &probabilities).await?;
                let loss = match loss {
                    None => None,
                    Some((value, finite)) => {
                        let (value, finite) = (reveal(p, &value).await?, reveal(p, &finite).await?);
                        Some(value.into_iter().zip(finite).map(|(v, f)| (f == 1).then_some(v)).collect())
                    }
                };
                Ok((probabilities, loss, gradient))
            });
            let record = p.record(false);
            Ok((opened?, record))
        })?;
        let mut records = Vec::new();
        let mut first = None;
        for (opened, record) in answers {
            records.push(record);
            first.get_or_insert(opened);
        }
        let (_, rounding) = put_together(records, self.spec.rounding)?;
        let (probabilities, loss, gradient) = first.ok_or_else(|| Error::misuse("three parties answer"))?;
        Ok(HeadReport { probabilities, loss, gradient, rounding })
    }

    /// Where the parties' time went since the start, added up over the three.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn times(&mut self) -> Result<BTreeMap<Phase, Duration>> {
        let mut total = BTreeMap::new();
        for times in self.all([(); 3], |w, ()| Ok(w.party.times()))? {
            for (phase, time) in times {
                *total.entry(phase).or_default() += time;
            }
        }
        Ok(total)
    }

    /// What was spent since the start, all parties, set-up not counted.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn spent(&mut self) -> Result<Spent> {
        let answers = self.all([(); 3], |w, ()| Ok((w.party.spent(), ())))?;
        Ok(split_spent(answers).0)
    }
}

/// Lets the allocator keep what a step frees for the next one. The C library gives memory back to the system from a threshold on that
/// follows the largest block freed so far, and page faults would cost a tenth of a step; one large block, never touched, raises it.
fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(31 << 20)));
}

/// The party that has a core to itself where there are two. It waits for nobody in a truncation and runs ahead, while parties 0 and 1 take turns; left
/// alone, three threads on two cores move about and meet cold caches.
const ALONE: PartyId = PartyId::P2;

/// The two cores of a machine that has two and lets itself be asked.
fn two_cores() -> Option<[CoreId; 2]> {
    core_affinity::get_core_ids()?.try_into().ok()
}

fn party_thread(
    id: PartyId,
    spec: TrainSpec,
    pieces: usize,
    link: Box<dyn Channel>,
    seed: Option<Seed>,
    jobs: &Receiver<Job>,
    ready: &Sender<Result<()>>,
) {
    let mut party = match Party::connect(id, spec.fixed, spec.rounding, link, seed) {
        Ok(p) => p,
        Err(e) => {
            let _ = ready.send(Err(e));
            return;
        }
    };
    party.pieces = pieces;
    let _ = ready.send(Ok(()));
    let mut worker = Worker { party, spec, layers: Vec::new(), data: None, failed: false };
    // A party that failed leaves, and its closed channels wake the others.
    while !worker.failed
        && let Ok(job) = jobs.recv()
    {
        job(&mut worker);
    }
}

/// A seed for party `id`, or for the n-th dealt secret, from one that was asked for: as different from its neighbours as random ones are, for
/// the parties send it.
fn mix(seed: u64, n: u64) -> Seed {
    let mut words = [0; 2];
    CtrKey::new(seed_of([seed, 0])).fill(n.into(), &mut words);
    seed_of(words)
}

fn party_seed(seed: u64, id: PartyId) -> Seed {
    mix(seed, id.index() as u64)
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
mod tests {
    use super::*;
    use crate::words::Words;
    use spec::{FixedSpec, NetworkSpec, Rounding, SgdSpec};

    fn spec(head: Head, rounding: Rounding) -> TrainSpec {
        TrainSpec {
            network: NetworkSpec { widths: vec![300, 130, 10] },
            head,
            epsilon: 0.1,
            rounding,
            fixed: FixedSpec::default(),
            sgd: SgdSpec { batch: 70, ..SgdSpec::default() },
        }
    }

    /// Numbers in (-range, range) that look random enough.
    fn units(n: usize, range: i64) -> Vec<i64> {
        (1..=n as i64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64) % range).collect()
    }

    fn parameters(spec: &TrainSpec) -> ParameterUnits {
        let layer = |l| {
            let (rows, cols) = spec.network.shape(l);
            let zero = |n| vec![0; n];
            LayerUnits {
                weights: units(rows * cols, 9000),
                bias: zero(cols),
                weight_velocity: zero(rows * cols),
                bias_velocity: zero(cols),
            }
        };
        ParameterUnits { layers: (1..=spec.network.layers()).map(layer).collect() }
    }

    fn trained(spec: &TrainSpec, seed: Option<u64>, threads: usize) -> ParameterUnits {
        let mut engine = Engine::start(EngineConfig { seed, threads, ..EngineConfig::new(spec.clone()) }).unwrap();
        engine.load(&parameters(spec)).unwrap();
        let labels: Vec<usize> = (0..200).map(|i| i * 7 % 10).collect();
        engine.load_data(&units(200 * 300, 60_000), &labels).unwrap();
        let batch = |k: u32| (0..70).map(|i| (i * 3 + k) % 200).collect();
        engine.train(&[batch(0), batch(1), batch(2)]).unwrap();
        engine.parameters().unwrap()
    }

    #[test]
    fn a_seed_gives_the_same_bytes_on_any_number_of_threads() {
        let spec = spec(Head::Softmax, Rounding::Probabilistic);
        let once = trained(&spec, Some(5), 1);
        for threads in [1, 2, 8] {
            assert_eq!(trained(&spec, Some(5), threads), once, "{threads} threads");
        }
        assert_ne!(trained(&spec, Some(6), 1), once, "other coins");
    }

    #[test]
    fn nearest_rounding_does_not_depend_on_the_randomness() {
        let spec = spec(Head::ReluProb, Rounding::Nearest);
        assert_eq!(trained(&spec, None, 1), trained(&spec, None, 1));
    }

    /// The cost of a step depends on shapes alone: other weights, other data, the same counters.
    #[test]
    fn the_cost_does_not_depend_on_the_data() {
        for head in Head::ALL {
            for rounding in Rounding::ALL {
                let spec = spec(head, rounding);
                let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
                engine.load(&parameters(&spec)).unwrap();
                let labels = vec![3; 70];
                let a = engine.step(&units(70 * 300, 60_000), &labels).unwrap().spent;
                let b = engine.step(&vec![0; 70 * 300], &labels).unwrap().spent;
                assert_eq!(a, b, "{head} {rounding}");
            }
        }
    }

    /// Of every head and depth, the tensors that the specification names: each once, under its own name, in its own shape.
    #[test]
    fn a_recorded_step_hands_out_every_tensor_once() {
        use HeadPoint::*;
        use ProbePoint::{Head as OfHead, *};
        use spec::{Head, HeadPoint};
        for (layers, head) in [1, 2, 3].into_iter().flat_map(|l| Head::ALL.map(|h| (l, h))) {
            let network = NetworkSpec::dense(9, 5, 4, layers);
            let of_head = match head {
                Head::Softmax => vec![(Maximum, 1, 1), (Exp, 1, 4), (Sum, 1, 1), (Quotient, 1, 4)],
                Head::ReluGrad => vec![(Positive, 1, 4), (Sum, 1, 1), (Quotient, 1, 4)],
                Head::ReluProb | Head::ReluProbCut | Head::ReluEps => {
                    vec![(Positive, 1, 4), (Sum, 1, 1), (Reciprocal, 2, 1)]
                }
            };
            let mut expected = vec![(Logits, 70, 4), (HeadGradient, 70, 4)];
            expected.extend(of_head.into_iter().map(|(point, batches, cols)| (OfHead(point), 70 * batches, cols)));
            for l in 1..=layers {
                let (rows, cols) = network.shape(l);
                expected.extend([WeightGradient(l), WeightVelocity(l), Weights(l)].map(|point| (point, rows, cols)));
                expected.extend([BiasGradient(l), BiasVelocity(l), Bias(l)].map(|point| (point, 1, cols)));
                if l < layers {
                    expected
                        .extend([PreActivation(l), Activation(l), ActivationGradient(l)].map(|point| (point, 70, 5)));
                }
            }
            expected.sort();
            let spec = TrainSpec { network, ..spec(head, Rounding::Probabilistic) };
            let mut engine = Engine::start(EngineConfig { record: true, ..EngineConfig::new(spec.clone()) }).unwrap();
            engine.load(&parameters(&spec)).unwrap();
            let probes = engine.step(&units(70 * 9, 60_000), &[1; 70]).unwrap().probes;
            let mut found: Vec<_> = probes.iter().map(|p| (p.point, p.rows, p.cols)).collect();
            found.sort();
            assert_eq!(found, expected, "{head}, {layers} layers");
        }
    }

    /// The promise for a step at batch 128: at most 120 rounds, and the bars of the benchmarks.
    #[test]
    fn a_softmax_step_takes_few_rounds() {
        for (layers, bar) in [(1, 80), (2, 100), (3, 115)] {
            let spec = TrainSpec {
                network: NetworkSpec::dense(20, 8, 10, layers),
                sgd: SgdSpec::default(),
                ..spec(Head::Softmax, Rounding::Probabilistic)
            };
            let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
            engine.load(&parameters(&spec)).unwrap();
            let rounds = engine.step(&units(128 * 20, 60_000), &[1; 128]).unwrap().spent.rounds;
            assert!(rounds <= bar, "{layers} layers: {rounds} rounds");
        }
    }

    #[test]
    fn shares_that_are_handed_out_are_taken_in_again_and_only_if_they_belong_together() {
        let spec = spec(Head::Softmax, Rounding::Nearest);
        let start = || Engine::start(EngineConfig::new(spec.clone())).unwrap();
        let mut engine = start();
        engine.load(&parameters(&spec)).unwrap();
        let shares = engine.shares().unwrap();
        let mut other = start();
        other.load_shares(shares.clone()).unwrap();
        assert_eq!(other.parameters().unwrap(), parameters(&spec));

        let refused = |e: &mut Engine, s: [Vec<LayerShare>; 3], what: &str| {
            let error = e.load_shares(s).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        let mut altered = shares.clone();
        altered[1][0].bias.own[3] ^= 1;
        refused(&mut other, altered, "layer1/bias: the two copies of component 1 differ at index 3");
        let mut short = shares.clone();
        short[2].pop();
        refused(&mut other, short, "party 2");
        let mut hollow = shares.clone();
        hollow.iter_mut().for_each(|s| s[0].bias.next = Words::default());
        refused(&mut other, hollow, "party 0");
        let [a, b, c] = shares;
        refused(&mut other, [b, a, c], "two copies");
        assert_eq!(other.parameters().unwrap(), parameters(&spec), "what is refused changes nothing");
    }

    #[test]
    fn misuse_is_an_error_that_names_it() {
        let spec = spec(Head::Softmax, Rounding::Nearest);
        let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
        let is = |e: Error, what: &str| assert!(e.to_string().contains(what), "{e}");
        is(engine.train(&[vec![0; 70]]).unwrap_err(), "load_data");
        is(engine.train(&[vec![0; 70], vec![0]]).unwrap_err(), "a batch of 1 rows; it must have 70");
        is(engine.step(&[0; 300], &[0]).unwrap_err(), "a batch of 1 rows; it must have 70");
        is(engine.step(&[0; 5], &[0; 70]).unwrap_err(), "70 x 300");
        is(engine.step(&[0; 70 * 300], &[10; 70]).unwrap_err(), "label 10");
        is(engine.head(&[], 0, &[]).unwrap_err(), "0 classes");
        is(engine.head(&[1], 1, &[0]).unwrap_err(), "1 classes");
        is(engine.load(&ParameterUnits { layers: vec![] }).unwrap_err(), "0 layers");
        engine.load(&parameters(&spec)).unwrap();
        engine.load_data(&units(300, 100), &[0]).unwrap();
        is(engine.train(&[vec![0; 70], vec![1; 70]]).unwrap_err(), "row 1");
        assert_eq!(
            engine.parameters().unwrap(),
            parameters(&spec),
            "nothing is trained before all rows are known to be there"
        );
    }

    #[test]
    fn a_party_that_panics_is_no_misuse_and_stops_the_engine() {
        let mut engine = Engine::start(EngineConfig::new(spec(Head::Softmax, Rounding::Nearest))).unwrap();
        let stopped = engine.all([0, 1, 2], |_, i| {
            assert!(i != 1, "planted");
            Ok(())
        });
        assert_eq!(stopped.unwrap_err(), Error::PartyStopped { party: PartyId::P1 });
        assert!(engine.parameters().unwrap_err().to_string().contains("start a new one"));
    }

    #[test]
    fn hits_are_counted_over_all_pieces_of_a_long_data_set() {
        let spec = TrainSpec { network: NetworkSpec { widths: vec![2, 2] }, ..spec(Head::Softmax, Rounding::Nearest) };
        let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
        let layer = LayerUnits {
            weights: vec![1 << 16, 0, 0, 1 << 16],
            bias: vec![0; 2],
            weight_velocity: vec![0; 4],
            bias_velocity: vec![0; 2],
        };
        engine.load(&ParameterUnits { layers: vec![layer] }).unwrap();
        // Rows (1, 0) are class 0. 1,001 rows, of which 800 in the first piece and the one in the second are labelled so.
        let x: Vec<i64> = (0..1001).flat_map(|_| [1 << 16, 0]).collect();
        let labels: Vec<usize> = (0..1001).map(|i| usize::from((100..300).contains(&i))).collect();
        assert_eq!(engine.count_correct(&x, &labels).unwrap(), 801);
    }
}
