//! `difftest paper`: the source paper's evaluation as a grid of independent cells.

use super::{Verdict, one_of, parse_head, parse_rounding, print};
use crate::error::{Error, FlagError};
use difftest::config;
use difftest::count::counted;
use difftest::error::CellError;
use difftest::input;
use difftest::paper::cell::{Cell, Id, MOST_LAYERS, Setup, Side};
use difftest::paper::data::Data;
use difftest::paper::grid::{self, Grid, weight};
use difftest::paper::record::Record;
use difftest::paper::store::Store;
use difftest::paper::time_cell::{self, TimeCell};
use difftest::paper::train::Event;
use difftest::paper::{self, Findings, Finished, document, grid::missing};
use indicatif::{ProgressBar, ProgressStyle};
use reference::spec::{Head, Rounding};
use std::fmt::Display;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Flags of `difftest paper`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Finished cells are kept in DIR/cells, one file each; the report is made from what is there.\n\n\
Spread over machines (cells do not depend on one another; on a shared folder no merge is needed):\n  \
difftest paper --list | parallel -j1 --sshloginfile hosts difftest paper --out /shared/results --resume --cell {}\n  \
sbatch --array=0-74 --wrap 'difftest paper --out /shared/results --resume --cell $SLURM_ARRAY_TASK_ID'\n  \
Kubernetes: an indexed job with --cell $JOB_COMPLETION_INDEX\n  \
difftest paper merge results-a results-b --out results && difftest paper report results\n\n\
Seconds for tables and claims, on a machine with nothing else to do (each configuration is a file in DIR/times):\n  \
difftest paper --times 3 --out results --resume\n\n\
A claim that does not hold is a finding, not an error: exit codes are 0 done, 2 bad usage, bad input or a cell that \
could not be run."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Copy the finished cells of other folders that are missing in --out; the first that has a cell wins
    Merge {
        /// Folders of finished cells, or files made of one with table --save
        #[arg(required = true, value_name = "DIR|FILE")]
        from: Vec<PathBuf>,
        /// Where they are gathered
        #[arg(long, value_name = "DIR", default_value = OUT)]
        out: PathBuf,
    },
    /// Print the tables of docs/paper.md
    Table {
        /// A folder of finished cells, or a file made of one with --save
        #[arg(value_name = "DIR|FILE", default_value = OUT)]
        results: PathBuf,
        /// Also write all cells, without the sketches of their weights, into one compact file
        #[arg(long, value_name = "FILE")]
        save: Option<PathBuf>,
        /// Put the tables between the markers of this file instead of printing them
        #[arg(long, value_name = "DOCUMENT")]
        update: Option<PathBuf>,
    },
    /// Make the report of a folder of finished cells again
    Report {
        /// The folder
        #[arg(value_name = "DIR", default_value = OUT)]
        dir: PathBuf,
    },
}

impl Args {
    /// Why these flags have nothing to do with parties elsewhere, if they have not.
    pub fn apart(&self) -> Option<&'static str> {
        match (&self.command, self.run.times) {
            (Some(_), _) => Some("this command runs no training"),
            (None, Some(_)) => Some("the paper's pages have the seconds of parties in this process"),
            (None, None) => None,
        }
    }
}

const OUT: &str = "paper-results";

#[derive(Debug, clap::Args)]
struct Run {
    /// Depths, in dense layers
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    layers: Vec<usize>,
    /// Output heads
    #[arg(long, value_delimiter = ',', value_parser = parse_head,
        default_value = "softmax,relu-prob,relu-prob-cut,relu-grad,relu-eps")]
    heads: Vec<Head>,
    /// Roundings of truncations
    #[arg(long, value_delimiter = ',', value_parser = parse_rounding, default_value = "prob,nearest")]
    rounding: Vec<Rounding>,
    /// Epochs of an attempt at one learning rate
    #[arg(long, default_value_t = 20)]
    epochs: usize,
    /// Train nothing, but time each secure configuration of the grid by itself: so many epochs of it and of training in
    /// real numbers in turn, after a pair that warms up; 3 or more, on a quiet machine, are what tables and claims use.
    /// With --resume, what other work disturbed is timed again
    #[arg(
        long,
        value_name = "EPOCHS",
        conflicts_with_all = ["epochs", "sides", "published", "rate_units", "velocity_bits"]
    )]
    times: Option<usize>,
    /// Sides
    #[arg(long, value_delimiter = ',', value_parser = one_of(&Side::ALL, Side::name),
        default_value = "secure,integer,real")]
    sides: Vec<Side>,
    /// Seeds of batches and initial weights, and of the integer side's coins
    #[arg(long, value_delimiter = ',', default_value = "1")]
    seeds: Vec<u64>,
    /// Also train relu-grad-code on the integer side: relu-grad in the order of the paper's published code, the
    /// reciprocal of the sum first
    #[arg(long)]
    published: bool,
    /// Try one learning rate only, this many units of 2^-16 (128 are 0.00195), instead of --lr and its halves
    #[arg(long, value_name = "N")]
    rate_units: Option<u32>,
    /// Threshold of relu-prob and relu-prob-cut, between 0 and 1
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    epsilon: f64,
    /// Rows of one training step
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Learning rate of the first attempt
    #[arg(long, default_value_t = 0.01, allow_negative_numbers = true)]
    lr: f64,
    /// Momentum, from 0 to below 1
    #[arg(long, default_value_t = 0.9, allow_negative_numbers = true)]
    momentum: f64,
    /// Extra fractional bits of the velocities; 0 is the paper's behaviour, and 0,8 shows what they change
    #[arg(long, value_delimiter = ',', default_value = "0")]
    velocity_bits: Vec<u32>,
    /// How often the learning rate is halved at most after training diverged (the paper's rule); 9 lead from 0.01 to
    /// 0.00002
    #[arg(long, default_value_t = 9)]
    restarts: usize,
    /// ReLU units of each hidden layer
    #[arg(long, default_value_t = 128)]
    hidden: usize,
    /// Where finished cells and reports go
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Keep the cells that are finished and run the others
    #[arg(long)]
    resume: bool,
    /// Run one cell only: its name, or its place in --list from 0; no report is made
    #[arg(long, value_name = "ID")]
    cell: Option<String>,
    /// List the cells of the grid and run nothing
    #[arg(long, conflicts_with_all = ["cell", "resume"])]
    list: bool,
    /// Data set: a folder with the four IDX files of MNIST or their like [default: MNIST as shipped]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use only the first rows of either split
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
}

impl Run {
    fn grid(&self) -> Result<Grid, Error> {
        let positive = |flag: &'static str, ok: bool| {
            let refused = FlagError::Range { flag, value: "0".into(), range: "at least 1".into() };
            if ok { Ok(()) } else { Err(refused) }
        };
        positive("--epochs", self.epochs > 0)?;
        positive("--times", self.times != Some(0))?;
        positive("--batch", self.batch > 0)?;
        positive("--rate-units", self.rate_units != Some(0))?;
        positive("--rows", self.rows != Some(0))?;
        if let Some(&depth) = self.layers.iter().find(|l| !(1..=MOST_LAYERS).contains(*l)) {
            return Err(FlagError::Depth { depth, most: MOST_LAYERS }.into());
        }
        Ok(Grid {
            sides: self.sides.clone(),
            layers: self.layers.clone(),
            heads: self.heads.clone(),
            roundings: self.rounding.clone(),
            seeds: self.seeds.clone(),
            published: self.published,
            epochs: self.epochs,
            velocity_bits: self.velocity_bits.clone(),
            rate: self.rate_units,
        })
    }

    fn setup(&self, data: &Data) -> Setup {
        let (train_rows, test_rows) = data.rows();
        Setup {
            inputs: data.inputs(),
            hidden: self.hidden,
            classes: data.classes(),
            epsilon: self.epsilon,
            learning_rate: self.lr,
            momentum: self.momentum,
            batch: self.batch,
            restarts: self.restarts,
            train_rows,
            test_rows,
            data: data.digest().into(),
        }
    }
}

/// One cell by name or by its place in the list.
fn chosen<T: Clone + FromStr<Err = String>>(text: &str, cells: &[T]) -> Result<T, FlagError> {
    match text.parse::<usize>() {
        Ok(place) => {
            let last = cells.len().saturating_sub(1);
            cells.get(place).cloned().ok_or(FlagError::CellPlace { place, last })
        }
        Err(_) => text.parse().map_err(FlagError::CellName),
    }
}

/// Runs the command.
///
/// # Errors
/// Bad flags or data, cells of another setup, a side that fails, files that cannot be read or written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    match args.command {
        Some(Command::Merge { from, out }) => merge(&from, &out),
        Some(Command::Table { results, save, update }) => table(&results, save.as_deref(), update.as_deref()),
        Some(Command::Report { dir }) => report(&Store::open(&dir)?),
        None if args.run.times.is_some() => time(&args.run),
        None => train(&args.run),
    }
}

fn merge(from: &[PathBuf], out: &Path) -> Result<Verdict, Error> {
    for source in from.iter().filter(|source| !source.is_file()) {
        Store::open(source)?;
    }
    let store = Store::create(out)?;
    for source in from {
        let (copied, present) = store.merge(source)?;
        print(&format!("{}: {} copied, {present} here already\n", source.display(), counted(copied, "cell")))?;
    }
    Ok(Verdict::Holds)
}

fn finished(store: &Store) -> Result<Finished, Error> {
    Ok(store.all()?.ok_or_else(|| CellError::NoCells(store.dir().into()))?)
}

/// Bytes of the longest page that is read to be updated.
const MOST_PAGE: u64 = 16 << 20;

fn table(results: &Path, save: Option<&Path>, update: Option<&Path>) -> Result<Verdict, Error> {
    difftest::output::check_output(save)?;
    let finished = if results.is_file() { Record::read(results)? } else { finished(&Store::open(results)?)? };
    if let Some(path) = save {
        difftest::output::write(path, Record::new(&finished).json()?.as_bytes())?;
    }
    let tables = document::tables(&finished)?;
    let Some(path) = update else {
        print(&tables)?;
        return Ok(Verdict::Holds);
    };
    let old = input::file(path, MOST_PAGE)?;
    let new =
        document::replaced(&old, &tables).map_err(|e| Error::Document { path: path.into(), cause: Box::new(e) })?;
    difftest::output::write(path, new.as_bytes())?;
    Ok(Verdict::Holds)
}

fn report(store: &Store) -> Result<Verdict, Error> {
    let found = Findings::new(&finished(store)?)?;
    paper::report::write(&found, store.dir())?;
    print(&paper::text::text(&found))?;
    print(&format!("\nreport: {}\n", store.dir().join("report.html").display()))?;
    Ok(Verdict::Holds)
}

/// The cells that the flags ask for; `None` if they were only to be listed.
fn asked<T: Clone + Display + FromStr<Err = String>>(run: &Run, cells: Vec<T>) -> Result<Option<Vec<T>>, Error> {
    if run.list {
        print(&cells.iter().map(|id| format!("{id}\n")).collect::<String>())?;
        return Ok(None);
    }
    Ok(Some(match &run.cell {
        Some(text) => vec![chosen(text, &cells)?],
        None => cells,
    }))
}

/// Times the secure configurations of the grid, one after the other.
fn time(run: &Run) -> Result<Verdict, Error> {
    let counted = run.times.unwrap_or_default();
    let Some(all) = asked(run, run.grid()?.configurations())? else { return Ok(Verdict::Holds) };
    let data = Data::new(config::data(run.data.as_deref())?, run.rows);
    let setup = run.setup(&data);
    all.iter().try_for_each(|c| setup.spec(&c.id(0, counted), setup.learning_rate).map(|_| ()))?;
    let store = Store::create(&run.out)?;
    let all = grid::untimed(&all, &setup, &store, run.resume)?;

    let seed = run.seeds.first().copied().unwrap_or(1);
    let bar = progress(all.iter().map(|c| weight(&c.id(seed, counted)) * (counted as u64 + 1)).sum());
    for of in all {
        let tell = |_| bar.inc(weight(&of.id(seed, counted)));
        let cell = time_cell::run(of, &setup, &data, (counted, seed), tell)?;
        store.save_time(&cell)?;
        bar.suspend(|| print(&time_line(&cell)))?;
    }
    bar.finish_and_clear();
    if run.cell.is_some() { Ok(Verdict::Holds) } else { report(&store) }
}

/// What a finished timing cell has to say.
fn time_line(cell: &TimeCell) -> String {
    let number = |v: Option<f64>, digits: usize| v.map_or("-".into(), |v| format!("{v:.digits$}"));
    let clean = match cell.clean() {
        Ok(()) => "clean".into(),
        Err(why) => format!("NOT CLEAN, no claim is judged by it: {why}"),
    };
    format!(
        "{:24} {} s an epoch, {} processor s, real {} s, ratio {}, {clean}\n",
        cell.configuration,
        number(cell.seconds_per_epoch().map(|s| s.0), 3),
        number(cell.cpu_seconds(), 3),
        number(cell.real_seconds(), 3),
        number(cell.ratio(), 2)
    )
}

fn train(run: &Run) -> Result<Verdict, Error> {
    let cells = run.grid()?.cells();
    let Some(ids) = asked(run, cells)? else { return Ok(Verdict::Holds) };
    let data = Data::new(config::data(run.data.as_deref())?, run.rows);
    let setup = run.setup(&data);
    // Flags first: what cannot be trained is refused before anything runs.
    ids.iter().try_for_each(|id| setup.spec(id, setup.first_rate(id)).map(|_| ()))?;
    let store = Store::create(&run.out)?;
    let ids = missing(&ids, &setup, &store, run.resume)?;

    let steps = setup.train_rows.div_ceil(setup.batch) as u64;
    let bar = progress(ids.iter().map(|id| weight(id) * id.epochs as u64 * steps).sum());
    let tell = |id: &Id, event: Event| match event {
        Event::Done(n) | Event::Skipped(n) => bar.inc(weight(id) * n as u64),
        Event::Again(n) => bar.inc_length(weight(id) * n as u64),
    };
    let finished = |cell: &Cell| bar.suspend(|| print(&line(cell)));
    grid::run(&ids, &setup, &data, &store, &tell, &finished)?;
    bar.finish_and_clear();
    // With --cell, other processes may be writing cells: the report is a command of its own.
    if run.cell.is_some() { Ok(Verdict::Holds) } else { report(&store) }
}

/// What a finished cell has to say.
fn line(cell: &Cell) -> String {
    let last = cell.last();
    let accuracy = last.epochs.last().map_or(0.0, |e| 100.0 * e.accuracy(&cell.setup));
    let seconds = cell.seconds_per_epoch().map_or("-".into(), |(s, _)| format!("{s:.2}"));
    let (id, rate, epochs) = (cell.id.to_string(), last.learning_rate, counted(last.epochs.len(), "epoch"));
    let attempts = cell.attempts.len();
    format!(
        "{id:38} {accuracy:6.2} % after {epochs}, {seconds} s an epoch, rate {rate} (attempt {attempts}), {}\n",
        last.verdict
    )
}

/// A bar on a terminal, nothing elsewhere.
fn progress(total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {percent} %, {elapsed} so far, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(total).with_style(style);
    bar.enable_steady_tick(std::time::Duration::from_secs(1));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_chosen_by_name_or_by_place() {
        let cells: Vec<Id> = ["real-softmax-l1-s1-e1", "real-softmax-l2-s1-e1"].map(|c| c.parse().unwrap()).to_vec();
        assert_eq!(chosen("1", &cells).unwrap(), cells[1]);
        assert_eq!(chosen("real-softmax-l1-s1-e1", &cells).unwrap(), cells[0]);
        assert!(chosen("2", &cells).unwrap_err().to_string().contains("cells 0 to 1"));
        assert!(chosen("softmax", &cells).unwrap_err().to_string().contains("--list"));
    }
}
