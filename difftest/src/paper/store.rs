//! A folder of finished cells: `DIR/cells/<id>.json` and, of configurations timed by themselves,
//! `DIR/times/<configuration>.json`; each file is written as a whole or not at all.

use super::cell::{self, Cell, Id, MAX_BYTES, SCHEMA, Setup};
use super::finished::Finished;
use super::record::Record;
use super::time_cell::{Configuration, TimeCell};
use crate::error::{CellError, Error, FileKind, Malformed};
use crate::input;
use crate::output;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder that holds the finished cells, one file each.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Makes the folder if it is missing.
    ///
    /// # Errors
    /// Names the folder that cannot be made.
    pub fn create(dir: &Path) -> Result<Self, Error> {
        let cells = dir.join("cells");
        fs::create_dir_all(&cells).map_err(Error::file(&cells))?;
        Ok(Store { dir: dir.into() })
    }

    /// One that must exist.
    ///
    /// # Errors
    /// Names the folder without cells.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let cells = dir.join("cells");
        if !cells.is_dir() {
            return Err(CellError::NoFolder(cells).into());
        }
        Ok(Store { dir: dir.into() })
    }

    /// The folder itself, where reports go.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, id: &Id) -> PathBuf {
        self.path_named(&id.to_string())
    }

    fn path_named(&self, name: &str) -> PathBuf {
        self.dir.join("cells").join(format!("{name}.json"))
    }

    /// Stores a finished cell: to a temporary file, which is then renamed. A kill leaves the old state or the new one.
    ///
    /// # Errors
    /// Names the file.
    pub fn save(&self, cell: &Cell) -> Result<(), Error> {
        let text = serde_json::to_vec(cell).map_err(Error::json(cell.id.to_string()))?;
        output::write(&self.path(&cell.id), &text)
    }

    fn times(&self) -> PathBuf {
        self.dir.join("times")
    }

    fn time_path(&self, name: &str) -> PathBuf {
        self.times().join(format!("{name}.json"))
    }

    /// Stores a finished timing cell as [`Store::save`] stores a training cell.
    ///
    /// # Errors
    /// Names the file or the folder.
    pub fn save_time(&self, cell: &TimeCell) -> Result<(), Error> {
        let dir = self.times();
        fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
        let text = serde_json::to_vec(cell).map_err(Error::json(cell.configuration.clone()))?;
        output::write(&self.time_path(&cell.configuration), &text)
    }

    /// A finished timing cell, if it is there.
    ///
    /// # Errors
    /// A file that is no such cell, or one of another setup than `setup`.
    pub fn load_time(&self, of: Configuration, setup: &Setup) -> Result<Option<TimeCell>, Error> {
        let path = self.time_path(&of.to_string());
        if absent(&path) {
            return Ok(None);
        }
        let cell = parse_time(&path, &input::bytes(&path, MAX_BYTES)?)?;
        match setup.difference(&cell.setup) {
            None => Ok(Some(cell)),
            Some(difference) => Err(CellError::OtherSetup { path, difference }.into()),
        }
    }

    /// Refuses a folder that holds cells of another setup, be it another data set, whatever their names.
    ///
    /// # Errors
    /// Names a cell and what differs.
    pub fn refuse_others(&self, setup: &Setup) -> Result<(), Error> {
        let Some(Finished { setup: theirs, cells, times }) = self.all()? else { return Ok(()) };
        let Some(what) = setup.difference(&theirs) else { return Ok(()) };
        let first = cells.first().map(|c| self.path(&c.id));
        let first = first.or(times.first().map(|t| self.time_path(&t.configuration)));
        Err(CellError::OtherSetup { path: first.unwrap_or_default(), difference: what }.into())
    }

    /// A finished cell, if it is there.
    ///
    /// # Errors
    /// A file that is no such cell, or one of another setup than `setup`.
    pub fn load(&self, id: &Id, setup: &Setup) -> Result<Option<Cell>, Error> {
        let path = self.path(id);
        let path = if absent(&path) { self.path_named(&cell::id::first_version(id)) } else { path };
        if absent(&path) {
            return Ok(None);
        }
        let cell = parse(&path, &input::bytes(&path, MAX_BYTES)?)?;
        match setup.difference(&cell.setup) {
            None => Ok(Some(cell)),
            Some(difference) => Err(CellError::OtherSetup { path, difference }.into()),
        }
    }

    /// All finished cells, in order, and their common setup; `None` if there are none.
    ///
    /// # Errors
    /// A file that is no cell; cells of different setups, with what differs.
    pub fn all(&self) -> Result<Option<Finished>, Error> {
        let dir = self.dir.join("cells");
        let mut cells = parsed(&dir, parse)?;
        cells.sort_by_key(|c: &Cell| c.id.order());
        if let Some(pair) = cells.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(CellError::Twice { folder: dir, id: pair[0].id.to_string() }.into());
        }
        let mut times = if self.times().is_dir() { parsed(&self.times(), parse_time)? } else { Vec::new() };
        times.sort_by_key(|t| t.of().map(Configuration::order).ok());
        let named = cells.iter().map(|c| (c.id.to_string(), &c.setup));
        let mut named = named.chain(times.iter().map(|t| (t.configuration.clone(), &t.setup)));
        let Some((first, setup)) = named.next() else { return Ok(None) };
        for (other, theirs) in named {
            if let Some(difference) = setup.difference(theirs) {
                return Err(CellError::Mixed { folder: self.dir.clone(), first, other, difference }.into());
            }
        }
        Ok(Some(Finished { setup: setup.clone(), cells, times }))
    }

    /// Copies the cells of `from`, a folder of cells or a file made of one, that are missing here, and clean timing
    /// cells of which the one here is not. Returns how many were copied and how many were here already. Copies are
    /// written as this program writes cells.
    ///
    /// # Errors
    /// A cell of another setup than those here; a file that is no cell.
    pub fn merge(&self, from: &Path) -> Result<(usize, usize), Error> {
        let here = self.all()?.map(|all| all.setup);
        let found = if from.is_file() { Some(Record::read(from)?) } else { Store::open(from)?.all()? };
        let Some(Finished { setup, cells, times }) = found else { return Ok((0, 0)) };
        if let Some(difference) = here.and_then(|here| here.difference(&setup)) {
            return Err(CellError::Foreign { from: from.into(), here: self.dir.clone(), difference }.into());
        }
        let (mut copied, mut present) = (0, 0);
        for cell in &cells {
            if self.load(&cell.id, &setup)?.is_some() {
                present += 1;
            } else {
                self.save(cell)?;
                copied += 1;
            }
        }
        for time in &times {
            let of = time.of().map_err(|what| Malformed::new(FileKind::Cell, from, what))?;
            match self.load_time(of, &setup)? {
                Some(here) if here.clean().is_ok() || time.clean().is_err() => present += 1,
                _ => {
                    self.save_time(time)?;
                    copied += 1;
                }
            }
        }
        Ok((copied, present))
    }
}

/// Whether there is no such file. One that cannot be looked at may be there.
fn absent(path: &Path) -> bool {
    matches!(fs::metadata(path), Err(e) if e.kind() == ErrorKind::NotFound)
}

/// Every JSON file of a folder.
fn parsed<T>(dir: &Path, parse: fn(&Path, &[u8]) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
        let path = entry.map_err(Error::file(dir))?.path();
        if path.extension().is_some_and(|e| e == "json") {
            all.push(parse(&path, &input::bytes(&path, MAX_BYTES)?)?);
        }
    }
    Ok(all)
}

/// A timing cell from a file that anybody may have written.
fn parse_time(path: &Path, bytes: &[u8]) -> Result<TimeCell, Error> {
    let refuse = |what: String| Error::from(Malformed::new(FileKind::Cell, path, what));
    let cell: TimeCell = serde_json::from_slice(bytes).map_err(|e| refuse(format!("no finished timing cell ({e})")))?;
    cell.checked().map_err(refuse)?;
    if path.file_stem().and_then(|s| s.to_str()) != Some(&cell.configuration) {
        return Err(refuse(format!("the file holds timing cell {}", cell.configuration)));
    }
    Ok(cell)
}

/// A cell from the bytes of a file that anybody may have written; `path` names it.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Cell, Error> {
    let refuse = |what: String| Error::from(Malformed::new(FileKind::Cell, path, what));
    let mut cell: Cell = serde_json::from_slice(bytes).map_err(|e| refuse(format!("no finished cell ({e})")))?;
    if !cell::readable(cell.schema) {
        return Err(refuse(format!("schema {}, this program writes {SCHEMA}", cell.schema)));
    }
    cell.schema = SCHEMA;
    let named = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().parse::<Id>();
    if named.as_ref() != Ok(&cell.id) {
        return Err(refuse(format!("the file holds cell {}", cell.id)));
    }
    cell.setup.spec(&cell.id, cell.setup.first_rate(&cell.id)).map_err(|e| refuse(e.to_string()))?;
    if cell.attempts.is_empty() || cell.attempts.iter().any(|a| a.epochs.is_empty()) {
        return Err(refuse("an attempt without an epoch".into()));
    }
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::super::time_cell::tests::timed;
    use super::*;

    #[test]
    fn what_is_saved_is_found_and_a_foreign_setup_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        assert!(store.all().unwrap().is_none());
        let mut one = cell("secure-softmax-l1-prob-s1-e2", &[0.5, 0.6]);
        store.save(&one).unwrap();
        assert_eq!(store.load(&one.id, &one.setup).unwrap(), Some(one.clone()));

        let other = Setup { hidden: 64, ..one.setup.clone() };
        let error = store.load(&one.id, &other).unwrap_err().to_string();
        assert!(error.contains("hidden 64 against 128") && error.contains("another --out"), "{error}");

        one.id.seed = 2;
        one.setup = other;
        store.save(&one).unwrap();
        assert!(store.all().unwrap_err().to_string().contains("different setups"));
    }

    #[test]
    fn merging_copies_what_is_missing_once() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (Store::create(a.path()).unwrap(), Store::create(b.path()).unwrap());
        for (store, ids) in [
            (&a, ["real-softmax-l1-s1-e1", "real-softmax-l2-s1-e1"]),
            (&b, ["real-softmax-l2-s1-e1", "real-softmax-l3-s1-e1"]),
        ] {
            ids.iter().for_each(|id| store.save(&cell(id, &[0.5])).unwrap());
        }
        assert_eq!(a.merge(b.dir()).unwrap(), (1, 1));
        assert_eq!(a.all().unwrap().unwrap().cells.len(), 3);
        assert_eq!(a.merge(b.dir()).unwrap(), (0, 2));

        let mut foreign = cell("real-relu-grad-l1-s1-e1", &[0.5]);
        foreign.setup.batch = 64;
        let dir = tempfile::tempdir().unwrap();
        let c = Store::create(dir.path()).unwrap();
        c.save(&foreign).unwrap();
        assert!(a.merge(c.dir()).unwrap_err().to_string().contains("batch 128 against 64"));
    }

    /// A folder with a data set's cells takes none of another data set, whatever cells are asked for.
    #[test]
    fn another_data_set_is_refused_before_anything_runs() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        let one = cell("real-softmax-l1-s1-e1", &[0.5]);
        store.refuse_others(&one.setup).unwrap();
        store.save(&one).unwrap();
        store.refuse_others(&one.setup).unwrap();
        let other = Setup { data: "of other rows".into(), ..one.setup };
        let error = store.refuse_others(&other).unwrap_err().to_string();
        assert!(
            error.contains("data \"of other rows\" against \"test\"") && error.contains("another --out"),
            "{error}"
        );
    }

    /// Files of the first version called the sides `model` and `f64`.
    #[test]
    fn cells_of_the_first_version_are_read_and_copied_in_todays() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::create(old.path()).unwrap();
        let one = cell("integer-softmax-l1-prob-s1-e1", &[0.5]);
        let text = serde_json::to_string(&one).unwrap();
        let text = text.replace("\"schema\":2", "\"schema\":1").replace("\"side\":\"integer\"", "\"side\":\"model\"");
        fs::write(store.dir().join("cells/model-softmax-l1-prob-s1-e1.json"), text).unwrap();
        assert_eq!(store.all().unwrap(), Some(Finished::new(&one.setup, std::slice::from_ref(&one))));
        assert_eq!(store.load(&one.id, &one.setup).unwrap(), Some(one.clone()));
        let copy = Store::create(new.path()).unwrap();
        assert_eq!(copy.merge(store.dir()).unwrap(), (1, 0));
        assert_eq!(copy.load(&one.id, &one.setup).unwrap(), Some(one.clone()));
        store.save(&one).unwrap();
        assert!(store.all().unwrap_err().to_string().contains("two files hold cell integer-softmax"));
    }

    #[test]
    fn timing_cells_are_kept_beside_the_others() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (Store::create(a.path()).unwrap(), Store::create(b.path()).unwrap());
        let clean = timed("softmax-l2-prob", 4.0);
        let mut disturbed = clean.clone();
        disturbed.epochs[1].secure.others = Some(9.0);
        a.save_time(&disturbed).unwrap();
        a.save(&cell("real-softmax-l1-s1-e1", &[0.5])).unwrap();
        b.save_time(&clean).unwrap();
        let of = clean.of().unwrap();
        assert_eq!(a.load_time(of, &clean.setup).unwrap(), Some(disturbed.clone()));
        let all = a.all().unwrap().unwrap();
        assert_eq!((all.cells.len(), &all.times), (1, &vec![disturbed.clone()]));
        // A clean one replaces one that other work disturbed, and stays.
        assert_eq!((a.merge(b.dir()).unwrap(), a.all().unwrap().unwrap().times), ((1, 0), vec![clean.clone()]));
        b.save_time(&disturbed).unwrap();
        assert_eq!((a.merge(b.dir()).unwrap(), a.all().unwrap().unwrap().times), ((0, 1), vec![clean.clone()]));

        let other = Setup { hidden: 64, ..clean.setup.clone() };
        assert!(b.refuse_others(&other).unwrap_err().to_string().contains("times/softmax-l2-prob.json: this cell"));
        assert!(b.load_time(of, &other).unwrap_err().to_string().contains("hidden 64 against 128"));
        a.save(&Cell { setup: other, ..cell("real-softmax-l1-s2-e1", &[0.5]) }).unwrap();
        assert!(a.all().unwrap_err().to_string().contains("different setups"));

        let good = serde_json::to_string(&clean).unwrap();
        for (content, word) in [
            (good[..100].to_owned(), "no finished timing cell"),
            (good.replace("\"schema\":1", "\"schema\":9"), "schema 9"),
            (good.replace("softmax-l2-prob", "softmax-l1-prob"), "holds timing cell softmax-l1-prob"),
            (good.replace("softmax-l2-prob", "softmax-l2"), "is no timing cell"),
            (good.replace("\"wall\":4.0", "\"wall\":0.0"), "seconds above 0"),
            (good.replace("\"classes\":10", "\"classes\":1"), "class count"),
            (serde_json::to_string(&TimeCell { epochs: clean.epochs[..1].to_vec(), ..clean.clone() }).unwrap(), "two"),
        ] {
            fs::write(b.time_path("softmax-l2-prob"), content).unwrap();
            let error = b.all().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("times/softmax-l2-prob.json"), "{error}");
        }
        // The file takes no room on the disk.
        let file = fs::File::create(b.time_path("softmax-l2-prob")).unwrap();
        file.set_len(MAX_BYTES + 1).unwrap();
        for error in [b.load_time(of, &clean.setup).unwrap_err(), b.all().unwrap_err()] {
            assert!(error.to_string().contains("is larger than 134217728 bytes"), "{error}");
        }
    }

    #[test]
    fn damaged_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        let good = cell("real-softmax-l1-s1-e1", &[0.5]);
        let mut empty = good.clone();
        empty.attempts.clear();
        let text = |c: &Cell| serde_json::to_string(c).unwrap();
        for (content, word) in [
            (text(&good)[..100].to_owned(), "no finished cell"),
            (text(&good).replace("\"schema\":2", "\"schema\":9"), "schema 9"),
            (text(&cell("real-softmax-l2-s1-e1", &[0.5])), "holds cell real-softmax-l2"),
            (text(&empty), "without an epoch"),
            (text(&good).replace("\"classes\":10", "\"classes\":1"), "class count"),
        ] {
            fs::write(store.path(&good.id), content).unwrap();
            let error = store.all().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("real-softmax-l1-s1-e1.json"), "{error}");
        }
        assert!(Store::open(&dir.path().join("none")).unwrap_err().to_string().contains("no folder of cells"));
    }
}
