//! The sides that a cell can be of.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The side that trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Three parties on shares.
    Secure,
    /// The integer side with coins of its own.
    #[serde(alias = "model")]
    Integer,
    /// Real numbers; has no rounding.
    #[serde(alias = "f64")]
    Real,
}

impl Side {
    /// All, in the order of the tables.
    pub const ALL: [Side; 3] = [Side::Secure, Side::Integer, Side::Real];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Secure => "secure",
            Side::Integer => "integer",
            Side::Real => "real",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
