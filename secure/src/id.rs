//! The three parties and the names by which each calls its two neighbours.

use serde::{Deserialize, Serialize};

/// Party 0, 1 or 2. Party i holds share components i and i + 1 mod 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PartyId {
    /// Party 0: components 0 and 1.
    P0,
    /// Party 1: components 1 and 2.
    P1,
    /// Party 2: components 2 and 0.
    P2,
}

impl PartyId {
    /// The three parties in order.
    pub const ALL: [PartyId; 3] = [PartyId::P0, PartyId::P1, PartyId::P2];

    /// The party's number: 0, 1 or 2.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The next party, i + 1 mod 3.
    pub const fn next(self) -> PartyId {
        PartyId::ALL[(self as usize + 1) % 3]
    }

    /// The previous party, i - 1 mod 3.
    pub const fn previous(self) -> PartyId {
        PartyId::ALL[(self as usize + 2) % 3]
    }

    /// The party that this one calls `n`.
    pub const fn neighbour(self, n: Neighbour) -> PartyId {
        match n {
            Neighbour::Previous => self.previous(),
            Neighbour::Next => self.next(),
        }
    }
}

impl std::fmt::Display for PartyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.index())
    }
}

/// One of the two other parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Neighbour {
    /// The previous party, i - 1 mod 3.
    Previous,
    /// The next party, i + 1 mod 3.
    Next,
}

impl Neighbour {
    /// Both neighbours, in the order in which arrays hold what belongs to them.
    pub const BOTH: [Neighbour; 2] = [Neighbour::Previous, Neighbour::Next];
}
