//! The commands that can be typed. Each is a file of its own; exit codes are decided in [`error`](crate::error) and in
//! [`main`] below.

pub mod advise;
pub mod certs;
pub mod check;
pub mod check_trace;
pub mod export_trace;
pub mod faults;
pub mod fixtures;
pub mod functions;
pub mod head;
pub mod manual;
pub mod paper;
pub mod party;
pub mod replay;
pub mod time;
pub mod training;

use crate::error::{Error, FlagError};
use crate::parties::files::HostsFile;
use crate::parties::local::LocalParties;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use difftest::error::Error as RunError;
use difftest::terminal::{self, line, lines};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Differential tester for secure training: the same neural network is trained in plain f64, in plain integers, and by
/// three parties on secret shares. Every tensor of every step is compared: secure against integers bit for bit, both
/// against f64 inside a proven error bound.
#[derive(Debug, Parser)]
#[command(
    name = "difftest",
    version = version(),
    args_conflicts_with_subcommands = true,
    after_help = "Without a command, runs the comparison on MNIST (shipped inside the program).\n\n\
Examples:\n  \
difftest                                       softmax, one layer, ten steps: a few seconds\n  \
difftest --head relu-grad --layers 2           another head, one hidden layer of 128 units\n  \
difftest --layers 2 --mode free --epochs 1     train a whole epoch on each side\n  \
difftest head --head softmax --input rows.json one head on given logits, by all three sides\n\n\
SECURE_KERNEL=portable, avx2, avx512 or amx in the environment chooses the parties' kernel instead of the fastest that \
the processor has; the\n\
results do not depend on it.\n\n\
Ctrl-C ends a comparison after the step that it is at, and reports what was found so far; a second one ends it at \
once.\n\n\
Exit codes: 0 every check holds; 1 a check failed, is OPEN because too little could be compared, or the parties did \
not finish (FAIL protocol);\n\
2 bad usage or bad input; 130 ended by a second Ctrl-C."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    check: check::Args,
    /// Where the three parties run: `memory` (threads of this process), `tls` (three processes on this machine, over
    /// mutual TLS), or a file that names three running parties, as `difftest certs` writes
    #[arg(long, global = true, value_name = "WHERE", default_value = "memory")]
    parties: String,
    /// Seconds that a party waits for a message of another before it gives up; one that computes sends nothing
    /// meanwhile
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    deadline: u64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate one output head on given logits by all sides, as JSON
    Head(head::Args),
    /// Time secure training against training in real numbers, without checks
    Time(time::Args),
    /// Plant faults in the secure side and show what finds them (only in a build with the feature `faults`)
    Faults(faults::Args),
    /// Write or check the recorded results in fixtures/golden
    Fixtures(fixtures::Args),
    /// Show the range that every tensor uses, and name the smallest number format in which the training works
    Advise(advise::Args),
    /// Run one recorded training step again, on all sides
    Replay(replay::Args),
    /// Measure every function and head against its proven error bound
    Functions(functions::Args),
    /// Repeat the source paper's evaluation: tables, claims, curves
    Paper(paper::Args),
    /// Run one of three parties as a process that others connect to
    Party(party::Args),
    /// Make keys, certificates and configuration files for three parties and their client
    Certs(certs::Args),
    /// Judge another engine's training steps from a trace file: rounding, approximation, wrap-around or fault, and
    /// where first
    Check(check_trace::Args),
    /// Write steps of this program's own secure engine as a trace file
    ExportTrace(export_trace::Args),
    /// Write a completion script for a shell to standard output
    Completions(manual::Completions),
    /// Write the manual page, or with --dir one of every command
    Man(manual::Man),
}

/// How a command that could run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Exit code 0.
    Holds,
    /// Exit code 1.
    Fails,
}

impl Verdict {
    /// From whether everything holds.
    pub fn of(holds: bool) -> Self {
        if holds { Verdict::Holds } else { Verdict::Fails }
    }
}

/// Version, commit and kernel.
fn version() -> &'static str {
    let kernel =
        secure::kernel::Kernel::select().map_or_else(|e| e.to_string(), |kernel| format!("kernel {}", kernel.name()));
    // clap keeps it for as long as the program runs.
    format!("{}, {}", difftest::provenance::version(), terminal::line(&kernel)).leak()
}

/// The command line. What takes a value takes one that begins with a minus sign and a digit too, and then says what it
/// must be.
fn command() -> clap::Command {
    fn prepared(command: clap::Command) -> clap::Command {
        let values =
            |arg: clap::Arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg };
        command.mut_args(values).mut_subcommands(prepared)
    }
    prepared(Cli::command())
}

/// The text of a refusal, in which numbers that are none are called so: the standard library's words say what the
/// parser met, not what is wanted.
fn refusal(error: &clap::Error) -> String {
    let mut text = error.render().to_string();
    for (met, wanted) in [
        ("invalid digit found in string", "it must be a whole number, 0 or more"),
        ("cannot parse integer from empty string", "it must be a whole number, 0 or more"),
        ("number too large to fit in target type", "it is too large"),
        ("invalid float literal", "it must be a number"),
        ("cannot parse float from empty string", "it must be a number"),
    ] {
        text = text.replace(met, wanted);
    }
    text
}

/// Parses the command line and runs it.
pub fn main() -> ExitCode {
    let parsed = command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version go to standard output and are no error.
            let code = if e.use_stderr() { 2 } else { 0 };
            // An error quotes what was typed, which a script may have taken from anywhere.
            let _ = if code == 0 { e.print() } else { write!(std::io::stderr(), "{}", lines(&refusal(&e))) };
            return ExitCode::from(code);
        }
    };
    difftest::threads::start();
    let kernel = secure::kernel::Kernel::select().map_err(Error::from);
    let parties = kernel.and_then(|_| start_parties(&cli));
    let done = parties.and_then(|_parties| match cli.command {
        None => check::run(cli.check),
        Some(Command::Head(args)) => head::run(args),
        Some(Command::Time(args)) => time::run(args),
        Some(Command::Faults(args)) => faults::run(args),
        Some(Command::Fixtures(args)) => fixtures::run(args),
        Some(Command::Functions(args)) => functions::run(args),
        Some(Command::Advise(args)) => advise::run(args),
        Some(Command::Replay(args)) => replay::run(args),
        Some(Command::Paper(args)) => paper::run(args),
        Some(Command::Party(args)) => party::run(args),
        Some(Command::Certs(args)) => certs::run(args),
        Some(Command::Check(args)) => check_trace::run(args),
        Some(Command::ExportTrace(args)) => export_trace::run(args),
        Some(Command::Completions(args)) => manual::completions(&args),
        Some(Command::Man(args)) => manual::man(&args),
    });
    match done {
        Ok(Verdict::Holds) => ExitCode::SUCCESS,
        Ok(Verdict::Fails) => ExitCode::from(1),
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "difftest: {}", line(&e.to_string()));
            ExitCode::from(e.code())
        }
    }
}

/// Parties elsewhere, if they were asked for. Those of this machine live as long as what is returned.
fn start_parties(cli: &Cli) -> Result<Option<LocalParties>, Error> {
    let states = cli.check.states().filter(|_| cli.command.is_none());
    difftest::parties::wait_for(Duration::from_secs(cli.deadline))?;
    if cli.parties == "memory" {
        states.map_or(Ok(()), |folder| difftest::parties::keep_in(folder.into()))?;
        return Ok(None);
    }
    if let Some(why) = cli.command.as_ref().and_then(Command::apart) {
        return Err(FlagError::Apart(why).into());
    }
    let local = if cli.parties == "tls" { Some(LocalParties::start(states)?) } else { None };
    let hosts = match &local {
        Some(parties) => parties.hosts.clone(),
        None => HostsFile::read(Path::new(&cli.parties))?,
    };
    difftest::parties::run_on(hosts, local.as_ref().map(LocalParties::processes))?;
    Ok(local)
}

impl Command {
    /// Why a command has nothing to do with parties elsewhere, if it has not.
    fn apart(&self) -> Option<&'static str> {
        match self {
            Command::Faults(_) => Some("faults are planted in parties of this process"),
            Command::Paper(args) => args.apart(),
            Command::Fixtures(_) => Some("recorded results are those of parties in this process"),
            Command::Check(_) => Some("another engine's steps are judged without parties of this program"),
            Command::Party(_) | Command::Certs(_) | Command::Completions(_) | Command::Man(_) => {
                Some("this command runs no training")
            }
            _ => None,
        }
    }
}

/// Prints to standard output, with everything escaped that a terminal would act upon. A reader that has gone away
/// (`difftest | head`) is no error.
///
/// # Errors
/// Anything else that keeps the text from being written, a full disk for instance.
pub fn print(text: &str) -> Result<(), RunError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(lines(text).as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(RunError::File { path: "standard output".into(), cause: e })
        }
        _ => Ok(()),
    }
}

/// A parser of one of a list of named values, which the help lists.
fn one_of<T: Copy + Send + Sync>(all: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|&v| name(v)))
        .map(move |text| *all.iter().find(|&&v| name(v) == text).expect("clap has checked the name"))
}

/// Parses a name from a list of named values.
fn named<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Result<T, String> {
    all.iter().copied().find(|&v| name(v) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|&v| name(v)).collect();
        format!("choose one of {}", names.join(", "))
    })
}

/// `softmax`, `relu-prob`, ...
fn parse_head(text: &str) -> Result<reference::spec::Head, String> {
    named(&reference::spec::Head::ALL, |h| h.name(), text)
}

/// `prob` or `nearest`.
fn parse_rounding(text: &str) -> Result<reference::spec::Rounding, String> {
    named(&reference::spec::Rounding::ALL, |r| r.name(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_the_help_names_what_a_newcomer_needs() {
        command().debug_assert();
        let help = command().render_long_help().to_string();
        for word in [
            "--head",
            "relu-prob-cut",
            "--layers",
            "--rounding",
            "Exit codes",
            "Examples",
            "INSECURE",
            "fixtures",
            "SECURE_KERNEL",
            "OPEN",
        ] {
            assert!(help.contains(word), "{word} is missing:\n{help}");
        }
    }

    #[test]
    fn names_are_parsed_or_listed() {
        assert_eq!(parse_head("relu-eps"), Ok(reference::spec::Head::ReluEps));
        assert!(parse_head("relu").unwrap_err().contains("relu-grad"));
        assert!(parse_rounding("down").unwrap_err().contains("prob, nearest"));
    }
}
