//! The named steps that send messages: what costs, phases of time and records of messages are told apart by.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A step of the computation that sends messages, in the order of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The carry of an addition ([`adder`](crate::protocol::adder)).
    Adder,
    /// A conjunction of bits ([`boolean`](crate::protocol::boolean)).
    And,
    /// Bits into the ring ([`convert`](crate::protocol::convert)).
    BitToRing,
    /// Values that party 0 knows, shared ([`input`](crate::protocol::input)).
    Input,
    /// Products, shared again ([`multiply`](crate::protocol::multiply)).
    Multiply,
    /// Values revealed to all parties ([`reveal`](crate::protocol::reveal)).
    Reveal,
    /// A selection by a bit ([`select`](crate::protocol::select)).
    Select,
    /// A truncation ([`truncate`](crate::protocol::truncate)).
    Truncate,
}

impl Step {
    /// All steps.
    pub const ALL: [Step; 8] = [
        Step::Adder,
        Step::And,
        Step::BitToRing,
        Step::Input,
        Step::Multiply,
        Step::Reveal,
        Step::Select,
        Step::Truncate,
    ];

    /// The name in costs, records and error messages.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Adder => "adder",
            Step::And => "and",
            Step::BitToRing => "bit to ring",
            Step::Input => "input",
            Step::Multiply => "multiply",
            Step::Reveal => "reveal",
            Step::Select => "select",
            Step::Truncate => "truncate",
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let step = Step::ALL.into_iter().find(|step| step.name() == name);
        step.ok_or_else(|| serde::de::Error::custom("no step of this program"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: &impl Serialize) -> Vec<u8> {
        postcard::to_extend(value, Vec::new()).unwrap()
    }

    /// Costs are listed by step: in the order of the names, as a reader looks for them.
    #[test]
    fn steps_are_ordered_by_their_names_and_travel_by_them() {
        assert!(Step::ALL.is_sorted() && Step::ALL.is_sorted_by_key(|step| step.name()));
        for step in Step::ALL {
            let sent = bytes(&step);
            assert_eq!(sent, bytes(&step.name()));
            assert_eq!(postcard::from_bytes(&sent), Ok(step));
        }
        assert!(postcard::from_bytes::<Step>(&bytes(&"trunc")).is_err());
    }
}
