//! `difftest check`: judges another engine's trace.

use super::{Verdict, print};
use crate::error::Error;
use difftest::error::{Error as RunError, FileKind, Malformed};
use difftest::foreign::{ci, html, judge, text};
use difftest::output;
use difftest::trace::TraceFile;
use std::path::PathBuf;

/// Flags of `difftest check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The format of a trace is documented in docs/trace.md, the whole way from an engine to a verdict in \
                  docs/check-your-engine.md.\n\n\
Exit codes: 0 every check passes, 1 one fails or is open because the trace lacks something, 2 a file that is no trace."
)]
pub struct Args {
    /// The trace: .npz or .safetensors
    #[arg(required_unless_present = "list")]
    trace: Option<PathBuf>,
    /// List what can be judged, and from what
    #[arg(long)]
    list: bool,
    /// Exit with 0 although checks are open, if another passes and none fails
    #[arg(long)]
    allow_open: bool,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// What is printed: text, github (annotations and a table in Markdown), or junit
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For a GitHub workflow; the table also goes to the step's summary.
    Github,
    /// For build servers that read JUnit.
    Junit,
}

/// Runs `difftest check`.
///
/// # Errors
/// A file that is no trace, or one that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let Some(path) = args.trace.filter(|_| !args.list) else {
        print(&text::list())?;
        return Ok(Verdict::Holds);
    };
    for output in [&args.json, &args.html] {
        output::check_output(output.as_deref())?;
    }
    let trace = TraceFile::read(&path)?;
    let file = path.display().to_string();
    let found = judge(&trace).map_err(|what| Malformed::new(FileKind::Trace, &path, what))?;
    let shown = match args.format {
        Format::Text => text::text(&found),
        Format::Github => {
            summary(&ci::markdown(&found, &file))?;
            ci::github(&found, &file)
        }
        Format::Junit => ci::junit(&found, &file),
    };
    print(&shown)?;
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&found).map_err(RunError::json("the report"))?;
        output::write(path, json.as_bytes())?;
    }
    if let Some(path) = &args.html {
        output::write(path, html::page(&found, &file).as_bytes())?;
    }
    Ok(Verdict::of(found.holds(args.allow_open)))
}

/// Appends to the summary of the workflow's step, where there is one.
fn summary(markdown: &str) -> Result<(), Error> {
    use std::io::Write;
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").map(PathBuf::from) else { return Ok(()) };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&path).map_err(Error::file(&path))?;
    file.write_all(markdown.as_bytes()).map_err(Error::file(&path))
}
