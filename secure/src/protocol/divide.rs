//! Reciprocal and division by a positive number.
//!
//! computes   sections 7 and 8 of the arithmetic: quotient(x, s) for 0 <= x <= s, reciprocal(s), both at scale f
//! requires   s in the range of its normalisation
//! cost       normalisation (8 rounds with K = 32), 4 truncated products for the inverse, 1 for the result:
//!            8 + 4 * 3 + 3 rounds with probabilistic rounding, 44 with nearest (f = 16: 7 for each step of the
//!            inverse, 8 for the result) ([`reciprocal_cost`], [`quotient_cost`])
//! error      see `reference::fixed`: the residual is below 2^-28 (relative), one truncation each
//! reveals    nothing
//! source     Catrina and Saxena, *Secure computation with fixed-point numbers* (FC 2010); Goldschmidt's form

use super::multiply::{RESHARE, multiply_by_row, product_by_row_parts, product_parts};
use super::normalise::{APPLY, Normalised, normalise, normalise_cost};
use super::truncate::{truncate_product, truncate_product_cost};
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::party::Party;
use crate::share::Share;
use futures_util::try_join;
use spec::constants::DIV_A2;
use spec::{BitRange, FixedSpec, Rounding};

/// The cost of the inverse of a normalised number: four steps, two of which truncate a second product beside the first.
const fn inverse_cost(rounding: Rounding) -> Cost {
    let by_29 = truncate_product_cost(rounding, 29);
    let first = truncate_product_cost(rounding, 32);
    let second = truncate_product_cost(rounding, 31).beside(by_29);
    first.then(second).then(by_29.times(2)).then(by_29)
}

/// The cost of [`quotient`], a row of `columns` numerators.
pub const fn quotient_cost(fixed: FixedSpec, rounding: Rounding, range: BitRange, columns: u64) -> Cost {
    let scaled = APPLY.beside(RESHARE.times(columns));
    let divided = truncate_product_cost(rounding, 59 - fixed.fraction_bits).times(columns);
    normalise_cost(fixed.value_bits, range).then(scaled).then(inverse_cost(rounding)).then(divided)
}

/// The cost of [`reciprocal`], an element.
pub const fn reciprocal_cost(fixed: FixedSpec, rounding: Rounding, range: BitRange) -> Cost {
    let divided = truncate_product_cost(rounding, 59 - 2 * fixed.fraction_bits);
    normalise_cost(fixed.value_bits, range).then(APPLY).then(inverse_cost(rounding)).then(divided)
}

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
    let e8 = faulty!(InverseStep => e8.scale(0), e8);
    let last = product_parts(p, &w8, &e8.plus_public(p.id, ONE))?;
    truncate_product(p, last, 29, name("w16")).await
}

/// The quotients by s, and the normalisation of s, which the probabilities use.
pub struct Quotients {
    /// The quotients x_i / s at scale f, in the shape of x.
    pub quotient: Share,
    /// The normalisation of s.
    pub normalised: Normalised,
}

/// Divides every row of x by its element of the column s, 0 <= x_i <= s. x and s may have any common scale.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn quotient(p: &Party, x: &Share, s: &Share, range: BitRange, at: &str) -> Result<Quotients> {
    let normalised = normalise(p, s, range).await?;
    let (u, scaled) = try_join!(normalised.apply(p, s), multiply_by_row(p, x, &normalised.scale))?;
    let w = inverse(p, &u, at).await?;
    let (f, name) = (p.fixed.fraction_bits, format!("{at}/quotient"));
    let quotient = faulty!(
        ReciprocalFirst => {
            let rounded = by_row(p, &normalised.scale, &w, 59 - 2 * f, &name).await?;
            by_row(p, x, &rounded, f, &name).await?
        },
        by_row(p, &scaled, &w, 59 - f, &name).await?
    );
    Ok(Quotients { quotient, normalised })
}

/// Every row of x times its element of the column w, truncated.
async fn by_row(p: &Party, x: &Share, w: &Share, shift: u32, name: &str) -> Result<Share> {
    truncate_product(p, product_by_row_parts(p, x, w)?, shift, name).await
}

/// The reciprocal of every element of the column s: (rows, 1), scale f in and out.
///
/// # Errors
/// Those of the transport.
pub async fn reciprocal(p: &Party, s: &Share, range: BitRange, at: &str) -> Result<Share> {
    let normalised = normalise(p, s, range).await?;
    let u = normalised.apply(p, s).await?;
    let w = inverse(p, &u, at).await?;
    let parts = product_parts(p, &normalised.scale, &w)?;
    truncate_product(p, parts, 59 - 2 * p.fixed.fraction_bits, format!("{at}/reciprocal")).await
}
