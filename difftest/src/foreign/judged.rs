//! The errors of one tensor of one step against their bounds.

use super::allowed::{Allowed, Truncations};
use super::exact::{Exact, Expected};
use super::number::Number;
use crate::bound::rules::gamma;
use crate::trace::header::{Header, Numbers};

/// Whether an operation has a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Against a bound.
    Judged,
    /// A function of which the engine promises nothing: measured only.
    Measured,
}

/// A measured function is near to a value within this distance, real.
const NEAR: f64 = 1.0 / 256.0;

/// One tensor of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The operation that makes it.
    pub operation: &'static str,
    /// Its name in the trace, after `step/N/`.
    pub tensor: String,
    /// The number of the step, from 0.
    pub step: usize,
    /// Rows and columns.
    pub dim: (usize, usize),
    /// The values of the engine, real.
    pub output: Vec<f64>,
    /// The values that it should have before rounding, real.
    pub expected: Vec<f64>,
    /// (output - expected) in units.
    pub error: Vec<f64>,
    /// Least error that is allowed, units.
    pub low: Vec<f64>,
    /// Largest error that is allowed, units.
    pub high: Vec<f64>,
    /// The part that a truncation cuts off, in [0, 1) of a unit; empty where it is not known exactly.
    pub fraction: Vec<f64>,
    /// The flat indices of the elements outside.
    pub outside: Vec<usize>,
    /// The value of one unit, real.
    pub unit: f64,
    /// Truncations an element.
    pub truncations: usize,
    /// Bits that a truncation cuts off, where they are known.
    pub shift: u32,
    /// Whether there is a bound.
    pub kind: Kind,
    /// Units by which another formula may differ from a mistaken engine that has the functions' errors as well.
    pub spare: f64,
    /// The denominator of each row, of a division.
    pub denominators: Vec<f64>,
}

impl Judged {
    /// Compares what the engine has with what it should have.
    pub fn new(
        header: &Header,
        (operation, tensor, step): (&'static str, &str, usize),
        output: &Number,
        expected: &Expected,
        truncations: Truncations,
    ) -> Self {
        let allowed = Allowed::of(header, truncations, expected.terms);
        let reals = output.reals();
        let wanted = expected.to_reals();
        let (error, slack, fraction, shift, unit) = errors(header, output, expected);
        let mut judged = Judged {
            operation,
            tensor: tensor.into(),
            step,
            dim: expected.dim,
            output: reals.into_raw_vec_and_offset().0,
            expected: wanted,
            low: slack.iter().map(|s| allowed.low - s).collect(),
            high: slack.iter().map(|s| allowed.high + s).collect(),
            outside: Vec::new(),
            fraction: if allowed.count == 1 { fraction } else { Vec::new() },
            error,
            unit,
            truncations: allowed.count,
            shift,
            kind: Kind::Judged,
            spare: 0.0,
            denominators: Vec::new(),
        };
        judged.outside = (0..judged.error.len()).filter(|&i| !allowed.holds(judged.error[i], slack[i])).collect();
        judged
    }

    /// Compares with limits of its own: the least and largest value of each element, real.
    pub fn between(
        header: &Header,
        (operation, tensor, step): (&'static str, &str, usize),
        output: &Number,
        expected: &[f64],
        limits: Option<(Vec<f64>, Vec<f64>)>,
    ) -> Self {
        let unit = header.unit();
        let reals = output.reals().into_raw_vec_and_offset().0;
        let error: Vec<f64> = reals.iter().zip(expected).map(|(o, e)| (o - e) / unit).collect();
        let kind = if limits.is_some() { Kind::Judged } else { Kind::Measured };
        let infinite = || (vec![f64::NEG_INFINITY; error.len()], vec![f64::INFINITY; error.len()]);
        let (low, high) = limits.map_or_else(infinite, |(low, high)| {
            let units = |limit: Vec<f64>| limit.iter().zip(expected).map(|(l, e)| (l - e) / unit).collect();
            (units(low), units(high))
        });
        let stored: Vec<f64> = reals.iter().map(|o| o.abs() * output.half_ulp() / unit + 1e-9).collect();
        let inside = |i: usize| error[i] >= low[i] - stored[i] && error[i] <= high[i] + stored[i];
        let outside = (0..error.len()).filter(|&i| !inside(i)).collect();
        Judged {
            operation,
            tensor: tensor.into(),
            step,
            dim: output.dim(),
            expected: expected.to_vec(),
            output: reals,
            fraction: Vec::new(),
            outside,
            error,
            low,
            high,
            unit,
            truncations: 0,
            shift: 0,
            kind,
            spare: 2.0,
            denominators: Vec::new(),
        }
    }

    /// The place of a flat index.
    pub fn place(&self, flat: usize) -> String {
        let columns = self.dim.1.max(1);
        format!("{}[{}, {}]", self.tensor, flat / columns, flat % columns)
    }

    /// The least and largest error that any element may have, units: what a mistaken formula is given as well.
    pub fn widest(&self) -> (f64, f64) {
        if self.kind == Kind::Measured {
            return (-NEAR / self.unit, NEAR / self.unit);
        }
        let low = self.low.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::min);
        let high = self.high.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        (low - self.spare - 1e-6, high + self.spare + 1e-6)
    }
}

/// (errors in units, their uncertainty in units, fractions cut off, bits cut off, the unit).
fn errors(header: &Header, output: &Number, expected: &Expected) -> (Vec<f64>, Vec<f64>, Vec<f64>, u32, f64) {
    match (output, &expected.exact) {
        (Number::Units { v: out, scale: own }, Exact::Integer { v, scale }) if scale >= own && scale - own <= 62 => {
            let shift = scale - own;
            let back = 2f64.powi(-(shift as i32));
            let difference = |(&o, &v): (&i64, &i128)| ((i128::from(o) << shift).saturating_sub(v)) as f64 * back;
            let mask = (1i128 << shift) - 1;
            let fraction = v.iter().map(|v| (v & mask) as f64 * back).collect();
            let error = out.iter().zip(v).map(difference).collect();
            (error, vec![0.0; v.len()], fraction, shift, 2f64.powi(-(*own as i32)))
        }
        _ => {
            let unit = match output {
                Number::Units { scale, .. } => 2f64.powi(-(*scale as i32)),
                Number::Reals { .. } => header.unit(),
            };
            let wanted = expected.to_reals();
            let out = output.reals();
            let error = out.iter().zip(&wanted).map(|(o, e)| (o - e) / unit).collect();
            let computing = floating(header, expected.terms);
            let own = |i: usize| match &expected.exact {
                Exact::Real { slack, .. } => slack[i],
                Exact::Integer { .. } => 0.0,
            };
            let magnitude = |i: usize| expected.magnitude.get(i).copied().unwrap_or_else(|| wanted[i].abs());
            let slack = out
                .iter()
                .enumerate()
                .map(|(i, o)| (own(i) + o.abs() * output.half_ulp() + computing * magnitude(i)) / unit)
                .map(|s| if s.is_finite() { s } else { 0.0 })
                .collect();
            (error, slack, Vec::new(), 0, unit)
        }
    }
}

/// The relative error, against the sum of magnitudes, of an engine that computes in floating point.
fn floating(header: &Header, terms: usize) -> f64 {
    match header.numbers {
        Numbers::Fixed => 0.0,
        Numbers::Float64 => gamma(terms + 2),
        Numbers::Float32 => {
            let nu = (terms + 2) as f64 * f64::from(f32::EPSILON) / 2.0;
            nu / (1.0 - nu).max(0.5)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    const NAMES: (&str, &str, usize) = ("an operation", "a tensor", 3);

    fn header(fields: &str) -> Header {
        Header::parse(&format!(r#"{{"format": "difftest-trace", "version": 1, "engine": "e", {fields}}}"#)).unwrap()
    }

    fn fixed() -> Header {
        header(r#""numbers": "fixed", "fraction_bits": 4, "rounding": "nearest""#)
    }

    fn row(v: &[f64], half_ulp: f64) -> Number {
        Number::Reals { v: Array2::from_shape_vec((1, v.len()), v.to_vec()).unwrap(), half_ulp }
    }

    fn units(v: &[i64], scale: u32) -> Number {
        Number::Units { v: Array2::from_shape_vec((1, v.len()), v.to_vec()).unwrap(), scale }
    }

    #[test]
    fn errors_of_integers_are_exact_up_to_62_bits_cut_off() {
        let expected = Expected::integers((1, 4), vec![40, 41, 56, -24], 8);
        let judged = Judged::new(&fixed(), NAMES, &units(&[3, 3, 3, -2], 4), &expected, Truncations::Times(1));
        assert_eq!(judged.error, [0.5, 7.0 / 16.0, -0.5, -0.5]);
        assert_eq!(judged.fraction, [0.5, 9.0 / 16.0, 0.5, 0.5]);
        assert_eq!((judged.shift, judged.unit, judged.truncations), (4, 1.0 / 16.0, 1));
        assert_eq!((&judged.low[..2], &judged.high[..2]), (&[-0.5; 2][..], &[0.5; 2][..]));
        assert!(judged.outside.is_empty());
        let twice = Judged::new(&fixed(), NAMES, &units(&[3, 3, 3, -4], 4), &expected, Truncations::Times(2));
        assert!(twice.fraction.is_empty() && twice.outside == [3], "{:?} {:?}", twice.fraction, twice.error);
        // As many bits as the engine's own, 62 more, and too many to shift: then in real numbers.
        for (scale, exact) in [(4, true), (66, true), (67, false), (3, false)] {
            let expected = Expected::integers((1, 1), vec![0], scale);
            let judged = Judged::new(&fixed(), NAMES, &units(&[1], 4), &expected, Truncations::Times(1));
            assert_eq!((judged.error[0], judged.fraction.len()), (1.0, usize::from(exact)), "scale {scale}");
            assert_eq!(judged.shift, if exact { scale - 4 } else { 0 });
        }
    }

    /// One product of a sum of `terms` may be off by half a last place, and so may the value that is stored.
    #[test]
    fn what_floating_point_may_be_off_by() {
        let single = f64::from(f32::EPSILON) / 2.0;
        let double = f64::EPSILON / 2.0;
        for (numbers, half_ulp, n) in [("float32", single, 12.0), ("float64", double, 12.0), ("fixed", 0.0, 0.0)] {
            let header = match numbers {
                "fixed" => fixed(),
                _ => header(&format!(r#""numbers": "{numbers}""#)),
            };
            let terms = 10;
            let computing = n * half_ulp / (1.0 - n * half_ulp);
            let (value, magnitude) = (2.0, 8.0);
            let slack = magnitude * (gamma(terms + 4) + computing) + value * half_ulp;
            let expected = Expected::reals((1, 1), vec![value], vec![magnitude], terms, 0.0);
            let of = |off: f64| {
                let out = row(&[value + off], half_ulp);
                Judged::new(&header, NAMES, &out, &expected, Truncations::None)
            };
            let judged = of(0.0);
            assert!((judged.high[0] * judged.unit / slack - 1.0).abs() < 1e-6, "{numbers}: {:?}", judged.high);
            assert_eq!(judged.low[0], -judged.high[0]);
            assert!(of(slack * 0.9).outside.is_empty() && of(-slack * 0.9).outside.is_empty(), "{numbers}");
            assert_eq!((of(slack * 1.1).outside, of(-slack * 1.1).outside), (vec![0], vec![0]), "{numbers}");
        }
    }

    #[test]
    fn limits_of_an_element_belong_to_it_and_what_is_measured_is_never_outside() {
        let (out, expected) = (row(&[1.0, 1.0, 1.0], 0.0), [1.0, 1.25, 0.5]);
        let limits = (vec![1.0, 1.0 + 1e-9, 0.0], vec![1.0, 2.0, 1.0 - 1e-9]);
        let judged = Judged::between(&fixed(), NAMES, &out, &expected, Some(limits));
        assert_eq!((judged.error.as_slice(), judged.kind), (&[0.0, -4.0, 8.0][..], Kind::Judged));
        assert_eq!(judged.outside, [1, 2]);
        assert_eq!((judged.low[0], judged.low[2], judged.high[1]), (0.0, -8.0, 12.0));
        let (low, high) = judged.widest();
        assert!((low + 8.0 + 2.0).abs() < 1e-5 && low < -10.0 && (high - 12.0 - 2.0).abs() < 1e-5 && high > 14.0);
        // A value in floating point may have been stored half a last place off.
        let stored = row(&[1.0 + 1e-3], 1e-3);
        let one = |out| Judged::between(&fixed(), NAMES, &out, &[1.0], Some((vec![1.0], vec![1.0]))).outside.len();
        assert_eq!((one(stored), one(row(&[1.0 + 1e-3], 0.9e-3))), (0, 1));
        let measured = Judged::between(&fixed(), NAMES, &row(&[1e9], 0.0), &[0.0], None);
        assert!(measured.outside.is_empty() && measured.kind == Kind::Measured);
        assert_eq!(measured.widest(), (-16.0 / 256.0, 16.0 / 256.0));
        assert_eq!(Judged { dim: (2, 2), ..judged }.place(3), "a tensor[1, 1]");
    }
}
