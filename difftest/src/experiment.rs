//! The side experiment of the checks `rounding` and `transcript`: training steps of the run's own shape, head, rounding
//! and number format, on fresh parties whose messages and coins are recorded.

pub mod masks;
pub mod parties;
pub mod rounding;
pub mod transcript;

use crate::check::Outcome;
use crate::config::Config;
use crate::error::Error;
use crate::generate;

/// Runs the side experiment and judges it by both checks, `rounding` and `transcript`.
///
/// # Errors
/// A side that cannot go on for another reason than a failed check.
pub fn checks(config: &Config) -> Result<Vec<Outcome>, Error> {
    let spec = parties::spec(&config.spec);
    let parameters = generate::initial(&spec, config.seed)?;
    // Parties that stop are what both look for.
    let or_stopped = |name: &'static str, judged: Result<Outcome, Error>| match judged {
        Err(Error::Protocol(what)) => {
            let failure = parties::failure(name, config, &what.to_string());
            Ok(Outcome::new(name, "the parties stopped".into(), Some(failure)))
        }
        judged => judged,
    };
    Ok(vec![
        or_stopped("rounding", rounding::check(config, &spec, &parameters))?,
        or_stopped("transcript", transcript::check(config, &spec))?,
    ])
}
