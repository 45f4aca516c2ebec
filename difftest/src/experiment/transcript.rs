//! `transcript`: the messages say nothing. In training steps of the run's own shape on fresh parties, whose every
//! message is recorded:
//!
//! * order, sender, receiver, protocol and size of all messages are the same for two inputs of the same shape;
//! * everything that a party receives is masked by the one stream that it does not hold, and no mask serves twice
//!   ([`super::masks`]);
//! * no word appears twice, in two runs on different inputs with other randomness either (no message of a training step
//!   is unmasked, as nothing is revealed);
//! * no party draws the same words of a stream twice within a step;
//! * the two copies of every component of every probed tensor agree.

use super::masks::{self, Words};
use super::parties::{self, Randomness, Rows, rows, start};
use crate::check::Outcome;
use crate::config::Config;
use crate::error::Error;
use crate::generate;
use crate::side::flat;
use crate::statistics::{self, FALSE_ALARM};
use reference::fixed::Parameters;
use reference::spec::TrainSpec;
use secure::id::PartyId;
use secure::net::recorded::{Message, Sent};

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
    fn of(spec: &TrainSpec, parameters: &Parameters, rows: &Rows, randomness: Randomness) -> Result<Self, Error> {
        let (mut engine, transcript) = start(spec, parameters, randomness)?;
        let report = engine.step(&flat(&rows.units), &rows.labels)?;
        let mut messages = transcript.take();
        // The exchange before the first is the set-up.
        messages.retain(|m| m.exchange > 0);
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

    fn words(&self) -> Words {
        masks::words(&self.messages, self.sent.iter().map(|(from, s)| (*from, s)))
    }
}

/// The recorded runs of one verdict.
struct Runs {
    /// The run that all others are compared with.
    first: Run,
    /// For receivers 0, 1 and 2: the same shares and streams but for the one stream that the receiver does not hold.
    again: [Run; 3],
    /// Another input and other randomness throughout.
    other: Run,
}

impl Runs {
    fn new(spec: &TrainSpec, seed: u64, insecure: Option<u64>) -> Result<Self, Error> {
        let (own, other) = (rows(spec, seed), rows(spec, seed.wrapping_add(1)));
        let parameters = generate::initial(spec, seed)?;
        let elsewhere = generate::initial(spec, seed.wrapping_add(1))?;
        let randomness = Randomness::new(insecure, 0)?;
        let fresh = Randomness::new(insecure, 1)?;
        let again = |receiver: usize| Run::of(spec, &parameters, &own, randomness.unknown_to(receiver, &fresh));
        Ok(Runs {
            first: Run::of(spec, &parameters, &own, randomness)?,
            again: [again(0)?, again(1)?, again(2)?],
            other: Run::of(spec, &elsewhere, &other, Randomness::new(insecure, 2)?)?,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(&self.first).chain(&self.again).chain([&self.other])
    }

    /// The first difference in size or order between the runs.
    fn different_shape(&self) -> Option<String> {
        let a = self.first.shape();
        self.all().skip(1).map(Run::shape).find(|b| *b != a).map(|b| match a.iter().zip(&b).find(|(a, b)| a != b) {
            Some(((round, from, to, step, words), b)) => format!(
                "round {round}: party {from} sends party {to} {words} words of {step} on one input, party {} sends \
                 party {} {} words of {} on another",
                b.1, b.2, b.4, b.3
            ),
            None => format!("{} messages on one input, {} on another", a.len(), b.len()),
        })
    }
}

/// The first thing that is wrong with the runs, if any, and how much was looked at.
fn judge(runs: &Runs) -> (String, Option<String>) {
    let mut wrong = runs.different_shape();
    if let Some(reused) = runs.all().find_map(|r| r.reused.as_ref()) {
        wrong.get_or_insert(format!("the same words of a stream drawn twice: {reused}"));
    }
    let first = runs.first.words();
    // Two tests a sender and protocol, two a receiver, and the repeats.
    let threshold = FALSE_ALARM - (2.0 * first.len() as f64 + 7.0).log2();
    let (mut least, mut words) = (0f64, 0);
    for (receiver, run) in PartyId::ALL.into_iter().zip(&runs.again) {
        let received = masks::received(receiver, &first, &run.words());
        let judged = masks::judge(receiver, &received, threshold);
        least = least.min(judged.least);
        words += judged.words;
        wrong = wrong.or(judged.leak);
    }
    let both = runs.first.messages.iter().chain(&runs.other.messages);
    let repeats = statistics::repeats(&both.map(|m| &m.words[..]).collect::<Vec<_>>().concat());
    if repeats.log2_p < threshold {
        wrong.get_or_insert(format!(
            "{} of {} words were sent before, with the same or other randomness; chance 2^{:.0} if they were masked \
             afresh",
            repeats.repeated, repeats.words, repeats.log2_p
        ));
    }
    let protocols: std::collections::BTreeSet<_> = first.keys().map(|(_, _, step)| step).collect();
    let summary = format!(
        "{} messages alike on two inputs; {words} words of {} protocols masked by what their receiver lacks (least \
         likely 2^{least:.0}, fails below 2^{threshold:.0}), {} repeated",
        runs.first.messages.len(),
        protocols.len(),
        repeats.repeated
    );
    (summary, wrong)
}

/// Records training steps on fresh parties, and gives the verdict on their messages.
///
/// # Errors
/// A party fails.
pub fn check(config: &Config, spec: &TrainSpec) -> Result<Outcome, Error> {
    Ok(outcome(config, &Runs::new(spec, config.seed, config.insecure_seed)?))
}

fn outcome(config: &Config, runs: &Runs) -> Outcome {
    let (summary, wrong) = judge(runs);
    Outcome::new("transcript", summary, wrong.map(|what| parties::failure("transcript", config, &what)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::small as config;
    use reference::spec::{Head, Rounding};

    fn runs(head: Head, rounding: Rounding) -> Runs {
        Runs::new(&parties::spec(&config(head, rounding).spec), 3, None).unwrap()
    }

    /// The verdict on messages as the parties send them.
    pub(crate) fn a_right_run() -> Outcome {
        outcome(&config(Head::ReluGrad, Rounding::Nearest), &runs(Head::ReluGrad, Rounding::Nearest))
    }

    /// The verdict on messages of which one bit is the same whatever the randomness.
    pub(crate) fn a_run_with_a_bit_that_is_never_masked() -> Outcome {
        outcome(&config(Head::ReluGrad, Rounding::Nearest), &with_a_bare_bit(runs(Head::ReluGrad, Rounding::Nearest)))
    }

    /// Clears bit 40 of every word that is sent.
    fn with_a_bare_bit(mut runs: Runs) -> Runs {
        let bare = |run: &mut Run| run.messages.iter_mut().flat_map(|m| &mut m.words).for_each(|w| *w &= !(1 << 40));
        std::iter::once(&mut runs.first).chain(&mut runs.again).for_each(bare);
        runs
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
        let run = runs(Head::Softmax, Rounding::Probabilistic).first;
        let words = run.words();
        let sent: usize = run.messages.iter().map(|m| m.words.len()).sum();
        assert_eq!(words.values().map(Vec::len).sum::<usize>(), sent);
        assert!(words.len() > 9 && sent > 10_000, "{} protocols and links, {sent} words", words.len());
    }

    #[test]
    fn what_leaks_is_named() {
        let fresh = || runs(Head::ReluGrad, Rounding::Probabilistic);
        let leak = |runs: &Runs| judge(runs).1.expect("a leak");

        let mut short = fresh();
        short.other.sent[40].1.words.end -= 1;
        assert!(leak(&short).contains("words of"));

        let mut extra = fresh();
        extra.again[2].sent.pop();
        assert!(leak(&extra).contains("on another"));

        assert!(leak(&with_a_bare_bit(fresh())).contains("bit 40 changes"));

        let mut repeated = fresh();
        repeated.other.messages[9].words = repeated.first.messages[9].words.clone();
        assert!(leak(&repeated).contains("were sent before"));

        let mut reused = fresh();
        reused.first.reused = Some("party 1, call 7, purpose 0".into());
        assert!(leak(&reused).contains("call 7"));
    }

    #[test]
    fn parties_that_ignore_their_seeds_fail() {
        let spec = parties::spec(&config(Head::Softmax, Rounding::Probabilistic).spec);
        let parameters = generate::initial(&spec, 1).unwrap();
        let run = || Run::of(&spec, &parameters, &rows(&spec, 1), Randomness::new(Some(5), 0).unwrap()).unwrap();
        let same = Runs { first: run(), again: [run(), run(), run()], other: run() };
        assert!(judge(&same).1.unwrap().contains("do not depend on the randomness that the receiver lacks"));
    }
}
