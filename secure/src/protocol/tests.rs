//! Every protocol spends what its formula says, and the table of costs is printed from the formulas.

use super::costs::{CLASSES, markdown, table};
use super::{adder, argmax, boolean, compare, convert, divide, exponential, input, logarithm, matmul, multiply};
use super::{normalise, reveal, select, truncate};
use crate::buffer::Words;
use crate::error::Result;
use crate::party::Party;
use crate::share::{BitShare, Planes, Share};
use crate::testing::world;
use spec::{FixedSpec, Rounding};

/// Elements, or rows: whole words of bits.
const N: usize = 640;
const COLUMNS: usize = CLASSES as usize;

fn zeros() -> Share {
    Share::zeros(1, N)
}

fn rows() -> Share {
    Share::zeros(N, COLUMNS)
}

fn bits(blocks: usize) -> BitShare {
    let words = || Words::zeros(blocks * N / 64);
    BitShare { blocks, len: N, own: words(), next: words() }
}

/// Runs the protocol of one row of the table on N elements or rows.
async fn run(p: &Party, protocol: &str) -> Result<()> {
    let (fixed, column) = (p.fixed, Share::zeros(N, 1));
    let (range, f) = (fixed.full_range(), fixed.fraction_bits);
    let known = |words: usize| if p.id.index() == 0 { vec![0; words] } else { vec![] };
    let planes = |width: u32| Planes::of(&[0; N], 1, N, 0..width);
    match protocol {
        "from_party_0" => input::from_party_0(p, &known(N), N).await.map(drop),
        "bits_from_party_0" => input::bits_from_party_0(p, &known(N / 64), 1, N).await.map(drop),
        "reveal" => reveal::reveal(p, &zeros()).await.map(drop),
        "and" => boolean::and(p, &bits(1), &bits(1)).await.map(drop),
        "and_all" => boolean::and_all(p, bits(COLUMNS - 1), 1).await.map(drop),
        "multiply" => multiply::multiply(p, &zeros(), &zeros()).await.map(drop),
        "dot_rows" => multiply::dot_rows(p, &rows(), &rows()).await.map(drop),
        "matmul_parts" => matmul::matmul_parts(p, &rows(), &Share::zeros(COLUMNS, 3)).map(drop),
        "carry" => adder::carry(p, &planes(16), 16).await.map(drop),
        "low_sum" => adder::low_sum(p, &planes(5)).await.map(drop),
        "sign" => compare::sign(p, &zeros()).await.map(drop),
        "to_ring" => convert::to_ring(p, &bits(1)).await.map(drop),
        "select" => select::select(p, &bits(1), &zeros()).await.map(drop),
        "select_with_bit" => select::select_with_bit(p, &bits(1), &zeros()).await.map(drop),
        "select_sum" => select::select_sum(p, &bits(COLUMNS), &rows().transpose()).await.map(drop),
        "argmax" => argmax::argmax(p, &rows().transpose()).await.map(drop),
        "maximum" => argmax::maximum(p, &rows()).await.map(drop),
        "truncate" => truncate::truncate(p, &zeros(), f, "t").await.map(drop),
        "truncate_product" => truncate::truncate_product(p, zeros().parts(), f, "t").await.map(drop),
        "truncate_doubled" => truncate::truncate_doubled(p, zeros().parts().into(), f, "t").await.map(drop),
        "normalise" => normalise::normalise(p, &column, range).await?.apply(p, &column).await.map(drop),
        "reciprocal" => divide::reciprocal(p, &column, range, "r").await.map(drop),
        "quotient" => divide::quotient(p, &rows(), &column, range, "q").await.map(drop),
        "quotient (softmax)" => {
            let range = fixed.exp_sum_range(COLUMNS).expect("a sum of ten fits");
            divide::quotient(p, &rows(), &column, range, "q").await.map(drop)
        }
        "exponential" => exponential::exponential(p, &zeros()).await.map(drop),
        "logarithm" => logarithm::logarithm(p, &column, range).await.map(drop),
        other => panic!("{other} stands in the table and is not run"),
    }
}

#[test]
fn every_protocol_costs_what_its_formula_says() {
    for row in table(FixedSpec::default()) {
        for rounding in Rounding::ALL {
            let (_, spent, _) = world(FixedSpec::default(), rounding, |p| p.run(run(p, row.protocol)));
            let cost = row.cost(rounding);
            let wanted = (cost.rounds, cost.bits_per_element * N as u64);
            assert_eq!((spent.rounds, spent.bytes * 8), wanted, "{}, {rounding}", row.protocol);
        }
    }
}

#[test]
fn the_page_of_costs_is_the_table() {
    let page = include_str!("../../docs/costs.md");
    assert!(page == markdown(), "docs/costs.md is out of date: cargo run -p difftest-secure --example costs prints it");
}
