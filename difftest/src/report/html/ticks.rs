//! Marks of an axis: round numbers inside its range, labels that differ.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// A mark on an axis, with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its place on the axis; of a logarithmic axis, the logarithm to base 10.
    pub at: f64,
    /// The number beside the mark.
    pub label: String,
}

/// An axis with marks of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    range: Range<f64>,
    marks: Vec<f64>,
}

impl Axis {
    /// With these marks.
    pub fn new(range: Range<f64>, ticks: &[Tick]) -> Self {
        Axis { range, marks: ticks.iter().map(|t| t.at).collect() }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let span = self.range.end - self.range.start;
        let part = if span > 0.0 { (value - self.range.start) / span } else { 0.5 };
        from + (part * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.marks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Marks of an axis at most.
const MOST: usize = 7;

/// The label of the mark at `at`.
pub fn label(ticks: &[Tick], at: f64) -> String {
    let near = ticks.iter().min_by(|a, b| (a.at - at).abs().total_cmp(&(b.at - at).abs()));
    near.map_or(String::new(), |t| t.label.clone())
}

/// Marks for a range: two to seven unless it is a point. `log`: the range is of logarithms to base 10. `whole`: only
/// integers are values of this axis.
pub fn ticks(range: &Range<f64>, log: bool, whole: bool) -> Vec<Tick> {
    if log { logarithmic(range) } else { linear(range, whole) }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear(range: &Range<f64>, whole: bool) -> Vec<Tick> {
    let span = range.end - range.start;
    if !(span.is_finite() && span > 0.0) {
        return Vec::new();
    }
    let least = span / MOST as f64;
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let count = |step: f64| ((range.end / step).floor() - (range.start / step).ceil()) as i64 + 1;
    let fits = |step: &f64| count(*step) <= MOST as i64;
    let step = steps.into_iter().find(fits).unwrap_or(steps[3]);
    let step = if whole { step.max(1.0) } else { step };
    let first = (range.start / step).ceil() as i64;
    let places = (-step.log10().floor()).max(0.0) as usize;
    let tick = |k: i64| {
        let at = (first + k) as f64 * step;
        Tick { at, label: number(at, step, places) }
    };
    (0..count(step)).map(tick).collect()
}

/// A multiple of `step`, whose digits it needs and no more.
fn number(v: f64, step: f64, places: usize) -> String {
    let v = if v.abs() < step / 2.0 { 0.0 } else { v };
    let outside = v != 0.0 && !(0.01..1e5).contains(&v.abs());
    if !outside && places <= 4 {
        return format!("{v:.places$}");
    }
    if v == 0.0 {
        return "0".into();
    }
    let digits = (v.abs().log10().floor() - step.log10().floor()).max(0.0) as usize;
    format!("{v:.digits$e}")
}

/// Powers of ten; with fewer than three of them also 2 and 5 times those, or round numbers in between.
fn logarithmic(range: &Range<f64>) -> Vec<Tick> {
    let (first, last) = (range.start.ceil() as i32, range.end.floor() as i32);
    let one = |m: f64, k: i32| {
        let v = m * 10f64.powi(k);
        Tick { at: v.log10(), label: number(v, 10f64.powi(k), (-k).max(0) as usize) }
    };
    if last - first >= 2 {
        let stride = ((last - first) as usize / MOST + 1) as i32;
        return (first..=last).filter(|k| (k - first) % stride == 0).map(|k| one(1.0, k)).collect();
    }
    let inside = |t: &Tick| range.contains(&t.at);
    let few: Vec<_> = (first - 1..=last).flat_map(|k| [1.0, 2.0, 5.0].map(|m| one(m, k))).filter(inside).collect();
    if few.len() >= 3 {
        return few;
    }
    let values = 10f64.powf(range.start)..10f64.powf(range.end);
    linear(&values, false).into_iter().map(|t| Tick { at: t.at.log10(), ..t }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn labels(range: Range<f64>, log: bool, whole: bool) -> Vec<String> {
        ticks(&range, log, whole).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(labels(1.0..3.0, false, true), ["1", "2", "3"], "no half epochs");
        assert_eq!(labels(1.0..20.0, false, true), ["5", "10", "15", "20"]);
        assert_eq!(labels(66.3..98.1, false, false), ["70", "75", "80", "85", "90", "95"]);
        assert_eq!(labels(-0.05..0.31, false, false), ["0.0", "0.1", "0.2", "0.3"]);
        // 1e-4 to 4e-4, once marked 1e-4, 2e-4, 2e-4, 3e-4, 3e-4, 4e-4.
        assert_eq!(
            labels(-4.0..-3.39, true, false),
            ["1.0e-4", "1.5e-4", "2.0e-4", "2.5e-4", "3.0e-4", "3.5e-4", "4.0e-4"]
        );
        assert_eq!(labels(0.1..0.9, true, false), ["2", "3", "4", "5", "6", "7"]);
        assert_eq!(labels(-0.2..1.3, true, false), ["1", "2", "5", "10"]);
        assert_eq!(labels(-9.0..1.0, true, false), ["1e-9", "1e-7", "1e-5", "1e-3", "0.1", "10"]);
        assert_eq!(labels(2.0..2.0, false, false), [""; 0]);
    }

    proptest! {
        #[test]
        fn marks_lie_inside_and_their_labels_differ_and_are_their_numbers(
            lo in -1e6f64..1e6, exponent in -6f64..6.0, log: bool, whole: bool,
        ) {
            let lo = if log { lo / 1e5 } else { lo };
            let span = 10f64.powf(exponent);
            let span = if log { span.clamp(0.1, 20.0) } else { span.max(lo.abs() * 1e-6) };
            let range = lo..lo + span;
            let ticks = ticks(&range, log, whole && !log);
            let slack = 1e-9 * (1.0 + lo.abs() + span);
            prop_assert!(ticks.iter().all(|t| (range.start - slack..=range.end + slack).contains(&t.at)), "{ticks:?}");
            let distinct: HashSet<_> = ticks.iter().map(|t| &t.label).collect();
            prop_assert_eq!(distinct.len(), ticks.len(), "{:?}", ticks);
            prop_assert!(ticks.len() <= 8 && (ticks.len() >= 2 || whole && span < 3.0), "{ticks:?} for {range:?}");
            for t in &ticks {
                let v: f64 = t.label.parse().unwrap();
                let at = if log { v.log10() } else { v };
                prop_assert!((at - t.at).abs() <= 0.01 * span, "{t:?}");
            }
        }
    }
}
