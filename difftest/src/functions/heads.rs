//! The heads on given logits: gradients against f64 inside the enclosure, and a sample through the three parties.

use super::{Row, Scope, Tally, tally};
use crate::bound::head::{Decision, HeadRules};
use crate::bound::interval::Interval;
use crate::check::Outcome;
use crate::compare::real;
use crate::error::Error;
use crate::run::head::HeadTrace;
use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::f64::RealHead;
use reference::fixed::Arithmetic;
use reference::fixed::heads::{Rows, gradient};
use reference::spec::{Head, NetworkSpec, SgdSpec, TrainSpec};

/// Classes of the random rows.
const CLASSES: usize = 10;

/// Threshold of the heads that have one, real.
const EPSILON: f64 = 0.1;

/// Rows of each head that the three parties evaluate.
const SAMPLE: usize = 64;

/// Where logits come from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// Uniform, of magnitude up to this many units, ten classes, random labels.
    Uniform(i64),
    /// Every row of three values about 0, eps, 1 and with ties, every label.
    Thresholds,
    /// Two classes at every distance up to beyond exp's cut: softmax depends on nothing else.
    Distance,
}

fn spec(scope: &Scope, head: Head, classes: usize, rows: usize) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec { widths: vec![1, classes] },
        head,
        epsilon: EPSILON,
        rounding: scope.rounding,
        fixed: scope.fixed,
        sgd: SgdSpec { batch: rows, ..SgdSpec::default() },
    }
}

impl Source {
    fn of(head: Head, scope: &Scope) -> Vec<Source> {
        let one = scope.fixed.one();
        // The sum of the logits must stay ordinary, and so must their differences.
        let most = scope.fixed.limit() / (2 * CLASSES as i64);
        let mut sources: Vec<_> =
            [one, 8 * one, 64 * one].into_iter().filter(|&m| m < most).chain([most]).map(Source::Uniform).collect();
        sources.push(match head {
            Head::Softmax => Source::Distance,
            _ => Source::Thresholds,
        });
        sources
    }

    fn classes(self) -> usize {
        match self {
            Source::Uniform(_) => CLASSES,
            Source::Thresholds => 3,
            Source::Distance => 2,
        }
    }

    fn range(self, scope: &Scope) -> String {
        match self {
            Source::Uniform(m) => format!("{CLASSES} logits, |x| <= {:.0}", real(m, scope.fixed.fraction_bits)),
            Source::Thresholds => "3 logits about 0, eps, 1, ties".into(),
            Source::Distance => "2 logits, every distance".into(),
        }
    }

    /// Number of rows, and whether they are all there are.
    fn count(self, scope: &Scope) -> (u64, bool) {
        let (rows, exhaustive) = match self {
            Source::Uniform(_) => return ((1 << scope.inputs_bits.saturating_sub(6)).max(512), false),
            Source::Thresholds => (3 * 16u64.pow(3), true),
            Source::Distance => (2 * (scope.fixed.exp_cut() as u64 + 4), true),
        };
        let most = 1 << scope.inputs_bits;
        (rows.min(most), exhaustive && rows <= most)
    }

    /// Rows `from..to`: logits, flat, and labels.
    fn rows(self, scope: &Scope, rows: std::ops::Range<u64>) -> (Vec<i64>, Vec<usize>) {
        let one = scope.fixed.one();
        match self {
            Source::Uniform(m) => {
                let mut rng = ChaCha12Rng::seed_from_u64(rows.start);
                let count = (rows.end - rows.start) as usize;
                (
                    (0..count * CLASSES).map(|_| rng.random_range(-m..=m)).collect(),
                    (0..count).map(|_| rng.random_range(0..CLASSES)).collect(),
                )
            }
            Source::Thresholds => {
                let e = scope.fixed.encode_up(EPSILON);
                let v = [
                    -one,
                    -1,
                    0,
                    1,
                    2,
                    e - 2,
                    e - 1,
                    e,
                    e + 1,
                    e + 2,
                    one / 2,
                    one - 1,
                    one,
                    one + 1,
                    3 * one,
                    5 * one,
                ];
                let row = |i: u64| (0..3).map(move |k| v[(i / 3 / 16u64.pow(k) % 16) as usize]);
                (rows.clone().flat_map(row).collect(), rows.map(|i| (i % 3) as usize).collect())
            }
            Source::Distance => {
                let last = self.count(scope).0;
                // Spread over all distances if not every one is run.
                let step =
                    |i: u64| ((i / 2) as u128 * (scope.fixed.exp_cut() as u128 + 4) / (u128::from(last) / 2)) as i64;
                (rows.clone().flat_map(|i| [one, one - step(i)]).collect(), rows.map(|i| (i % 2) as usize).collect())
            }
        }
    }
}

/// Judges the gradients of some rows.
fn judge(
    a: &mut Arithmetic,
    spec: &TrainSpec,
    (logits, labels): (Vec<i64>, Vec<usize>),
    fair: bool,
    tally: &mut Tally,
) -> Result<(), Error> {
    let (classes, f) = (spec.network.classes(), spec.fixed.fraction_bits);
    let (rules, real_rules, head) = (HeadRules::fixed(spec), HeadRules::real(spec), RealHead::of(spec));
    let matrix = Array2::from_shape_vec((labels.len(), classes), logits).expect("rows of `classes` logits");
    let answer = gradient(a, spec.head, spec.epsilon_units(), Rows::new(&matrix, &labels)?, &mut |_, _| ())?;
    for ((row, &label), g) in matrix.rows().into_iter().zip(&labels).zip(answer.gradient.chunks(classes)) {
        let x: Vec<_> = row.iter().map(|&u| real(u, f)).collect();
        let boxes: Vec<_> = x.iter().map(|&x| Interval::point(x)).collect();
        let decisions = rules.decide(&x, &boxes);
        let branches = rules.branches(&boxes, label, &decisions);
        let own = real_rules.at_point(&x, label);
        let exact = head.gradient(&x, label)?;
        let agrees = branches.iter().any(|b| b.gradient.iter().zip(g).all(|(i, &g)| i.contains(real(g, f))));
        for k in 0..classes {
            let (hull, own) =
                (branches.iter().fold(branches[0].gradient[k], |h, b| h.hull(b.gradient[k])), own.gradient[k]);
            // eps is encoded rounding up: a logit between eps and its encoding is above the one and not above the
            // other.
            let apart = hull.lo > own.hi || own.lo > hull.hi;
            if agrees && apart && decisions.contains(&Decision::Either) {
                tally.ambiguous += u64::from(fair);
                continue;
            }
            let units = spec.fixed.one() as f64;
            let bound = if agrees { hull.distance(own) * units } else { 0.0 };
            tally.add(g[k] as f64 - exact[k] * units, bound, fair, || (row.to_vec(), Some((label, k))));
        }
    }
    Ok(())
}

/// The rows of all heads.
///
/// # Errors
/// The integer model refuses.
pub fn rows(scope: &Scope) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for head in Head::ALL {
        for source in Source::of(head, scope) {
            let run = source.count(scope);
            let spec = spec(scope, head, source.classes(), 1);
            let tally =
                tally(scope, run.0, |a, block, fair, tally| judge(a, &spec, source.rows(scope, block), fair, tally))?;
            rows.push(tally.row(scope, head.name(), source.range(scope), run, false));
        }
    }
    Ok(rows)
}

/// Evaluates a sample of every head by the three parties: gradient, probabilities and loss, i.e. every function of the
/// table, must be the integer model's on the same coins, bit for bit.
///
/// # Errors
/// A side that cannot go on.
pub fn spot_check(scope: &Scope) -> Result<Outcome, Error> {
    let mut failure = None;
    for head in Head::ALL {
        let spec = spec(scope, head, CLASSES, SAMPLE);
        let (mut logits, mut labels) = (Vec::new(), Vec::new());
        for source in Source::of(head, scope).into_iter().filter(|s| s.classes() == CLASSES) {
            let (x, l) = source.rows(scope, 0..SAMPLE as u64 / 4);
            logits.extend(x);
            labels.extend(l);
        }
        let matrix = Array2::from_shape_vec((labels.len(), CLASSES), logits).expect("rows of ten logits");
        let trace = HeadTrace::of(&spec, &matrix, &labels, None)?;
        let same = trace.bit_exact();
        trace.integer?;
        if !same {
            failure.get_or_insert_with(|| {
                format!(
                    "FAIL secure sample   {head}, {}: the parties' answer is not the integer model's",
                    scope.rounding
                )
            });
        }
    }
    let summary = format!(
        "{} heads by three parties, {} rounding: gradients, probabilities and losses equal the integer model's",
        Head::ALL.len(),
        scope.rounding
    );
    Ok(Outcome::new("secure sample", summary, failure))
}
