//! The text of one failure: what, where, what each side says, and the one command that repeats it.

use crate::compare::real;
use crate::config::Config;

/// The values that the sides have at the place of a failure.
#[derive(Debug, Clone, Copy)]
pub struct Sides {
    /// The value of the real side.
    pub real: Option<f64>,
    /// The value of the integer model, in units at `scale`.
    pub integer: Option<i64>,
    /// The tested side's name and value, at `scale`.
    pub tested: Option<(&'static str, i64)>,
    /// Scale of the integers.
    pub scale: u32,
}

/// One failure of a check, as it is told.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Name of the check.
    pub check: &'static str,
    /// Step, tensor and index.
    pub at: String,
    /// The values of the sides at that place.
    pub sides: Sides,
    /// The requirement, and by how much it was missed.
    pub what: String,
    /// Flags that lead to the same place.
    pub repeat: String,
}

impl Failure {
    /// Four lines for a person.
    pub fn text(&self, config: &Config) -> String {
        let Sides { real: value, integer, tested, scale } = self.sides;
        let units = |(name, u)| format!("{name} {u} ({:.9})", real(u, scale));
        let values: Vec<_> =
            [value.map(|v| format!("real {v:.9}")), integer.map(|u| units(("integer", u))), tested.map(units)]
                .into_iter()
                .flatten()
                .collect();
        let Failure { check, at, what, repeat, .. } = self;
        let (head, rounding) = (config.spec.head, config.spec.rounding);
        let coins =
            if config.insecure_seed.is_none() { "   (fresh coins each run; --insecure-seed N fixes them)" } else { "" };
        format!(
            "FAIL {check}   {at}   seed {}, {head}, {rounding}\n  {}   (scale 2^-{scale})\n  {what}\n  again: \
             {}{coins}",
            config.seed,
            values.join("   "),
            config.command(repeat)
        )
    }
}
