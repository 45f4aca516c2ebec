//! Documents that must keep step with the program: docs/commands.md is its help, the README is short, and links lead
//! somewhere.

use crate::common::{program, repository as path};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

fn help(command: &[String]) -> String {
    let output = program().args(command).arg("--help").output().expect("the program starts");
    assert!(output.status.success(), "difftest {} --help", command.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that a help lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A line that is indented further goes on with the description above it.
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(String::from).collect()
}

/// A command and all commands under it.
fn describe(command: &[String], out: &mut String) {
    let text = help(command);
    let title = [&["difftest".to_string()], command].concat().join(" ");
    let _ = write!(out, "\n{} {title}\n\n```text\n", "#".repeat(command.len() + 2));
    for line in text.trim_end().lines() {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push_str("```\n");
    for name in commands(&text) {
        describe(&[command, &[name]].concat(), out);
    }
}

#[test]
fn the_page_of_commands_is_the_programs_help() {
    let mut made = String::from(
        "# Commands\n\n\
         Every command and flag, as `difftest COMMAND --help` prints them. Made from the program by\n\
         `DIFFTEST_ACCEPT=1 cargo test --test all documents`, and kept in step by the same test.\n",
    );
    describe(&[], &mut made);
    assert!(made.contains("--velocity-bits") && made.contains("### difftest paper"), "commands were found:\n{made}");
    let page = path("docs/commands.md");
    if std::env::var_os("DIFFTEST_ACCEPT").is_some() {
        fs::write(&page, &made).unwrap();
    }
    let written = fs::read_to_string(&page).unwrap_or_default();
    let first = made.lines().zip(written.lines().chain(std::iter::repeat("(nothing)"))).find(|(a, b)| a != b);
    assert!(
        made == written,
        "docs/commands.md is out of step, first at {first:?}: run DIFFTEST_ACCEPT=1 cargo test --test all documents"
    );
}

/// A newcomer reads a page of 200 lines to its end, if no line of it wraps more than twice at 120 columns.
#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(path("README.md")).unwrap();
    assert!(readme.lines().count() <= 200, "the README has {} lines", readme.lines().count());
    for line in readme.lines() {
        assert!(line.chars().count() <= 360, "{line}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(path).into();
    let more = fs::read_dir(path("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(more.filter(|page| page.extension().is_some_and(|e| e == "md")));
    let mut found = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                assert!(page.parent().unwrap().join(target).exists(), "{}: {target}", page.display());
                found += 1;
            }
        }
    }
    assert!(found > 8, "links were found: {found}");
}

/// docs/shared.md names the faults that are planted in what all sides share, and all of them.
#[test]
fn every_fault_of_what_all_sides_share_is_on_its_page() {
    let page = fs::read_to_string(path("docs/shared.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(2);
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let named: Vec<_> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 8, "the table was found: {named:?}");
    let shared = reference::spec::fault::Fault::ALL.iter().map(|fault| fault.name());
    let engine = secure::fault::Fault::ALL.iter().map(|fault| fault.name());
    let missing: Vec<_> = shared.clone().filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "docs/shared.md does not name {missing:?}");
    let all: Vec<_> = shared.chain(engine).collect();
    let unknown: Vec<_> = named.iter().filter(|name| !all.contains(name)).collect();
    assert!(unknown.is_empty(), "docs/shared.md names what is no fault: {unknown:?}");
}
