//! The rule by which the source paper's code answers divergence (`--restart-on-divergence`): if, at the end of an epoch
//! or later, a loss exceeds 100 or the accuracy is at chance (there: below 11 %, for ten balanced classes), training
//! ends there and starts again from other initial weights at half the learning rate. Judged on what a free run opens of
//! the secure side; an infinite loss is no divergence, as the heads with a threshold have one for every row whose true
//! logit they cut off.

use crate::chance::Chance;
use crate::check::Outcome;
use crate::config::Config;
use crate::count::counted;
use crate::run::free::Point;
use reference::spec::TrainSpec;

/// A loss beyond this is divergence.
pub const LARGEST_LOSS: f64 = 100.0;

/// Accuracy below which a training diverged in the published code, as a multiple of 1 / classes.
pub const OF_CHANCE: f64 = 1.1;

/// The rule for what counts as divergence once an epoch is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Accuracy below this does, 0 to 1.
    pub level: f64,
}

impl Rule {
    /// By the shares of the labels.
    pub fn of(chance: &Chance) -> Self {
        Rule { level: chance.level() }
    }

    /// As the published code has it, whatever the shares of the labels are.
    pub fn published(classes: usize) -> Self {
        Rule { level: OF_CHANCE / classes as f64 }
    }

    /// Whether a finite loss does.
    pub fn loss(&self, loss: f64) -> bool {
        loss.is_finite() && loss > LARGEST_LOSS
    }

    /// Whether an accuracy does.
    pub fn accuracy(&self, accuracy: f64) -> bool {
        accuracy < self.level
    }
}

/// Why the rule ends a run after `step` steps, if it does; `epoch` is the length of one.
pub fn breaks(step: usize, epoch: usize, chance: &Chance, loss: Option<f64>, accuracy: f64) -> Option<String> {
    if step < epoch {
        return None;
    }
    let rule = Rule::of(chance);
    if rule.accuracy(accuracy) {
        let (found, least) = (100.0 * accuracy, 100.0 * rule.level);
        return Some(format!("step {step}: accuracy {found:.2} % is below {least:.1} % ({chance})"));
    }
    let loss = loss.filter(|l| rule.loss(*l))?;
    Some(format!("step {step}: loss {loss:.1} exceeds 100"))
}

/// Why the rule restarts, if it does: the first point of the curve that breaks it, or the accuracy of the parties' own
/// arithmetic at the end of a run, which has wrapped where f64 on the same weights has not.
pub fn reason(curve: &[Point], accuracy: f64, epoch: usize, chance: &Chance) -> Option<String> {
    let point = |p: &Point| breaks(p.step, epoch, chance, p.loss.and_then(|l| l.1), p.accuracy.1);
    curve.iter().find_map(point).or_else(|| curve.last().and_then(|p| breaks(p.step, epoch, chance, None, accuracy)))
}

/// The run that replaces one that diverged: half the learning rate, the next seed. `None` if fixed point cannot
/// represent the rate.
pub fn next(config: &Config) -> Option<Config> {
    Some(Config { seed: config.seed.wrapping_add(1), spec: halved(&config.spec)?, ..config.clone() })
}

/// The specification with half the learning rate; `None` if fixed point cannot represent the rate.
pub fn halved(spec: &TrainSpec) -> Option<TrainSpec> {
    let mut next = spec.clone();
    next.sgd.learning_rate /= 2.0;
    next.validate().is_ok().then_some(next)
}

/// The rule's own line among the checks: it holds unless every rate diverges. `ended` are the attempts that did, in
/// words.
pub fn outcome(config: &Config, ended: &[String], gave_up: bool) -> Outcome {
    let rate = config.spec.sgd.learning_rate;
    let attempts: String = ended.iter().map(|e| format!("\n  {e}")).collect();
    let summary = match (ended.len(), gave_up) {
        (0, _) => "no restart".to_owned(),
        (n, true) => format!("diverges at all of {}, the smallest {rate}", counted(n, "learning rate")),
        (n, false) => format!("{}, then no divergence at learning rate {rate}:{attempts}", counted(n, "restart")),
    };
    let failure = gave_up.then(|| {
        let again = config.command(&format!("--steps {}", config.steps));
        format!("FAIL restart: fixed point represents no smaller learning rate{attempts}\n  the last again: {again}")
    });
    Outcome::new("restart", summary, failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::small as config;
    use reference::spec::{Head, Rounding};

    fn point(step: usize, loss: Option<f64>, accuracy: f64) -> Point {
        Point { step, drift: 0.0, noise: 0.0, loss: Some((Some(0.1), loss)), accuracy: (0.9, accuracy) }
    }

    #[test]
    fn only_what_the_rule_names_restarts_and_only_after_an_epoch() {
        let healthy = [point(40, Some(500.0), 0.05), point(60, None, 0.8), point(80, Some(100.0), 0.11)];
        let ten = Chance::balanced(10, 10_000);
        let reason = |curve: &[Point], accuracy, epoch| reason(curve, accuracy, epoch, &ten);
        assert_eq!(reason(&healthy, 0.8, 50), None, "before the epoch's end nothing counts");
        assert!(reason(&healthy, 0.8, 40).unwrap().contains("step 40: accuracy 5.00 %"));
        assert!(reason(&healthy, 0.05, 50).unwrap().contains("step 80: accuracy 5.00 %"), "the parties' own accuracy");
        assert!(reason(&[point(60, Some(100.1), 0.8)], 0.8, 50).unwrap().contains("loss 100.1"));
        let two = Chance::balanced(2, 10_000);
        let why = super::reason(&[point(60, None, 0.53)], 0.53, 50, &two).unwrap();
        assert_eq!(why, "step 60: accuracy 53.00 % is below 55.0 % (chance 50.00 %)");
        assert_eq!(super::reason(&[point(60, None, 0.56)], 0.56, 50, &two), None);
    }

    #[test]
    fn the_rate_is_halved_until_fixed_point_cannot_hold_it() {
        let mut run = config(Head::ReluProb, Rounding::Probabilistic);
        let (first, mut restarts) = (run.clone(), 0);
        while let Some(next) = next(&run) {
            assert_eq!(next.spec.sgd.learning_rate, run.spec.sgd.learning_rate / 2.0);
            assert_ne!(next.seed, run.seed);
            (run, restarts) = (next, restarts + 1);
        }
        // 0.01 / 128 = 2^-13.6, and the smallest rate is 2^-31.
        assert_eq!((restarts, run.spec.network.clone()), (17, first.spec.network));
    }
}
