//! The state that a party keeps on its own disk, so that a run can go on after its process was gone: its shares of
//! weights and velocities after a step.
//!
//! A file is written whole or not at all, beside its name first and renamed when it is on the disk. It says after which
//! step of which run it was written, and carries digests of its components: two parties hold each component, so equal
//! digests tell the client, who sees no share, that three files belong together.
//!
//! A state has positions of the streams (the parties' calls, the client's dealt secrets) and no keys. After a
//! resumption the parties draw new keys: a mask that served once must not serve again for another message, and the
//! messages after a rollback are others, because the client deals its data anew. Under nearest rounding, which needs no
//! coins, a resumed run goes on bit for bit. Positions are taken up only where a seed was fixed and the shares hide
//! nothing anyway: there, coins and shares go on bit for bit as well.

use crate::error::{Error, Result};
use crate::id::PartyId;
use crate::nn::dense::LayerShare;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spec::{NetworkSpec, TrainSpec};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How many states of a run a party keeps: one that was interrupted while it wrote the last has the ones before.
const KEPT: usize = 3;

const FORMAT: u32 = 2;

/// Bytes of the largest state: two tensors for weights and two for biases, which are not more than weights, two
/// components each, eight bytes a number; the rest is for the head.
const MOST_BYTES: u64 = 64 * NetworkSpec::MOST_WEIGHTS + (1 << 16);

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Its steps so far.
    pub step: u64,
    /// Protocol calls of the parties so far: the position of their streams.
    pub calls: u64,
    /// Secrets that the client has dealt so far.
    pub dealt: u64,
}

/// One state that a party has kept, without its shares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Where the run was.
    pub at: Position,
    /// Digest of the party's own components.
    pub own: [u8; 32],
    /// Digest of its next party's.
    pub next: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    party: PartyId,
    spec: [u8; 32],
    kept: Kept,
}

/// The states of one party.
#[derive(Debug, Clone)]
pub struct StateFolder {
    folder: PathBuf,
    party: PartyId,
    spec: [u8; 32],
}

/// The digest of a specification: what a state belongs to.
pub fn spec_digest(spec: &TrainSpec) -> [u8; 32] {
    Sha256::digest(format!("{spec:?}")).into()
}

/// Digests of the two components of all tensors.
fn digests(layers: &[LayerShare]) -> [[u8; 32]; 2] {
    let (mut own, mut next) = (Sha256::new(), Sha256::new());
    for layer in layers {
        for share in [&layer.weights, &layer.bias, &layer.weight_velocity, &layer.bias_velocity] {
            for (hash, component) in [(&mut own, &share.own), (&mut next, &share.next)] {
                hash.update((share.rows as u64).to_le_bytes());
                component.iter().for_each(|w| hash.update(w.to_le_bytes()));
            }
        }
    }
    [own.finalize().into(), next.finalize().into()]
}

impl StateFolder {
    /// The states of `party` in `folder`, of runs with a specification of this digest.
    pub fn new(folder: PathBuf, party: PartyId, spec: [u8; 32]) -> Self {
        StateFolder { folder, party, spec }
    }

    fn failed(&self, path: &Path, e: &impl std::fmt::Display) -> Error {
        Error::misuse(format!("party {}: {}: {e}; make room or name another folder", self.party, path.display()))
    }

    /// The file of a state. A run's name is letters, digits and dashes, so it cannot lead out of the folder.
    fn path(&self, run: &str, step: u64) -> Result<PathBuf> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if run.is_empty() || run.len() > 64 || !run.chars().all(good) {
            return Err(Error::misuse(format!("{run:?} names no run: letters, digits and dashes, 64 at most")));
        }
        Ok(self.folder.join(format!("{run}.party{}.{step:012}.state", self.party)))
    }

    /// Keeps a state, and forgets the oldest of the same run where there are more than enough, and what a process that
    /// was killed while it wrote has left. The folder is made if it is not there, for its owner only.
    ///
    /// # Errors
    /// A disk that is full, a folder that cannot be written.
    pub fn keep(&self, run: &str, at: Position, layers: &[LayerShare]) -> Result<Kept> {
        let path = self.path(run, at.step)?;
        let [own, next] = digests(layers);
        let kept = Kept { at, own, next };
        self.make_folder()?;
        self.clear(run);
        let head = Head { format: FORMAT, party: self.party, spec: self.spec, kept: kept.clone() };
        let bytes = postcard::to_stdvec(&(head, layers)).map_err(|e| self.failed(&path, &e))?;
        let temporary = path.with_extension("part");
        let write = || -> std::io::Result<()> {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&temporary)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            std::fs::rename(&temporary, &path)?;
            std::fs::File::open(&self.folder)?.sync_all()
        };
        if let Err(e) = write() {
            let _ = std::fs::remove_file(&temporary);
            return Err(self.failed(&path, &e));
        }
        for old in self.list(run)?.iter().rev().skip(KEPT) {
            let _ = std::fs::remove_file(self.path(run, old.at.step)?);
        }
        Ok(kept)
    }

    fn make_folder(&self) -> Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder).map_err(|e| self.failed(&self.folder, &e))
    }

    /// Removes the parts of states of this run that were never finished.
    pub fn clear(&self, run: &str) {
        let prefix = format!("{run}.party{}.", self.party);
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".part")) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// The states of a run that can be read, oldest first.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn list(&self, run: &str) -> Result<Vec<Kept>> {
        let prefix = format!("{run}.party{}.", self.party);
        self.path(run, 0)?;
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.failed(&self.folder, &e)),
        };
        let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let steps = names.filter_map(|name| name.strip_prefix(&prefix)?.strip_suffix(".state")?.parse().ok());
        let mut steps: Vec<u64> = steps.collect();
        steps.sort_unstable();
        // One that cannot be read is as good as none.
        Ok(steps.into_iter().filter_map(|step| Some(self.read(run, step).ok()?.0)).collect())
    }

    /// The shares of a state.
    ///
    /// # Errors
    /// There is no such state, or it is damaged, or of another party or specification.
    pub fn read(&self, run: &str, step: u64) -> Result<(Kept, Vec<LayerShare>)> {
        let path = self.path(run, step)?;
        let read = || -> std::io::Result<Vec<u8>> {
            let (file, mut bytes) = (std::fs::File::open(&path)?, Vec::new());
            // Of one that is too large nothing is read, and nothing is no state.
            if file.metadata()?.len() <= MOST_BYTES {
                file.take(MOST_BYTES).read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        };
        self.parse(&path, step, &read().map_err(|e| self.failed(&path, &e))?)
    }

    /// The shares of the state after `step` steps from the bytes of its file, which is called `path`.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) that are about what a file holds.
    pub fn parse(&self, path: &Path, step: u64, bytes: &[u8]) -> Result<(Kept, Vec<LayerShare>)> {
        let damaged = || Error::misuse(format!("{}: is damaged; resume from another step", path.display()));
        let (head, layers): (Head, Vec<LayerShare>) = postcard::from_bytes(bytes).map_err(|_| damaged())?;
        if (head.format, head.party, head.spec) != (FORMAT, self.party, self.spec) {
            let what = "is of another party, version or specification";
            return Err(Error::misuse(format!("{}: {what}", path.display())));
        }
        if head.kept.at.step != step || digests(&layers) != [head.kept.own, head.kept.next] {
            return Err(damaged());
        }
        Ok((head.kept, layers))
    }
}

/// The newest place of a run of which all three parties have kept the state, with components that agree.
pub fn newest_common(kept: &[Vec<Kept>; 3]) -> Option<Position> {
    let find = |party: usize, at: Position| kept[party].iter().find(|k| k.at == at);
    kept[0].iter().rev().map(|k| k.at).find(|&at| {
        let all: Vec<_> = (0..3).filter_map(|party| find(party, at)).collect();
        all.len() == 3 && (0..3).all(|i| all[i].next == all[(i + 1) % 3].own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Share;
    use crate::testing::share;

    fn layers(seed: i64) -> [Vec<LayerShare>; 3] {
        let [w, b] = [share(2, 3, &[seed; 6]), share(1, 3, &[seed; 3])];
        PartyId::ALL.map(|id| {
            let (w, b) = (w[id.index()].clone(), b[id.index()].clone());
            vec![LayerShare { weights: w.clone(), bias: b.clone(), weight_velocity: w, bias_velocity: b }]
        })
    }

    #[test]
    fn a_file_that_is_larger_than_any_state_is_damaged_and_not_read() {
        let folder = std::env::temp_dir().join(format!("difftest-large-state-{}", std::process::id()));
        let of = StateFolder::new(folder.clone(), PartyId::P0, [7; 32]);
        of.keep("run", Position { step: 1, calls: 1, dealt: 1 }, &layers(3)[0]).unwrap();
        let path = of.path("run", 1).unwrap();
        let error = |of: &StateFolder| of.read("run", 1).unwrap_err().to_string();
        // Zeros behind a good state; the file takes no room on the disk.
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert_eq!(error(&of), format!("{}: is damaged; resume from another step", path.display()));
        std::fs::write(&path, "").unwrap();
        assert!(error(&of).contains("is damaged"), "{}", error(&of));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn states_come_back_and_the_newest_common_one_is_found() {
        let folder = std::env::temp_dir().join(format!("difftest-state-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let of = |id| StateFolder::new(folder.clone(), id, [7; 32]);
        let at = |step: u64| Position { step, calls: 7 * step, dealt: 3 };
        // What a process that was killed in the midst of writing leaves is gone after the next state; another run's is
        // not touched.
        let [left, other] =
            ["run-1.party0.000000000005.part", "run-2.party0.000000000005.part"].map(|n| folder.join(n));
        std::fs::write(&left, "half").unwrap();
        std::fs::write(&other, "half").unwrap();
        for step in [10, 20, 30, 40, 50] {
            for (id, layers) in PartyId::ALL.into_iter().zip(layers(step as i64)) {
                of(id).keep("run-1", at(step), &layers).unwrap();
                assert!(of(id).read("run-1", step).unwrap().1[0].weights == layers[0].weights);
            }
        }
        assert!(!left.exists() && other.exists());
        let lists = || PartyId::ALL.map(|id| of(id).list("run-1").unwrap());
        assert_eq!(lists()[0].iter().map(|k| k.at.step).collect::<Vec<_>>(), [30, 40, 50], "the newest three");
        assert_eq!(newest_common(&lists()), Some(at(50)));
        // Party 2 was killed before it had kept the last, party 1's one before is damaged.
        std::fs::remove_file(of(PartyId::P2).path("run-1", 50).unwrap()).unwrap();
        let damaged = of(PartyId::P1).path("run-1", 40).unwrap();
        let mut bytes = std::fs::read(&damaged).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&damaged, bytes).unwrap();
        assert_eq!(newest_common(&lists()), Some(at(30)));
        // Streams that are elsewhere are another run's; shares that were dealt apart from each other do not belong
        // together.
        let mut elsewhere = lists();
        elsewhere[2][0].at.calls += 1;
        assert_eq!(newest_common(&elsewhere), None);
        of(PartyId::P0).keep("run-1", at(30), &layers(30)[0]).unwrap();
        assert_eq!(newest_common(&lists()), None);
        assert!(of(PartyId::P0).keep("../run", at(1), &[]).is_err());
        assert!(StateFolder::new(folder.clone(), PartyId::P0, [8; 32]).list("run-1").unwrap().is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A folder of this name, which is not there yet, and party 0's states in it.
    fn fresh(name: &str) -> (PathBuf, StateFolder) {
        let folder = std::env::temp_dir().join(format!("difftest-{name}-{}", std::process::id()));
        (folder.clone(), StateFolder::new(folder, PartyId::P0, [7; 32]))
    }

    const FIRST: Position = Position { step: 1, calls: 1, dealt: 1 };

    #[test]
    fn a_run_has_a_name_of_64_letters_at_most() {
        let (folder, of) = fresh("names");
        for name in ["", "../run", "a.b", &"a".repeat(65)] {
            let refused = [of.keep(name, FIRST, &[]).err(), of.list(name).err(), of.read(name, 1).err()];
            let text = format!("{name:?} names no run: letters, digits and dashes, 64 at most");
            assert_eq!(refused, [(); 3].map(|()| Some(Error::misuse(&text))));
        }
        assert!(!folder.exists(), "what is refused makes no folder");
        of.keep(&"a".repeat(64), FIRST, &layers(3)[0]).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Nothing is kept where nobody has written; where the folder cannot be read, nobody knows.
    #[test]
    fn a_folder_that_is_not_there_is_empty_and_one_that_is_a_file_is_an_error() {
        let (folder, of) = fresh("no-folder");
        assert!(of.list("run").unwrap().is_empty());
        std::fs::write(&folder, "a file").unwrap();
        let error = of.list("run").unwrap_err().to_string();
        assert!(error.contains("make room or name another folder"), "{error}");
        std::fs::remove_file(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn states_are_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, of) = fresh("owner");
        of.keep("run", FIRST, &layers(3)[0]).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&of.path("run", 1).unwrap())), (0o700, 0o600));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A state can be read and is not what its name or its digests say.
    #[test]
    fn a_state_of_another_step_or_with_another_word_is_damaged() {
        let (folder, of) = fresh("damaged");
        of.keep("run", FIRST, &layers(3)[0]).unwrap();
        let (first, second) = (of.path("run", 1).unwrap(), of.path("run", 2).unwrap());
        std::fs::copy(&first, &second).unwrap();
        let error = of.read("run", 2).unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{error}");
        let (kept, mut layers) = of.read("run", 1).unwrap();
        layers[0].bias.next[2] ^= 1;
        let head = Head { format: FORMAT, party: PartyId::P0, spec: [7; 32], kept };
        std::fs::write(&first, postcard::to_stdvec(&(head, layers)).unwrap()).unwrap();
        let error = of.read("run", 1).unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_digest_of_a_tensor_is_of_its_shape_as_well() {
        let [wide, ..] = share(2, 3, &[5; 6]);
        let tall = Share::new(3, 2, wide.own.clone(), wide.next.clone());
        let [wide, tall] = [wide, tall].map(|s| {
            let [weights, bias, weight_velocity, bias_velocity] = [(); 4].map(|()| s.clone());
            digests(&[LayerShare { weights, bias, weight_velocity, bias_velocity }])
        });
        assert!(wide[0] != tall[0] && wide[1] != tall[1]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_whose_name_is_no_text_is_left_alone() {
        use std::os::unix::ffi::OsStrExt;
        let (folder, of) = fresh("no-text");
        std::fs::create_dir_all(&folder).unwrap();
        let foreign = folder.join(std::ffi::OsStr::from_bytes(b"\xff.part"));
        std::fs::write(&foreign, "somebody's").unwrap();
        of.keep("run", FIRST, &layers(3)[0]).unwrap();
        assert!(foreign.exists() && of.list("run").unwrap().len() == 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
