//! Natural logarithm of a positive number.
//!
//! computes   section 10 of the arithmetic: ln 2 (msb - f) + ln(u), the second by a polynomial of degree 8 on [1, 2)
//! requires   s in the range of its normalisation, scale f; s = 0 is treated as one unit
//! cost       normalisation (8 rounds with K = 32) and three truncated products, each of 3 rounds with probabilistic
//!            rounding ([`logarithm_cost`])
//! error      see `reference::fixed::logarithm`
//! reveals    nothing
//! source     Aly and Smart (eprint 2019/354), section 5, with a polynomial in place of their quotient

use super::multiply::product_parts;
use super::normalise::{APPLY, normalise, normalise_cost};
use super::truncate::{truncate, truncate_cost, truncate_product, truncate_product_cost};
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::party::Party;
use crate::share::Share;
use futures_util::try_join;
use spec::constants::{LN_2, LOG_L0, LOG_L1, LOG_L2, LOG_L3, LOG_L4, LOG_L5, LOG_L6, LOG_L7, LOG_L8};
use spec::{BitRange, FixedSpec, Rounding};

/// The cost of [`logarithm`], an element.
pub const fn logarithm_cost(fixed: FixedSpec, rounding: Rounding, range: BitRange) -> Cost {
    let first_powers = truncate_cost(rounding, 10).beside(truncate_product_cost(rounding, 40));
    let next_powers = truncate_product_cost(rounding, 20).times(2);
    let result = truncate_product_cost(rounding, 56 - fixed.fraction_bits);
    normalise_cost(fixed.value_bits, range).then(APPLY).then(first_powers).then(next_powers).then(result)
}

/// The natural logarithm of every element of the column s, all in `range`: (rows, 1), scale f in and out.
///
/// # Errors
/// Those of the transport.
pub async fn logarithm(p: &Party, s: &Share, range: BitRange) -> Result<Share> {
    let f = p.fixed.fraction_bits;
    let normalised = normalise(p, s, range).await?;
    let v = normalised.apply(p, s).await?.plus_public(p.id, -3 << 29);
    let (v1, v2) = try_join!(
        truncate(p, &v, 10, "loss/log/v1"),
        truncate_product(p, product_parts(p, &v, &v)?, 40, "loss/log/v2")
    )?;
    let (v3, v4) = try_join!(
        truncate_product(p, product_parts(p, &v1, &v2)?, 20, "loss/log/v3"),
        truncate_product(p, product_parts(p, &v2, &v2)?, 20, "loss/log/v4")
    )?;
    let last = faulty!(LogCoefficient => 0, LOG_L8);
    let t = v1
        .scale(LOG_L5)
        .plus(&v2.scale(LOG_L6))?
        .plus(&v3.scale(LOG_L7))?
        .plus(&v4.scale(last))?
        .plus_public(p.id, LOG_L4);
    let mut sum = product_parts(p, &v4, &t)?.plus_public(p.id, LOG_L0);
    sum.add_share(&normalised.msb.plus_public(p.id, -i64::from(f)).scale(LN_2))?;
    for (power, coefficient) in [(&v, LOG_L1), (&v2, LOG_L2), (&v3, LOG_L3)] {
        sum.add_share(&power.scale(coefficient))?;
    }
    truncate_product(p, sum, 56 - f, "loss/log/result").await
}
