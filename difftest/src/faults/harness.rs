//! One case: a protocol on chosen inputs, judged by every check that needs no training run.
//!
//! * `protocol-error`: a party refused a message or stopped;
//! * `replicas`: the two copies of a share component differ;
//! * `bit-exact`: the opened results are not those of the integer model under the recorded coins, or the model refuses
//!   the coins;
//! * `transcript`: what a party receives is not masked by randomness that it does not know; words repeat within a run;
//!   sizes follow the data.
//!
//! For each receiver the case runs again with the same shares and the same two streams that the receiver holds, and
//! another third stream. If every message to it is masked by that stream, as the security of each protocol asks, the
//! differences of the two runs' messages are uniform and never repeat, whatever they hide ([`masks`]). That finds masks
//! that are missing, constant, short or reused, even where the hidden share is itself random.

use super::three_parties::{Output, Run, open, run};
use crate::experiment::masks::{self, Words};
use crate::explain::cause::Cause;
use crate::faults::cause::{Evidence, infer};
use reference::fixed::{Arithmetic, Coins, ModelError, Monitor, Rounded, Tape};
use reference::spec::{FixedSpec, Rounding};
use secure::client::roundings;
use secure::id::PartyId;
use secure::party::Party;
use secure::prg::{Seed, fresh_seed};
use secure::share::Share;

/// A check found something.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Finding {
    /// The name of the check that noticed.
    pub check: &'static str,
    /// The protocol or layer that fails although all it is built from holds.
    pub place: &'static str,
    /// The kind of mistake that the evidence looks like.
    pub cause: &'static str,
    /// The case that was run, and the difference.
    pub detail: String,
    /// The training step, where there is one.
    pub step: Option<usize>,
}

/// Cases so far, up to the first finding.
#[derive(Debug)]
pub struct Harness {
    /// Number format of all cases.
    pub fixed: FixedSpec,
    /// The first finding.
    pub finding: Option<Finding>,
    /// The number of elements compared.
    pub elements: u64,
    /// Words of messages tested.
    pub words: u64,
}

/// Statistical tests of one suite are fewer than 2^12, so that each may fail by chance once in 2^52 and the suite
/// once in 2^40.
pub const ALARM: f64 = crate::statistics::FALSE_ALARM - 12.0;

impl Harness {
    /// Nothing found yet.
    pub fn new() -> Self {
        Harness { fixed: FixedSpec::default(), finding: None, elements: 0, words: 0 }
    }

    /// Notes a finding, unless there is one.
    pub fn found(&mut self, check: &'static str, place: &'static str, cause: Cause, detail: String) {
        self.finding.get_or_insert(Finding { check, place, cause: cause.name(), detail, step: None });
    }

    /// Runs one case under `rounding`. `evidence` tells how differences are read.
    #[allow(clippy::too_many_arguments)]
    pub fn case(
        &mut self,
        place: &'static str,
        what: &str,
        rounding: Rounding,
        inputs: &[[Share; 3]],
        evidence: &Evidence,
        secure: impl AsyncFn(&Party, &[Share]) -> secure::Result<Vec<Output>> + Sync,
        model: impl Fn(&mut Arithmetic) -> Result<Vec<Vec<i64>>, ModelError>,
    ) {
        if self.finding.is_some() {
            return;
        }
        let what = format!("{what}, {rounding}");
        let fixed = self.fixed;
        let three = |inputs: &[[Share; 3]], seeds: [Seed; 3]| {
            run(fixed, rounding, Some(seeds), |p| {
                let mine: Vec<Share> = inputs.iter().map(|i| i[p.id.index()].clone()).collect();
                p.run(secure(p, &mine))
            })
        };
        let zeros: Vec<[Share; 3]> =
            inputs.iter().map(|i| [0, 1, 2].map(|k: usize| Share::zeros(i[k].rows, i[k].cols))).collect();
        let fresh = || fresh_seed().expect("the operating system gives randomness");
        let seeds = [fresh(), fresh(), fresh()];
        // Receiver i does not hold stream i + 2.
        let unknown = |i: usize| {
            let mut other = seeds;
            other[(i + 2) % 3] = fresh();
            three(inputs, other)
        };
        let first = match three(inputs, seeds) {
            Ok(run) => run,
            Err(e) => return self.found("protocol-error", place, Cause::Protocol, format!("{what}: {e}")),
        };
        self.exact(place, &what, rounding, &first, evidence, model);
        if self.finding.is_some() {
            return;
        }
        let again = || Ok::<_, String>([unknown(0)?, unknown(1)?, unknown(2)?, three(&zeros, seeds)?]);
        match again() {
            Ok(again) => self.transcripts(place, &what, &first, &again),
            Err(e) => self.found("protocol-error", place, Cause::Protocol, format!("{what}: {e}")),
        }
    }

    fn exact(
        &mut self,
        place: &'static str,
        what: &str,
        rounding: Rounding,
        run: &Run,
        evidence: &Evidence,
        model: impl Fn(&mut Arithmetic) -> Result<Vec<Vec<i64>>, ModelError>,
    ) {
        let [a, b, c] = &run.outputs;
        let opened: Result<Vec<_>, _> = a.iter().zip(b.iter().zip(c)).map(|(a, (b, c))| open([a, b, c])).collect();
        let opened = match opened {
            Ok(opened) => opened,
            Err(e) => return self.found("replicas", place, Cause::Protocol, format!("{what}: {e}")),
        };
        let mut tape = Tape::default();
        for r in roundings(run.records[0].truncations.clone(), run.records[1].truncations.clone(), rounding) {
            if rounding == Rounding::Probabilistic || !r.wraps.is_empty() {
                tape.push(r.name, Rounded { coins: r.coins, wraps: r.wraps });
            }
        }
        let (mut coins, mut monitor) = (Coins::Tape(tape), Monitor::new(1));
        let mut a = Arithmetic { fixed: self.fixed, rounding, coins: &mut coins, monitor: &mut monitor };
        let wanted = match model(&mut a).and_then(|wanted| coins.finish().map(|()| wanted)) {
            Ok(wanted) => wanted,
            Err(e) => return self.found("bit-exact", place, Cause::Protocol, format!("{what}: {e}")),
        };
        for (k, (got, want)) in opened.iter().zip(&wanted).enumerate() {
            self.elements += got.len() as u64;
            if got.len() != want.len() {
                let detail = format!("{what}: result {k} has {} elements, the model {}", got.len(), want.len());
                return self.found("bit-exact", place, Cause::Protocol, detail);
            }
            if let Some(i) = got.iter().zip(want).position(|(g, w)| g != w) {
                let detail = format!("{what}: result {k}, index {i}: secure {}, integer model {}", got[i], want[i]);
                return self.found("bit-exact", place, infer(evidence, got, want), detail);
            }
        }
    }

    /// `again`: the same shares for receivers 0, 1 and 2, each with another stream that it does not hold; then shares
    /// of other values.
    fn transcripts(&mut self, place: &'static str, what: &str, first: &Run, again: &[Run; 4]) {
        let shape = |r: &Run| -> Vec<_> {
            let mut all: Vec<_> = r.messages.iter().map(|m| (m.exchange, m.from, m.to, m.words.len())).collect();
            all.sort_unstable();
            all
        };
        if again.iter().any(|r| shape(r) != shape(first)) {
            let detail = format!("{what}: sizes or order of messages depend on the data");
            return self.found("transcript", place, Cause::Protocol, detail);
        }
        let words = said(first);
        for (receiver, again) in PartyId::ALL.into_iter().zip(again) {
            let received = masks::received(receiver, &words, &said(again));
            let judged = masks::judge(receiver, &received, ALARM);
            self.words += judged.words as u64;
            if let Some(leak) = judged.leak {
                return self.found("transcript", place, Cause::Protocol, format!("{what}: {leak}"));
            }
        }
    }
}

impl Default for Harness {
    fn default() -> Self {
        Self::new()
    }
}

/// All words by sender, receiver and protocol.
fn said(run: &Run) -> Words {
    let sent = PartyId::ALL.into_iter().zip(&run.records).flat_map(|(id, r)| r.sent.iter().map(move |s| (id, s)));
    masks::words(&run.messages, sent)
}
