//! Argmax and maximum of every row, by one batch of comparisons of all pairs.
//!
//! computes   the indicator of the largest element of each row, ties to the lowest index; the maximum itself
//! requires   |x_i - x_j| < 2^(K-1)
//! cost       rounds: the comparison's, ceil(log2(L - 1)) conjunctions, 2 for the selection; 5 + 4 + 2 for L = 10
//!            ([`argmax_cost`], [`maximum_cost`])
//! reveals    nothing
//! source     own arrangement: for L classes L (L - 1) / 2 comparisons in one batch instead of ceil(log2 L) dependent
//!            levels

use super::boolean::{and_all, and_all_cost};
use super::compare::{sign, sign_cost};
use super::select::{select_sum, select_sum_cost};
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::party::Party;
use crate::share::{BitShare, Share};

/// The cost of [`argmax`] over `classes` classes, a row.
pub const fn argmax_cost(value_bits: u32, classes: u64) -> Cost {
    sign_cost(value_bits).times(classes * (classes - 1) / 2).then(and_all_cost(classes - 1).times(classes))
}

/// The cost of [`maximum`] of `classes` columns, a row.
pub const fn maximum_cost(value_bits: u32, classes: u64) -> Cost {
    argmax_cost(value_bits, classes).then(select_sum_cost(classes))
}

/// The indicator of every row's largest element, ties to the lowest index: a block for each class (column of x), a bit
/// for each row of x. `by_class` is x transposed, (classes, rows).
///
/// # Errors
/// Those of the transport.
pub async fn argmax(p: &Party, by_class: &Share) -> Result<BitShare> {
    let (classes, len) = by_class.shape();
    let class = |i: usize| i * len..(i + 1) * len;
    let pairs: Vec<(usize, usize)> = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect();
    let differences = |v: &[u64]| -> Words {
        let mut out = Words::with_capacity(pairs.len() * len);
        for &(i, j) in &pairs {
            out.extend(v[class(i)].iter().zip(&v[class(j)]).map(|(a, b)| a.wrapping_sub(*b)));
        }
        out
    };
    let d = Share::new(pairs.len(), len, differences(&by_class.own), differences(&by_class.next));
    // Block of (i, j), i < j: [x_i < x_j].
    let less = faulty!(TiesHighest => sign(p, &d.map(u64::wrapping_neg)).await?.not(p.id), sign(p, &d).await?);
    let not_less = less.clone().not(p.id);
    // Where the comparison of i and j stands among the pairs.
    let at = |i: usize, j: usize| i * (2 * classes - i - 1) / 2 + (j - i - 1);
    let both = not_less.append(&less);
    let rivals =
        faulty!(MaximumPower => if classes > 2 { 1 << (classes - 1).ilog2() } else { classes - 1 }, classes - 1);
    let factors = (0..rivals).flat_map(|k| {
        (0..classes).map(move |i| {
            // The k-th rival of i.
            let j = if k < i { k } else { k + 1 };
            if i < j { at(i, j) } else { pairs_count(classes) + at(j, i) }
        })
    });
    and_all(p, both.gather(factors), classes).await
}

const fn pairs_count(classes: usize) -> usize {
    classes * (classes - 1) / 2
}

/// The largest element of every row of x, (rows, 1), at the scale of x.
///
/// # Errors
/// Those of the transport.
pub async fn maximum(p: &Party, x: &Share) -> Result<Share> {
    let by_class = x.transpose();
    let winner = argmax(p, &by_class).await?;
    Ok(select_sum(p, &winner, &by_class).await?.reshape(x.rows, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::convert::to_ring;
    use crate::testing::{open, share, world};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;
    use spec::{FixedSpec, Rounding};

    #[test]
    fn every_class_count_with_ties_to_the_lowest_index() {
        let mut rng = ChaCha12Rng::seed_from_u64(11);
        for classes in [2, 3, 4, 5, 7, 8, 9, 10, 11, 16, 17, 33] {
            let rows = 70;
            // A small range, so that ties are common.
            let v: Vec<i64> = (0..rows * classes).map(|_| rng.random_range(-3..=3)).collect();
            let x = share(rows, classes, &v);
            let ([a, b, c], ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
                let x = &x[p.id.index()];
                p.run(async {
                    let indicator = to_ring(p, &argmax(p, &x.transpose()).await?).await?.transpose();
                    Ok((indicator, maximum(p, x).await?))
                })
            });
            let indicator = open(&[a.0, b.0, c.0]);
            let max = open(&[a.1, b.1, c.1]);
            for (r, row) in v.chunks(classes).enumerate() {
                let m = *row.iter().max().unwrap();
                let first = row.iter().position(|x| *x == m).unwrap();
                assert_eq!(max[r], m, "{row:?}");
                for k in 0..classes {
                    assert_eq!(indicator[r * classes + k], i64::from(k == first), "{row:?}");
                }
            }
        }
    }
}
