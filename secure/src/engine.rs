//! The client of three parties: it deals secrets, asks for steps and receives what is opened. And the three parties themselves, where they
//! are long-lived threads of this process: each with its own [`Party`] and its own shares, behind an in-memory transport.
//!
//! The parties share no state: messages go through the transport, threads take pieces of one another's products (`pool.rs`) and memory that was
//! emptied before ([`crate::buffer`]). What the client asks for is sent to all three as the same [`worker::Job`]; shares, probes and views
//! of coins are handed to the client by each party apart and put together there ([`crate::client`]), never by a party.

pub mod disclosed;
pub mod link;
pub mod remote;
pub mod state;
pub mod worker;

pub use crate::opened::{HeadReport, LayerUnits, ParameterUnits, Probe, RoundingRecord, StepReport};

use crate::client::{
    check_messages, check_replicas, differ, open_parameters, put_together, reconstruct, reused, sent, tensors,
};
use crate::clock::Phase;
use crate::cost::Spent;
use crate::error::{Error, Result};
use crate::id::PartyId;
use crate::kernel::{CtrKey, Kernel};
use crate::net::Channel;
use crate::net::memory::network;
use crate::net::queue::QueueChannel;
use crate::net::recorded::{Recorded, Transcript};
use crate::nn::dense::LayerShare;
use crate::party::Party;
use crate::pool::Pool;
use crate::prg::{Seed, seed_of};
use crate::protocol::input::{Dealt, deal_keyed};
use crate::share::Share;
use core_affinity::CoreId;
use link::{Link, ThreadLink};
use spec::TrainSpec;
use state::{StateFolder, newest_common};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use worker::{Answer, Job, Worker};

/// How to start an [`Engine`].
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// What is trained.
    pub spec: TrainSpec,
    /// `None`: randomness from the operating system. A fixed seed makes runs repeatable and the sharing worthless: say so.
    pub seed: Option<u64>,
    /// Seeds of the streams of components 0, 1 and 2, in place of those that the parties draw: for tests that run a step again with one stream
    /// changed.
    pub streams: Option<[Seed; 3]>,
    /// Hand out probes and the views of truncations with every step.
    pub record: bool,
    /// How long a party waits for a message.
    pub deadline: Duration,
    /// Threads that share the work of the matrix products, parties that wait for a message among them. The results do not depend on it.
    pub threads: usize,
    /// Where there are two cores, keep parties 0 and 1 on the first and party 2 on the second: for long runs that have
    /// the machine for themselves.
    pub pin_to_cores: bool,
    /// Keep a copy of every message here.
    pub transcript: Option<Transcript>,
}

impl EngineConfig {
    /// Operating-system randomness, no recording, a deadline of a minute, all of the machine's cores.
    pub fn new(spec: TrainSpec) -> Self {
        EngineConfig {
            spec,
            seed: None,
            streams: None,
            record: false,
            deadline: Duration::from_secs(60),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            pin_to_cores: false,
            transcript: None,
        }
    }
}

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
    /// Starts three parties in this process.
    ///
    /// # Errors
    /// A specification that cannot be carried out, a kernel that was asked for and is not there, no randomness.
    pub fn start(config: EngineConfig) -> Result<Self> {
        let ends = network(config.deadline);
        Self::start_over(config, ends)
    }

    /// Starts three parties in this process over given ends of a network.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub(crate) fn start_over(config: EngineConfig, ends: [QueueChannel; 3]) -> Result<Self> {
        config.spec.validate().map_err(|e| Error::misuse(e.0))?;
        Kernel::select().map_err(|e| Error::misuse(e.to_string()))?;
        keep_freed_memory();
        let cores = if config.pin_to_cores { two_cores() } else { None };
        let mut links = Vec::new();
        let mut bodies = Vec::new();
        for channel in ends {
            let (link, body) = thread_party(&config, channel, cores);
            links.push(Box::new(link) as Box<dyn Link>);
            bodies.push(body);
        }
        let pool = Pool::start(config.threads, bodies).map_err(|e| {
            let reason = std::error::Error::source(&e).map_or(e.to_string(), ToString::to_string);
            Error::misuse(format!(
                "the system gives no three threads for the parties ({reason}); raise the limit of threads or memory (ulimit -u, ulimit -v, or that of the container)"
            ))
        })?;
        let links = links.try_into().map_err(|_| Error::misuse("three parties start"))?;
        Self::over(config.spec, config.seed, config.record, links, Some(pool))
    }

    /// The client of three parties that run elsewhere, each behind a link that will first answer that it is ready.
    ///
    /// # Errors
    /// A specification that cannot be carried out; a party that did not start.
    pub fn connect(spec: TrainSpec, seed: Option<u64>, record: bool, links: [Box<dyn Link>; 3]) -> Result<Self> {
        spec.validate().map_err(|e| Error::misuse(e.0))?;
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

    /// What is trained.
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

    /// What each party holds of the parameters; nothing is opened.
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

    /// One recorded or unrecorded step on a batch that is shared for it: x row-major units (batch, in), labels in 0..classes.
    ///
    /// # Errors
    /// Sizes or labels that do not fit; those of the parties; with recording on, a message that its receiver declared otherwise than its
    /// sender.
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

    /// The parameters, opened to the client: every party hands it its shares. No message carries them, and no party learns what it did not hold.
    ///
    /// # Errors
    /// Those of the parties; two copies of a component that differ.
    pub fn parameters(&mut self) -> Result<ParameterUnits> {
        open_parameters(&self.shares()?)
    }

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

    /// How many rows are predicted as labelled, in batches of 1,000 rows. The parties add their shares of the numbers up; only the sum is
    /// opened, and only to the client.
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

    /// The head on given logits (row-major units, (rows, classes), any class count from 2): probabilities, loss and gradient, all
    /// opened to the client.
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

    /// Has each party keep its shares of the parameters on its own disk, as the state of `run` after `step` steps. Nothing is opened.
    ///
    /// # Errors
    /// Those of the parties: one that has no folder for states, a full disk.
    pub fn keep(&mut self, run: &str, step: u64) -> Result<()> {
        self.check_loaded()?;
        self.all_kept([(); 3].map(|()| Job::Keep { run: run.to_owned(), step })).map(drop)
    }

    /// Has the parties take up `run` where all three have kept it and agree. After how many steps that is; `None`: nothing is kept.
    ///
    /// # Errors
    /// Those of the parties.
    pub fn resume(&mut self, run: &str) -> Result<Option<u64>> {
        let kept = self.all_kept([(); 3].map(|()| Job::Kept(run.to_owned())))?;
        let Some(step) = newest_common(&kept) else { return Ok(None) };
        self.all_do([(); 3].map(|()| Job::Resume { run: run.to_owned(), step }))?;
        self.loaded = true;
        Ok(Some(step))
    }

    fn all_kept(&mut self, jobs: [Job; 3]) -> Result<[Vec<state::Kept>; 3]> {
        self.all(jobs, |answer| match answer {
            Answer::Kept(kept) => Some(kept),
            _ => None,
        })
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

    /// What was spent since the start, all parties, set-up not counted.
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

fn open_all(what: &str, shares: Vec<Share>, elements: usize) -> Result<Vec<i64>> {
    open(what, &shares.try_into().map_err(|_| Error::misuse("three parties answer"))?, elements)
}

/// Lets the allocator keep what a step frees for the next one. The C library gives memory back to the system from a threshold on that
/// follows the largest block freed so far, and page faults would cost a tenth of a step; one large block, never touched, raises it.
pub(crate) fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(31 << 20)));
}

/// The party that has a core to itself where there are two. It waits for nobody in a truncation and runs ahead, while parties 0 and 1 take turns; left
/// alone, three threads on two cores move about and meet cold caches.
const ALONE: PartyId = PartyId::P2;

/// The two cores of a machine that has two and lets itself be asked.
fn two_cores() -> Option<[CoreId; 2]> {
    core_affinity::get_core_ids()?.try_into().ok()
}

/// A party on a thread of this process: the client's link to it, and what the thread runs.
fn thread_party(
    config: &EngineConfig,
    channel: QueueChannel,
    cores: Option<[CoreId; 2]>,
) -> (ThreadLink, Box<dyn FnOnce() + Send>) {
    let party = channel.id();
    // A party draws the seed of the stream that it shares with the next one.
    let stream = config.streams.map(|streams| streams[party.next().index()]);
    // Twice as many as threads, so that nobody waits long for what another has taken.
    let pieces = if config.threads > 1 { 2 * config.threads } else { 1 };
    let end = if cores.is_some() && party == ALONE { channel.long_spin() } else { channel };
    let end: Box<dyn Channel> = match &config.transcript {
        Some(transcript) => Box::new(Recorded::new(end, party, transcript.clone())),
        None => Box::new(end),
    };
    let (jobs, next_job) = mpsc::channel::<Job>();
    let (give_answer, answers) = mpsc::channel();
    let progress = Arc::<AtomicU64>::default();
    let terms = Terms {
        id: party,
        spec: config.spec.clone(),
        pieces,
        seed: stream.or(config.seed.map(|s| party_seed(s, party))),
        progress: Arc::clone(&progress),
        record: true,
        states: None,
    };
    let body = move || {
        if let Some(cores) = cores {
            core_affinity::set_for_current(cores[usize::from(party == ALONE)]);
        }
        run_party(
            terms,
            end,
            || next_job.recv().ok(),
            |answer| {
                let _ = give_answer.send(answer);
            },
        );
    };
    (ThreadLink { party, jobs, answers, progress, patience: 2 * config.deadline }, Box::new(body))
}

/// What a party is started with.
pub(crate) struct Terms {
    pub id: PartyId,
    pub spec: TrainSpec,
    /// Into how many pieces a product is cut.
    pub pieces: usize,
    pub seed: Option<Seed>,
    /// Where others see its rounds.
    pub progress: Arc<AtomicU64>,
    /// Whether it hands out probes and views of coins where the client asks.
    pub record: bool,
    /// Where it keeps states.
    pub states: Option<StateFolder>,
}

/// A party from its first message to its last job. Its first answer is that it is ready.
pub(crate) fn run_party(
    terms: Terms,
    channel: Box<dyn Channel>,
    next: impl FnMut() -> Option<Job>,
    mut answer: impl FnMut(Result<Answer>),
) {
    match Party::connect(terms.id, terms.spec.fixed, terms.spec.rounding, channel, terms.seed) {
        Err(e) => answer(Err(e)),
        Ok(mut party) => {
            (party.pieces, party.progress) = (terms.pieces, terms.progress);
            let worker = Worker::new(party, terms.spec).with_states(terms.states);
            answer(Ok(Answer::Done));
            if terms.record { worker } else { worker.without_records() }.work(next, answer);
        }
    }
}

/// A seed for party `id`, or for the n-th dealt secret, from one that was asked for: as different from its neighbours as random ones are, for
/// the parties send it.
fn mix(seed: u64, n: u64) -> Seed {
    let mut words = [0; 2];
    CtrKey::new(seed_of([seed, 0])).fill(n.into(), &mut words);
    seed_of(words)
}

pub(crate) fn party_seed(seed: u64, id: PartyId) -> Seed {
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
    use crate::buffer::Words;
    use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec};

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
        use spec::{Head, HeadPoint, ProbePoint};
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
        use Rounding::{Nearest, Probabilistic};
        for (layers, rounding, bar) in
            [(1, Probabilistic, 56), (2, Probabilistic, 70), (3, Probabilistic, 84), (2, Nearest, 119)]
        {
            let spec = TrainSpec {
                network: NetworkSpec::dense(20, 8, 10, layers),
                sgd: SgdSpec::default(),
                ..spec(Head::Softmax, rounding)
            };
            let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
            engine.load(&parameters(&spec)).unwrap();
            let rounds = engine.step(&units(128 * 20, 60_000), &[1; 128]).unwrap().spent.rounds;
            assert!(rounds <= bar, "{layers} layers, {rounding}: {rounds} rounds");
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
        let stopped = engine.all_do([(); 3].map(|()| Job::Panic));
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
