//! Matrix products on all cores, with the same bits on any number of them.
//!
//! The rows of the result are cut into one block a thread; each block is one call of the `matrixmultiply` crate on one
//! thread. A block is a whole number of its micro-tiles (8 rows covers every kernel), and an element's sum runs over
//! the inner dimension in an order that does not depend on its tile, so where the cuts fall changes no bit.
//!
//! On 2 cores (AVX2 FMA kernel) 128x784x128 runs at 85 Gflop/s and its transposed product 784x128x128 at 100; the
//! `gemm` crate with AVX-512 and its own threads reached 81-85 and 56-89 on the same machine, so no second library is
//! used. The `threading` feature of `matrixmultiply` must stay off: its threads would come on top of these.

use ndarray::{ArrayView2, ArrayViewMut2, Axis, linalg::general_mat_mul};
use rayon::prelude::*;

/// Multiply-adds (about 40 microseconds) below which a block is not worth waking a thread for.
const MIN_WORK: usize = 1 << 20;
const TILE_ROWS: usize = 8;

/// Rows of a block, where one row costs `row_work` multiply-adds. At least one tile.
fn block_rows(rows: usize, row_work: usize) -> usize {
    let blocks = (rows.saturating_mul(row_work) / MIN_WORK).clamp(1, rayon::current_num_threads());
    rows.div_ceil(blocks).next_multiple_of(TILE_ROWS).max(TILE_ROWS)
}

/// c = a b. Shapes (m, k), (k, n), (m, n); what `c` held, NaN included, is overwritten.
pub(super) fn product(a: ArrayView2<f64>, b: ArrayView2<f64>, c: ArrayViewMut2<f64>) {
    product_then(a, b, c, [], |_, []| ());
}

/// c = a b, and then `then(rows of c, the same rows of each of with)` while the block is still in the cache.
pub(super) fn product_then<const N: usize>(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    c: ArrayViewMut2<f64>,
    with: [ArrayViewMut2<f64>; N],
    then: impl Fn(ArrayViewMut2<f64>, [ArrayViewMut2<f64>; N]) + Sync,
) {
    let rows = block_rows(c.nrows(), a.ncols().saturating_mul(b.ncols()));
    let block = |a: ArrayView2<f64>, mut c: ArrayViewMut2<f64>, with| {
        general_mat_mul(1.0, &a, &b, 0.0, &mut c);
        then(c, with);
    };
    if rows >= c.nrows() {
        return block(a, c, with);
    }
    let (mut blocks, mut a, mut c, mut with) = (Vec::new(), a, c, with);
    while c.nrows() > rows {
        let (a0, a1) = a.split_at(Axis(0), rows);
        let (c0, c1) = c.split_at(Axis(0), rows);
        let mut heads = Vec::with_capacity(N);
        with = with.map(|w| {
            let (w0, w1) = w.split_at(Axis(0), rows);
            heads.push(w0);
            w1
        });
        let mut heads = heads.into_iter();
        blocks.push((a0, c0, std::array::from_fn(|_| heads.next().expect("one for each of N"))));
        (a, c) = (a1, c1);
    }
    blocks.push((a, c, with));
    blocks.into_par_iter().for_each(|(a, c, with)| block(a, c, with));
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn random(rng: &mut ChaCha8Rng, shape: (usize, usize)) -> Array2<f64> {
        Array2::from_shape_fn(shape, |_| rng.random_range(-1.0..1.0))
    }

    fn on_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
    }

    #[test]
    fn equals_the_sum_in_index_order() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (m, k, n) in [(1, 1, 1), (1, 7, 3), (8, 8, 8), (13, 300, 5), (131, 67, 129), (300, 784, 10)] {
            let (a, b) = (random(&mut rng, (m, k)), random(&mut rng, (k, n)));
            let mut c = Array2::from_elem((m, n), f64::NAN);
            product(a.view(), b.view(), c.view_mut());
            for ((i, j), &got) in c.indexed_iter() {
                let expected: f64 = (0..k).map(|l| a[[i, l]] * b[[l, j]]).sum();
                assert!((got - expected).abs() <= k as f64 * 2e-16 * k as f64, "{m}x{k}x{n} [{i}, {j}]");
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for (m, k, n) in [(128, 784, 128), (129, 513, 130), (257, 1000, 10), (63, 900, 177), (1000, 9, 301)] {
            let (a, b, bt) = (random(&mut rng, (m, k)), random(&mut rng, (k, n)), random(&mut rng, (n, k)));
            let run = || {
                let mut c = [Array2::zeros((m, n)), Array2::zeros((m, n))];
                product(a.view(), b.view(), c[0].view_mut());
                product(a.view(), bt.t(), c[1].view_mut());
                c
            };
            let alone = on_threads(1, run);
            for threads in [2, 3, 5, 16] {
                assert_eq!(on_threads(threads, run), alone, "{m}x{k}x{n} on {threads} threads");
            }
        }
    }

    #[test]
    fn rows_handed_along_are_the_rows_of_the_block() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (a, b) = (random(&mut rng, (203, 300)), random(&mut rng, (300, 120)));
        let start = random(&mut rng, (203, 120));
        let (mut c, mut sum) = (Array2::zeros((203, 120)), start.clone());
        on_threads(4, || {
            product_then(a.view(), b.view(), c.view_mut(), [sum.view_mut()], |c, [mut sum]| sum += &c);
        });
        assert_eq!(sum, &start + &c);
    }
}
