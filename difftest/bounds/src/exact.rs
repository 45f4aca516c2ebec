//! The rules against exact rational arithmetic: what f64 tests cannot see, a bound that holds by luck of f64's own
//! rounding, shows here.

use crate::interval::{Interval, sums_of_others};
use crate::rules::{Errors, gamma};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, Zero};
use proptest::prelude::*;
use reference::fixed::{Arithmetic, Coins, Monitor, Unreduced, divide, truncate};
use reference::spec::{FixedSpec, Rounding};

fn exact(v: f64) -> BigRational {
    BigRational::from_float(v).expect("finite")
}

/// V / 2^scale.
fn units(v: i64, scale: u32) -> BigRational {
    BigRational::new(v.into(), BigInt::from(1) << scale)
}

/// One operation of the integer model with these coins.
fn model<T>(rounding: Rounding, mut coins: Coins, operation: impl FnOnce(&mut Arithmetic) -> T) -> T {
    let mut monitor = Monitor::default();
    let done =
        operation(&mut Arithmetic { fixed: FixedSpec::default(), rounding, coins: &mut coins, monitor: &mut monitor });
    assert_eq!(monitor.total(), 0, "{:?}", monitor.violations());
    done
}

fn rounding() -> impl Strategy<Value = Rounding> {
    prop::sample::select(Rounding::ALL.to_vec())
}

fn coins() -> impl Strategy<Value = Coins> {
    prop_oneof![
        Just(Coins::Extreme { up: false }),
        Just(Coins::Extreme { up: true }),
        any::<u64>().prop_map(Coins::seeded)
    ]
}

/// Finite, of every size and sign, often special.
fn real() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        -1e3..1e3f64,
        -1.0..1.0f64,
        (-60..60i32, -2.0..2.0f64).prop_map(|(e, m)| m * 2f64.powi(e))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn truncation_is_inside_its_bound(
        v in -(1i64 << 61)..1 << 61,
        s in 1u32..=61,
        rounding in rounding(),
        coins in coins(),
    ) {
        let y = model(rounding, coins, |a| truncate::trunc(a, "t", &Unreduced::new([v.into()]), s)).unwrap()[0];
        let off = (units(v, s) - BigRational::from_integer(y.into())).abs();
        prop_assert!(off <= exact(Errors::new(rounding, FixedSpec::default()).truncate * 65536.0), "{v} >> {s} = {y}");
    }

    #[test]
    fn a_truncated_dot_product_and_its_f64_value_are_inside_their_bounds(
        terms in prop::collection::vec((-(1i64 << 20)..1 << 20, -(1i64 << 20)..1 << 20), 1..40),
        rounding in rounding(),
        coins in coins(),
    ) {
        let product: i128 = terms.iter().map(|&(x, w)| i128::from(x) * i128::from(w)).sum();
        let z = model(rounding, coins, |a| truncate::trunc(a, "t", &Unreduced::new([product]), 16)).unwrap()[0];
        let value = |v: i64| v as f64 / 65536.0;
        let in_f64: f64 = terms.iter().map(|&(x, w)| value(x) * value(w)).sum();
        let magnitude: f64 = terms.iter().map(|&(x, w)| (value(x) * value(w)).abs()).sum();
        // The rule of the network's forward pass, its radii of x and w being 0.
        let radius = Errors::new(rounding, FixedSpec::default()).truncate + gamma(terms.len() + 2) * magnitude;
        let radius = radius * (1.0 + gamma(2 * terms.len() + 16));
        prop_assert!((units(z, 16) - exact(in_f64)).abs() <= exact(radius));
        let whole = BigRational::new(product.into(), BigInt::from(1) << 32);
        let bound = gamma(terms.len()) * magnitude * (1.0 + gamma(terms.len() + 1));
        prop_assert!((whole - exact(in_f64)).abs() <= exact(bound));
    }

    #[test]
    fn division_is_inside_its_bound(
        s in 1i64..1 << 31,
        part in 0.0..=1.0f64,
        rounding in rounding(),
        coins in coins(),
    ) {
        let errors = Errors::new(rounding, FixedSpec::default());
        let x = ((part * s as f64) as i64).clamp(0, s);
        let range = FixedSpec::default().full_range();
        let q = model(rounding, coins.clone(), |a| divide::quotient(a, "q", &[x], &[s], range)).unwrap().0[0];
        let ratio = BigRational::new(x.into(), s.into());
        let off = (units(q, 16) - &ratio).abs();
        prop_assert!(off <= ratio * exact(errors.inverse) + exact(errors.truncate), "{x} / {s} = {q}");
        let r = model(rounding, coins, |a| divide::reciprocal(a, "r", &[s], range)).unwrap()[0];
        let inverse = BigRational::new(BigInt::from(1) << 16, s.into());
        let off = (units(r, 16) - &inverse).abs();
        prop_assert!(off <= inverse * exact(errors.inverse) + exact(errors.truncate), "1 / {s} = {r}");
    }

    #[test]
    fn intervals_enclose_exact_results(
        a in real(),
        b in real(),
        ra in 0.0..2.0f64,
        rb in 0.0..2.0f64,
        t in 0.0..=1.0f64,
    ) {
        let (a, b) = (Interval::around(a, ra), Interval::around(b, rb));
        let inside = |i: Interval| (i.lo + t * (i.hi - i.lo)).clamp(i.lo, i.hi);
        let holds = |i: Interval, v: BigRational| exact(i.lo) <= v && v <= exact(i.hi);
        let (x, y) = (exact(inside(a)), exact(inside(b)));
        prop_assert!(holds(a + b, &x + &y) && holds(a - b, &x - &y));
        prop_assert!((&x - &y).abs() <= exact(a.distance(b)));
        prop_assert!(holds(sums_of_others(&[a, b, a])[2], &x + &y));
        let (p, q) = (a.relu(), b.relu());
        let (u, v) = (exact(inside(p)), exact(inside(q)));
        if !u.is_zero() && p.lo > 1e-300 {
            prop_assert!(holds(p.reciprocal(), u.recip()));
            prop_assert!(holds(p.share_of(q), &u / (&u + &v)));
        }
    }
}
