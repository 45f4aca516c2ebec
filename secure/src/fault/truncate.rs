//! Wrong truncations: what truncation protocols without a proof have done.

/// The arithmetic shift of a share as if it were a value: off by the ring's size with probability |v| / 2^64.
#[inline(always)]
pub fn local(share: u64, shift: u32) -> u64 {
    (share as i64 >> shift) as u64
}

/// The quotient rounded up: with it the second summand is floored as the first is, and the result is one unit low.
#[inline(always)]
pub fn ceiling(v: u64, shift: u32) -> u64 {
    (v >> shift) + u64::from(v << (64 - shift) != 0)
}

/// z = -local(z) - r: party 1's side of a truncation of each share by itself.
pub fn each_share(z: &mut [u64], shift: u32, r: &[u64]) {
    z.iter_mut().zip(r).for_each(|(z, r)| *z = local(*z, shift).wrapping_neg().wrapping_sub(*r));
}

/// z + r with a mask r whose lowest `shift` bits are zero: there the coin is decided.
pub fn add_high_bits(z: &mut [u64], shift: u32, mask: impl FnOnce(&mut [u64])) {
    let r = high_bits(z.len(), shift, mask);
    z.iter_mut().zip(&r).for_each(|(z, r)| *z = z.wrapping_add(*r));
}

/// z - r with the same mask.
pub fn subtract_high_bits(z: &mut [u64], shift: u32, mask: impl FnOnce(&mut [u64])) {
    let r = high_bits(z.len(), shift, mask);
    z.iter_mut().zip(&r).for_each(|(z, r)| *z = z.wrapping_sub(*r));
}

fn high_bits(n: usize, shift: u32, mask: impl FnOnce(&mut [u64])) -> Vec<u64> {
    let mut r = vec![0; n];
    mask(&mut r);
    r.iter_mut().for_each(|r| *r = *r >> shift << shift);
    r
}
