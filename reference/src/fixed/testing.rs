//! An arithmetic that owns its coins and monitor, for unit tests.

use super::{Arithmetic, Coins, Monitor};
use spec::{FixedSpec, Rounding};

pub struct World {
    pub fixed: FixedSpec,
    pub rounding: Rounding,
    pub coins: Coins,
    pub monitor: Monitor,
}

impl World {
    /// The default format with seeded coins.
    pub fn new(rounding: Rounding) -> Self {
        World { fixed: FixedSpec::default(), rounding, coins: Coins::seeded(1), monitor: Monitor::default() }
    }

    pub fn with_fraction_bits(rounding: Rounding, fraction_bits: u32) -> Self {
        World { fixed: FixedSpec { fraction_bits, value_bits: 32 }, ..World::new(rounding) }
    }

    pub fn arithmetic(&mut self) -> Arithmetic<'_> {
        let World { fixed, rounding, coins, monitor } = self;
        Arithmetic { fixed: *fixed, rounding: *rounding, coins, monitor }
    }
}

/// Every way to take coins that a measurement tries: nearest, floors, ceilings, and two random draws.
pub fn roundings() -> Vec<(Rounding, Coins)> {
    let probabilistic = [Coins::Extreme { up: false }, Coins::Extreme { up: true }, Coins::seeded(2), Coins::seeded(3)];
    let mut all = vec![(Rounding::Nearest, Coins::seeded(0))];
    all.extend(probabilistic.into_iter().map(|coins| (Rounding::Probabilistic, coins)));
    all
}

/// Every positive value below 2^dense, and a geometric grid with the neighbours of powers of two up to 2^31.
pub fn positive_values(dense: u32) -> Vec<i64> {
    let spaced =
        std::iter::successors(Some(1 << dense), |s: &i64| Some(s + 1 + s / 20_000)).take_while(|s| *s < 1 << 31);
    (1..1 << dense).chain(spaced).chain((dense..31).flat_map(|j| [(1 << (j + 1)) - 1, 1 << j])).collect()
}
