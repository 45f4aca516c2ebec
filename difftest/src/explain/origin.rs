//! The first operation between tensors that secure and the integer model feed differently.
//!
//! Every truncation has a name, and both sides can show what they truncated: the integer model as it replays the coins,
//! the secure side from the views of two parties put together. A fault is thus narrowed from a tensor to the operation
//! that made it.

use crate::bound::operation::tensor_of;
use reference::fixed::Replayed;

/// The operands of one truncation on the secure side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The name of the truncation in the arithmetic.
    pub name: String,
    /// V of every element, modulo 2^64.
    pub operands: Vec<i64>,
}

/// A truncation whose operands differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstDifference {
    /// The name of the truncation in the arithmetic.
    pub name: String,
    /// Flat index of the first operand that differs.
    pub index: usize,
    /// The operand that the integer model truncates there.
    pub integer: i64,
    /// The operand that the secure side truncates there.
    pub secure: i64,
}

impl std::fmt::Display for FirstDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FirstDifference { name, index, integer, secure } = self;
        write!(f, "{name} is given {secure} at [{index}] by secure, {integer} by the integer model")
    }
}

/// The first truncation, as a step computes them, whose operands differ. One that only one side has, or with other
/// elements, is left to the comparison of tensors and coins.
pub fn first(integer: &[Replayed], secure: &[Truncated], layers: usize) -> Option<FirstDifference> {
    let parted = |i: &Replayed| {
        let s = secure.iter().find(|s| s.name == i.name && s.operands.len() == i.operands.len())?;
        let index = i.operands.iter().zip(&s.operands).position(|(a, b)| a != b)?;
        Some(FirstDifference { name: i.name.clone(), index, integer: i.operands[index], secure: s.operands[index] })
    };
    // Of several truncations on the way to one tensor, the model's order decides: `min_by_key` keeps the first.
    integer.iter().filter_map(parted).min_by_key(|p| tensor_of(&p.name, layers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_operand_that_differs_is_named_in_the_order_of_the_step() {
        let integer =
            |name: &str, v: &[i64]| Replayed { name: name.into(), shift: 16, operands: v.to_vec(), coins: vec![] };
        let secure = |name: &str, v: &[i64]| Truncated { name: name.into(), operands: v.to_vec() };
        let model = [
            integer("layer1/forward", &[1, 2]),
            integer("head/exp/square", &[3, 4]),
            integer("head/exp/scale", &[5]),
            integer("layer2/update/weights", &[6]),
            integer("layer2/backward", &[7, 8, 9]),
        ];
        let mut other: Vec<_> = model.iter().map(|m| secure(&m.name, &m.operands)).collect();
        assert_eq!(first(&model, &other, 2), None);
        (other[3].operands[0], other[4].operands[2]) = (0, 0);
        let found = first(&model, &other, 2).unwrap();
        assert_eq!((found.name.as_str(), found.index, found.integer, found.secure), ("layer2/backward", 2, 9, 0));
        (other[1].operands[1], other[2].operands[0]) = (40, 50);
        let text = first(&model, &other, 2).unwrap().to_string();
        assert_eq!(text, "head/exp/square is given 40 at [1] by secure, 4 by the integer model");
    }
}
