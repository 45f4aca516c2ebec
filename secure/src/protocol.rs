//! The protocols, one a file. Each file opens with what its protocol computes, requires, costs and reveals. Here is
//! what each computes, and the formula of its rounds and bits; the figures follow below.
//!
//! * [`input`]: shares of what one side knows; [`FROM_PARTY_0`](input::FROM_PARTY_0),
//!   [`BITS_FROM_PARTY_0`](input::BITS_FROM_PARTY_0)
//! * [`reveal`]: the value, for all parties; [`REVEAL`](reveal::REVEAL)
//! * [`boolean`]: conjunctions of shared bits; [`AND`](boolean::AND), [`and_all_cost`](boolean::and_all_cost)
//! * [`multiply`]: element-wise and row-wise products; [`RESHARE`](multiply::RESHARE)
//! * [`matmul`]: additive parts of twice a matrix product; no cost, as it is local
//! * [`adder`]: carry or sum of two privately known numbers; [`carry_cost`](adder::carry_cost),
//!   [`low_sum_cost`](adder::low_sum_cost)
//! * [`compare`]: the sign of a value; [`sign_cost`](compare::sign_cost)
//! * [`convert`]: bits as ring elements; [`TO_RING`](convert::TO_RING)
//! * [`select`]: a bit times a ring element; [`SELECT`](select::SELECT), [`SELECT_WITH_BIT`](select::SELECT_WITH_BIT),
//!   [`select_sum_cost`](select::select_sum_cost)
//! * [`truncate`]: division by a power of two, rounded; [`truncate_cost`](truncate::truncate_cost),
//!   [`truncate_product_cost`](truncate::truncate_product_cost),
//!   [`truncate_doubled_cost`](truncate::truncate_doubled_cost)
//! * [`argmax`]: the largest element of every row; [`argmax_cost`](argmax::argmax_cost),
//!   [`maximum_cost`](argmax::maximum_cost)
//! * [`normalise`]: the power of two that brings a number to 31 bits; [`normalise_cost`](normalise::normalise_cost),
//!   [`APPLY`](normalise::APPLY)
//! * [`divide`]: reciprocal and quotient; [`reciprocal_cost`](divide::reciprocal_cost),
//!   [`quotient_cost`](divide::quotient_cost)
//! * [`exponential`]: e^d for d <= 0; [`exponential_cost`](exponential::exponential_cost)
//! * [`logarithm`]: the natural logarithm; [`logarithm_cost`](logarithm::logarithm_cost)
//!
#![doc = include_str!("../docs/costs.md")]

pub mod adder;
pub mod argmax;
pub mod boolean;
pub mod compare;
pub mod convert;
pub mod costs;
pub mod divide;
pub mod exponential;
pub mod input;
pub mod logarithm;
pub mod matmul;
pub mod multiply;
pub mod normalise;
pub mod reveal;
pub mod select;
pub mod truncate;

#[cfg(test)]
mod tests;
