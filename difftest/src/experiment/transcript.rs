//! `transcript`: the messages say nothing. In training steps on fresh parties, whose every message is recorded:
//!
//! * order, sender, receiver, protocol and size of all messages are the same for two inputs of the same shape;
//! * every word is uniform: the 64 bit positions are balanced, for each party and protocol, and no word appears twice, in two runs on the same
//!   input with other randomness either (no message of a training step is unmasked, as nothing is revealed);
//! * no party draws the same words of a stream twice within a step;
//! * the two copies of every component of every probed tensor agree.

use super::parties::{self, Rows, rows, start};
use crate::check::Outcome;
use crate::config::Config;
use crate::error::Error;
use crate::generate;
use crate::statistics::{self, FALSE_ALARM};
use reference::fixed::Parameters;
use reference::spec::TrainSpec;
use secure::id::PartyId;
use secure::net::recorded::{Message, Sent};
use std::collections::BTreeMap;

/// One recorded training step.
struct Run {
    messages: Vec<Message>,
    sent: Vec<(PartyId, Sent)>,
    reused: Option<String>,
}

/// Where one protocol's words are in the transcript, and how many.
type Shape = (u64, PartyId, PartyId, &'static str, usize);

impl Run {
    /// # Errors
    /// What the client saw: a replica that disagrees, for instance.
    fn of(spec: &TrainSpec, parameters: &Parameters, rows: &Rows, seed: Option<u64>, n: u64) -> Result<Self, Error> {
        let (mut engine, transcript) = start(spec, parameters, seed, n)?;
        let flat: Vec<_> = rows.units.iter().copied().collect();
        let report = engine.step(&flat, &rows.labels).map_err(crate::side::secure::failed)?;
        let mut messages = transcript.take();
        messages.sort_by_key(|m| (m.exchange, m.from, m.to));
        Ok(Run { messages, sent: report.sent, reused: report.reused })
    }

    /// Sizes and order of everything said after the set-up.
    fn shape(&self) -> Vec<Shape> {
        let mut shape: Vec<_> =
            self.sent.iter().map(|(from, s)| (s.exchange, *from, s.to, s.step, s.words.len())).collect();
        shape.sort();
        shape
    }

    /// The words by party and protocol.
    fn words<'r>(&'r self, pools: &mut BTreeMap<(PartyId, &'static str), Vec<&'r u64>>) {
        let at: BTreeMap<_, _> = self.messages.iter().map(|m| ((m.exchange, m.from, m.to), &m.words)).collect();
        for (from, s) in &self.sent {
            let words = at.get(&(s.exchange, *from, s.to)).and_then(|words| words.get(s.words.clone()));
            pools.entry((*from, s.step)).or_default().extend(words.unwrap_or_default());
        }
    }
}

/// The first thing that is wrong with the runs, if any; the second and third are on the same input. And how much was looked at.
fn judge(runs: &[Run; 3]) -> (String, Option<String>) {
    let mut wrong = None;
    for other in &runs[1..] {
        let (a, b) = (runs[0].shape(), other.shape());
        if a != b {
            let first = a.iter().zip(&b).find(|(a, b)| a != b);
            wrong.get_or_insert(match first {
                Some(((round, from, to, step, words), b)) => format!(
                    "round {round}: party {from} sends party {to} {words} words of {step} on one input, party {} sends party {} {} words of {} on another",
                    b.1, b.2, b.4, b.3
                ),
                None => format!("{} messages on one input, {} on another", a.len(), b.len()),
            });
        }
    }
    if let Some(reused) = runs.iter().find_map(|r| r.reused.as_ref()) {
        wrong.get_or_insert(format!("the same words of a stream drawn twice: {reused}"));
    }
    let mut pools = BTreeMap::new();
    runs.iter().for_each(|run| run.words(&mut pools));
    let threshold = FALSE_ALARM - (pools.len() as f64 + 1.0).log2();
    let mut least = 0f64;
    for ((party, step), words) in &pools {
        let balance = statistics::bit_balance(words.iter().copied());
        least = least.min(balance.log2_p);
        if balance.log2_p < threshold {
            wrong.get_or_insert(format!(
                "party {party}, {step}: bit {} is one in {} of {} words; chance 2^{:.0} if they were uniform",
                balance.bit, balance.ones, balance.words, balance.log2_p
            ));
        }
    }
    let all: Vec<u64> = runs.iter().flat_map(|r| &r.messages).flat_map(|m| &m.words).copied().collect();
    let repeats = statistics::repeats(&all);
    if repeats.log2_p < threshold {
        wrong.get_or_insert(format!(
            "{} of {} words were sent before, with the same or other randomness; chance 2^{:.0} if they were masked afresh",
            repeats.repeated, repeats.words, repeats.log2_p
        ));
    }
    let summary = format!(
        "{} messages alike on two inputs; {} words of {} protocols uniform (least likely 2^{least:.0}, fails below 2^{threshold:.0}), {} repeated",
        runs[0].messages.len(),
        all.len(),
        pools.keys().map(|(_, step)| step).collect::<std::collections::BTreeSet<_>>().len(),
        repeats.repeated
    );
    (summary, wrong)
}

/// The verdict.
///
/// # Errors
/// A party fails.
pub fn check(config: &Config, spec: &TrainSpec, parameters: &Parameters) -> Result<Outcome, Error> {
    let (own, other) = (rows(spec, config.seed), rows(spec, config.seed.wrapping_add(1)));
    let elsewhere = generate::initial(spec, config.seed.wrapping_add(1))?;
    let run = |n: u64, parameters, rows| Run::of(spec, parameters, rows, config.insecure_seed, 100 + n);
    let runs = [run(0, &elsewhere, &other)?, run(1, parameters, &own)?, run(2, parameters, &own)?];
    let (summary, wrong) = judge(&runs);
    Ok(Outcome::new("transcript", summary, wrong.map(|what| parties::failure("transcript", config, &what))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::small as config;
    use reference::spec::{Head, Rounding};

    fn runs(head: Head, rounding: Rounding) -> [Run; 3] {
        let config = config(head, rounding);
        let spec = parties::spec(&config.spec);
        let parameters = generate::initial(&spec, 1).unwrap();
        [3, 4, 4].map(|seed| Run::of(&spec, &parameters, &rows(&spec, seed), None, 0).unwrap())
    }

    #[test]
    fn every_head_and_rounding_passes() {
        for head in Head::ALL {
            for rounding in Rounding::ALL {
                let (summary, wrong) = judge(&runs(head, rounding));
                assert_eq!(wrong, None, "{head} {rounding}: {summary}");
            }
        }
    }

    #[test]
    fn every_word_belongs_to_a_protocol() {
        let [run, ..] = runs(Head::Softmax, Rounding::Probabilistic);
        let mut pools = BTreeMap::new();
        run.words(&mut pools);
        let sent: usize = run.messages.iter().filter(|m| m.exchange > 0).map(|m| m.words.len()).sum();
        assert_eq!(pools.values().map(Vec::len).sum::<usize>(), sent);
        assert!(pools.len() > 9 && sent > 10_000, "{} pools, {sent} words", pools.len());
    }

    #[test]
    fn what_leaks_is_named() {
        let fresh = || runs(Head::ReluGrad, Rounding::Probabilistic);

        let mut short = fresh();
        short[1].sent[40].1.words.end -= 1;
        assert!(judge(&short).1.unwrap().contains("words of"));

        let mut extra = fresh();
        extra[2].sent.pop();
        assert!(judge(&extra).1.unwrap().contains("on another"));

        let mut clear = fresh();
        let bit = |run: &mut Run| run.messages.iter_mut().flat_map(|m| &mut m.words).for_each(|w| *w &= !(1 << 40));
        clear.iter_mut().for_each(bit);
        assert!(judge(&clear).1.unwrap().contains("bit 40 is one in 0 of"));

        let mut repeated = fresh();
        repeated[2].messages[9].words = repeated[1].messages[9].words.clone();
        assert!(judge(&repeated).1.unwrap().contains("were sent before"));

        let mut reused = fresh();
        reused[0].reused = Some("party 1, call 7, purpose 0".into());
        assert!(judge(&reused).1.unwrap().contains("call 7"));
    }

    #[test]
    fn parties_with_a_fixed_seed_repeat_themselves_and_fail() {
        let config = config(Head::Softmax, Rounding::Probabilistic);
        let spec = parties::spec(&config.spec);
        let parameters = generate::initial(&spec, 1).unwrap();
        let run = || Run::of(&spec, &parameters, &rows(&spec, 1), Some(5), 0).unwrap();
        assert!(judge(&[run(), run(), run()]).1.unwrap().contains("were sent before"));
    }
}
