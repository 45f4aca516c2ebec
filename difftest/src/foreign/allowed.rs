//! The error that an operation may have, in units: from the header's rounding and the number of truncations.

use crate::trace::header::{Header, Numbers, TraceRounding, Truncation};

/// How often an operation truncates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncations {
    /// Never: integers must be equal.
    None,
    /// So many times, whatever the header says of terms.
    Times(usize),
    /// Once a dot product or once a term, as the header says.
    DotProduct,
    /// So many times in all, so many of them of products that are subtracted: before they are truncated or after, which
    /// turns the error round.
    Subtracted {
        /// All truncations.
        count: usize,
        /// Those of products that are subtracted.
        subtracted: usize,
    },
}

/// The errors that are allowed: an interval in units, each end of which belongs to it or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowed {
    /// The least error that is allowed.
    pub low: f64,
    /// The largest error that is allowed.
    pub high: f64,
    /// Whether the least error itself is a fault: a floor and a probabilistic truncation never move an exact multiple,
    /// and halves may go up.
    pub without_low: bool,
    /// Whether the largest error itself is a fault.
    pub without_high: bool,
    /// The number of truncations counted.
    pub count: usize,
}

impl Allowed {
    /// The bound of an operation over `terms` terms.
    pub fn of(header: &Header, truncations: Truncations, terms: usize) -> Self {
        let (count, subtracted) = match truncations {
            Truncations::None => (0, 0),
            Truncations::Times(n) => (n, 0),
            Truncations::DotProduct if header.truncation == Truncation::DotProduct => (1, 0),
            Truncations::DotProduct => (terms, 0),
            Truncations::Subtracted { count, subtracted } => (count, subtracted),
        };
        if count == 0 || header.numbers != Numbers::Fixed {
            return Allowed { low: 0.0, high: 0.0, without_low: false, without_high: false, count: 0 };
        }
        let (low, high, without_low, without_high) = match (header.truncation_error, header.rounding) {
            (Some([low, high]), _) => (low, high, false, false),
            (None, TraceRounding::Nearest) => (-0.5, 0.5, header.ties_up, false),
            (None, TraceRounding::Probabilistic) => (-1.0, 1.0, true, true),
            (None, TraceRounding::Floor) => (-1.0, 0.0, true, false),
            (None, TraceRounding::Local | TraceRounding::Unknown) => (-1.0, 1.0, false, false),
        };
        let one = Allowed { low, high, without_low, without_high, count: 1 };
        one.times(count - subtracted).plus(one.either_way().times(subtracted))
    }

    /// The errors of one truncation of a product that is subtracted, before it is truncated or after.
    fn either_way(self) -> Self {
        let turned = (-self.high, -self.low, self.without_high, self.without_low);
        let end = |own: (f64, bool), turned: (f64, bool), outer: fn(f64, f64) -> f64| {
            let end = outer(own.0, turned.0);
            // Left out only if neither reaches it.
            (end, [own, turned].iter().all(|(at, without)| *at != end || *without))
        };
        let (low, without_low) = end((self.low, self.without_low), (turned.0, turned.2), f64::min);
        let (high, without_high) = end((self.high, self.without_high), (turned.1, turned.3), f64::max);
        Allowed { low, high, without_low, without_high, ..self }
    }

    /// The sum of `n` such errors.
    fn times(self, n: usize) -> Self {
        let (without_low, without_high) = (n > 0 && self.without_low, n > 0 && self.without_high);
        Allowed { low: n as f64 * self.low, high: n as f64 * self.high, without_low, without_high, count: n }
    }

    fn plus(self, other: Self) -> Self {
        Allowed {
            low: self.low + other.low,
            high: self.high + other.high,
            without_low: self.without_low || other.without_low,
            without_high: self.without_high || other.without_high,
            count: self.count + other.count,
        }
    }

    /// Whether an error of `units` is inside, with `slack` units for what is not known exactly: it widens both ends,
    /// which then belong to the interval.
    pub fn holds(&self, units: f64, slack: f64) -> bool {
        let above = units > self.low - slack || units == self.low - slack && (slack > 0.0 || !self.without_low);
        let below = units < self.high + slack || units == self.high + slack && (slack > 0.0 || !self.without_high);
        above && below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(fields: &str, truncations: Truncations, terms: usize) -> Allowed {
        let fixed = r#""numbers": "fixed", "fraction_bits": 16"#;
        let numbers = if fields.contains("numbers") { "" } else { fixed };
        let comma = if numbers.is_empty() || fields.is_empty() { "" } else { ", " };
        let text = format!(r#"{{"format": "difftest-trace", "version": 1, "engine": "e", {numbers}{comma}{fields}}}"#);
        Allowed::of(&Header::parse(&text).unwrap(), truncations, terms)
    }

    /// The errors, of those around the ends of every interval, that are inside.
    fn inside(allowed: Allowed, slack: f64) -> Vec<f64> {
        let ends = [-1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25];
        ends.into_iter().filter(|&units| allowed.holds(units, slack)).collect()
    }

    #[test]
    fn every_rounding_has_the_interval_that_the_documentation_says() {
        let once =
            |rounding: &str| inside(allowed(&format!(r#""rounding": {rounding}"#), Truncations::Times(1), 9), 0.0);
        assert_eq!(once(r#""nearest""#), [-0.5, -0.25, 0.0, 0.25, 0.5]);
        assert_eq!(once(r#""nearest", "ties_up": true"#), [-0.25, 0.0, 0.25, 0.5]);
        assert_eq!(once(r#""probabilistic""#), [-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75]);
        assert_eq!(once(r#""floor""#), [-0.75, -0.5, -0.25, 0.0]);
        assert_eq!(once(r#""floor", "ties_up": true"#), [-0.75, -0.5, -0.25, 0.0]);
        let unit = [-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0];
        assert_eq!((once(r#""local""#), once(r#""unknown""#)), (unit.to_vec(), unit.to_vec()));
        assert_eq!(once(r#""floor", "truncation_error": [-0.75, 0.25]"#), [-0.75, -0.5, -0.25, 0.0, 0.25]);
        let own = r#""nearest", "ties_up": true, "truncation_error": [-0.5, 0.0]"#;
        assert_eq!(once(own), [-0.5, -0.25, 0.0], "what the engine says of itself holds, ends included");
    }

    #[test]
    fn uncertainty_widens_both_ends_and_closes_them() {
        let once =
            |rounding: &str| inside(allowed(&format!(r#""rounding": {rounding}"#), Truncations::Times(1), 9), 0.25);
        assert_eq!(once(r#""nearest", "ties_up": true"#), [-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75]);
        assert_eq!(once(r#""floor""#), [-1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25]);
        assert_eq!(once(r#""probabilistic""#).len(), 11);
    }

    #[test]
    fn what_is_subtracted_errs_to_either_side() {
        let of = |rounding: &str, count| {
            let truncations = Truncations::Subtracted { count, subtracted: 1 };
            inside(allowed(&format!(r#""rounding": {rounding}"#), truncations, 9), 0.0)
        };
        assert_eq!(of(r#""floor""#, 1), [-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75]);
        assert_eq!(of(r#""floor""#, 2), [-1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75]);
        assert_eq!(of(r#""nearest", "ties_up": true"#, 1), [-0.5, -0.25, 0.0, 0.25, 0.5], "ties go up or down");
        let two = [-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0];
        assert_eq!(of(r#""nearest", "ties_up": true"#, 2), two, "one of both goes up for sure");
        assert_eq!(of(r#""floor", "truncation_error": [-0.75, 0.25]"#, 1), of(r#""floor""#, 1), "turned round");
        let most = [-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75];
        assert_eq!(of(r#""floor", "truncation_error": [-0.25, 0.75]"#, 1), most, "and the other way round");
        assert_eq!(of(r#""probabilistic""#, 1), [-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75]);
    }

    #[test]
    fn truncations_are_counted_as_the_header_says() {
        let of = |fields: &str, truncations| {
            let Allowed { low, high, count, .. } = allowed(fields, truncations, 9);
            (low, high, count)
        };
        let floor = r#""rounding": "floor""#;
        assert_eq!(of(floor, Truncations::None), (0.0, 0.0, 0));
        assert_eq!(of(floor, Truncations::Times(2)), (-2.0, 0.0, 2));
        assert_eq!(of(floor, Truncations::DotProduct), (-1.0, 0.0, 1));
        assert_eq!(of(r#""rounding": "nearest", "truncation": "term""#, Truncations::DotProduct), (-4.5, 4.5, 9));
        assert_eq!(of(r#""numbers": "float32""#, Truncations::Times(2)), (0.0, 0.0, 0));
        assert!(inside(allowed(floor, Truncations::None, 9), 0.0) == [0.0], "integers must be equal");
    }
}
