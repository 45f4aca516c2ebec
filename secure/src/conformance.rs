//! Every protocol against the integer model, bit for bit: under nearest rounding as it is, under probabilistic rounding
//! with the coins that the parties drew. Operands are boundary values first, then random ones, inside and outside of
//! the ranges.
//!
//! Each protocol and rounding, and each head, rounding and depth, is a test of its own name; [`coverage`] fails where
//! one is missing.

use crate::client::roundings;
use crate::engine::RoundingRecord;
use crate::error::Result;
use crate::party::Party;
use crate::share::Share;
use crate::testing::{open, world};
use reference::fixed::{Arithmetic, Coins, Monitor, tape::Rounded, tape::Tape};
use spec::{FixedSpec, Rounding};

mod coverage;
mod heads;
mod operands;
mod protocols;
mod training;

const FORMATS: [FixedSpec; 4] = [
    FixedSpec { fraction_bits: 16, value_bits: 32 },
    FixedSpec { fraction_bits: 8, value_bits: 32 },
    FixedSpec { fraction_bits: 13, value_bits: 27 },
    // 17 exponentials of 1 do not fit: their sum has no range of its own.
    FixedSpec { fraction_bits: 16, value_bits: 21 },
];

/// Runs `secure` as three parties and `model` on the coins they drew, in every format, and compares.
fn conform<const N: usize>(
    rounding: Rounding,
    what: &str,
    inputs: &[[Share; 3]],
    secure: impl AsyncFn(&Party, &[Share]) -> Result<[Share; N]> + Sync,
    model: impl Fn(&mut Arithmetic) -> [Vec<i64>; N],
) {
    let secure = |p: &Party, mine: &[Share]| p.run(secure(p, mine)).map(Vec::from);
    let model = |arithmetic: &mut Arithmetic| Vec::from(model(arithmetic));
    for fixed in FORMATS {
        conform_in(fixed, rounding, what, inputs, &secure, &model);
    }
}

/// What one party does with its shares.
type Protocol<'p> = dyn Fn(&Party, &[Share]) -> Result<Vec<Share>> + Sync + 'p;

/// In one format. Compiled once, and not for each protocol.
fn conform_in(
    fixed: FixedSpec,
    rounding: Rounding,
    what: &str,
    inputs: &[[Share; 3]],
    secure: &Protocol,
    model: &dyn Fn(&mut Arithmetic) -> Vec<Vec<i64>>,
) {
    let ([a, b, c], _, [r0, r1, _]) = world(fixed, rounding, |p| {
        let mine: Vec<Share> = inputs.iter().map(|i| i[p.id.index()].clone()).collect();
        secure(p, &mine)
    });
    let (mut coins, mut monitor) = (tape(roundings(r0.truncations, r1.truncations, rounding)), Monitor::new(1));
    let want = model(&mut Arithmetic { fixed, rounding, coins: &mut coins, monitor: &mut monitor });
    coins.finish().expect("the model uses every coin");
    assert_eq!([a.len(), b.len(), c.len()], [want.len(); 3], "{what}");
    for (k, ((a, (b, c)), want)) in a.into_iter().zip(b.into_iter().zip(c)).zip(want).enumerate() {
        let got = open(&[a, b, c]);
        let at = got.iter().zip(&want).position(|(g, w)| g != w);
        assert_eq!(got.len(), want.len(), "{what}: result {k}");
        assert!(
            at.is_none(),
            "{what}, {rounding}, {fixed:?}: result {k}, index {at:?}: secure {}, model {}",
            got[at.unwrap()],
            want[at.unwrap()]
        );
    }
}

/// What the model needs to round as the parties did: nearest rounding needs only the wraps.
fn tape(rounding: Vec<RoundingRecord>) -> Coins {
    let mut tape = Tape::default();
    for r in rounding {
        if !(r.coins.is_empty() && r.wraps.is_empty()) {
            tape.push(r.name, Rounded { coins: r.coins, wraps: r.wraps });
        }
    }
    Coins::Tape(tape)
}
