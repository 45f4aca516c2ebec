//! `encoding`: what all sides take from one place is what the specification promises of it.
//!
//! Constants, pixels, labels and initial weights are encoded once and handed to every side, so no comparison between
//! sides can see a mistake in them. This check computes each of them a second time, by another route:
//!
//! * constants (rate, momentum, epsilon, log2 e): against the real numbers, within the promise of
//!   [`crate::bound::encoding`];
//! * pixels and labels of every batch: against the bytes of the data set, one by one;
//! * the order of the rows: every row once an epoch, before the last batch wraps around to the first rows;
//! * initial weights: inside Glorot's limit and not far inside it, with biases and velocities of zero.

use super::comparison::Judged;
use super::{Check, Outcome};
use crate::bound::encoding::{self, Encoding};
use crate::config::Config;
use crate::generate;
use crate::side::Batch;
use crate::trace::Trace;
use fixtures::Split;
use reference::fixed::Parameters;
use reference::spec::{SpecError, TrainSpec};

/// The training rows of a run: the data set, step and row numbers of each batch to come, and the rows of this epoch so
/// far.
struct Rows<'c> {
    split: &'c Split,
    batches: Box<dyn Iterator<Item = (usize, Vec<u32>)> + 'c>,
    order: Order,
}

/// The order of the rows of one epoch, as batches show it.
#[derive(Default)]
struct Order {
    taken: Vec<u32>,
    seen: Vec<bool>,
}

impl Order {
    /// Takes a batch of an epoch over `rows` rows. What is wrong with the order, if anything is: a row comes twice
    /// before all have come, or the last batch does not wrap around to the first rows.
    fn take(&mut self, batch: &[u32], rows: usize) -> Option<String> {
        if self.taken.len() >= rows {
            *self = Order::default();
        }
        self.seen.resize(rows, false);
        for &row in batch {
            let at = self.taken.len();
            self.taken.push(row);
            let first = (at >= rows).then(|| self.taken[at - rows]);
            if first.is_some_and(|first| first != row) {
                return Some(format!(
                    "row {row} fills the last batch of an epoch, where it starts again with row {first:?}"
                ));
            }
            if first.is_none() && self.seen.get(row as usize) != Some(&false) {
                return Some(format!(
                    "row {row} comes twice in an epoch of {rows} rows, before every row has come once"
                ));
            }
            self.seen[row as usize] = true;
        }
        None
    }
}

/// A layer whose weights all lie this far inside their interval is none that was drawn from it: the probability, as
/// log2, that so many uniform numbers do.
const SMALL_WEIGHTS: f64 = -60.0;

/// Gathers the first thing that is not encoded as promised.
pub struct Encodings<'c> {
    config: &'c Config,
    rows: Option<Rows<'c>>,
    constants: usize,
    pixels: u64,
    labels: u64,
    weights: u64,
    /// Place and description of the first broken promise.
    broken: Option<(&'static str, String)>,
}

impl<'c> Encodings<'c> {
    /// Judges the constants of a run; with its data set, batches and initial weights as well.
    ///
    /// # Errors
    /// A rate or momentum that cannot be encoded at all.
    pub fn new(config: &'c Config, data: Option<&'c Split>) -> Result<Self, SpecError> {
        let constants = encoding::all(&config.spec)?;
        let broken = constants.iter().find(|c| !c.kept()).map(|c| (c.name, broken_promise(c)));
        let rows = data.map(|split| Rows {
            split,
            batches: Box::new(generate::batches(split.len(), config.spec.sgd.batch, config.seed).enumerate()),
            order: Order::default(),
        });
        Ok(Encodings { config, rows, constants: constants.len(), pixels: 0, labels: 0, weights: 0, broken })
    }

    /// Judges the parameters from which a run begins, unless they were trained before.
    fn initial(&mut self, spec: &TrainSpec, parameters: &Parameters) {
        let one = spec.fixed.one() as f64;
        for (l, layer) in (1..).zip(&parameters.layers) {
            let (inputs, outputs) = spec.network.shape(l);
            let real_limit = (6.0 / (inputs + outputs) as f64).sqrt() * one;
            let limit = real_limit + 0.5;
            self.weights += layer.weights.len() as u64;
            if let Some(w) = layer.weights.iter().find(|w| w.unsigned_abs() as f64 > limit) {
                let what = format!("layer{l}/weights holds {w} units; Glorot's limit is {limit:.1}");
                self.broken.get_or_insert(("initial weights", what));
            }
            let largest = layer.weights.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0) as f64 + 0.5;
            // Each of n real numbers is uniform and was rounded to the nearest unit: all of them are below a part t of
            // the limit with probability t^n.
            if layer.weights.len() as f64 * (largest / real_limit).min(1.0).log2() < SMALL_WEIGHTS {
                let what = format!(
                    "the largest of {} units in layer{l}/weights is {:.0}; Glorot's limit is {limit:.1}",
                    layer.weights.len(),
                    largest - 0.5
                );
                self.broken.get_or_insert(("initial weights", what));
            }
            let zero = layer.bias.iter().chain(&layer.weight_velocity).chain(&layer.bias_velocity).all(|&v| v == 0);
            if !zero {
                let what = format!("layer{l}: biases and velocities do not start at zero");
                self.broken.get_or_insert(("initial weights", what));
            }
        }
    }

    /// Judges the batch of step `step`, which is said to be `rows` of `split`.
    fn batch(&mut self, spec: &TrainSpec, step: usize, split: &Split, rows: &[u32], batch: &Batch) {
        // 256 units of the data are one: pixel / 256 is exact with eight fraction bits or more.
        let scale = 2f64.powi(spec.fixed.fraction_bits as i32 - 8);
        let promise = if scale >= 1.0 { 0.0 } else { 0.5 };
        let bytes = |&row: &u32| split.image(row as usize).iter().copied();
        let sides = batch.units.iter().zip(&batch.reals);
        for (k, (byte, (&units, &real))) in rows.iter().flat_map(bytes).zip(sides).enumerate() {
            let byte = f64::from(byte);
            if (units as f64 - byte * scale).abs() > promise || real * 256.0 != byte {
                let row = k / split.inputs();
                let what = format!(
                    "step {step}, row {row}, pixel {}: {byte} / 256 is given as {units} units and as {real}",
                    k % split.inputs()
                );
                self.broken.get_or_insert(("pixels", what));
                break;
            }
        }
        self.pixels += batch.units.len() as u64;
        self.labels += rows.len() as u64;
        let wrong = rows.iter().zip(&batch.labels).position(|(&r, &l)| usize::from(split.labels[r as usize]) != l);
        let counts = (batch.units.dim(), batch.reals.dim(), batch.labels.len());
        if let Some(row) = wrong {
            let (own, given) = (split.labels[rows[row] as usize], batch.labels[row]);
            let what = format!("step {step}, row {row}: the data set says class {own}, all sides are given {given}");
            self.broken.get_or_insert(("labels", what));
        } else if counts != ((rows.len(), split.inputs()), (rows.len(), split.inputs()), rows.len()) {
            let what = format!("step {step}: {} rows of {} pixels became {counts:?}", rows.len(), split.inputs());
            self.broken.get_or_insert(("pixels", what));
        }
    }
}

impl Check for Encodings<'_> {
    fn name(&self) -> &'static str {
        "encoding"
    }

    fn see(&mut self, trace: &Trace, _: Option<&Judged>) {
        let Some(rows) = &mut self.rows else { return };
        let split = rows.split;
        let mut batch = Vec::new();
        // A run that is resumed shows no step before that, but the order is that of all of them.
        for (step, next) in rows.batches.by_ref() {
            if let Some(what) = rows.order.take(&next, split.len()) {
                self.broken.get_or_insert(("batch order", format!("step {step}: {what}")));
            }
            batch = next;
            if step >= trace.step {
                break;
            }
        }
        if trace.step == 0
            && let Some(start) = &trace.start
        {
            self.initial(&trace.spec, &start.units);
        }
        self.batch(&trace.spec, trace.step, split, &batch, &trace.batch);
    }

    fn failed(&self) -> bool {
        self.broken.is_some()
    }

    fn finish(self: Box<Self>) -> Outcome {
        let data = match self.rows {
            Some(_) => {
                format!(", {} pixels, {} labels and {} initial weights", self.pixels, self.labels, self.weights)
            }
            None => String::new(),
        };
        let summary = format!("{} constants{data} as the specification promises", self.constants);
        let failure = self.broken.map(|(place, what)| {
            format!(
                "FAIL encoding   {place}: {what}\n  all sides are given this number, so no comparison between them can \
                 see it\n  again: {}",
                self.config.command("--steps 1")
            )
        });
        Outcome::new("encoding", summary, failure)
    }
}

/// What a constant is and should be.
fn broken_promise(c: &Encoding) -> String {
    let promise = if c.below == c.above {
        format!("at most {:e}", c.above)
    } else {
        format!("from {:e} to {:e}", -c.below, c.above)
    };
    format!("{:e} is encoded as {:e}, off by {:e}; promised is {promise}", c.real, c.coded, c.coded - c.real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec};

    fn config(fraction_bits: u32) -> Config {
        let spec = TrainSpec {
            network: NetworkSpec::dense(16, 7, 10, 2),
            head: Head::ReluProb,
            epsilon: 0.1,
            rounding: Rounding::Nearest,
            fixed: FixedSpec { fraction_bits, ..FixedSpec::default() },
            sgd: SgdSpec { batch: 8, ..SgdSpec::default() },
        };
        Config::new(spec, 1, 3)
    }

    /// Every byte is a pixel.
    fn split() -> Split {
        Split { images: (0..=255).collect(), labels: (0..16).map(|l| l % 10).collect(), height: 4, width: 4 }
    }

    fn judged(fraction_bits: u32, change: impl FnOnce(&mut Batch, &mut Parameters)) -> Outcome {
        let (config, split) = (config(fraction_bits), split());
        let rows: Vec<u32> = (0..16).collect();
        let mut batch = generate::rows(&split, &rows, config.spec.fixed);
        let mut parameters = generate::initial(&config.spec, 3).unwrap();
        change(&mut batch, &mut parameters);
        let mut check = Box::new(Encodings::new(&config, Some(&split)).unwrap());
        check.initial(&config.spec, &parameters);
        check.batch(&config.spec, 0, &split, &rows, &batch);
        check.finish()
    }

    #[test]
    fn every_pixel_label_and_weight_is_as_promised_in_every_format() {
        for fraction_bits in 4..=17 {
            let outcome = judged(fraction_bits, |_, _| ());
            assert!(outcome.passed, "{outcome:?}");
            assert!(outcome.summary.contains("256 pixels, 16 labels"), "{outcome:?}");
        }
    }

    #[test]
    fn the_first_broken_promise_is_named() {
        let failure = |change: fn(&mut Batch, &mut Parameters)| judged(16, change).failure.expect("a broken promise");
        assert!(failure(|b, _| b.units[[3, 5]] += 1).contains("pixels: step 0, row 3, pixel 5: 53 / 256 is given as"));
        assert!(failure(|b, _| b.reals[[3, 5]] = 53.0 / 255.0).contains("pixels: step 0, row 3, pixel 5"));
        assert!(failure(|b, _| b.labels[12] = 3).contains("row 12: the data set says class 2, all sides are given 3"));
        assert!(failure(|_, p| p.layers[1].weights[[0, 0]] = 1 << 16).contains("Glorot's limit"));
        assert!(failure(|_, p| p.layers[0].bias[1] = 1).contains("do not start at zero"));
    }

    #[test]
    fn weights_far_inside_their_interval_are_not_those_of_glorot() {
        let failure =
            judged(16, |_, p| p.layers[0].weights.mapv_inplace(|w| w / 2)).failure.expect("half the interval");
        assert!(failure.contains("initial weights: the largest of 112 units in layer1/weights"), "{failure}");
        // Seven numbers may all be small.
        assert!(judged(16, |_, p| p.layers[1].weights.mapv_inplace(|w| w.signum())).failure.is_some());
    }

    /// Many weights come close to the limit, and a coarse unit is a large part of it: neither is a small interval.
    #[test]
    fn wide_layers_and_coarse_units_raise_no_alarm() {
        for (hidden, fraction_bits) in [(2000, 16), (128, 4), (2000, 4), (700, 9)] {
            let mut config = config(fraction_bits);
            config.spec.network = NetworkSpec::dense(784, hidden, 10, 2);
            for seed in 0..3 {
                let mut check = Box::new(Encodings::new(&config, None).unwrap());
                check.initial(&config.spec, &generate::initial(&config.spec, seed).unwrap());
                let outcome = check.finish();
                assert!(outcome.passed, "{hidden} units, f = {fraction_bits}, seed {seed}: {outcome:?}");
            }
        }
    }

    #[test]
    fn an_order_that_is_no_permutation_is_seen() {
        let judged = |batches: &[&[u32]], rows: usize| {
            let mut order = Order::default();
            batches.iter().find_map(|batch| order.take(batch, rows))
        };
        assert_eq!(judged(&[&[3, 1], &[0, 2], &[2, 3], &[1, 0]], 4), None, "two epochs");
        assert_eq!(judged(&[&[1, 0], &[2, 1], &[0, 2], &[1, 0]], 3), None, "the last batch wraps around");
        assert_eq!(judged(&[&[1, 0, 1, 0, 1]], 2), None, "a batch of more than all rows");
        assert!(judged(&[&[3, 1], &[1, 2]], 4).unwrap().contains("row 1 comes twice"));
        assert!(judged(&[&[1, 0], &[2, 0]], 3).unwrap().contains("row 0 fills the last batch"));
        assert!(judged(&[&[4]], 4).is_some(), "no such row");
        for seed in 0..20 {
            let mut order = Order::default();
            assert!(generate::batches(37, 8, seed).take(12).all(|batch| order.take(&batch, 37).is_none()));
        }
    }

    #[test]
    fn a_coarse_format_may_be_half_a_unit_off_and_no_more() {
        let failure = judged(4, |b, _| b.units[[3, 5]] += 1).failure.expect("a unit is too much");
        assert!(failure.contains("row 3, pixel 5"), "{failure}");
    }

    /// Glorot's limit, and half a unit for the rounding.
    #[test]
    fn a_weight_may_be_the_rounded_limit_and_no_unit_more() {
        let with = |more: i64| {
            judged(16, |_, p| {
                let weights = &mut p.layers[0].weights;
                let limit = (6.0 / (weights.nrows() + weights.ncols()) as f64).sqrt() * 65536.0;
                weights[[3, 2]] = -(limit.round() as i64 + more);
            })
        };
        assert_eq!((with(0).word(), with(1).word()), ("PASS", "FAIL"));
    }

    /// 53 / 256 is 6.625 units of 2^-5.
    #[test]
    fn a_coarse_format_rounds_pixels_to_the_nearest_unit() {
        let off = |by: i64| judged(5, |b, _| b.units[[3, 5]] += by).word();
        assert_eq!([off(-1), off(0), off(1)], ["FAIL", "PASS", "FAIL"]);
    }
}
