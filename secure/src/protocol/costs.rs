//! The costs of all protocols in one table.
//!
//! The rows are the formulas that stand in the protocols' files, for the default number format (f = 16, K = 32) and ten
//! classes. `docs/costs.md` is this table; a test holds it to the formulas, another one the formulas to what the
//! protocols spend.

use super::adder::{carry_cost, low_sum_cost};
use super::argmax::{argmax_cost, maximum_cost};
use super::boolean::{AND, and_all_cost};
use super::compare::sign_cost;
use super::convert::TO_RING;
use super::divide::{quotient_cost, reciprocal_cost};
use super::exponential::exponential_cost;
use super::input::{BITS_FROM_PARTY_0, FROM_PARTY_0};
use super::logarithm::logarithm_cost;
use super::multiply::RESHARE;
use super::normalise::{APPLY, normalise_cost};
use super::reveal::REVEAL;
use super::select::{SELECT, SELECT_WITH_BIT, select_sum_cost};
use super::truncate::{truncate_cost, truncate_doubled_cost, truncate_product_cost};
use crate::cost::Cost;
use spec::{FixedSpec, Rounding};
use std::fmt::Write;

/// The classes of a row in the table.
pub const CLASSES: u64 = 10;

/// One protocol of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The function that runs the protocol.
    pub protocol: &'static str,
    /// The operand that the costs are for: an element, a row, a sum.
    pub unit: &'static str,
    /// The cost with probabilistic rounding.
    pub probabilistic: Cost,
    /// The cost with nearest rounding.
    pub nearest: Cost,
}

impl Row {
    /// The cost with this rounding.
    pub const fn cost(&self, rounding: Rounding) -> Cost {
        match rounding {
            Rounding::Probabilistic => self.probabilistic,
            Rounding::Nearest => self.nearest,
        }
    }
}

/// Every protocol, those that others are made of first. `fixed` is the number format.
pub fn table(fixed: FixedSpec) -> Vec<Row> {
    let (k, range, f) = (fixed.value_bits, fixed.full_range(), fixed.fraction_bits);
    let exact = |protocol, unit, cost| Row { protocol, unit, probabilistic: cost, nearest: cost };
    let rounded = |protocol, unit, cost: &dyn Fn(Rounding) -> Cost| {
        let (probabilistic, nearest) = (cost(Rounding::Probabilistic), cost(Rounding::Nearest));
        Row { protocol, unit, probabilistic, nearest }
    };
    let sum_range = fixed.exp_sum_range(CLASSES as usize).unwrap_or(range);
    vec![
        exact("from_party_0", "an element", FROM_PARTY_0),
        exact("bits_from_party_0", "a bit", BITS_FROM_PARTY_0),
        exact("reveal", "an element", REVEAL),
        exact("and", "a bit", AND),
        exact("and_all", "nine bits", and_all_cost(CLASSES - 1)),
        exact("multiply", "an element", RESHARE),
        exact("dot_rows", "a row of any length", RESHARE),
        exact("matmul_parts", "a matrix", Cost::FREE),
        exact("carry", "an element, 16 bits", carry_cost(16)),
        exact("low_sum", "an element, 5 bits", low_sum_cost(5)),
        exact("sign", "an element", sign_cost(k)),
        exact("to_ring", "a bit", TO_RING),
        exact("select", "an element", SELECT),
        exact("select_with_bit", "an element", SELECT_WITH_BIT),
        exact("select_sum", "a sum of ten", select_sum_cost(CLASSES)),
        exact("argmax", "a row of ten", argmax_cost(k, CLASSES)),
        exact("maximum", "a row of ten", maximum_cost(k, CLASSES)),
        rounded("truncate", "an element, s = f", &|r| truncate_cost(r, f)),
        rounded("truncate_product", "an element, s = f", &|r| truncate_product_cost(r, f)),
        rounded("truncate_doubled", "an element, s = f", &|r| truncate_doubled_cost(r, f)),
        exact("normalise", "an element, with its product", normalise_cost(k, range).then(APPLY)),
        rounded("reciprocal", "an element", &|r| reciprocal_cost(fixed, r, range)),
        rounded("quotient", "a row of ten", &|r| quotient_cost(fixed, r, range, CLASSES)),
        rounded("quotient (softmax)", "a row of ten", &|r| quotient_cost(fixed, r, sum_range, CLASSES)),
        rounded("exponential", "an element", &|r| exponential_cost(fixed, r)),
        rounded("logarithm", "an element", &|r| logarithm_cost(fixed, r, range)),
    ]
}

/// The table as a page of Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Costs of the protocols\n\n\
         Communication rounds, and bytes that the three parties send together, for the number format with f = 16\n\
         fraction bits and K = 32 value bits. Protocols that run side by side share their rounds. Bits travel in\n\
         words of 64, so the bytes hold for vectors whose length is a multiple of 64.\n\
         `cargo run -p difftest-secure --example costs` prints this page from the formulas in the source files of\n\
         the protocols.\n\n\
         | protocol | for | rounds, probabilistic | bytes | rounds, nearest | bytes |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    for row in table(FixedSpec::default()) {
        let (p, n) = (row.probabilistic, row.nearest);
        let bytes = |cost: Cost| cost.bits_per_element as f64 / 8.0;
        let line = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            row.protocol,
            row.unit,
            p.rounds,
            bytes(p),
            n.rounds,
            bytes(n)
        );
        line.expect("a string takes every line");
    }
    page
}
