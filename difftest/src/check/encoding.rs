//! `encoding`: what all sides take from one place is what the specification promises of it.
//!
//! Constants, pixels, labels and initial weights are encoded once and handed to every side, so no comparison between
//! sides can see a mistake in them. This check computes each of them a second time, by another route:
//!
//! * constants (rate, momentum, epsilon, log2 e): against the real numbers, within the promise of
//!   [`crate::bound::encoding`];
//! * pixels and labels of every batch: against the bytes of the data set, one by one;
//! * initial weights: inside Glorot's limit, with biases and velocities of zero.

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

/// The training rows of a run: the data set, and step and row numbers of each batch to come.
struct Rows<'c> {
    split: &'c Split,
    batches: Box<dyn Iterator<Item = (usize, Vec<u32>)> + 'c>,
}

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
        });
        Ok(Encodings { config, rows, constants: constants.len(), pixels: 0, labels: 0, weights: 0, broken })
    }

    /// Judges the parameters from which a run begins, unless they were trained before.
    fn initial(&mut self, spec: &TrainSpec, parameters: &Parameters) {
        let one = spec.fixed.one() as f64;
        for (l, layer) in (1..).zip(&parameters.layers) {
            let (inputs, outputs) = spec.network.shape(l);
            let limit = (6.0 / (inputs + outputs) as f64).sqrt() * one + 0.5;
            self.weights += layer.weights.len() as u64;
            if let Some(w) = layer.weights.iter().find(|w| w.unsigned_abs() as f64 > limit) {
                let what = format!("layer{l}/weights holds {w} units; Glorot's limit is {limit:.1}");
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
        // A run that is resumed shows no step before that.
        let (_, batch) = rows.batches.find(|(step, _)| *step >= trace.step).unwrap_or_default();
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
    fn a_coarse_format_may_be_half_a_unit_off_and_no_more() {
        let failure = judged(4, |b, _| b.units[[3, 5]] += 1).failure.expect("a unit is too much");
        assert!(failure.contains("row 3, pixel 5"), "{failure}");
    }
}
