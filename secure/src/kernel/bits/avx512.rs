//! Table sums in 512-bit vectors, one load and one addition each. (From plain loops the compiler makes gathers and scatters.)
#![allow(unsafe_code)]

use super::{GROUP, Row, Sums, Table, WORD};
use crate::kernel::avx512::Avx512;
use crate::kernel::zmm::{load, unload};
use std::arch::x86_64::*;

impl Sums for Avx512 {
    fn fill(self, rows: &[Row; WORD], tables: &mut [Table; WORD / GROUP]) {
        // SAFETY: `self` exists, so the feature does.
        unsafe { fill(rows, tables) }
    }

    fn add(self, tables: &[Table], words: &[u64], step: usize, out: &mut [Row]) {
        // SAFETY: `self` exists, so the feature does.
        unsafe {
            match <&[Table; WORD / GROUP]>::try_from(tables) {
                Ok(all) => add_all(all, words, step, out),
                Err(_) => add_some(tables, words, step, out),
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
fn fill(rows: &[Row; WORD], tables: &mut [Table; WORD / GROUP]) {
    for (table, rows) in tables.iter_mut().zip(rows.as_chunks::<GROUP>().0) {
        let mut sums = [_mm512_setzero_si512(); 1 << GROUP];
        for (r, row) in rows.iter().enumerate() {
            let row = load(&row.0);
            for subset in 0..1 << r {
                sums[subset + (1 << r)] = _mm512_add_epi64(sums[subset], row);
            }
        }
        // Number 0 is never anything but zero.
        for subset in 1..1 << GROUP {
            table[subset] = Row(unload(sums[subset]));
        }
    }
}

#[target_feature(enable = "avx512f")]
fn add_all(tables: &[Table; WORD / GROUP], words: &[u64], step: usize, out: &mut [Row]) {
    for (out, words) in out.iter_mut().zip(words.chunks(step)) {
        let word = words[0];
        // Two sums, so that one addition need not wait for the last.
        let (mut even, mut odd) = (load(&out.0), _mm512_setzero_si512());
        for (g, pair) in tables.as_chunks::<2>().0.iter().enumerate() {
            let bits = word >> (2 * g * GROUP);
            even = _mm512_add_epi64(even, load(&pair[0][bits as usize % (1 << GROUP)].0));
            odd = _mm512_add_epi64(odd, load(&pair[1][(bits >> GROUP) as usize % (1 << GROUP)].0));
        }
        *out = Row(unload(_mm512_add_epi64(even, odd)));
    }
}

#[target_feature(enable = "avx512f")]
fn add_some(tables: &[Table], words: &[u64], step: usize, out: &mut [Row]) {
    for (out, words) in out.iter_mut().zip(words.chunks(step)) {
        let (mut word, mut sum) = (words[0], load(&out.0));
        for table in tables {
            sum = _mm512_add_epi64(sum, load(&table[word as usize % (1 << GROUP)].0));
            word >>= GROUP;
        }
        *out = Row(unload(sum));
    }
}
