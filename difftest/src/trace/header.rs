//! The header of a trace, in which an engine describes itself. Every field is explained in `docs/trace.md`.

use reference::spec::{FixedSpec, Head, NetworkSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`Header::format`].
pub const FORMAT: &str = "difftest-trace";

/// The version of the format that is written; older ones are read.
pub const VERSION: u32 = 1;

/// The kind of numbers that the engine computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numbers {
    /// Integers that stand for multiples of 2^-f.
    Fixed,
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Float64,
}

/// How a truncation rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceRounding {
    /// To the nearest: at most half a unit.
    Nearest,
    /// Up with the probability of the fraction that is cut off: below one unit, no bias.
    Probabilistic,
    /// Down: from minus one unit, excluded, to 0.
    Floor,
    /// Each share by itself: at most one unit, and off by a multiple of 2^(ring - s) units with probability |V| /
    /// 2^ring.
    Local,
    /// Not known: at most one unit is allowed, and what was seen is reported.
    Unknown,
}

/// The part of the arithmetic to which one truncation belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truncation {
    /// A dot product is summed first and truncated once.
    DotProduct,
    /// Each term of a dot product is truncated before it is summed.
    Term,
}

/// The formula of the weight update and where it truncates. g is the gradient summed over the batch, r = learning
/// rate / batch, m = momentum, T a
/// truncation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// V = T(m V - r g), W = W + V.
    Fused,
    /// V = T(m V) - T(r g), W = W + V.
    Separate,
    /// V = T(m V) + T(g / batch), W = W - T(learning rate V).
    Ascent,
}

/// The promise of an engine about a function: |error| <= `absolute_units` 2^-f + (`relative` + `relative_per_argument`
/// |x|) |value|.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In units of 2^-f.
    #[serde(default)]
    pub absolute_units: f64,
    /// Relative to the exact value.
    #[serde(default)]
    pub relative: f64,
    /// Relative to the exact value times the size of the argument; of the exponential only.
    #[serde(default)]
    pub relative_per_argument: f64,
}

/// The functions that an engine may promise something of. What it does not promise is measured and not judged.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// exp(x) for x <= 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<Claim>,
    /// Quotients and reciprocals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Claim>,
    /// The natural logarithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Claim>,
}

/// The header of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The name of the format, [`FORMAT`].
    pub format: String,
    /// The version of the format, [`VERSION`].
    pub version: u32,
    /// The engine's name.
    pub engine: String,
    /// The engine's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// The head that is trained with. Without one, the head is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// Input width, hidden widths, classes. Empty if the trace has no network, only blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widths: Vec<usize>,
    /// Rows a step, by which the learning rate is divided.
    #[serde(default = "one")]
    pub batch: usize,
    /// Learning rate, real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Momentum, real.
    #[serde(default)]
    pub momentum: f64,
    /// Threshold of `relu-prob` and `relu-prob-cut`, real.
    #[serde(default = "paper_epsilon")]
    pub epsilon: f64,
    /// The threshold as the engine encodes it, in units; rounded up if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_units: Option<i64>,
    /// Kind of numbers.
    pub numbers: Numbers,
    /// f: a unit is 2^-f. Required for fixed point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction_bits: Option<u32>,
    /// K: values are below 2^(K-1) units.
    #[serde(default = "thirty_two")]
    pub value_bits: u32,
    /// The ring is Z_2^ring.
    #[serde(default = "sixty_four")]
    pub ring_bits: u32,
    /// Rounding of truncations.
    #[serde(default = "unknown")]
    pub rounding: TraceRounding,
    /// Whether nearest rounding takes halves up, always. Otherwise a half may go either way.
    #[serde(default)]
    pub ties_up: bool,
    /// Least and largest error of one truncation in units, where it is another than the rounding's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation_error: Option<[f64; 2]>,
    /// One truncation a dot product, or one a term.
    #[serde(default = "dot_product")]
    pub truncation: Truncation,
    /// Formula of the update.
    #[serde(default = "fused")]
    pub update: Update,
    /// The factor that the engine multiplies gradients by, as encoded: r, or the learning rate in the form `ascent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded_rate: Option<f64>,
    /// Momentum as encoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded_momentum: Option<f64>,
    /// Pixels are divided by this; needed where the batch is given by row numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixel_scale: Option<f64>,
    /// Scale in bits of integer tensors that is not `fraction_bits`: by whole name, or by the last part of a name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scales: BTreeMap<String, u32>,
    /// The promises of the engine about its functions.
    #[serde(default)]
    pub claims: Claims,
    /// How the trace was recorded: commands, versions of what was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// Seed of the batches and the initial weights of a run of `difftest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The failed checks for which a step was saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

fn one() -> usize {
    1
}

fn paper_epsilon() -> f64 {
    0.1
}

fn thirty_two() -> u32 {
    32
}

fn sixty_four() -> u32 {
    64
}

fn unknown() -> TraceRounding {
    TraceRounding::Unknown
}

fn dot_product() -> Truncation {
    Truncation::DotProduct
}

fn fused() -> Update {
    Update::Fused
}

impl Header {
    /// Reads the header's JSON and checks its limits.
    ///
    /// # Errors
    /// One line that names the field, its value and its limit.
    pub fn parse(text: &str) -> Result<Self, String> {
        let header: Header = serde_json::from_str(text).map_err(|e| format!("header: {e}"))?;
        header.validate().map_err(|what| format!("header: {what}"))?;
        Ok(header)
    }

    /// Checks every limit.
    ///
    /// # Errors
    /// The first field that is outside, and the limit.
    pub fn validate(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("format is {:?}; it must be {FORMAT:?}", self.format));
        }
        if self.version == 0 || self.version > VERSION {
            return Err(format!("version is {}; this program reads up to {VERSION}", self.version));
        }
        self.numbers()?;
        self.optimiser()?;
        if !self.widths.is_empty() {
            NetworkSpec { widths: self.widths.clone() }.validate().map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn numbers(&self) -> Result<(), String> {
        match (self.numbers, self.fraction_bits) {
            (Numbers::Fixed, None) => return Err("fraction_bits is missing; fixed point needs it".into()),
            (Numbers::Fixed, Some(f)) if !(1..=40).contains(&f) => {
                return Err(format!("fraction_bits is {f}; it must be 1 to 40"));
            }
            (Numbers::Float32 | Numbers::Float64, Some(_)) => {
                return Err("fraction_bits is given; floating point has none, leave it out".into());
            }
            _ => {}
        }
        if !(2..=64).contains(&self.value_bits) || !(8..=128).contains(&self.ring_bits) {
            let (k, ring) = (self.value_bits, self.ring_bits);
            return Err(format!("value_bits is {k}, ring_bits {ring}; they must be 2 to 64 and 8 to 128"));
        }
        if let Some((name, scale)) = self.scales.iter().find(|s| *s.1 > 80) {
            return Err(format!("the scale of {name} is {scale}; it must be 0 to 80"));
        }
        if let Some([lo, hi]) = self.truncation_error
            && !(lo.is_finite() && hi.is_finite() && lo <= 0.0 && hi >= 0.0)
        {
            return Err(format!("truncation_error is [{lo}, {hi}]; it must be finite and hold 0"));
        }
        for (name, claim) in [("exp", self.claims.exp), ("division", self.claims.division), ("log", self.claims.log)] {
            let Some(c) = claim else { continue };
            let parts = [c.absolute_units, c.relative, c.relative_per_argument];
            if !parts.iter().all(|v| v.is_finite() && *v >= 0.0) {
                return Err(format!("the claim for {name} is {parts:?}; it must be finite and not negative"));
            }
        }
        Ok(())
    }

    fn optimiser(&self) -> Result<(), String> {
        let positive = |v: f64| v.is_finite() && v > 0.0;
        if self.batch == 0 || self.batch > 1 << 20 {
            return Err(format!("batch is {}; it must be 1 to {}", self.batch, 1 << 20));
        }
        if let Some(rate) = self.learning_rate
            && !positive(rate)
        {
            return Err(format!("learning_rate is {rate}; it must be a positive number"));
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return Err(format!("momentum is {}; it must be in [0, 1)", self.momentum));
        }
        if !(self.epsilon > 0.0 && self.epsilon < 1.0) {
            return Err(format!("epsilon is {}; it must be inside (0, 1)", self.epsilon));
        }
        let coded = [("coded_rate", self.coded_rate), ("coded_momentum", self.coded_momentum)];
        if let Some((name, value)) = coded.iter().find(|c| c.1.is_some_and(|v| !v.is_finite() || v < 0.0)) {
            return Err(format!("{name} is {value:?}; it must be finite and not negative"));
        }
        if let Some(scale) = self.pixel_scale
            && !positive(scale)
        {
            return Err(format!("pixel_scale is {scale}; it must be a positive number"));
        }
        Ok(())
    }

    /// The scale of an integer tensor: its own, that of the last part of its name, or f.
    pub fn scale(&self, name: &str) -> u32 {
        let own = self.scales.get(name).or_else(|| self.scales.get(name.rsplit('/').next().unwrap_or(name)));
        own.copied().unwrap_or_else(|| self.fraction_bits.unwrap_or(0))
    }

    /// 2^-f; for floating point the relative distance between neighbours at 1, which errors are then counted in.
    pub fn unit(&self) -> f64 {
        match self.numbers {
            Numbers::Fixed => 2f64.powi(-(self.fraction_bits.unwrap_or(0) as i32)),
            Numbers::Float32 => f64::from(f32::EPSILON),
            Numbers::Float64 => f64::EPSILON,
        }
    }

    /// The number format as the rest of the harness has it.
    pub fn fixed(&self) -> FixedSpec {
        FixedSpec { fraction_bits: self.fraction_bits.unwrap_or(0), value_bits: self.value_bits }
    }
}
