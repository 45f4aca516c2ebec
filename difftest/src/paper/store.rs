//! A folder of finished cells: `DIR/cells/<id>.json`, each written as a whole or not at all.

use super::cell::{Cell, Id, SCHEMA, Setup};
use crate::error::Error;
use crate::output;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder.
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
            return Err(Error::Usage(format!("{} is no folder of cells; give the --out of a run", cells.display())));
        }
        Ok(Store { dir: dir.into() })
    }

    /// The folder itself, where reports go.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, id: &Id) -> PathBuf {
        self.dir.join("cells").join(format!("{id}.json"))
    }

    /// Stores a finished cell: to a temporary file, which is then renamed. A kill leaves the old state or the new one.
    ///
    /// # Errors
    /// Names the file.
    pub fn save(&self, cell: &Cell) -> Result<(), Error> {
        let text = serde_json::to_vec(cell).map_err(|e| Error::Usage(format!("{}: {e}", cell.id)))?;
        output::write(&self.path(&cell.id), &text)
    }

    /// A finished cell, if it is there.
    ///
    /// # Errors
    /// A file that is no such cell, or one of another setup than `setup`.
    pub fn load(&self, id: &Id, setup: &Setup) -> Result<Option<Cell>, Error> {
        let path = self.path(id);
        let cell = match fs::read(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            read => parse(&path, &read.map_err(Error::file(&path))?)?,
        };
        match setup.difference(&cell.setup) {
            None => Ok(Some(cell)),
            Some(what) => Err(Error::Usage(format!(
                "{}: this cell was run with another setup ({what}); use the same flags and data, or another --out",
                path.display()
            ))),
        }
    }

    /// All finished cells, in order, and their common setup; `None` if there are none.
    ///
    /// # Errors
    /// A file that is no cell; cells of different setups, with what differs.
    pub fn all(&self) -> Result<Option<(Setup, Vec<Cell>)>, Error> {
        let dir = self.dir.join("cells");
        let mut cells = Vec::new();
        for entry in fs::read_dir(&dir).map_err(Error::file(&dir))? {
            let path = entry.map_err(Error::file(&dir))?.path();
            if path.extension().is_some_and(|e| e == "json") {
                cells.push(parse(&path, &fs::read(&path).map_err(Error::file(&path))?)?);
            }
        }
        cells.sort_by_key(|c: &Cell| c.id.order());
        let Some(first) = cells.first() else { return Ok(None) };
        for cell in &cells {
            if let Some(what) = first.setup.difference(&cell.setup) {
                return Err(Error::Usage(format!(
                    "{}: {} and {} were run with different setups ({what}); keep them in folders of their own",
                    dir.display(),
                    first.id,
                    cell.id
                )));
            }
        }
        Ok(Some((first.setup.clone(), cells)))
    }

    /// Copies the cells of `from` that are missing here. Returns how many were copied and how many were here already.
    ///
    /// # Errors
    /// A cell of another setup than those here; a file that is no cell.
    pub fn merge(&self, from: &Store) -> Result<(usize, usize), Error> {
        let here = self.all()?.map(|(setup, _)| setup);
        let Some((setup, cells)) = from.all()? else { return Ok((0, 0)) };
        if let Some(what) = here.and_then(|here| here.difference(&setup)) {
            return Err(Error::Usage(format!(
                "{} was run with another setup than {} ({what}); cells of one report share all settings",
                from.dir.display(),
                self.dir.display()
            )));
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
        Ok((copied, present))
    }
}

/// A cell from a file that anybody may have written.
fn parse(path: &Path, bytes: &[u8]) -> Result<Cell, Error> {
    let refuse =
        |what: String| Error::Usage(format!("{}: {what}; delete the file and run the cell again", path.display()));
    let cell: Cell = serde_json::from_slice(bytes).map_err(|e| refuse(format!("no finished cell ({e})")))?;
    if cell.schema != SCHEMA {
        return Err(refuse(format!("schema {}, this program writes {SCHEMA}", cell.schema)));
    }
    let named = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().parse::<Id>();
    if named.as_ref() != Ok(&cell.id) {
        return Err(refuse(format!("the file holds cell {}", cell.id)));
    }
    cell.setup.spec(&cell.id, cell.setup.learning_rate).map_err(|e| refuse(e.to_string()))?;
    if cell.attempts.is_empty() || cell.attempts.iter().any(|a| a.epochs.is_empty()) {
        return Err(refuse("an attempt without an epoch".into()));
    }
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
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
            (&a, ["f64-softmax-l1-s1-e1", "f64-softmax-l2-s1-e1"]),
            (&b, ["f64-softmax-l2-s1-e1", "f64-softmax-l3-s1-e1"]),
        ] {
            ids.iter().for_each(|id| store.save(&cell(id, &[0.5])).unwrap());
        }
        assert_eq!(a.merge(&b).unwrap(), (1, 1));
        assert_eq!(a.all().unwrap().unwrap().1.len(), 3);
        assert_eq!(a.merge(&b).unwrap(), (0, 2));

        let mut foreign = cell("f64-relu-grad-l1-s1-e1", &[0.5]);
        foreign.setup.batch = 64;
        let dir = tempfile::tempdir().unwrap();
        let c = Store::create(dir.path()).unwrap();
        c.save(&foreign).unwrap();
        assert!(a.merge(&c).unwrap_err().to_string().contains("batch 128 against 64"));
    }

    #[test]
    fn damaged_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        let good = cell("f64-softmax-l1-s1-e1", &[0.5]);
        let mut empty = good.clone();
        empty.attempts.clear();
        let text = |c: &Cell| serde_json::to_string(c).unwrap();
        for (content, word) in [
            (text(&good)[..100].to_owned(), "no finished cell"),
            (text(&good).replace("\"schema\":1", "\"schema\":9"), "schema 9"),
            (text(&cell("f64-softmax-l2-s1-e1", &[0.5])), "holds cell f64-softmax-l2"),
            (text(&empty), "without an epoch"),
            (text(&good).replace("\"classes\":10", "\"classes\":1"), "class count"),
        ] {
            fs::write(store.path(&good.id), content).unwrap();
            let error = store.all().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("f64-softmax-l1-s1-e1.json"), "{error}");
        }
        assert!(Store::open(&dir.path().join("none")).unwrap_err().to_string().contains("no folder of cells"));
    }
}
