//! Which part of the project may use which. Crates and modules have an order, lowest first; imports go down it only,
//! and no files import each other in a circle.
//!
//! Read from the sources: every `use` and every path outside of tests. Cargo's dependencies are the first wall; this is
//! the one inside a crate.

use crate::common::repository;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use syn::visit::{self, Visit};

/// The crates, lowest first. A module stands for its file and for all files in its folder, unless they are listed
/// themselves.
pub const CRATES: [Crate; 7] = [
    Crate { name: "spec", sources: "reference/spec/src", uses: &[], modules: &[] },
    Crate { name: "reference", sources: "reference/src", uses: &["spec"], modules: &["batches", "f64", "fixed"] },
    Crate {
        name: "fixtures",
        sources: "fixtures/src",
        uses: &["spec"],
        modules: &["error", "source", "sparse", "idx", "dataset", "mnist", "paper"],
    },
    Crate {
        name: "secure",
        sources: "secure/src",
        uses: &["spec"],
        modules: &[
            "step",
            "clock",
            "cost",
            "pool",
            "buffer",
            "kernel",
            "fault",
            "id",
            "error",
            "net",
            "prg",
            "share",
            "party",
            "join",
            "protocol",
            "nn",
            "opened",
            "client",
            "engine",
            "control",
            "engine::remote",
            "host",
            "testing",
        ],
    },
    Crate {
        name: "bounds",
        sources: "difftest/bounds/src",
        uses: &["spec", "reference"],
        modules: &[
            "statistics",
            "sketch",
            "operation",
            "interval",
            "branch",
            "encoding",
            "rules",
            "row",
            "head",
            "network",
            "statistical",
            "compare",
            "cause",
        ],
    },
    Crate {
        name: "difftest",
        sources: "difftest/src",
        uses: &["spec", "reference", "fixtures", "secure", "bounds"],
        modules: &[
            "count",
            "chance",
            "error",
            "input",
            "interrupt",
            "provenance",
            "terminal",
            "threads",
            "output",
            "keeping",
            "config",
            "explain::origin",
            "parties",
            "side",
            "generate",
            "evaluation",
            "trace",
            "failure",
            "explain",
            "check",
            "experiment",
            "checkpoint",
            "run",
            "report",
            "foreign",
            "timing",
            "functions",
            "advise",
            "golden",
            "replay",
            "faults",
            "paper",
        ],
    },
    Crate {
        name: "program",
        sources: "difftest/program/src",
        uses: &["spec", "reference", "fixtures", "secure", "bounds", "difftest"],
        modules: &["interrupt", "memory", "error", "parties", "cli"],
    },
];

/// Modules that were written apart from each other and know nothing of each other.
const APART: &[(&str, &str)] = &[("reference::f64", "reference::fixed")];

/// Imports that go up or close a circle and are still to be removed: (file, imported file). Those that are gone leave
/// the list.
const TO_REMOVE: &[(&str, &str)] = &[];

pub struct Crate {
    name: &'static str,
    pub sources: &'static str,
    /// Other crates of this project that it may use.
    uses: &'static [&'static str],
    /// Lowest first.
    modules: &'static [&'static str],
}

/// The top of the repository.
fn root() -> PathBuf {
    repository("").canonicalize().unwrap()
}

/// A source file by crate and path of modules: `secure::protocol::truncate`; the root is the crate's name alone.
type Module = Vec<String>;

/// Every module that has a file, with the paths that the file names, and the names that it passes on with `pub use`.
struct Sources {
    files: BTreeMap<Module, (String, BTreeSet<Vec<String>>)>,
    passed_on: BTreeMap<(Module, String), Module>,
    /// The same of every `use`: what a short name in a file stands for.
    known: BTreeMap<(Module, String), Module>,
}

impl Sources {
    /// Reads all files, once for all tests.
    fn read() -> &'static Self {
        static SOURCES: OnceLock<Sources> = OnceLock::new();
        SOURCES.get_or_init(Sources::parse)
    }

    fn parse() -> Self {
        let mut parsed = BTreeMap::new();
        for c in &CRATES {
            let folder = root().join(c.sources);
            let mut found = Vec::new();
            rust_files(&folder, &mut found);
            for path in found {
                let inside = path.strip_prefix(&folder).unwrap().with_extension("");
                let mut module = vec![c.name.to_string()];
                module.extend(inside.iter().map(|part| part.to_str().unwrap().to_string()));
                if ["lib", "main"].contains(&module[1].as_str()) {
                    module.truncate(1);
                }
                let text = fs::read_to_string(&path).unwrap();
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
                parsed.insert(module, (name, file));
            }
        }
        let for_tests: BTreeSet<Module> =
            parsed.iter().flat_map(|(module, (_, file))| modules_for_tests(module, file)).collect();
        parsed.retain(|module: &Module, _| !(1..=module.len()).any(|n| for_tests.contains(&module[..n])));
        let files = parsed.iter().map(|(module, (name, file))| {
            let mut paths = Paths::default();
            paths.visit_file(file);
            (module.clone(), (name.clone(), paths.0))
        });
        let mut sources = Sources { files: files.collect(), passed_on: BTreeMap::new(), known: BTreeMap::new() };
        let (mut known, mut passed_on) = (BTreeMap::new(), BTreeMap::new());
        for (module, (_, file)) in &parsed {
            for item in &file.items {
                if let syn::Item::Use(item) = item {
                    let private = matches!(item.vis, syn::Visibility::Inherited);
                    let mut paths = Vec::new();
                    flatten(&item.tree, &mut Vec::new(), &mut paths);
                    for path in paths {
                        if let Some((full, name)) = sources.absolute(module, &path.0).zip(path.1) {
                            if !private {
                                passed_on.insert((module.clone(), name.clone()), full.clone());
                            }
                            known.insert((module.clone(), name), full);
                        }
                    }
                }
            }
        }
        (sources.known, sources.passed_on) = (known, passed_on);
        sources
    }

    /// A path as written in `module`, from its crate's name on; `None` for names of other crates and of the language.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut at = match path.first()?.as_str() {
            "crate" => vec![module[0].clone()],
            "self" => module.clone(),
            "super" => module[..module.len() - 1].to_vec(),
            name if CRATES.iter().any(|c| c.name == name) && !self.is_module(module, name) => vec![name.to_string()],
            name if self.is_module(module, name) => [&module[..], &[name.to_string()]].concat(),
            name => self.known.get(&(module.clone(), name.to_string()))?.clone(),
        };
        for part in &path[1..] {
            if part == "super" {
                at.pop();
            } else if part != "self" {
                at.push(part.clone());
            }
        }
        Some(at)
    }

    fn is_module(&self, module: &[String], name: &str) -> bool {
        self.files.contains_key(&[module, &[name.to_string()]].concat())
    }

    /// The file that a path from a crate's name on leads to, through what files on the way pass on.
    fn owner(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let length = (1..=path.len()).rev().find(|&n| self.files.contains_key(&path[..n]))?;
            let Some(name) = path.get(length) else { return Some(path) };
            match self.passed_on.get(&(path[..length].to_vec(), name.clone())) {
                Some(target) if target[..] != path[..=length] => path = [&target[..], &path[length + 1..]].concat(),
                _ => return Some(path[..length].to_vec()),
            }
        }
        None
    }

    /// The files that each file imports.
    fn imports(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        self.files
            .iter()
            .map(|(module, (_, paths))| {
                let targets = paths
                    .iter()
                    .filter_map(|path| self.owner(&self.absolute(module, path)?))
                    .filter(|target| target != module)
                    .collect();
                (module, targets)
            })
            .collect()
    }

    fn file(&self, module: &Module) -> &str {
        &self.files[module].0
    }
}

/// All files of Rust in a folder.
pub fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The modules that a file declares for tests only.
fn modules_for_tests(module: &Module, file: &syn::File) -> Vec<Module> {
    let of_tests = |item: &syn::Item| match item {
        syn::Item::Mod(item) if for_tests(&item.attrs) => Some([&module[..], &[item.ident.to_string()]].concat()),
        _ => None,
    };
    file.items.iter().filter_map(of_tests).collect()
}

/// Paths of a tree of `use`, each with the name that it gets.
fn flatten(tree: &syn::UseTree, at: &mut Vec<String>, found: &mut Vec<(Vec<String>, Option<String>)>) {
    match tree {
        syn::UseTree::Path(path) => {
            at.push(path.ident.to_string());
            flatten(&path.tree, at, found);
            at.pop();
        }
        syn::UseTree::Name(name) => {
            let name = name.ident.to_string();
            let named = if name == "self" { at.last().cloned() } else { Some(name.clone()) };
            found.push(([&at[..], &[name]].concat(), named));
        }
        syn::UseTree::Rename(rename) => {
            found.push(([&at[..], &[rename.ident.to_string()]].concat(), Some(rename.rename.to_string())));
        }
        syn::UseTree::Glob(_) => found.push((at.clone(), None)),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, at, found)),
    }
}

/// Whether an item is compiled for tests only.
pub fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg") && a.parse_args::<syn::Path>().is_ok_and(|p| p.is_ident("test"))
    })
}

/// Every path of a file but those under `#[cfg(test)]`.
#[derive(Default)]
struct Paths(BTreeSet<Vec<String>>);

impl<'a> Visit<'a> for Paths {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if !for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        if !for_tests(&item.attrs) {
            let mut found = Vec::new();
            flatten(&item.tree, &mut Vec::new(), &mut found);
            self.0.extend(found.into_iter().map(|(path, _)| path));
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 {
            self.0.insert(path.segments.iter().map(|s| s.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// The inside of a macro is no syntax yet: every `a::b::c` in it counts.
    fn visit_macro(&mut self, item: &'a syn::Macro) {
        let text = item.tokens.to_string().replace(" :: ", "::");
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        for word in words.filter(|w| w.contains("::")) {
            self.0.insert(word.split("::").map(String::from).collect());
        }
        visit::visit_macro(self, item);
    }
}

/// Whether `module` is `room` or inside its folder.
fn inside(module: &[String], room: &[&str]) -> bool {
    module.len() >= room.len() && module.iter().zip(room).all(|(a, b)| a == b)
}

/// Where a module stands in its crate's order: the longest entry that holds it. The root of a crate stands lowest.
fn place(module: &Module) -> Option<usize> {
    let c = CRATES.iter().find(|c| c.name == module[0]).expect("files are read by crate");
    if module.len() == 1 || c.modules.is_empty() {
        return Some(0);
    }
    let split = |room: &'static str| room.split("::").collect::<Vec<_>>();
    let holds = |room: &&'static str| inside(&module[1..], &split(room));
    let room = c.modules.iter().filter(|room| holds(room)).max_by_key(|room| room.len())?;
    c.modules.iter().position(|m| m == room).map(|n| n + 1)
}

/// Arrows that count: not those from the file of a module to files of its own folder, which it passes on.
fn arrows(sources: &Sources) -> Vec<(Module, Module)> {
    let mut arrows = Vec::new();
    for (from, targets) in sources.imports() {
        arrows.extend(targets.into_iter().filter(|to| !to.starts_with(from)).map(|to| (from.clone(), to)));
    }
    arrows
}

fn to_be_removed(sources: &Sources, (from, to): &(Module, Module)) -> bool {
    TO_REMOVE.contains(&(sources.file(from), sources.file(to)))
}

#[test]
fn every_module_has_its_place_in_the_order() {
    let sources = Sources::read();
    assert!(sources.files.len() > 150, "the sources were found: {}", sources.files.len());
    for (module, (file, _)) in &sources.files {
        assert!(place(module).is_some(), "{file} has no place in CRATES: put it below everything that uses it");
    }
    for c in &CRATES {
        for room in c.modules {
            let module: Module = [c.name].into_iter().chain(room.split("::")).map(String::from).collect();
            assert!(sources.files.contains_key(&module), "{room} of {} is gone: take it out of CRATES", c.name);
        }
    }
}

#[test]
fn imports_go_down() {
    let sources = Sources::read();
    let mut wrong = String::new();
    for arrow in arrows(sources) {
        let (from, to) = &arrow;
        let down = if from[0] == to[0] {
            place(from) >= place(to)
        } else {
            CRATES.iter().any(|c| c.name == from[0] && c.uses.contains(&to[0].as_str()))
        };
        if !down && !to_be_removed(sources, &arrow) {
            let _ = writeln!(wrong, "{} imports {}, which stands above it", sources.file(from), sources.file(to));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn what_was_written_apart_stays_apart() {
    let sources = Sources::read();
    for (from, to) in arrows(sources) {
        for (a, b) in APART.iter().flat_map(|&(a, b)| [(a, b), (b, a)]) {
            let is = |module: &Module, name: &str| inside(module, &name.split("::").collect::<Vec<_>>());
            assert!(!(is(&from, a) && is(&to, b)), "{} imports {}", sources.file(&from), sources.file(&to));
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let sources = Sources::read();
    let mut graph: petgraph::graphmap::DiGraphMap<&str, ()> = petgraph::graphmap::DiGraphMap::new();
    let arrows = arrows(sources);
    for arrow in arrows.iter().filter(|arrow| !to_be_removed(sources, arrow)) {
        graph.add_edge(sources.file(&arrow.0), sources.file(&arrow.1), ());
    }
    let circles: Vec<_> = petgraph::algo::tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1).collect();
    assert!(circles.is_empty(), "files that import each other in a circle: {circles:#?}");
}

#[test]
fn what_is_to_be_removed_is_still_there() {
    let sources = Sources::read();
    let files: BTreeSet<_> =
        arrows(sources).iter().map(|(a, b)| (sources.file(a).to_string(), sources.file(b).to_string())).collect();
    for (from, to) in TO_REMOVE {
        assert!(
            files.contains(&(from.to_string(), to.to_string())),
            "{from} no longer imports {to}: take it out of TO_REMOVE"
        );
    }
}

/// A user's test of an engine compiles no command line.
#[test]
fn the_libraries_have_no_command_line() {
    for c in CRATES.iter().filter(|c| c.name != "program") {
        let manifest = root().join(c.sources).join("../Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        for name in ["clap", "indicatif"] {
            assert!(!text.lines().any(|line| line.starts_with(name)), "{} depends on {name}", manifest.display());
        }
    }
}

/// A file that nobody names would be compiled by nobody, as the program's package is in a folder of its own.
#[test]
fn every_file_of_tests_is_run() {
    let modules = fs::read_to_string(root().join("tests/main.rs")).unwrap();
    for entry in fs::read_dir(root().join("tests")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|e| e == "rs") && !["main", "faults"].contains(&name) {
            assert!(modules.contains(&format!("mod {name};")), "tests/main.rs lacks the module {name}");
        }
    }
}

/// The most lines of a function of the harness. One that is longer does several things.
const MOST_LINES: usize = 60;

/// Functions of the harness that are longer and still to be split: (file, function). Those that are gone leave the
/// list.
const TO_SPLIT: &[(&str, &str)] = &[];

/// The functions of a formatted source, tests left out: name, first line and last line, from 1.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    // A formatted item ends with its closing brace, or with the semicolon of one that has none, at its own indentation.
    let end = |from: usize| {
        let ends = |line: &str| line.trim_start().starts_with('}') || line.ends_with(';');
        let one_line = lines[from].ends_with(['}', ';']);
        let further = (from + 1..lines.len()).find(|&n| indent(lines[n]) == indent(lines[from]) && ends(lines[n]));
        if one_line { from } else { further.unwrap_or(lines.len() - 1) }
    };
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let line = lines[at].trim_start();
        if line == "#[cfg(test)]" || line == "#[test]" {
            // Further attributes stand between it and the item.
            let item = (at + 1..lines.len()).find(|&n| !lines[n].trim_start().starts_with("#["));
            at = item.map_or(lines.len(), |item| end(item) + 1);
            continue;
        }
        let declared = ["", "pub ", "pub(crate) ", "pub(super) "].iter().find_map(|public| {
            let rest = line.strip_prefix(public)?;
            let words = ["const ", "async ", "unsafe "].iter();
            words.fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest)).strip_prefix("fn ")
        });
        if let Some(rest) = declared {
            let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            found.push((name.to_string(), at + 1, end(at) + 1));
        }
        at += 1;
    }
    found
}

#[test]
fn no_function_of_the_harness_is_longer_than_a_page() {
    let (mut seen, mut wrong) = (0, String::new());
    for c in CRATES.iter().filter(|c| ["fixtures", "bounds", "difftest", "program"].contains(&c.name)) {
        let mut files = Vec::new();
        rust_files(&root().join(c.sources), &mut files);
        for path in files.iter().filter(|path| !path.ends_with("tests.rs")) {
            let file = path.strip_prefix(root()).unwrap().display().to_string();
            for (name, first, last) in functions(&fs::read_to_string(path).unwrap()) {
                seen += 1;
                let to_split = TO_SPLIT.contains(&(file.as_str(), name.as_str()));
                match last + 1 - first > MOST_LINES {
                    true if !to_split => {
                        let _ = writeln!(wrong, "{file}:{first}: {name} has {} lines: split it", last + 1 - first);
                    }
                    false if to_split => {
                        let _ = writeln!(wrong, "{file}: {name} is short by now: take it out of TO_SPLIT");
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(seen > 800, "functions were found: {seen}");
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The reading itself: functions are found with their length, and tests are left out.
#[test]
fn functions_are_found_with_their_length() {
    let text = [
        "fn a() {",
        "    b",
        "}",
        "impl X {",
        "    pub(crate) const fn c(",
        "        d: u8,",
        "    ) -> u8 {",
        "        d",
        "    }",
        "    fn e() {}",
        "    fn f(&self);",
        "}",
        "#[cfg(test)]",
        "mod tests {",
        "    #[test]",
        "    fn g() {",
        "    }",
        "}",
        "fn h() {",
        "}",
    ];
    let found = functions(&text.join("\n")).into_iter();
    let found: Vec<_> = found.map(|(name, first, last)| format!("{name} {first}-{last}")).collect();
    assert_eq!(found, ["a 1-3", "c 5-9", "e 10-10", "f 11-11", "h 19-20"]);
}

/// The most columns of a line of code, comment or text.
const MOST_COLUMNS: usize = 120;

/// The files of the project that end in `ending`, but for what is built.
fn files_with(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !["target", "corpus", "artifacts"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found
}

/// A row of a table, or a line with a link, cannot be wrapped.
fn cannot_be_wrapped(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
    text.starts_with('|') || text.contains("](") || text.contains("://")
}

#[test]
fn no_line_is_wider_than_120_columns() {
    let mut wrong = String::new();
    let (code, pages) = (files_with("rs"), files_with("md"));
    assert!(code.len() > 250 && pages.len() > 15, "files were found: {} and {}", code.len(), pages.len());
    for path in code.iter().chain(&pages) {
        for (n, line) in (1..).zip(fs::read_to_string(path).unwrap().lines()) {
            let columns = line.chars().count();
            let page = path.extension().is_some_and(|e| e == "md") || line.trim_start().starts_with("//");
            if columns > MOST_COLUMNS && !(page && cannot_be_wrapped(line)) {
                let _ = writeln!(wrong, "{}:{n}: {columns} columns", path.strip_prefix(root()).unwrap().display());
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The reading itself: a file's imports are found however they are written.
#[test]
fn imports_are_found_in_every_form() {
    let file: syn::File = syn::parse_quote! {
        use crate::a::{self, b::C as D, e::*};
        #[cfg(test)]
        mod tests { use crate::never; }
        fn f(x: crate::g::H) -> i::J { mac!(crate::k::l(1)); x }
        #[cfg(feature = "m")]
        use super::n;
    };
    let mut paths = Paths::default();
    paths.visit_file(&file);
    let found: Vec<String> = paths.0.iter().map(|p| p.join("::")).collect();
    let wanted = ["crate::a::b::C", "crate::a::e", "crate::a::self", "crate::g::H", "crate::k::l", "i::J", "super::n"];
    assert_eq!(found, wanted);
}
