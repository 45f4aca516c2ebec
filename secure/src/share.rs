//! Shares of ring elements and of bits. x = x_0 + x_1 + x_2 (or the exclusive or of three words); party i holds
//! components i and i + 1 mod 3.

mod arithmetic;
mod boolean;
mod factor;
mod planes;

pub(crate) use arithmetic::zip;
pub use arithmetic::{Doubled, Parts, Share};
pub use boolean::BitShare;
pub use factor::Factor;
pub use planes::Planes;

use crate::buffer::Words;
use crate::error::{Error, Result};

/// Rows of a row-major matrix of `cols` columns, by their (public) numbers and in their order.
fn pick(component: &[u64], cols: usize, rows: &[u32]) -> Words {
    let mut out = Words::with_capacity(rows.len() * cols);
    for &r in rows {
        out.extend_from_slice(&component[r as usize * cols..(r as usize + 1) * cols]);
    }
    out
}

/// Fails with a caller's mistake unless the shapes agree.
///
/// # Errors
/// Shapes differ: names both.
pub fn same_shape(what: &str, a: (usize, usize), b: (usize, usize)) -> Result<()> {
    if a == b { Ok(()) } else { Err(Error::misuse(format!("{what}: shapes {a:?} and {b:?} differ"))) }
}
