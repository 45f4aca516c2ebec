//! Reciprocal and division by a positive number.
//!
//! computes   sections 7 and 8 of the arithmetic: quotient(x, s) for 0 <= x <= s, reciprocal(s), both at scale f
//! requires   s in the range of its normalisation
//! cost       normalisation (8 rounds with K = 32), 4 truncated products for the inverse, 1 for the result: 8 + 4 * 3 + 3 rounds with
//!            probabilistic rounding, 44 with nearest (f = 16: 7 for each step of the inverse, 8 for the result)
//! error      see `reference::fixed`: the residual is below 2^-28 (relative), one truncation each
//! reveals    nothing
//! source     Catrina and Saxena, *Secure computation with fixed-point numbers* (FC 2010); Goldschmidt's form

use super::multiply::{multiply_by_row, product_by_row_parts, product_parts};
use super::normalise::{Normalised, normalise};
use super::truncate::truncate_product;
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::party::Party;
use crate::share::Share;
use futures_util::try_join;
use spec::constants::DIV_A2;

const ONE: i64 = 1 << 29;

/// w ~ 2^59 / u for 2^30 <= u < 2^31.
async fn inverse(p: &Party, u: &Share, at: &str) -> Result<Share> {
    let name = |what: &str| format!("{at}/{what}");
    let w2 = u.from_public(p.id, DIV_A2);
    let e2 = truncate_product(p, product_parts(p, u, &w2)?, 32, name("e2")).await?.from_public(p.id, ONE);
    let step = |w: Share, e: Share, shift: u32, w_name: String, e_name: String| async move {
        let grown = product_parts(p, &w, &e.clone().plus_public(p.id, ONE))?;
        let squared = product_parts(p, &e, &e)?;
        try_join!(truncate_product(p, grown, shift, w_name), truncate_product(p, squared, 29, e_name))
    };
    let (w4, e4) = step(w2, e2, 31, name("w4"), name("e4")).await?;
    let (w8, e8) = step(w4, e4, 29, name("w8"), name("e8")).await?;
    let e8 = if planted(Fault::InverseStep) { e8.scale(0) } else { e8 };
    let last = product_parts(p, &w8, &e8.plus_public(p.id, ONE))?;
    truncate_product(p, last, 29, name("w16")).await
}

/// What dividing by s produced beside the quotients.
pub struct Quotients {
    /// x_i / s, scale f, the shape of x.
    pub quotient: Share,
    /// How s was normalised.
    pub normalised: Normalised,
}

/// Every row of x divided by its element of the column s, 0 <= x_i <= s.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn quotient(p: &Party, x: &Share, s: &Share, range: (u32, u32), at: &str) -> Result<Quotients> {
    let normalised = normalise(p, s, range).await?;
    let numerator = x;
    let (u, x) = try_join!(normalised.apply(p, s), multiply_by_row(p, x, &normalised.scale))?;
    let w = inverse(p, &u, at).await?;
    if planted(Fault::ReciprocalFirst) {
        let f = p.fixed.fraction_bits;
        let rounded = product_parts(p, &normalised.scale, &w)?;
        let rounded = truncate_product(p, rounded, 59 - 2 * f, format!("{at}/quotient")).await?;
        let quotient = product_by_row_parts(p, numerator, &rounded)?;
        let quotient = truncate_product(p, quotient, f, format!("{at}/quotient")).await?;
        return Ok(Quotients { quotient, normalised });
    }
    let parts = product_by_row_parts(p, &x, &w)?;
    let quotient = truncate_product(p, parts, 59 - p.fixed.fraction_bits, format!("{at}/quotient")).await?;
    Ok(Quotients { quotient, normalised })
}

/// 1 / s for every element of the column s, scale f.
///
/// # Errors
/// Those of the transport.
pub async fn reciprocal(p: &Party, s: &Share, range: (u32, u32), at: &str) -> Result<Share> {
    let normalised = normalise(p, s, range).await?;
    let u = normalised.apply(p, s).await?;
    let w = inverse(p, &u, at).await?;
    let parts = product_parts(p, &normalised.scale, &w)?;
    truncate_product(p, parts, 59 - 2 * p.fixed.fraction_bits, format!("{at}/reciprocal")).await
}
