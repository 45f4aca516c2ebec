//! The readers, each as a function of an input's bytes, with good inputs of its own.

use crate::client;
use difftest::checkpoint::{self, Trained};
use difftest::config::Config;
use difftest::error::Error;
use difftest::foreign::{self, ci, text};
use difftest::input;
use difftest::paper::record::Record;
use difftest::paper::{Finished, claims, store, table1};
use difftest::run::lockstep::Lockstep;
use difftest::side::secure::Secure;
use difftest::side::{Batch, Opens, Side, Trains};
use difftest::trace::step_file::StepFile;
use difftest::trace::{Header, TraceFile, npy};
use difftest::{generate, golden, replay};
use ndarray::Array2;
use secure::control::{LONG, Open, Preamble, Purpose, Reply, SHORT, Status, receive};
use secure::engine::state::{Position, StateFolder};
use secure::engine::worker::Job;
use secure::id::PartyId;
use secure::net::ends::{Item, Message, Stopped};
use secure::net::frame::{SessionId, decode, encode};
use spec::{Head, Rounding, TrainSpec};
use std::path::{Path, PathBuf};
use std::time::Duration;

type Read = Box<dyn Fn(&[u8]) -> Result<(), String> + Send>;

/// A reader.
pub struct Reader {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// Inputs that it takes.
    pub good: Vec<Vec<u8>>,
    /// Reads an input, and does with the result what the program does with it. The refusal in words.
    pub read: Read,
}

/// Files are called so in refusals.
const FILE: &str = "input";

/// The largest text that is read here, in bytes.
const MOST: u64 = 1 << 20;

fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn committed(name: &str) -> Vec<u8> {
    let path = repository(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn reader(
    name: &'static str,
    good: Vec<Vec<u8>>,
    read: impl Fn(&[u8]) -> Result<(), String> + Send + 'static,
) -> Reader {
    Reader { name, good, read: Box::new(read) }
}

fn said<T, E: ToString>(result: Result<T, E>) -> Result<(), String> {
    result.map(drop).map_err(|e| e.to_string())
}

/// The text of an input, read as the program reads text files.
fn text_of(bytes: &[u8]) -> Result<String, Error> {
    input::text(bytes, Path::new(FILE), MOST)
}

/// Every reader.
pub fn all() -> Vec<Reader> {
    let [answers, jobs] = conversation();
    let mut all = vec![images(), labels(), zstd(), step_file(), trace(), header(), array(), golden()];
    all.extend([cell(), record(), model("model-real", 0), model("model-party", 2), state(), frames(), openings()]);
    all.extend([answers, jobs]);
    all
}

fn idx(dims: &[u32], payload: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let header = [0x800 | dims.len() as u32].into_iter().chain(dims.iter().copied()).flat_map(u32::to_be_bytes);
    header.chain(payload).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The four files of three training and two test images of 2 x 3.
fn data_set() -> [Vec<u8>; 4] {
    let pixels = |n: u8| (0..n).map(|i| i.wrapping_mul(37));
    [idx(&[3, 2, 3], pixels(18)), idx(&[3], [0, 9, 4]), idx(&[2, 2, 3], pixels(12)), idx(&[2], [7, 7])]
}

fn with_file(k: usize, bytes: &[u8]) -> Result<(), String> {
    let files = data_set();
    let mut files = files.each_ref().map(|f| &f[..]);
    files[k] = bytes;
    said(fixtures::parse(files).map(|data| data.classes()))
}

fn images() -> Reader {
    let [good, ..] = data_set();
    reader("idx-images", vec![gzip(&good), good], |bytes| with_file(0, bytes))
}

fn labels() -> Reader {
    let [_, _, _, good] = data_set();
    reader("idx-labels", vec![gzip(&good), good], |bytes| with_file(3, bytes))
}

fn zstd() -> Reader {
    let good = committed("fixtures/mnist/t10k-labels-idx1-ubyte.zst");
    reader("zstd", vec![good], |bytes| said(fixtures::zstd_frame(bytes)))
}

/// One captured step of a small network.
fn captured(head: Head, rounding: Rounding) -> Vec<u8> {
    let spec = TrainSpec { head, rounding, ..client::spec() };
    let config = Config::new(spec.clone(), 1, 1);
    let mut side = Secure::start(spec.clone(), None, true).unwrap();
    let units = Array2::from_shape_fn((4, 6), |(i, j)| ((i * 31 + j * 17) % 256 * 256) as i64);
    let batch = Batch { reals: units.mapv(|u| u as f64 / 65536.0), units, labels: vec![0, 1, 2, 3] };
    let start = (0, generate::initial(&spec, 1).unwrap());
    let mut run = Lockstep::new(&spec, start, std::iter::once(batch), &mut side).unwrap();
    let file = StepFile::new(&config, &run.next().unwrap().unwrap(), vec![]).unwrap();
    file.trace().unwrap().bytes(true).unwrap()
}

/// A file is read, and its step repeated by the two sides that need no parties.
fn step_file() -> Reader {
    let good = Head::ALL.map(|head| captured(head, Rounding::Probabilistic));
    reader("step-file", good.to_vec(), |bytes| {
        let file = StepFile::of(&TraceFile::parse(bytes)?, None)?;
        said(replay::recorded(&file))
    })
}

/// What `difftest check` does with a trace.
fn judged(trace: &TraceFile) -> Result<(), String> {
    let found = foreign::judge(trace)?;
    text::text(&found);
    ci::junit(&found, FILE);
    ci::markdown(&found, FILE);
    said(serde_json::to_string(&found))
}

const TRACE: &str = "fixtures/traces/torch_first_row.npz";

fn trace() -> Reader {
    let good = committed(TRACE);
    let other = TraceFile::parse(&good).unwrap().bytes(true).unwrap();
    reader("trace", vec![good, other], |bytes| judged(&TraceFile::parse(bytes)?))
}

/// The header alone, before the tensors of a trace that is right.
fn header() -> Reader {
    let mut trace = TraceFile::parse(&committed(TRACE)).unwrap();
    let good = serde_json::to_vec(&trace.header).unwrap();
    let tensors = std::mem::take(&mut trace.tensors);
    reader("trace-header", vec![good], move |bytes| {
        let header = Header::parse(&text_of(bytes).map_err(|e| e.to_string())?)?;
        let trace = TraceFile { header, tensors: tensors.clone() };
        judged(&TraceFile::parse(&trace.bytes(true)?)?)
    })
}

fn array() -> Reader {
    let trace = TraceFile::parse(&committed(TRACE)).unwrap();
    let smallest = trace.tensors.values().min_by_key(|t| t.values.len()).unwrap();
    reader("npy", vec![npy::write(smallest), npy::write_text("{}")], |bytes| said(npy::read(bytes)))
}

/// A record against one that is right.
fn golden() -> Reader {
    let good = committed("fixtures/golden/softmax-prob-1.json");
    let now = String::from_utf8(good.clone()).unwrap();
    reader("golden", vec![good], move |bytes| {
        said(text_of(bytes).and_then(|text| golden::difference_of_texts(Path::new(FILE), &text, &now)))
    })
}

/// One cell of the committed record that has everything a cell can have, and is small.
fn cells() -> (Vec<u8>, Vec<u8>) {
    let mut found =
        Record::parse(Path::new(FILE), &committed("fixtures/paper/results.json")).expect("the record is right");
    found.cells.retain(|c| c.id.to_string() == CELL);
    found.times.truncate(1);
    let [cell] = &mut found.cells[..] else { panic!("{CELL} is in the record") };
    cell.attempts.iter_mut().for_each(|a| a.epochs.truncate(3));
    let one = serde_json::to_vec(&cell).unwrap();
    (one, Record::new(&found).json().unwrap().into_bytes())
}

const CELL: &str = "integer-softmax-l2-prob-s1-e20";

fn cell() -> Reader {
    reader("paper-cell", vec![cells().0], |bytes| {
        let path = PathBuf::from(format!("cells/{CELL}.json"));
        let cell = store::parse(&path, bytes).map_err(|e| e.to_string())?;
        told(&Finished::new(&cell.setup.clone(), &[cell]))
    })
}

/// What tables and claims make of cells.
fn told(found: &Finished) -> Result<(), String> {
    claims::judge(found, &[]);
    table1::rows(&found.cells);
    said(Record::new(found).json())
}

fn record() -> Reader {
    reader("paper-record", vec![cells().1], |bytes| {
        told(&Record::parse(Path::new(FILE), bytes).map_err(|e| e.to_string())?)
    })
}

/// The four files of a trained model, in the order in which they are read.
fn trained() -> Vec<(PathBuf, Vec<u8>)> {
    let spec = client::spec();
    let mut secure = Secure::start(spec.clone(), None, false).unwrap();
    secure.load(&generate::initial(&spec, 5).unwrap()).unwrap();
    let real = secure.parameters().unwrap().decode(spec.fixed, &spec.sgd);
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m");
    let trained = Trained { steps: 2, real, shares: secure.shares().unwrap() };
    checkpoint::save(&model, &spec, &trained).unwrap();
    let file = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        (PathBuf::from(path.file_name().unwrap()), bytes)
    };
    checkpoint::files(&model).into_iter().map(file).collect()
}

/// File `k` of the four of a trained model, beside the other three.
fn model(name: &'static str, k: usize) -> Reader {
    let (files, spec) = (trained(), client::spec());
    reader(name, vec![files[k].1.clone()], move |bytes| {
        let mut open = |path: &Path| {
            let at = files.iter().position(|(name, _)| name == path).expect("one of the four is asked for");
            Ok(if at == k { bytes.to_vec() } else { files[at].1.clone() })
        };
        said(checkpoint::load_with(Path::new("m"), &spec, &mut open))
    })
}

/// A state that a party kept on its disk.
fn state() -> Reader {
    let mut secure = Secure::start(client::spec(), None, false).unwrap();
    secure.load(&generate::initial(&client::spec(), 5).unwrap()).unwrap();
    let [layers, ..] = secure.shares().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let states = |at: &Path| StateFolder::new(at.into(), PartyId::P0, [7; 32]);
    states(folder.path()).keep("run", Position { step: 3, calls: 5, dealt: 7 }, &layers).unwrap();
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let good = std::fs::read(file).unwrap();
    let states = states(Path::new("states"));
    reader("state", vec![good], move |bytes| said(states.parse(Path::new(FILE), 3, bytes)))
}

/// Messages of a neighbour.
fn frames() -> Reader {
    const SESSION: SessionId = [9; 16];
    let mut good = Vec::new();
    for item in [
        Item::Message(Message { round: 3, steps: 5, words: (&[1, 2, u64::MAX][..]).into() }),
        Item::Message(Message { round: 4, steps: 6, words: (&[][..]).into() }),
        Item::Stopped(Stopped::Reason("it has no data".into())),
    ] {
        let mut frame = Vec::new();
        encode(&item, PartyId::P1, &SESSION, &mut frame);
        good.extend(frame);
    }
    reader("frames", vec![good], |mut bytes| {
        while !bytes.is_empty() {
            decode(&mut bytes, PartyId::P1, &SESSION).map_err(|e| e.to_string())?;
        }
        Ok(())
    })
}

/// What a party hears first on a connection, and what it replies.
fn openings() -> Reader {
    let open = Open {
        session: [5; 16],
        spec: client::spec(),
        seed: Some(1),
        deadline: Duration::from_secs(60),
        addresses: ["a:1", "b:2", "c:3"].map(str::to_owned),
    };
    let status = Status { party: PartyId::P2, sessions: 1, ended: 2, failed: 3, seconds: 4 };
    let good = [
        client::frame(&Preamble::own()),
        client::frame(&Purpose::Open(Box::new(open))),
        client::frame(&Reply::Status(status)),
    ];
    reader("openings", vec![good.concat()], |mut bytes| {
        let preamble: Preamble = receive(&mut bytes, SHORT).map_err(|e| e.to_string())?;
        preamble.check()?;
        if let Purpose::Open(open) = receive(&mut bytes, SHORT).map_err(|e| e.to_string())? {
            said(open.spec.validate())?;
            open.digest();
        }
        said(receive::<Reply>(&mut bytes, SHORT))
    })
}

/// Answers of parties, as their client takes them, and jobs of a client, as three parties take them.
fn conversation() -> [Reader; 2] {
    let (answers, jobs) = client::recorded();
    let done = |job: &Vec<u8>| receive::<Job>(&mut &job[..], LONG).is_ok();
    assert!(jobs.iter().all(done), "every job is read back");
    // Jobs that come in pieces are none of the good ones when they come again.
    let again = jobs.into_iter().filter(|job| client::job(job).is_ok()).collect();
    [reader("client-answers", answers, client::answers), reader("party-jobs", again, client::job)]
}
