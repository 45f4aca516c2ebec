//! How many latencies a step waits for: the messages of its longest chain ([`secure::net::chain`]), counted without a
//! clock from recorded steps of a small network on parties in this process. Which message waits for which depends on
//! head, rounding, number format, depth and number of classes; how long messages are depends on the rest.

use crate::error::Error;
use crate::generate;
use crate::side::secure::units;
use reference::spec::{NetworkSpec, SgdSpec, TrainSpec};
use secure::engine::{Engine, EngineConfig};
use secure::net::chain::{Passed, chains};
use secure::net::recorded::{Message, Transcript};

/// Inputs, hidden units and rows of the small network.
const SMALL: usize = 16;

/// Messages that one more step adds to the longest chain of the steps before.
///
/// # Errors
/// The engine's.
pub fn longest_of_a_step(spec: &TrainSpec) -> Result<u64, Error> {
    let spec = small(spec);
    let transcript = Transcript::default();
    let config = EngineConfig { transcript: Some(transcript.clone()), threads: 1, ..EngineConfig::new(spec.clone()) };
    let mut engine = Engine::start(config)?;
    engine.load(&units(&generate::initial(&spec, 1)?))?;
    engine.load_data(&vec![0; SMALL * SMALL], &[0; SMALL])?;
    let batch: Vec<u32> = (0..SMALL as u32).collect();
    let mut messages: Vec<Passed> = Vec::new();
    let mut longest_after_a_step = || -> Result<u64, Error> {
        engine.train(std::slice::from_ref(&batch))?;
        messages.extend(transcript.take().iter().map(passed));
        Ok(chains(messages.iter().copied()).longest)
    };
    let first = longest_after_a_step()?;
    Ok(longest_after_a_step()? - first)
}

fn passed(message: &Message) -> Passed {
    Passed { round: message.exchange, from: message.from, to: message.to }
}

/// The same training of a small network on small batches. What one row adds stays what it is.
fn small(spec: &TrainSpec) -> TrainSpec {
    let mut widths = vec![SMALL; spec.network.layers()];
    widths.push(spec.network.classes());
    let learning_rate = spec.sgd.learning_rate * SMALL as f64 / spec.sgd.batch as f64;
    let sgd = SgdSpec { batch: SMALL, learning_rate, ..spec.sgd };
    TrainSpec { network: NetworkSpec { widths }, sgd, ..spec.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference::spec::{FixedSpec, Head, Rounding};

    /// As docs/parties.md has it.
    #[test]
    fn a_step_of_a_run_adds_as_many_messages_to_the_chain_as_the_documentation_says() {
        let added = |head, rounding, layers| {
            let network = NetworkSpec::dense(784, 128, 10, layers);
            let (fixed, sgd) = (FixedSpec::default(), SgdSpec::default());
            longest_of_a_step(&TrainSpec { network, head, epsilon: 0.1, rounding, fixed, sgd }).unwrap()
        };
        for (head, rounding, expected) in [
            (Head::Softmax, Rounding::Probabilistic, [46, 59, 72]),
            (Head::Softmax, Rounding::Nearest, [94, 112, 130]),
            (Head::ReluProb, Rounding::Probabilistic, [32, 45, 58]),
        ] {
            assert_eq!([1, 2, 3].map(|layers| added(head, rounding, layers)), expected, "{head}, {rounding}");
        }
    }
}
