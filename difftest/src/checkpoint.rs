//! Trained models on disk (`--save-model`, `--load-model`), as [safetensors](https://docs.rs/safetensors).
//!
//! * `NAME.safetensors`: the real side's weights and velocities as F64, with the names of the probes: `layer1/weights`
//!   of shape (in, out), `layer1/bias` of shape (out), `layer1/weight_velocity`, `layer1/bias_velocity`, real.
//! * `NAME.party0.safetensors`, `.party1.`, `.party2.`: the replicated shares, one file a party: party i's two
//!   components of the same tensors as U64, `layer1/weights.component0` and so on, modulo 2^64, weights at scale f,
//!   velocities at scale f + extra velocity bits. No party opens anything, and one file alone says nothing of the
//!   model; two together are the model. They are readable by their owner only.
//!
//! Metadata say which network and format a file is for, whose it is, how many steps were trained, and which save it
//! belongs to; files of different saves are not loaded together.
//!
//! A save is all or nothing over its four files, wherever it stops. The parties' files are first written under names
//! that end in the number of the save, `NAME.party0.safetensors.0123456789abcdef`, where they disturb nothing. Renaming
//! f64's file into its place is the one moment from which the new save counts: it says which save it is, and [`load`]
//! takes each party's file of that save under either name. Only then do the parties' files take the places of the older
//! ones. Every file is on the disk before it gets its name.

use crate::error::{CheckpointCause, CheckpointError, Error};
use crate::input;
use crate::output;
use ndarray::{Array1, Array2};
use reference::fixed::LayerValues;
use reference::spec::{NetworkSpec, TrainSpec};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use secure::buffer::Words;
use secure::client::check_replicas;
use secure::id::PartyId;
use secure::nn::dense::LayerShare;
use secure::share::Share;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Version of the files: raised when a tensor or a field changes its meaning.
const FORMAT: &str = "difftest-model 1";

/// Bytes that names, shapes and metadata of a file may take.
const MAX_HEADER: u64 = 16 << 20;

/// The tensors of a layer, in order.
const TENSORS: [&str; 4] = reference::spec::LAYER_NAMES;

/// A trained model: the real side's parameters, and each party's shares of the secure side's.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The number of training steps behind it.
    pub steps: u32,
    /// The real side's layers.
    pub real: Vec<LayerValues>,
    /// The shares of each party, layer by layer.
    pub shares: [Vec<LayerShare>; 3],
}

/// Whose file.
#[derive(Clone, Copy)]
enum Holder {
    Real,
    Party(PartyId),
}

impl Holder {
    fn name(self) -> String {
        match self {
            Holder::Real => "real".into(),
            Holder::Party(id) => format!("party {id}"),
        }
    }

    fn path(self, model: &Path) -> PathBuf {
        match self {
            Holder::Real => model.into(),
            Holder::Party(id) => {
                let stem = if model.extension().is_some_and(|e| e == "safetensors") {
                    model.with_extension("")
                } else {
                    model.into()
                };
                let mut name = stem.into_os_string();
                name.push(format!(".party{}.safetensors", id.index()));
                name.into()
            }
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Holder::Real => Dtype::F64,
            Holder::Party(_) => Dtype::U64,
        }
    }

    /// Names and shapes, in order.
    fn tensors(self, network: &NetworkSpec) -> Vec<(String, Vec<usize>)> {
        let mut list = Vec::new();
        for l in 1..=network.layers() {
            let (inputs, outputs) = network.shape(l);
            for (name, shape) in TENSORS.iter().zip([vec![inputs, outputs], vec![outputs]].into_iter().cycle()) {
                let name = format!("layer{l}/{name}");
                match self {
                    Holder::Real => list.push((name, shape)),
                    Holder::Party(id) => {
                        for component in [id, id.next()] {
                            list.push((format!("{name}.component{}", component.index()), shape.clone()));
                        }
                    }
                }
            }
        }
        list
    }

    /// What its file must say of itself.
    fn metadata(self, spec: &TrainSpec) -> Vec<(&'static str, String)> {
        let widths: Vec<_> = spec.network.widths.iter().map(usize::to_string).collect();
        vec![
            ("format", FORMAT.into()),
            ("holder", self.name()),
            ("network", widths.join("-")),
            ("fraction_bits", spec.fixed.fraction_bits.to_string()),
            ("value_bits", spec.fixed.value_bits.to_string()),
            ("velocity_bits", spec.sgd.extra_velocity_bits.to_string()),
        ]
    }
}

/// The files that a model is saved as.
pub fn files(model: &Path) -> Vec<PathBuf> {
    let parties = PartyId::ALL.map(Holder::Party);
    [Holder::Real].into_iter().chain(parties).map(|holder| holder.path(model)).collect()
}

/// Writes the four files.
///
/// # Errors
/// Names the file that cannot be written. An older save under this name can then still be loaded, or the new one
/// already.
pub fn save(model: &Path, spec: &TrainSpec, trained: &Trained) -> Result<(), Error> {
    write(model, &Made::of(model, spec, trained)?, &mut |_| Ok(()))
}

/// What the files of a save hold.
struct Made {
    /// The save's number, 16 hexadecimal digits.
    save: String,
    real: Vec<u8>,
    parties: Vec<(Holder, Vec<u8>)>,
}

impl Made {
    fn of(model: &Path, spec: &TrainSpec, trained: &Trained) -> Result<Self, Error> {
        let save = format!("{:016x}", rand::random::<u64>());
        let run = [("save", save.clone()), ("steps", trained.steps.to_string())];
        let bits = |v: &Array2<f64>| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let row = |v: &Array1<f64>| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let real = trained.real.iter().flat_map(|l| l.map(bits, row).each().map(Vec::clone));
        let real = file(model, Holder::Real, spec, &run, real.collect())?;
        let mut parties = Vec::new();
        for (id, layers) in PartyId::ALL.into_iter().zip(&trained.shares) {
            let shares = layers.iter().flat_map(LayerShare::each);
            let words = shares.flat_map(|s| [s.own.to_vec(), s.next.to_vec()]).collect();
            parties.push((Holder::Party(id), file(model, Holder::Party(id), spec, &run, words)?));
        }
        Ok(Made { save, real, parties })
    }
}

/// Writes the files of a save. `at` is asked before every change of a name; what it answers stops the save there.
fn write(model: &Path, made: &Made, at: &mut dyn FnMut(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let mut waiting = Waiting::default();
    let real = output::Prepared::new(model, &made.real, false)?;
    for (holder, file) in &made.parties {
        let path = waits(&holder.path(model), &made.save);
        let prepared = output::Prepared::new(&path, file, true)?;
        at(&path)?;
        prepared.commit()?;
        waiting.0.push(path);
    }
    at(model)?;
    real.commit()?;
    // From here on the new save counts, and nothing of it may go away.
    let waiting = std::mem::take(&mut waiting.0);
    for ((holder, _), from) in made.parties.iter().zip(&waiting) {
        let to = holder.path(model);
        at(&to)
            .and_then(|()| std::fs::rename(from, &to).map_err(Error::file(&to)))
            .map_err(|e| CheckpointError::NotRenamed { model: model.into(), kept: from.clone(), cause: Box::new(e) })?;
    }
    output::sync_folder(model);
    clear(model);
    Ok(())
}

/// Files that wait for their names: gone again if the save does not come to count.
#[derive(Default)]
struct Waiting(Vec<PathBuf>);

impl Drop for Waiting {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The name of a party's file of save number `save` until it takes the place of the older one.
fn waits(file: &Path, save: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{save}"));
    name.into()
}

/// Removes what saves that were stopped left waiting. Those files are of no save that can be loaded.
fn clear(model: &Path) {
    for path in files(model).into_iter().skip(1) {
        let Some(prefix) = path.file_name().map(|n| [n.as_encoded_bytes(), b"."].concat()) else { continue };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let save = name.as_encoded_bytes().strip_prefix(&prefix[..]).unwrap_or_default();
            if save.len() == 16 && save.iter().all(u8::is_ascii_hexdigit) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// What one file holds.
fn file(
    model: &Path,
    holder: Holder,
    spec: &TrainSpec,
    run: &[(&'static str, String)],
    words: Vec<Vec<u64>>,
) -> Result<Vec<u8>, Error> {
    let path = holder.path(model);
    let refuse = |e| Error::from(CheckpointCause::Unwritable(e).of(&path));
    let bytes: Vec<Vec<u8>> = words.iter().map(|w| w.iter().flat_map(|w| w.to_le_bytes()).collect()).collect();
    let tensors = holder.tensors(&spec.network).into_iter().zip(&bytes);
    let views = tensors.map(|((name, shape), bytes)| Ok((name, TensorView::new(holder.dtype(), shape, bytes)?)));
    let views = views.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
    let metadata = holder.metadata(spec).into_iter().chain(run.iter().cloned());
    let metadata: HashMap<String, String> = metadata.map(|(k, v)| (k.to_owned(), v)).collect();
    safetensors::serialize(views, Some(metadata)).map_err(refuse)
}

/// Reads the four files of one save for the network and format of `spec`.
///
/// # Errors
/// A file that is missing, damaged, another party's, of another network, format or save; numbers that are not finite;
/// copies of a share that differ.
pub fn load(model: &Path, spec: &TrainSpec) -> Result<Trained, Error> {
    let weights: usize = (1..=spec.network.layers()).map(|l| spec.network.shape(l)).map(|(i, o)| (i + 1) * o).sum();
    // Two tensors for weights, two components a share, eight bytes a number; the rest is for names.
    let most = 32 * weights as u64 + MAX_HEADER;
    load_with(model, spec, &mut |path| input::bytes(path, most))
}

/// Reads the four files of one save as [`load`] does; `open` gives the bytes of a file.
///
/// # Errors
/// Those of [`load`] and of `open`.
pub fn load_with(
    model: &Path,
    spec: &TrainSpec,
    open: &mut dyn FnMut(&Path) -> Result<Vec<u8>, Error>,
) -> Result<Trained, Error> {
    let file = read(model, Holder::Real, spec, None, open)?;
    let layer = |l: usize, words: &[Vec<u64>]| -> Result<LayerValues, Error> {
        let values = |k: usize| words[k].iter().map(|w| f64::from_bits(*w)).collect::<Vec<f64>>();
        let matrix = |k: usize| {
            let what = || format!("layer{l}/{}", TENSORS[k]);
            Array2::from_shape_vec(spec.network.shape(l), values(k)).map_err(|e| Error::opened(what(), e))
        };
        if let Some(k) = (0..TENSORS.len()).find(|k| !values(*k).iter().all(|v| v.is_finite())) {
            return Err(CheckpointCause::NotFinite(format!("layer{l}/{}", TENSORS[k])).of(model).into());
        }
        Ok(LayerValues {
            weights: matrix(0)?,
            bias: values(1).into(),
            weight_velocity: matrix(2)?,
            bias_velocity: values(3).into(),
        })
    };
    let real =
        (1..).zip(file.words.chunks(TENSORS.len())).map(|(l, words)| layer(l, words)).collect::<Result<_, _>>()?;
    let mut shares: [Vec<LayerShare>; 3] = Default::default();
    for (id, mine) in PartyId::ALL.into_iter().zip(&mut shares) {
        let mut words = read(model, Holder::Party(id), spec, Some(&file), open)?.words.into_iter();
        for l in 1..=spec.network.layers() {
            let (inputs, outputs) = spec.network.shape(l);
            let mut component = || Words::from(words.next().unwrap_or_default());
            let mut share = |rows| Share::new(rows, outputs, component(), component());
            mine.push(LayerShare {
                weights: share(inputs),
                bias: share(1),
                weight_velocity: share(inputs),
                bias_velocity: share(1),
            });
        }
    }
    check_replicas(&shares).map_err(|what| CheckpointCause::Altered(what).of(model))?;
    Ok(Trained { steps: file.steps, real, shares })
}

/// A file that says of itself what it should.
struct File {
    save: String,
    steps: u32,
    words: Vec<Vec<u64>>,
}

fn read(
    model: &Path,
    holder: Holder,
    spec: &TrainSpec,
    first: Option<&File>,
    open: &mut dyn FnMut(&Path) -> Result<Vec<u8>, Error>,
) -> Result<File, Error> {
    let mut path = holder.path(model);
    if let Some(first) = first {
        // A save that was stopped at the end.
        path = Some(waits(&path, &first.save)).filter(|waiting| waiting.is_file()).unwrap_or(path);
    }
    let refuse = |cause: CheckpointCause| Error::from(cause.of(&path));
    let bytes = open(&path)?;
    let damaged = |e| refuse(CheckpointCause::Damaged(e));
    let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
    let said = header.metadata().clone().unwrap_or_default();
    let field = |name: &str| said.get(name).map_or("missing", String::as_str);
    for (name, needed) in holder.metadata(spec) {
        // The word of earlier versions.
        let earlier = matches!(holder, Holder::Real) && (name, field(name)) == ("holder", "f64");
        if field(name) != needed && !earlier {
            return Err(refuse(CheckpointCause::Field { name, found: field(name).into(), needed }));
        }
    }
    if let Some(first) = first
        && field("save") != first.save
    {
        let (found, needed) = (field("save").into(), first.save.clone());
        return Err(refuse(CheckpointCause::OtherSave { model: model.into(), found, needed }));
    }
    let steps = field("steps").parse().map_err(|_| refuse(CheckpointCause::Steps(field("steps").into())))?;
    let expected = holder.tensors(&spec.network);
    if file.len() != expected.len() {
        return Err(refuse(CheckpointCause::Count { found: file.len(), needed: expected.len() }));
    }
    let words = expected.into_iter().map(|(name, shape)| {
        let tensor = file.tensor(&name).map_err(|_| refuse(CheckpointCause::NoTensor(name.clone())))?;
        if (tensor.dtype(), tensor.shape()) != (holder.dtype(), &shape[..]) {
            let found = format!("{:?} {:?}", tensor.dtype(), tensor.shape());
            let needed = format!("{:?} {shape:?}", holder.dtype());
            return Err(refuse(CheckpointCause::Shape { name, found, needed }));
        }
        let (words, _) = tensor.data().as_chunks::<8>();
        Ok(words.iter().map(|w| u64::from_le_bytes(*w)).collect())
    });
    Ok(File { save: field("save").into(), steps, words: words.collect::<Result<_, Error>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::side::Trains as _;
    use crate::side::secure::Secure;
    use crate::side::{Opens as _, Side as _};
    use reference::spec::{FixedSpec, Head, Rounding, SgdSpec};
    use std::fs;

    fn spec() -> TrainSpec {
        TrainSpec {
            network: NetworkSpec::dense(6, 5, 4, 2),
            head: Head::Softmax,
            epsilon: 0.1,
            rounding: Rounding::Nearest,
            fixed: FixedSpec::default(),
            sgd: SgdSpec { batch: 4, extra_velocity_bits: 3, ..SgdSpec::default() },
        }
    }

    /// Two steps of the secure side on eight rows.
    fn train(secure: &mut Secure) {
        let units = Array2::from_shape_fn((8, 6), |(i, j)| ((i * 67 + j * 31) % 256 * 256) as i64);
        secure.share_data(&units, &[0, 1, 2, 3, 0, 1, 2, 3]).unwrap();
        secure.train(&[vec![0, 1, 2, 3], vec![4, 5, 6, 7]]).unwrap();
    }

    fn started() -> Secure {
        Secure::start(spec(), None, false).unwrap()
    }

    fn trained(secure: &mut Secure) -> Trained {
        let spec = spec();
        let real = secure.parameters().unwrap().decode(spec.fixed, &spec.sgd);
        Trained { steps: 2, real, shares: secure.shares().unwrap() }
    }

    #[test]
    fn a_model_that_is_loaded_goes_on_as_if_it_had_never_been_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        let mut secure = started();
        secure.load(&generate::initial(&spec(), 5).unwrap()).unwrap();
        train(&mut secure);
        save(&path, &spec(), &trained(&mut secure)).unwrap();
        let saved = secure.parameters().unwrap();
        train(&mut secure);

        let loaded = load(&path, &spec()).unwrap();
        assert_eq!(loaded.steps, 2);
        assert_eq!(loaded.real, saved.decode(spec().fixed, &spec().sgd));
        let mut other = started();
        other.load_shares(loaded.shares).unwrap();
        assert_eq!(other.parameters().unwrap(), saved);
        train(&mut other);
        assert_eq!(other.parameters().unwrap(), secure.parameters().unwrap(), "nearest rounding has no coins");
        assert_ne!(other.parameters().unwrap(), saved);
    }

    #[test]
    fn a_party_holds_two_components_in_a_file_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let mut secure = started();
        secure.load(&generate::initial(&spec(), 5).unwrap()).unwrap();
        save(&path, &spec(), &trained(&mut secure)).unwrap();
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["m", "m.party0.safetensors", "m.party1.safetensors", "m.party2.safetensors"]);
        let bytes = fs::read(dir.path().join("m.party2.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!((file.len(), file.tensor("layer2/bias.component0").unwrap().shape()), (16, &[4][..]));
        assert!(file.tensor("layer1/weights.component1").is_err(), "that is the other parties'");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode("m"), mode("m.party0.safetensors")), (0o644, 0o600));
        }
    }

    /// What is in a folder, but temporary files, which a kill leaves and nobody takes for another.
    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with(".tmp")).collect()
    }

    fn copy(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    /// A save over an older one that fails, or is killed, before each change of a name in turn: one of the two is
    /// there, whole.
    #[test]
    fn a_save_that_is_stopped_anywhere_leaves_the_older_or_the_newer_whole() {
        let mut secure = started();
        secure.load(&generate::initial(&spec(), 5).unwrap()).unwrap();
        let older = trained(&mut secure);
        train(&mut secure);
        let newer = Trained { steps: 4, ..trained(&mut secure) };
        // Three files that wait, f64's, and the three places.
        let changes = 7;
        for killed in [false, true] {
            for stop in 0..=changes {
                let (dir, moment) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
                let model = dir.path().join("m.safetensors");
                save(&model, &spec(), &older).unwrap();
                let mut asked = 0;
                let mut at = |_: &Path| {
                    asked += 1;
                    if asked <= stop {
                        return Ok(());
                    }
                    copy(dir.path(), moment.path());
                    Err(Error::EmptyTestSet)
                };
                let ended = write(&model, &Made::of(&model, &spec(), &newer).unwrap(), &mut at);
                assert_eq!(ended.is_ok(), stop == changes);
                // Who is killed tidies nothing up.
                let left = if killed && stop < changes { moment.path() } else { dir.path() };
                let model = left.join("m.safetensors");
                let expected = if stop <= 3 { &older } else { &newer };
                let loaded = load(&model, &spec()).unwrap();
                assert_eq!((loaded.steps, &loaded.real), (expected.steps, &expected.real), "{stop}, killed {killed}");
                if stop == changes || (stop <= 3 && !killed) {
                    assert_eq!(names(left).len(), 4, "{stop}: {:?}", names(left));
                }
                // The next save works and tidies up, whatever was left.
                save(&model, &spec(), &older).unwrap();
                assert_eq!(load(&model, &spec()).unwrap().steps, older.steps);
                assert_eq!(names(left).len(), 4, "{stop}: {:?}", names(left));
            }
        }
    }

    /// A folder stands where a party's file should go: the save says so, and can be loaded.
    #[test]
    fn a_place_that_cannot_be_taken_is_named_and_the_save_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m");
        let mut secure = started();
        secure.load(&generate::initial(&spec(), 5).unwrap()).unwrap();
        fs::create_dir(dir.path().join("m.party1.safetensors")).unwrap();
        let error = save(&model, &spec(), &trained(&mut secure)).unwrap_err().to_string();
        assert!(error.contains("m.party1.safetensors") && error.contains("can be loaded"), "{error}");
        assert_eq!(load(&model, &spec()).unwrap().steps, 2);
    }

    #[test]
    fn what_does_not_belong_together_is_refused_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let (path, party) =
            (dir.path().join("m.safetensors"), |k: usize| dir.path().join(format!("m.party{k}.safetensors")));
        let mut secure = started();
        secure.load(&generate::initial(&spec(), 5).unwrap()).unwrap();
        let model = trained(&mut secure);
        let again = || save(&path, &spec(), &model).unwrap();
        let refused = |spec: &TrainSpec, words: &[&str]| {
            let error = load(&path, spec).unwrap_err().to_string();
            assert!(words.iter().all(|w| error.contains(w)) && error.lines().count() == 1, "{error}");
        };

        again();
        let whole = fs::read(party(1)).unwrap();
        for length in [0, 7, 100, whole.len() - 1] {
            fs::write(party(1), &whole[..length]).unwrap();
            refused(&spec(), &["m.party1", "damaged"]);
        }
        fs::copy(party(0), party(1)).unwrap();
        refused(&spec(), &["m.party1", "holder is party 0, this run needs party 1"]);
        again();
        fs::write(party(1), &whole).unwrap();
        refused(&spec(), &["m.party1", "another save"]);
        again();
        let mut altered = fs::read(party(2)).unwrap();
        *altered.last_mut().unwrap() ^= 1;
        fs::write(party(2), altered).unwrap();
        refused(&spec(), &["two copies of component", "altered"]);
        fs::remove_file(party(2)).unwrap();
        refused(&spec(), &["m.party2"]);

        again();
        refused(
            &TrainSpec { network: NetworkSpec::dense(6, 5, 4, 3), ..spec() },
            &["network is 6-5-4", "needs 6-5-5-4"],
        );
        let sgd = SgdSpec { extra_velocity_bits: 0, ..spec().sgd };
        refused(&TrainSpec { sgd, ..spec() }, &["velocity_bits is 3"]);
        again();
        let text = fs::read(&path).unwrap();
        let at = text.windows(15).position(|w| w == b"\"holder\":\"real\"").expect("the holder is named");
        // One byte shorter: a space keeps the header's length.
        fs::write(&path, [&text[..at], b"\"holder\":\"f64\" ", &text[at + 15..]].concat()).unwrap();
        assert_eq!(load(&path, &spec()).unwrap().real.len(), 2, "files of earlier versions are read");
        let mut diverged = model.clone();
        diverged.real[1].bias[2] = f64::NAN;
        save(&path, &spec(), &diverged).unwrap();
        refused(&spec(), &["layer2/bias", "not finite"]);
    }
}
