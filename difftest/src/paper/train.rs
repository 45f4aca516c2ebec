//! One cell: attempts at one learning rate after the other.
//!
//! *The paper's rule.* After an epoch, if a batch loss exceeded 100 or test accuracy is below 11 %, training starts
//! again at half the learning rate. Here every attempt starts from the same weights and sees the same batches, so that
//! only the rate differs, and may use all epochs. The rate is halved until fixed point cannot represent it, or
//! `restarts` times. No loss is opened on the secure side: there accuracy alone decides. A loss is the mean over the
//! rows whose loss is finite. The integer side also ends an attempt at the first operand out of range.

use super::cell::{Attempt, Cell, Cost, Epoch, Id, SCHEMA, Setup, Side};
use super::data::Data;
use super::machine::{self, Machine};
use super::observed::Observed;
use super::trainee::Trainee;
use crate::bound::sketch::sketch;
use crate::chance::Chance;
use crate::error::{ConfigError, Error};
use crate::run::restart::{LARGEST_LOSS, Rule, halved};
use reference::spec::TrainSpec;
use std::collections::BTreeMap;

/// Epochs of a secure attempt that real numbers repeat in turn for its time.
pub const PAIRED: usize = 5;

/// An event that a cell tells of while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// So many steps are done.
    Done(usize),
    /// An attempt ended with this many steps to go.
    Skipped(usize),
    /// Another attempt begins: this many steps more.
    Again(usize),
}

/// Runs a cell.
///
/// # Errors
/// A configuration that cannot be, a side that cannot go on.
pub fn run(id: &Id, setup: &Setup, data: &Data, tell: &dyn Fn(Event)) -> Result<Cell, Error> {
    if id.epochs == 0 {
        return Err(ConfigError::Nothing { flag: "--epochs", of: "a cell" }.into());
    }
    let steps = id.epochs * setup.train_rows.div_ceil(setup.batch);
    let (mut attempts, mut cost) = (Vec::new(), None);
    let mut spec = setup.spec(id, setup.first_rate(id))?;
    loop {
        let attempt = attempt(id, setup, &spec, data, &mut cost, tell)?;
        let done: usize = attempt.epochs.iter().map(|e| e.steps).sum();
        let ended = attempt.ended.is_some();
        attempts.push(attempt);
        tell(Event::Skipped(steps - done));
        if !ended || id.rate.is_some() || attempts.len() > setup.restarts {
            break;
        }
        // Below the smallest rate, it rounds to 0.
        let Some(next) = halved(&spec) else { break };
        spec = next;
        tell(Event::Again(steps));
    }
    let (id, setup, machine, program) = (id.clone(), setup.clone(), Machine::here(), machine::program());
    Ok(Cell { schema: SCHEMA, id, setup, attempts, cost, machine, program, drift: Vec::new() })
}

fn attempt(
    id: &Id,
    setup: &Setup,
    spec: &TrainSpec,
    data: &Data,
    cost: &mut Option<Cost>,
    tell: &dyn Fn(Event),
) -> Result<Attempt, Error> {
    let mut side = Trainee::start(id, spec, data)?;
    let mut seen = Observed::new(id, spec);
    let (mut epochs, mut ended) = (Vec::new(), None);
    while epochs.len() < id.epochs && ended.is_none() {
        let batches = reference::batches::epoch(setup.train_rows, setup.batch, id.seed, epochs.len() as u64);
        // Pieces, so that progress moves within an epoch.
        for piece in batches.chunks(batches.len().div_ceil(16)) {
            side.train(piece, &mut seen)?;
            tell(Event::Done(piece.len()));
            if seen.left_range.is_some() {
                break;
            }
        }
        let layers = side.weights()?;
        if id.side == Side::Secure {
            seen.opened(&layers, data.test_pixels());
        }
        let plain_seconds = if epochs.len() < PAIRED { side.plain_seconds(&batches)? } else { None };
        let epoch = Epoch {
            correct: side.correct()?,
            plain_seconds,
            nearness: if seen.left_range.is_none() { side.nearness(&batches[0])? } else { BTreeMap::new() },
            sketch: sketch(&mut layers.iter().flat_map(|l| l.weights.iter().chain(&l.bias))),
            ..seen.take_epoch()
        };
        ended = diverged(&epoch, setup, seen.left_range.as_deref());
        epochs.push(epoch);
    }
    if let Some(more) = side.cost() {
        add(cost.get_or_insert_default(), more);
    }
    let accuracy = epochs.last().map_or(0.0, |e| e.accuracy(setup));
    // Attempts are whole epochs, so nothing is too short or too small to judge.
    let chance = Chance { rows: usize::MAX, ..data.chance() };
    let verdict = seen.evidence().verdict(accuracy, &chance, usize::MAX, 1);
    let Observed { logits_leave, violations, .. } = seen;
    Ok(Attempt { learning_rate: spec.sgd.learning_rate, epochs, verdict, ended, logits_leave, violations })
}

/// Why an attempt ends after this epoch, if it does.
fn diverged(epoch: &Epoch, setup: &Setup, left_range: Option<&str>) -> Option<String> {
    if let Some(at) = left_range {
        return Some(format!("an operand left its range: {at}"));
    }
    let rule = Rule::published(setup.classes);
    if let Some(loss) = epoch.largest_batch_loss.filter(|l| rule.loss(*l)) {
        let loss = if loss == f64::MAX { "not finite".into() } else { format!("{loss:.1}") };
        return Some(format!("batch loss {loss}, above {LARGEST_LOSS}"));
    }
    let accuracy = epoch.accuracy(setup);
    let (found, least) = (100.0 * accuracy, 100.0 * rule.level);
    rule.accuracy(accuracy).then(|| format!("accuracy {found:.2} %, below {least:.0} %"))
}

fn add(cost: &mut Cost, more: &Cost) {
    cost.steps += more.steps;
    cost.rounds += more.rounds;
    cost.messages += more.messages;
    cost.bytes += more.bytes;
    for (name, sent) in &more.by_protocol {
        let mine = cost.by_protocol.entry(name.clone()).or_default();
        mine.rounds += sent.rounds;
        mine.bytes += sent.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::setup::tests::setup;
    use super::*;
    use crate::bound::sketch::{WIDTH, distance};
    use crate::check::divergence::Verdict;
    use std::cell::RefCell;
    use std::sync::OnceLock;

    fn data() -> &'static Data {
        static DATA: OnceLock<Data> = OnceLock::new();
        DATA.get_or_init(|| Data::new(fixtures::mnist().unwrap(), Some(64)))
    }

    fn cell(id: &str, change: impl FnOnce(&mut Setup)) -> (Cell, Vec<Event>) {
        let (train_rows, test_rows) = data().rows();
        let mut setup = Setup { train_rows, test_rows, data: data().digest().into(), ..setup() };
        change(&mut setup);
        let events = RefCell::new(Vec::new());
        let cell = run(&id.parse().unwrap(), &setup, data(), &|e| events.borrow_mut().push(e)).unwrap();
        (cell, events.into_inner())
    }

    #[test]
    fn all_sides_train_alike_and_show_what_they_can() {
        let cells = ["secure-softmax-l2-nearest-s1-e3", "integer-softmax-l2-nearest-s1-e3", "real-softmax-l2-s1-e3"]
            .map(|id| cell(id, |s| s.learning_rate = 0.05).0);
        for cell in &cells {
            let attempt = cell.last();
            assert_eq!((cell.attempts.len(), attempt.epochs.len(), &attempt.ended), (1, 3, &None), "{}", cell.id);
            assert_eq!(attempt.verdict, Verdict::Trains);
            for epoch in &attempt.epochs {
                assert!(epoch.seconds > 0.0 && epoch.steps == 4 && epoch.sketch.len() == WIDTH, "{}", cell.id);
                assert!(epoch.largest_weight.unwrap() > 0.1);
                let (watched, secure) = (cell.id.side != Side::Secure, cell.id.side == Side::Secure);
                assert!(epoch.largest_logit.is_some_and(|l| l > 0.1), "{}", cell.id);
                assert_eq!(epoch.plain_seconds.is_some_and(|s| s > 0.0), secure);
                let near: Vec<_> = epoch.nearness.keys().map(String::as_str).collect();
                let expected: &[_] = &["head_gradient", "layer1/dW", "layer2/dW", "logits"];
                assert_eq!(near, if cell.id.side == Side::Integer { expected } else { &[] });
                for n in epoch.nearness.values() {
                    assert!(n.outside == 0 && n.error > 0.0 && n.error <= n.bound && n.closest <= 1.0, "{n:?}");
                }
                assert_eq!(epoch.loss.is_some(), watched);
                assert_eq!(epoch.largest_gradient.is_some_and(|g| g < 1.0 && g > 0.5), watched);
                assert_eq!(epoch.dead_units.len(), 1);
            }
            let cost = cell.cost.as_ref();
            assert_eq!(cost.map(|c| c.steps), (cell.id.side == Side::Secure).then_some(12));
            assert!(cost.is_none_or(|c| c.rounds > 12 && c.by_protocol["truncate"].bytes > 0));
        }
        // Nearest rounding has no coins: secure and integer are the same computation; real is near.
        let [secure, integer, real] = cells.each_ref().map(|c| &c.last().epochs[2]);
        assert_eq!((secure.correct, &secure.sketch), (integer.correct, &integer.sketch));
        assert!(distance(&integer.sketch, &real.sketch, 784 * 16 + 16 + 170).unwrap() < 1e-3);
        assert!(real.loss.unwrap() < cells[2].last().epochs[0].loss.unwrap());
    }

    #[test]
    fn a_rate_that_is_too_large_is_halved_and_each_attempt_is_kept() {
        // Weights jump by thousands: the loss is far beyond 100.
        let (cell, events) = cell("real-softmax-l2-s1-e2", |s| {
            s.learning_rate = 1.6e4;
            s.restarts = 2;
        });
        let rates: Vec<_> = cell.attempts.iter().map(|a| a.learning_rate).collect();
        assert_eq!(rates, [1.6e4, 8e3, 4e3]);
        assert!(!cell.survived());
        for attempt in &cell.attempts {
            assert_eq!(attempt.epochs.len(), 1);
            assert!(attempt.ended.as_ref().unwrap().contains("batch loss"), "{:?}", attempt.ended);
            assert!(matches!(attempt.verdict, Verdict::Grows { .. }), "{:?}", attempt.verdict);
            // The weights jump in the first step, and the logits of the second are made with them.
            assert_eq!(attempt.logits_leave, Some(1));
        }
        let steps = events.iter().map(|e| match *e {
            Event::Done(n) | Event::Skipped(n) => n as isize,
            Event::Again(n) => -(n as isize),
        });
        assert_eq!(steps.sum::<isize>(), 8, "every announced step is done or skipped");
    }

    #[test]
    fn the_integer_side_stops_where_it_leaves_its_range() {
        let (cell, _) = cell("integer-softmax-l1-prob-s1-e2", |s| {
            s.learning_rate = 1.6e4;
            s.restarts = 0;
        });
        let attempt = cell.last();
        assert!(attempt.epochs[0].steps < 4, "{attempt:?}");
        assert!(matches!(attempt.verdict, Verdict::Range { .. }), "{:?}", attempt.verdict);
        assert!(attempt.ended.as_ref().unwrap().contains("left its range"));
        assert!(attempt.violations.values().sum::<u64>() > 0 && attempt.epochs[0].nearness.is_empty(), "{attempt:?}");
    }

    #[test]
    fn halving_stops_where_fixed_point_does() {
        let (cell, _) = cell("real-softmax-l1-s1-e1", |s| {
            // Two halvings above the smallest rate; a batch loss that is never small enough is forced by the chance
            // level.
            s.learning_rate = 16.0 * 0.5f64.powi(29);
            s.restarts = 50;
            s.classes = 10;
            s.test_rows = 100_000;
        });
        assert_eq!(cell.attempts.len(), 3, "{:?}", cell.attempts.iter().map(|a| a.learning_rate).collect::<Vec<_>>());
        assert!(cell.last().ended.as_ref().unwrap().contains("below 11 %"));
    }

    #[test]
    fn a_loss_that_is_infinite_is_counted_apart() {
        let (cell, _) = cell("real-relu-prob-l1-s1-e1", |_| ());
        let epoch = &cell.last().epochs[0];
        assert!(epoch.infinite_losses.unwrap() > 0 && epoch.infinite_losses.unwrap() <= 64, "{epoch:?}");
        assert!(epoch.loss.unwrap().is_finite());
        assert_eq!(cell_loss("real-relu-grad-l1-s1-e1"), (None, None));
    }

    fn cell_loss(id: &str) -> (Option<f64>, Option<usize>) {
        let (cell, _) = cell(id, |_| ());
        (cell.last().epochs[0].loss, cell.last().epochs[0].infinite_losses)
    }
}
