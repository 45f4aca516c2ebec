//! exp(d) for d <= 0, as 2^(d log2 e): the integer part by bits, the fraction by a polynomial of degree 4.
//!
//! computes   exp(d 2^-f) 2^f to within the error, scale f in and out; exactly 2^f at d = 0, exactly 0 below the cut -D
//! requires   -2^(K-1) < d <= 0 and d + D < 2^(K-1)
//! error      [`error_units`]: exhaustive over every d and, the result being monotone in its coins, over every coin
//! source     arithmetic, section 6; Aly and Smart (eprint 2019/354), section 4

use super::truncate::trunc;
use super::{Arithmetic, ModelError, Unreduced, compare};
use spec::constants::{EXP_C1, EXP_C2, EXP_C3, EXP_C4};
use spec::{FixedSpec, Rounding};

/// Largest |result - exp(d 2^-f) 2^f| in units, rounded up at the fourth decimal, and the d where it is reached:
/// probabilistic, then nearest, for f = 4..=17. From f = 18 on the rounding of log2(e), for which section 6 leaves 31 -
/// f fraction bits, would cost units: 4.9 at 18, 49 at 20.
#[rustfmt::skip]
const WORST: [[(f64, i64); 2]; 14] = [
    [(0.9967, -6), (0.4883, -38)],
    [(0.9970, -111), (0.4989, -51)],
    [(0.9977, -102), (0.4996, -186)],
    [(1.0002, -57), (0.4992, -710)],
    [(1.0003, -114), (0.5000, -1_597)],
    [(1.0005, -228), (0.5000, -3_549)],
    [(1.0010, -456), (0.5013, -449)],
    [(1.0025, -898), (0.5038, -973)],
    [(1.0087, -925), (0.5084, -2_662)],
    [(1.0179, -5_225), (0.5183, -5_302)],
    [(1.0371, -10_583), (0.5347, -10_289)],
    [(1.1146, -15_589), (0.6135, -14_729)],
    [(1.2335, -30_897), (0.7290, -31_100)],
    [(1.4705, -60_165), (0.9639, -60_969)],
];

/// Bound on |result - exp(d 2^-f) 2^f| in units for every d <= 0; measured exhaustively.
///
/// # Panics
/// If f is not 4..=17, which [`FixedSpec::validate`] refuses.
pub const fn error_units(fixed: FixedSpec, rounding: Rounding) -> f64 {
    worst(fixed, rounding).0
}

/// [`error_units`] and the d at which the error is reached: an input that a test of any implementation should try.
///
/// # Panics
/// If f is not 4..=17, which [`FixedSpec::validate`] refuses.
pub const fn worst(fixed: FixedSpec, rounding: Rounding) -> (f64, i64) {
    let row = WORST[fixed.fraction_bits as usize - 4];
    match rounding {
        Rounding::Probabilistic => row[0],
        Rounding::Nearest => row[1],
    }
}

/// exp of every element.
///
/// # Errors
/// Those of [`trunc`].
pub fn exp(a: &mut Arithmetic, d: &[i64]) -> Result<Vec<i64>, ModelError> {
    let f = a.fixed.fraction_bits;
    let allowed = i128::from(1 - a.fixed.limit())..=0;
    d.iter().enumerate().for_each(|(i, &d)| a.monitor.check("head/exp", i, d.into(), &allowed));
    let above_cut = compare::at_least(a, "head/exp/cut", d, -a.fixed.exp_cut());

    // |y| < 2^31 2^31-f 1.45 for ordinary d: it does not wrap. y = (n - 31) 2^31 + r.
    let y: Vec<i64> = d.iter().map(|&d| d.wrapping_mul(a.fixed.exp_log2e())).collect();
    let r: Vec<i64> = y.iter().map(|y| y & ((1 << 31) - 1)).collect();
    let n = y.iter().map(|y| (y >> 31).wrapping_add(31) & 31);

    let r1 = trunc(a, "head/exp/fraction", &Unreduced::new(r.iter().map(|&r| r.into())), 11)?;
    // r^2 is in [0, 2^62), and nearest's half would carry the largest over the limit: centred by a multiple of 2^42 it
    // is in [-2^61, 2^61).
    let centred = r.iter().map(|&r| i128::from(r) * i128::from(r) - (1 << 61));
    let r2 = trunc(a, "head/exp/square", &Unreduced::new(centred), 42)?;
    let r2 = r2.into_iter().map(|v| v.wrapping_add(1 << 19));
    // 2^60 + C1 r + r2 t = 2^60 2^r < 2^61.
    let series = r.iter().zip(r1).zip(r2).map(|((&r, r1), r2)| {
        let t = EXP_C2.wrapping_add(EXP_C3.wrapping_mul(r1)).wrapping_add(EXP_C4.wrapping_mul(r2));
        (1 << 60) + i128::from(EXP_C1) * i128::from(r) + i128::from(r2) * i128::from(t)
    });
    let p = trunc(a, "head/exp/polynomial", &Unreduced::new(series), 31)?;
    // exp <= 1 at scale 60.
    let scaled = above_cut.iter().zip(n).zip(p).map(|((z, n), p)| i128::from(z << n) * i128::from(p));
    trunc(a, "head/exp/scale", &Unreduced::new(scaled), 60 - f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::Coins;
    use crate::fixed::testing::World;
    use Rounding::{Nearest, Probabilistic};

    /// (largest error, its input) over every d from 0 to below the cut.
    fn measure(f: u32, rounding: Rounding, coins: Coins) -> (f64, i64) {
        let mut world = World { coins, ..World::with_fraction_bits(rounding, f) };
        let unit = 2f64.powi(-(f as i32));
        let mut worst = (0.0, 0);
        let inputs: Vec<i64> = (0..=world.fixed.exp_cut() + 3).map(|d| -d).collect();
        for block in inputs.chunks(1 << 14) {
            for (&d, result) in block.iter().zip(exp(&mut world.arithmetic(), block).unwrap()) {
                assert!((0..=world.fixed.one()).contains(&result), "exp({d}) = {result} at f = {f}");
                let error = (result as f64 - (d as f64 * unit).exp() / unit).abs();
                if error > worst.0 {
                    worst = (error, d);
                }
            }
        }
        assert_eq!(world.monitor.total(), 0, "f = {f}: {:?}", world.monitor.violations().first());
        worst
    }

    /// Every input; for probabilistic rounding floors and ceilings bracket every coin, because every coefficient is
    /// positive. The constants must be reached, not only hold.
    fn exhaustive(fraction_bits: std::ops::RangeInclusive<u32>) {
        let mut moved = vec![];
        for f in fraction_bits {
            let [down, up] = [false, true].map(|up| measure(f, Probabilistic, Coins::Extreme { up }));
            let probabilistic = if down.0 > up.0 { down } else { up };
            for (rounding, found) in [(Nearest, measure(f, Nearest, Coins::seeded(0))), (Probabilistic, probabilistic)]
            {
                let fixed = World::with_fraction_bits(rounding, f).fixed;
                let (bound, at) = worst(fixed, rounding);
                assert_eq!(error_units(fixed, rounding), bound);
                if !(found.0 <= bound && found.0 > bound - 1.01e-4 && found.1 == at) {
                    moved.push((f, rounding, found, bound));
                }
            }
        }
        assert!(moved.is_empty(), "(f, rounding, (error, input), constant): {moved:?}");
    }

    /// Below the cut a fraction may be as large as 2^31 - 1, whose square is 1 below 2^62 - 2^32: nearest's half must
    /// have room there too.
    #[test]
    fn the_largest_fraction_is_squared_in_range() {
        let log2e = FixedSpec::default().exp_log2e();
        let d = (-3_000_000..-1_000_000i64)
            .find(|d| (d * log2e) & ((1 << 31) - 1) >= (1 << 31) - 512)
            .expect("one in 2^22");
        let mut world = World::with_fraction_bits(Nearest, 16);
        assert_eq!(exp(&mut world.arithmetic(), &[d]).unwrap(), [0]);
        assert_eq!(world.monitor.total(), 0, "{:?}", world.monitor.violations().first());
    }

    #[test]
    fn every_input_at_every_number_of_fraction_bits() {
        exhaustive(4..=17);
    }

    #[test]
    fn zero_is_one_and_below_the_cut_is_zero() {
        for f in 4..=17 {
            for rounding in Rounding::ALL {
                let mut world = World::with_fraction_bits(rounding, f);
                let cut = world.fixed.exp_cut();
                let limit = world.fixed.limit();
                let results = exp(&mut world.arithmetic(), &[0, -cut - 1, -limit / 2, 1 - limit]).unwrap();
                assert_eq!((results, world.monitor.total()), (vec![1 << f, 0, 0, 0], 0), "f = {f}");
                exp(&mut world.arithmetic(), &[1, -limit]).unwrap();
                assert_eq!(world.monitor.counts()["head/exp"], 2);
            }
        }
    }
}
