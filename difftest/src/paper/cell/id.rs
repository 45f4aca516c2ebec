//! The identity of a cell, and its text, which names the cell's file.

use super::side::Side;
use reference::spec::{Head, Rounding};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Layers of the deepest network.
pub const MOST_LAYERS: usize = 64;

/// Learning rates of [`Id::rate`] are multiples of this.
pub const RATE_UNIT: f64 = 1.0 / 65_536.0;

/// The identity of a cell: everything that tells it from another. Its text, `secure-softmax-l2-prob-s1-e20`, names its
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Id {
    /// The side that trains.
    pub side: Side,
    /// The output head.
    pub head: Head,
    /// The number of dense layers.
    pub layers: usize,
    /// Whether `relu-grad` is computed in the order of the paper's published code ([`published`](crate::paper::published)).
    #[serde(default)]
    pub code: bool,
    /// Rounding of truncations; none for real numbers.
    pub rounding: Option<Rounding>,
    /// Of batches and initial weights. The parties' coins are the operating system's.
    pub seed: u64,
    /// Epochs of an attempt.
    pub epochs: usize,
    /// Extra fractional bits of the velocity.
    pub velocity_bits: u32,
    /// The only learning rate that is tried, in units of 2^-16; without it, the setup's first rate and its halves.
    #[serde(default)]
    pub rate: Option<u32>,
}

impl Id {
    /// Sorts as the tables do: `prob` before `nearest`, heads in their order.
    pub fn order(&self) -> impl Ord + use<> {
        let rounding = Rounding::ALL.iter().position(|r| Some(*r) == self.rounding);
        let variant = (self.rate, self.velocity_bits, self.epochs);
        (variant, self.side, self.layers, rounding, self.head, self.code, self.seed)
    }

    /// Whether it is no variant: none of extra velocity bits, the published code's order, and a rate of its own.
    pub fn is_plain(&self) -> bool {
        self.velocity_bits == 0 && !self.code && self.rate.is_none()
    }

    /// The head's name; `relu-grad-code` is `relu-grad` in the order of the published code.
    pub fn head_name(&self) -> String {
        format!("{}{}", self.head, if self.code { CODE } else { "" })
    }

    /// The identity of the cell with this configuration on another side.
    pub fn on(&self, side: Side) -> Id {
        let real = side == Side::Real;
        let velocity_bits = if real { 0 } else { self.velocity_bits };
        let rounding = self.rounding.filter(|_| !real);
        Id { side, rounding, velocity_bits, code: self.code && !real, ..self.clone() }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-l{}", self.side, self.head_name(), self.layers)?;
        self.rounding.map_or(Ok(()), |r| write!(f, "-{r}"))?;
        write!(f, "-s{}-e{}", self.seed, self.epochs)?;
        if self.velocity_bits > 0 {
            write!(f, "-v{}", self.velocity_bits)?;
        }
        self.rate.map_or(Ok(()), |r| write!(f, "-r{r}"))
    }
}

/// What the name of a head ends in that is computed in the order of the published code.
const CODE: &str = "-code";

/// What files of the first version called the sides.
const FIRST_NAMES: [(&str, Side); 2] = [("model", Side::Integer), ("f64", Side::Real)];

/// A name of the first version as it is written today; others as they are.
fn renamed(text: &str) -> String {
    let old = |(old, side): (&str, Side)| {
        text.strip_prefix(old).filter(|rest| rest.starts_with('-')).map(|rest| format!("{side}{rest}"))
    };
    FIRST_NAMES.into_iter().find_map(old).unwrap_or_else(|| text.into())
}

/// A cell's name in the first version.
pub(in crate::paper) fn first_version(id: &Id) -> String {
    let name = id.to_string();
    let old = FIRST_NAMES.into_iter().find(|(_, side)| *side == id.side);
    old.map_or(name.clone(), |(old, side)| format!("{old}{}", &name[side.name().len()..]))
}

impl FromStr for Id {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let text = &renamed(given);
        let parse = || {
            let (side, rest) = text.split_once('-')?;
            let mut parts: Vec<_> = rest.split('-').collect();
            let mut number = |tag: char| {
                let digits = parts.last()?.strip_prefix(tag)?;
                let value = digits.parse::<u64>().ok()?;
                parts.pop();
                Some(value)
            };
            let rate = number('r');
            let velocity_bits = number('v').unwrap_or(0);
            let (epochs, seed) = (number('e')?, number('s')?);
            let rounding = Rounding::ALL.into_iter().find(|r| parts.last() == Some(&r.name()));
            parts.truncate(parts.len() - usize::from(rounding.is_some()));
            let layers = parts.pop()?.strip_prefix('l')?.parse().ok()?;
            let name = parts.join("-");
            let (head, code) = name.strip_suffix(CODE).map_or((name.as_str(), false), |head| (head, true));
            let id = Id {
                side: Side::ALL.into_iter().find(|s| s.name() == side)?,
                head: Head::ALL.into_iter().find(|h| h.name() == head)?,
                code,
                layers,
                rounding,
                seed,
                epochs: usize::try_from(epochs).ok()?,
                velocity_bits: u32::try_from(velocity_bits).ok()?,
                rate: rate.map(|r| u32::try_from(r).ok()).map_or(Some(None), |r| r.map(Some))?,
            };
            let possible = (1..=MOST_LAYERS).contains(&id.layers) && id.epochs > 0 && id.rate != Some(0);
            let variant = !id.code || (id.side == Side::Integer && id.head == Head::ReluGrad);
            // One spelling each: real numbers have no rounding, the others have one, and `-v0` is not written.
            let spelt = id.to_string() == *text && rounding.is_none() == (id.side == Side::Real);
            (possible && variant && spelt).then_some(id)
        };
        parse().ok_or_else(|| {
            format!("{given:?} is no cell; cells look like secure-softmax-l2-prob-s1-e20, --list shows them")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_id_is_the_id() {
        for side in Side::ALL {
            for head in Head::ALL {
                for rounding in Rounding::ALL {
                    for velocity_bits in [0, 8] {
                        let rounding = (side != Side::Real).then_some(rounding);
                        let code = side == Side::Integer && head == Head::ReluGrad;
                        for (code, rate) in [(false, None), (code, Some(128))] {
                            let epochs = 20;
                            let id = Id { side, head, code, layers: 3, rounding, seed: 7, epochs, velocity_bits, rate };
                            assert_eq!(id.to_string().parse(), Ok(id));
                        }
                    }
                }
            }
        }
        for text in [
            "",
            "secure",
            "secure-softmax",
            "secure-softmax-l2-s1-e20",
            "real-softmax-l2-prob-s1-e20",
            "secure-softmax-l2-prob-s1-e20-v0",
            "secure-softmax-l02-prob-s1-e20",
            "secure--l2-prob-s1-e20",
            "x-softmax-l2-prob-s1-e20",
            "real-softmax-l0-s1-e20",
            "real-softmax-l65-s1-e20",
            "real-softmax-l1-s1-e0",
            "secure-softmax-l2-prob-s1-e20-",
            "integer-relu-grad-l2-prob-s1-e20-r0",
            "secure-relu-grad-code-l2-prob-s1-e20",
            "integer-softmax-code-l2-prob-s1-e20",
        ] {
            assert!(text.parse::<Id>().unwrap_err().contains("--list"), "{text}");
        }
    }

    #[test]
    fn names_of_the_first_version_are_read() {
        for (old, new) in [
            ("model-relu-grad-l2-prob-s1-e50", "integer-relu-grad-l2-prob-s1-e50"),
            ("f64-softmax-l1-s1-e20", "real-softmax-l1-s1-e20"),
        ] {
            assert_eq!(old.parse::<Id>().unwrap().to_string(), new);
            assert_eq!(old.parse::<Id>(), new.parse());
        }
        assert_eq!(serde_json::from_str::<[Side; 2]>(r#"["model", "f64"]"#).unwrap(), [Side::Integer, Side::Real]);
    }
}
