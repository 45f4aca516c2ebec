//! Faults seen from training: lock-step as users run it, on a small network, and an epoch without probes.

use super::harness::Finding;
use crate::config::Config;
use crate::error::Error;
use crate::explain::cause::Cause;
use crate::run::free::Free;
use crate::run::lockstep;
use crate::side::integer::Integer;
use crate::side::secure::Secure;
use crate::side::{Opens, Shows, Side};
use crate::{generate, side::Trains};
use fixtures::{Dataset, Split};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

/// `n` rows of 4 x 4 images with a bright spot that depends on the label.
pub(super) fn data(rng: &mut ChaCha12Rng, n: usize) -> Dataset {
    let mut split = |rows: usize| {
        let labels: Vec<u8> = (0..rows).map(|_| rng.random_range(0..10)).collect();
        let image = |l: u8, k: usize, rng: &mut ChaCha12Rng| {
            if k % 10 == usize::from(l) { rng.random_range(150..=255) } else { rng.random_range(0..120) }
        };
        let images = labels.iter().flat_map(|&l| (0..16).map(move |k| (l, k))).map(|(l, k)| image(l, k, rng)).collect();
        Split { images, labels, height: 4, width: 4 }
    };
    Dataset { train: split(n), test: split(10) }
}

pub(super) fn spec(head: Head, rounding: Rounding, layers: usize, hidden: usize, batch: usize) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec::dense(16, hidden, 10, layers),
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch, ..SgdSpec::default() },
    }
}

/// Every check but `divergence` that fails within `steps` lock-step steps.
pub(super) fn failures(spec: TrainSpec, steps: usize, seed: u64, data: &Dataset) -> Result<Vec<Finding>, Error> {
    let what = format!("{}, {} layers, {}", spec.head, spec.network.layers(), spec.rounding);
    let config = Config::new(spec.clone(), steps, seed);
    let found = Secure::start(spec, None, true).and_then(|mut s| lockstep::run(&config, data, &mut s, |_, _| ()));
    let finding = |check, detail: String| {
        let after = detail.split("step ").nth(1).unwrap_or_default();
        let step = after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
        // What all sides take from one place is named by the check itself.
        let encoded = |f: &&spec::fault::Fault| detail.starts_with(&format!("FAIL encoding   {}:", f.place()));
        let (place, cause) = match spec::fault::Fault::ALL.iter().find(encoded) {
            Some(fault) => (fault.place(), Cause::Encoding),
            None => ("training", Cause::Protocol),
        };
        Finding { check, place, cause: cause.name(), detail: format!("{what}: {detail}"), step }
    };
    Ok(match found {
        Err(e) => vec![finding("protocol-error", e.to_string())],
        Ok(found) => found
            .checks
            .into_iter()
            .filter(|c| c.name != "divergence")
            .filter_map(|c| Some(finding(c.name, c.failure?.lines().next().unwrap_or_default().to_owned())))
            .collect(),
    })
}

/// Trains every head and rounding in lock-step for up to `steps` steps each, until a check fails: the finding of
/// ordinary training about a planted fault.
///
/// # Errors
/// A harness that cannot run.
pub fn lockstep(steps: usize, seed: u64) -> Result<Option<Finding>, Error> {
    let data = data(&mut ChaCha12Rng::seed_from_u64(seed), 40);
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            if let Some(found) = failures(spec(head, rounding, 2, 10, 16), steps, seed, &data)?.into_iter().next() {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// An epoch and a bit on data that stay shared, nearest rounding, no probes: the weights at the end are the integer
/// model's.
///
/// # Errors
/// A harness that cannot run.
pub fn epoch(seed: u64) -> Result<Option<Finding>, Error> {
    let spec = spec(Head::ReluProb, Rounding::Nearest, 2, 10, 16);
    let data = data(&mut ChaCha12Rng::seed_from_u64(seed), 40);
    let batches: Vec<_> = generate::batches(40, 16, seed).take(5).collect();
    let start = generate::initial(&spec, seed)?;
    let all: Vec<u32> = (0..40).collect();
    let whole = generate::rows(&data.train, &all, spec.fixed);

    let finding = |check, detail| {
        let step = Some(batches.len() - 1);
        Some(Finding { check, place: "train", cause: Cause::Protocol.name(), detail, step })
    };
    let trained = (|| {
        let mut secure = Secure::start(spec.clone(), None, false)?;
        secure.load(&start)?;
        secure.share_data(&whole.units, &whole.labels)?;
        secure.train(&batches)?;
        secure.parameters()
    })();
    let trained = match trained {
        Ok(parameters) => parameters,
        Err(e) => return Ok(finding("protocol-error", e.to_string())),
    };
    // Nearest rounding draws no coins.
    let mut integer = Integer::replaying(spec.clone())?.showing(Shows::Only(|_| false));
    integer.load(&start)?;
    let mut run = Free::new(&spec, batches.iter().map(|rows| generate::rows(&data.train, rows, spec.fixed)));
    run.integer = Some(&mut integer);
    run.try_for_each(|trace| trace.map(drop))?;
    for (l, (got, want)) in (1..).zip(trained.layers.iter().zip(&integer.parameters()?.layers)) {
        if let Some(((i, j), want, got)) = crate::compare::first_difference(&want.weights, &got.weights) {
            let detail = format!(
                "after {} batches, layer{l}/weights[{i}, {j}]: secure {got}, integer model {want}",
                batches.len()
            );
            return Ok(finding("bit-exact", detail));
        }
    }
    Ok(None)
}
