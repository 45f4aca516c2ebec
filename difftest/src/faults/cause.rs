//! The kind of mistake that a difference looks like, judged from the difference alone.
use crate::explain::cause::Cause;

/// How the elements of a result are to be read.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// Ring algebra: nothing is special about any element.
    Algebra,
    /// A truncation by so many bits.
    Truncation(u32),
    /// A value proportional to constants of the specification (rates, scales), rounded once.
    Proportional,
    /// A function of one operand for each element (or row of elements).
    Function(Vec<i64>),
    /// Decisions about one distance for each element: 0 is at the threshold.
    Threshold(Vec<i64>),
    /// The special case that each row is, if it is one.
    Rows(Vec<Row>),
    /// A function that a constant added to a row leaves unchanged, at one of few heights for each row.
    Heights(Vec<i64>),
}

/// The special case that a row of logits is, if it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// No special case.
    Plain,
    /// A logit is exactly at a threshold, tied, or none is positive.
    Edge,
    /// A logit is near a threshold, on the side that is not in doubt.
    Beside,
}

/// Infers the cause from the differences between the secure result and the model's.
///
/// * rounding: a truncation is one unit off;
/// * range: a truncation is off by a multiple of 2^(64 - s), or operands of large magnitude, or rows outside an
///   interval of heights, alone go wrong;
/// * branch: only elements exactly at a threshold, or of a special case, go wrong;
/// * encoding: all elements are off by one factor or one constant, or operands beside a threshold go wrong and all
///   others by a unit at most: the threshold, or the operand, is elsewhere by less than it takes to be seen away from
///   there;
/// * approximation: a function is off by little everywhere;
/// * protocol: anything else.
pub fn infer(evidence: &Evidence, secure: &[i64], model: &[i64]) -> Cause {
    let differing: Vec<usize> = (0..secure.len()).filter(|&i| secure[i] != model[i]).collect();
    let off = |i: usize| secure[i].wrapping_sub(model[i]);
    let all = |test: &dyn Fn(usize) -> bool| differing.iter().all(|&i| test(i));
    match evidence {
        Evidence::Truncation(_) | Evidence::Proportional if all(&|i| off(i).unsigned_abs() <= 1) => Cause::Rounding,
        Evidence::Truncation(shift) if all(&|i| off(i).trailing_zeros() >= 64 - shift) => Cause::Range,
        Evidence::Algebra | Evidence::Truncation(_) | Evidence::Proportional => {
            if one_factor(secure, model) {
                Cause::Encoding
            } else {
                Cause::Protocol
            }
        }
        Evidence::Function(operands) => function(operands, &differing, off, (secure, model)),
        Evidence::Threshold(distances) => {
            let distance = |i: usize| distances[i].unsigned_abs();
            let largest = distances.iter().map(|d| d.unsigned_abs()).filter(|d| *d < 1 << 31).max().unwrap_or(0);
            if all(&|i| distance(i) == 0) {
                Cause::Branch
            } else if all(&|i| distance(i) >= largest / 4) {
                Cause::Range
            } else {
                Cause::Protocol
            }
        }
        Evidence::Rows(rows) => {
            let row = |i: usize| rows[i * rows.len() / secure.len()];
            // Wrong beside a threshold, and everywhere else by a unit at most.
            let beside_a_threshold = |differing: &[usize]| {
                let gross = |i: usize| off(i).unsigned_abs() > 1;
                all(&|i| row(i) != Row::Plain || !gross(i))
                    && differing.iter().any(|&i| row(i) == Row::Beside && gross(i))
            };
            if all(&|i| row(i) == Row::Edge) {
                Cause::Branch
            } else if all(&|i| row(i) != Row::Plain) || one_constant(&differing, off) || beside_a_threshold(&differing)
            {
                Cause::Encoding
            } else {
                Cause::Protocol
            }
        }
        Evidence::Heights(heights) => {
            let cols = secure.len() / heights.len();
            let close = |r: usize| (r * cols..(r + 1) * cols).all(|i| off(i).unsigned_abs() <= NEAR);
            let (near, far): (Vec<usize>, Vec<usize>) = (0..heights.len()).partition(|&r| close(r));
            let inside = |h: i64| near.iter().any(|&r| heights[r] <= h) && near.iter().any(|&r| heights[r] >= h);
            if one_constant(&differing, off) {
                Cause::Encoding
            } else if near.len().min(far.len()) >= FEW && !far.iter().any(|&r| inside(heights[r])) {
                Cause::Range
            } else {
                Cause::Protocol
            }
        }
    }
}

/// A function: wrong at zero, little off everywhere, or wrong for large operands.
fn function(
    operands: &[i64],
    differing: &[usize],
    off: impl Fn(usize) -> i64,
    (secure, model): (&[i64], &[i64]),
) -> Cause {
    let all = |test: &dyn Fn(usize) -> bool| differing.iter().all(|&i| test(i));
    let operand = |i: usize| operands[i * operands.len() / secure.len()];
    let mut sizes: Vec<u64> = operands.iter().map(|v| v.unsigned_abs()).collect();
    sizes.sort_unstable();
    if all(&|i| operand(i) == 0) {
        Cause::Branch
    } else if all(&|i| off(i).unsigned_abs() <= NEAR.max(model[i].unsigned_abs() / 50)) {
        Cause::Approximation
    } else if all(&|i| operand(i).unsigned_abs() > sizes[sizes.len() / 2]) {
        Cause::Range
    } else {
        Cause::Protocol
    }
}

/// Units within which a function is near its value.
const NEAR: u64 = 64;

/// Rows that must be right, and as many wrong, before their heights say anything: with 4 of 48 rows, chance puts one
/// kind into an interval that is free of the other less than once in 4,000 times.
const FEW: usize = 4;

/// Whether several elements, and all that differ, do so by one number beyond a rounding.
fn one_constant(differing: &[usize], off: impl Fn(usize) -> i64) -> bool {
    let first = off(differing[0]);
    differing.len() > 1 && first.unsigned_abs() > 1 && differing.iter().all(|&i| off(i) == first)
}

/// Whether secure is model times one number that is neither 0 nor 1, up to two units.
fn one_factor(secure: &[i64], model: &[i64]) -> bool {
    let Some(largest) = (0..model.len()).max_by_key(|&i| model[i].unsigned_abs()) else { return false };
    let factor = secure[largest] as f64 / model[largest] as f64;
    let near = |(&s, &m): (&i64, &i64)| (s as f64 - m as f64 * factor).abs() <= 2.0;
    secure[largest].unsigned_abs() > 2 && secure.iter().zip(model).all(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_signature() {
        let m = [5, -7, 1 << 20, 300];
        let shifted = |d: i64| m.map(|v| v + d);
        assert_eq!(infer(&Evidence::Truncation(16), &shifted(-1), &m), Cause::Rounding);
        assert_eq!(infer(&Evidence::Truncation(16), &shifted(1 << 48), &m), Cause::Range);
        assert_eq!(infer(&Evidence::Truncation(16), &shifted(77), &m), Cause::Protocol);
        assert_eq!(infer(&Evidence::Algebra, &m.map(|v| v << 16), &m), Cause::Encoding);
        assert_eq!(infer(&Evidence::Algebra, &[0; 4], &m), Cause::Protocol);
        let at = |i: usize| {
            let mut s = m;
            s[i] += 1000;
            s
        };
        let function = Evidence::Function(vec![0, 3, 5, 1 << 30]);
        assert_eq!(infer(&function, &at(0), &m), Cause::Branch);
        assert_eq!(infer(&function, &at(3), &m), Cause::Range);
        assert_eq!(infer(&function, &shifted(1), &m), Cause::Approximation);
        let threshold = Evidence::Threshold(vec![0, 3, 5, 1 << 30]);
        assert_eq!(infer(&threshold, &at(0), &m), Cause::Branch);
        assert_eq!(infer(&threshold, &at(3), &m), Cause::Range);
        assert_eq!(infer(&threshold, &at(1), &m), Cause::Protocol);
        let rows = Evidence::Rows(vec![Row::Edge, Row::Beside, Row::Plain, Row::Plain]);
        assert_eq!(infer(&rows, &at(0), &m), Cause::Branch);
        assert_eq!(infer(&rows, &at(1), &m), Cause::Encoding);
        assert_eq!(infer(&rows, &at(2), &m), Cause::Protocol);
        // One unit elsewhere beside a gross error beside the threshold; alone, it says nothing of a threshold.
        let [_, beside, _, _] = at(1);
        assert_eq!(infer(&rows, &[m[0], beside, m[2], m[3] - 1], &m), Cause::Encoding);
        assert_eq!(infer(&rows, &[m[0] + 1000, m[1], m[2], m[3] - 1], &m), Cause::Protocol);
        assert_eq!(infer(&rows, &shifted(1), &m), Cause::Protocol);
    }

    #[test]
    fn rows_that_are_right_at_some_heights_only_name_the_range() {
        let heights: Vec<i64> = (0..48).map(|r| [-1000, 0, 1000][r % 3]).collect();
        let (evidence, model) = (Evidence::Heights(heights.clone()), vec![7; 96]);
        // Two elements a row; the first of each that is wrong is off by a number of its own.
        let wrong = |at: &dyn Fn(usize) -> bool| -> Vec<i64> {
            (0..96).map(|i| if i % 2 == 0 && at(i / 2) { 7 + 100 * (i as i64 + 1) } else { 8 }).collect()
        };
        for part in [&[0][..], &[1], &[2], &[0, 1], &[1, 2]] {
            let right = |r: usize| part.contains(&(r % 3));
            assert_eq!(infer(&evidence, &wrong(&|r| !right(r)), &model), Cause::Range, "{part:?}");
        }
        assert_eq!(infer(&evidence, &wrong(&|r| r % 3 == 1), &model), Cause::Protocol, "right above and below");
        assert_eq!(infer(&evidence, &wrong(&|r| r % 5 == 0), &model), Cause::Protocol, "heights do not decide");
        assert_eq!(infer(&evidence, &wrong(&|r| r == 0), &model), Cause::Protocol, "one row is too few");
        assert_eq!(infer(&evidence, &wrong(&|_| true), &model), Cause::Protocol);
        assert_eq!(infer(&evidence, &model.iter().map(|v| v - 9).collect::<Vec<_>>(), &model), Cause::Encoding);
    }
}
