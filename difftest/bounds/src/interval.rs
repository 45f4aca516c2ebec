//! Closed intervals with outward rounding: every operation encloses the exact result for every pair of operands inside.
//!
//! Each end is computed in round-to-nearest and moved one step outwards (IEEE 754 `nextUp`, `nextDown`), so that no
//! rounding mode has to be set. Source: Moore, *Interval Analysis* (1966); Rump, *Verification methods* (Acta Numerica
//! 2010), section 5.

/// All reals from `lo` to `hi`, both included; the ends may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub lo: f64,
    /// The upper end.
    pub hi: f64,
}

/// A bound on |fl(exp(x)) / exp(x) - 1| for the platform's `exp`, in units of 2^-53: common libraries promise 2 (one
/// ulp); four is assumed.
const EXP_RELATIVE: f64 = 4.0 * f64::EPSILON / 2.0;

/// An upper bound of a sum computed in f64.
pub fn up(v: f64) -> f64 {
    v.next_up()
}

/// A lower bound of a value computed in f64.
pub fn down(v: f64) -> f64 {
    v.next_down()
}

impl Interval {
    /// The interval that holds only zero.
    pub const ZERO: Interval = Interval { lo: 0.0, hi: 0.0 };

    /// The interval that holds only `v`.
    pub const fn point(v: f64) -> Self {
        Interval { lo: v, hi: v }
    }

    /// All reals within `radius` >= 0 of `center`; a radius of zero gives the point itself.
    pub fn around(center: f64, radius: f64) -> Self {
        if radius == 0.0 {
            return Self::point(center);
        }
        Interval { lo: down(center - radius), hi: up(center + radius) }
    }

    /// Whether `v` lies inside.
    pub fn contains(self, v: f64) -> bool {
        self.lo <= v && v <= self.hi
    }

    /// The smallest interval that holds both.
    pub fn hull(self, other: Self) -> Self {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Image under max(0, .).
    pub fn relu(self) -> Self {
        Interval { lo: self.lo.max(0.0), hi: self.hi.max(0.0) }
    }

    /// Wider by `radius` on both sides.
    pub fn widen(self, radius: f64) -> Self {
        if radius == 0.0 { self } else { Interval { lo: down(self.lo - radius), hi: up(self.hi + radius) } }
    }

    /// The largest distance between a point here and one of `other`, rounded up.
    pub fn distance(self, other: Self) -> f64 {
        let d = (self.hi - other.lo).max(other.hi - self.lo);
        if d == 0.0 { 0.0 } else { up(d) }
    }

    /// exp, monotone: the ends widened by the assumed error of the library's `exp`.
    pub fn exp(self) -> Self {
        let lo = if self.lo == 0.0 { 1.0 } else { (self.lo.exp() * (1.0 - EXP_RELATIVE)).next_down().max(0.0) };
        let hi = if self.hi == 0.0 { 1.0 } else { (self.hi.exp() * (1.0 + EXP_RELATIVE)).next_up() };
        Interval { lo, hi }
    }

    /// 1 / v for a positive interval; a lower end of zero gives an infinite upper end.
    pub fn reciprocal(self) -> Self {
        debug_assert!(self.lo >= 0.0);
        Interval { lo: down(1.0 / self.hi).max(0.0), hi: up(1.0 / self.lo) }
    }

    /// v / (v + o) for v here and o in `others`, both non-negative, and 0 / 0 = 0: rising in v, falling in o, so the
    /// corners enclose it.
    pub fn share_of(self, others: Self) -> Self {
        let lo = if self.lo == 0.0 { 0.0 } else { down(self.lo / up(self.lo + others.hi)).max(0.0) };
        let hi = if self.hi == 0.0 { 0.0 } else { up(self.hi / down(self.hi + others.lo)).min(1.0) };
        Interval { lo, hi }
    }
}

impl std::ops::Add for Interval {
    type Output = Interval;

    /// A zero summand keeps the other one exact.
    fn add(self, o: Interval) -> Interval {
        if o == Self::ZERO {
            self
        } else if self == Self::ZERO {
            o
        } else {
            // Rounding never makes a sum of non-negative numbers negative.
            let floor = if self.lo >= 0.0 && o.lo >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
            Interval { lo: down(self.lo + o.lo).max(floor), hi: up(self.hi + o.hi) }
        }
    }
}

impl std::ops::Sub for Interval {
    type Output = Interval;

    fn sub(self, o: Interval) -> Interval {
        if o == Self::ZERO { self } else { Interval { lo: down(self.lo - o.hi), hi: up(self.hi - o.lo) } }
    }
}

/// For each index the sum of all other intervals, without subtracting.
pub fn sums_of_others(v: &[Interval]) -> Vec<Interval> {
    let mut others = vec![Interval::ZERO; v.len()];
    let mut before = Interval::ZERO;
    for (o, &x) in others.iter_mut().zip(v) {
        *o = before;
        before = before + x;
    }
    let mut after = Interval::ZERO;
    for (o, &x) in others.iter_mut().zip(v).rev() {
        *o = *o + after;
        after = after + x;
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval() -> impl Strategy<Value = (Interval, f64)> {
        (-50.0..50.0f64, 0.0..3.0f64, 0.0..=1.0f64).prop_map(|(c, r, t)| {
            let i = Interval::around(c, r);
            (i, (i.lo + t * (i.hi - i.lo)).clamp(i.lo, i.hi))
        })
    }

    proptest! {
        #[test]
        fn every_operation_encloses_the_results_of_inner_points((a, x) in interval(), (b, y) in interval()) {
            prop_assert!((a + b).contains(x + y));
            prop_assert!((a - b).contains(x - y));
            prop_assert!(a.relu().contains(x.max(0.0)));
            prop_assert!(a.hull(b).contains(x) && a.hull(b).contains(y));
            prop_assert!(a.exp().contains(x.exp()));
            prop_assert!(a.distance(b) >= (x - y).abs());
            let (p, q, u, v) = (a.relu(), b.relu(), x.max(0.0), y.max(0.0));
            if u > 0.0 {
                prop_assert!(p.reciprocal().contains(1.0 / u));
                prop_assert!(p.share_of(q).contains(u / (u + v)));
            }
        }

        #[test]
        fn sums_of_others_enclose_the_sums(list in prop::collection::vec(interval(), 1..12)) {
            let intervals: Vec<_> = list.iter().map(|p| p.0).collect();
            for (i, others) in sums_of_others(&intervals).iter().enumerate() {
                let sum: f64 = list.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, p)| p.1).sum();
                prop_assert!(others.widen(1e-12).contains(sum));
            }
        }
    }

    #[test]
    fn nothing_divided_by_nothing_is_zero_and_certainty_stays_exact() {
        assert_eq!(Interval::ZERO.share_of(Interval::ZERO), Interval::ZERO);
        assert_eq!(Interval::point(0.0).exp(), Interval::point(1.0));
        assert_eq!(Interval::around(3.0, 0.0), Interval::point(3.0));
    }

    #[test]
    fn what_is_negative_becomes_zero() {
        let relu = |lo, hi| Interval { lo, hi }.relu();
        assert_eq!([relu(-2.0, -1.0), relu(-1.0, 0.5)], [Interval::ZERO, Interval { lo: 0.0, hi: 0.5 }]);
        assert_eq!(relu(0.25, 0.5), Interval { lo: 0.25, hi: 0.5 });
    }

    #[test]
    fn a_sum_is_as_near_as_f64_has_it() {
        let sum = Interval { lo: 0.25, hi: 0.5 } + Interval { lo: 0.125, hi: 1.0 };
        assert_eq!(sum, Interval { lo: 0.375f64.next_down(), hi: 1.5f64.next_up() });
        let tiny = f64::from_bits(1);
        assert_eq!((Interval { lo: 0.0, hi: tiny } + Interval { lo: 0.0, hi: tiny }).lo, 0.0);
        assert_eq!((Interval { lo: -1.0, hi: 1.0 } + Interval::point(0.5)).lo, (-0.5f64).next_down());
    }
}
