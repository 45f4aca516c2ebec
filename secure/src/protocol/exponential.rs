//! exp(d) for d <= 0.
//!
//! computes   section 6 of the arithmetic: 2^(d log2 e), the integer part by bits, the fraction by a polynomial of
//!            degree 4; exactly 0 below the cut, exactly 1 at 0
//! requires   d <= 0, |d| < 2^(K-1), scale f in and out
//! cost       16 rounds with K = 32 and probabilistic rounding: comparison 5, bits 2, three truncated products 9
//!            ([`exponential_cost`])
//! error      see `reference::fixed::exponential`
//! reveals    nothing
//! source     Aly and Smart, *Benchmarking privacy preserving scientific operations* (eprint 2019/354), section 4
//!
//! y = d log2 e (31 fraction bits) is a + b with a known to party 0 and b to parties 1 and 2. Its fraction is
//! a mod 2^31 + b mod 2^31 - carry 2^31. Its integer part is (a >> 31) + (b >> 31) + carry, so 2^n = 2^(n') (1 + carry)
//! with n' the five-bit sum of the two shifted numbers, whose bits need no carry from below and are ready early. Only
//! n' = 31 with a carry wraps to n = 0: there 2^32 - 1 is subtracted. (No d in the domain gets there; a run that left
//! its range must still do as the specification says.)

use super::adder::{carry, carry_cost, low_sum, low_sum_cost};
use super::boolean::{AND, and, and_all, and_all_cost};
use super::compare::{sign, sign_cost};
use super::convert::{TO_RING, to_ring};
use super::input::{FROM_PARTY_0, from_party_0};
use super::multiply::{RESHARE, multiply, product_parts};
use super::truncate::{truncate, truncate_cost, truncate_product, truncate_product_cost};
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::PartyId;
use crate::party::Party;
use crate::share::{Parts, Planes, Share};
use futures_util::try_join;
use spec::constants::{EXP_C1, EXP_C2, EXP_C3, EXP_C4};
use spec::{FixedSpec, Rounding};

const FRACTION: u32 = 31;
const INTEGER: u32 = 5;

/// The cost of [`exponential`], an element. The three stages of the function follow one another.
pub const fn exponential_cost(fixed: FixedSpec, rounding: Rounding) -> Cost {
    let integer = low_sum_cost(INTEGER).then(and_all_cost(INTEGER as u64));
    let bits = integer.beside(carry_cost(FRACTION)).beside(sign_cost(fixed.value_bits)).beside(FROM_PARTY_0);
    // Five bits, the carry and the cut; whether the exponent wraps.
    let converted = AND.beside(TO_RING.times(INTEGER as u64 + 2));
    let power = RESHARE.times(2).then(RESHARE).then(RESHARE);
    let scale = power.beside(TO_RING).then(RESHARE).then(RESHARE);
    let powers = truncate_cost(rounding, 11).beside(truncate_product_cost(rounding, 42));
    let polynomial = powers.then(truncate_product_cost(rounding, 31));
    let result = truncate_product_cost(rounding, 60 - fixed.fraction_bits);
    bits.then(converted).then(scale.beside(polynomial)).then(result)
}

/// The exponential of every element of d <= 0, scale f in and out, in the shape of d.
///
/// # Errors
/// Those of the transport.
pub async fn exponential(p: &Party, d: &Share) -> Result<Share> {
    let (n, (rows, cols)) = (d.len(), d.shape());
    let d = d.clone().reshape(1, n);
    let y = d.scale(p.fixed.exp_log2e()).plus_public(p.id, 31 << FRACTION);
    let known = y.two_sided(p.id);

    // Three stages, each as long as its longest member, so that the fraction never waits for the integer part. First:
    // n' as bits and whether all of them are 1; the carry; the cut; party 0's fraction.
    let integer_planes = Planes::of(&known, 1, n, FRACTION..FRACTION + INTEGER);
    let integer = async {
        let bits = low_sum(p, &integer_planes).await?;
        let all_ones = and_all(p, bits.clone(), 1).await?;
        Ok((bits, all_ones))
    };
    let fraction_planes = Planes::of(&known, 1, n, 0..FRACTION);
    let above_cut = d.clone().plus_public(p.id, p.fixed.exp_cut());
    let fraction_a = async {
        let low: Words = known.iter().map(|v| v & ((1 << FRACTION) - 1)).collect();
        let mut a = from_party_0(p, if p.id == PartyId::P0 { &low } else { &[] }, n).await?.reshape(1, n);
        match p.id {
            PartyId::P0 => {}
            PartyId::P1 => a.next = low,
            PartyId::P2 => a.own = low,
        }
        Ok(a)
    };

    let ((bits, all_ones), carry_bit, cut, fraction) =
        try_join!(integer, carry(p, &fraction_planes, FRACTION), sign(p, &above_cut), fraction_a)?;

    // Second: bits to the ring.
    let not_cut = cut.not(p.id);
    let (wraps, bits, carry_bit, not_cut) =
        try_join!(and(p, &all_ones, &carry_bit), to_ring(p, &bits), to_ring(p, &carry_bit), to_ring(p, &not_cut))?;
    let r = fraction.minus(&carry_bit.shift_left(FRACTION))?;

    // Third: the power of two beside the polynomial.
    let scale = async {
        let (power, wraps) = try_join!(power_of_two(p, &bits), to_ring(p, &wraps))?;
        let doubled = multiply(p, &power, &carry_bit.clone().plus_public(p.id, 1)).await?;
        let power = doubled.minus(&wraps.scale((1 << 32) - 1))?;
        faulty!(ExpTail => Ok(power), multiply(p, &power, &not_cut).await)
    };
    let (scale, polynomial) = try_join!(scale, polynomial(p, &r))?;
    let product = product_parts(p, &scale, &polynomial)?;
    Ok(truncate_product(p, product, 60 - p.fixed.fraction_bits, "head/exp/scale").await?.reshape(rows, cols))
}

/// prod_k (1 + b_k (2^(2^k) - 1)) for the five bits b_k, one a row.
async fn power_of_two(p: &Party, bits: &Share) -> Result<Share> {
    let factor = |k: usize| bits.row_range(k, k + 1).scale((1 << (1 << k)) - 1).plus_public(p.id, 1);
    let (f0, f1) = (factor(0).stack(&factor(2))?, factor(1).stack(&factor(3))?);
    let pairs = multiply(p, &f0, &f1).await?;
    let four = multiply(p, &pairs.row_range(0, 1), &pairs.row_range(1, 2)).await?;
    multiply(p, &four, &factor(4)).await
}

/// 2^r for r in [0, 1), scale 31 in, scale 29 out.
async fn polynomial(p: &Party, r: &Share) -> Result<Share> {
    let (r1, r2) = try_join!(
        truncate(p, r, 11, "head/exp/fraction"),
        truncate_product(p, product_parts(p, r, r)?.plus_public(p.id, -1 << 61), 42, "head/exp/square")
    )?;
    // The square was centred, so that nearest's half has room; its share of the offset comes back here.
    let r2 = r2.plus_public(p.id, 1 << 19);
    let last = faulty!(ExpCoefficient => EXP_C4 + EXP_C4 / 100, EXP_C4);
    let t = r1.scale(EXP_C3).plus(&r2.scale(last))?.plus_public(p.id, EXP_C2);
    let mut sum: Parts = product_parts(p, &r2, &t)?.plus_public(p.id, 1 << 60);
    sum.add_share(&r.scale(EXP_C1))?;
    truncate_product(p, sum, 31, "head/exp/polynomial").await
}
