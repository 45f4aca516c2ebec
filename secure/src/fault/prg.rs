//! Wrong pseudorandom words.

/// Combines `out` with words of a draw that has only 32 random bits in each.
pub fn narrow(out: &mut [u64], fill: impl FnOnce(&mut [u64]), combine: fn(u64, u64) -> u64) {
    let mut words = vec![0; out.len()];
    fill(&mut words);
    out.iter_mut().zip(&words).for_each(|(out, word)| *out = combine(*out, word >> 32));
}
