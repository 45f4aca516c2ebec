//! Claims judged from cells made up for the purpose.

use super::super::cell::{Attempt, Cell, Epoch, SCHEMA, Setup, Side};
use super::super::machine::Machine;
use super::super::time_cell::TimeCell;
use super::super::time_cell::tests::timed;
use super::case::*;
use super::*;
use crate::check::divergence::Verdict;
use reference::spec::{Head, Rounding};

/// A finished cell on 10,000 test rows with these accuracies, ten seconds an epoch. It survives if it has all its
/// epochs.
pub(crate) fn cell(id: &str, accuracy: &[f64]) -> Cell {
    let id: super::super::Id = id.parse().unwrap();
    let setup = Setup {
        inputs: 784,
        hidden: 128,
        train_rows: 60_000,
        test_rows: 10_000,
        batch: 128,
        ..super::super::cell::setup::tests::setup()
    };
    let epochs = accuracy.iter().map(|a| Epoch {
        steps: 469,
        seconds: 10.0,
        cpu_seconds: None,
        other_cpu_seconds: None,
        plain_seconds: None,
        correct: (a * 10_000.0).round() as usize,
        loss: None,
        infinite_losses: None,
        largest_batch_loss: None,
        largest_logit: None,
        largest_weight: Some(1.0),
        largest_gradient: None,
        dead_units: vec![],
        nearness: Default::default(),
        sketch: vec![],
    });
    let ended = (accuracy.len() < id.epochs).then(|| "accuracy 9.80 %, below 11 %".into());
    let attempt = Attempt {
        learning_rate: setup.learning_rate,
        epochs: epochs.collect(),
        verdict: Verdict::Trains,
        ended,
        logits_leave: None,
        violations: Default::default(),
    };
    let machine = Machine { processor: String::new(), cpus: 2, kernel: "portable".into() };
    let program = "difftest 0".into();
    let attempts = vec![attempt];
    Cell { schema: SCHEMA, id, setup, attempts, cost: None, machine, program, drift: Vec::new() }
}

fn judged(cells: &[Cell], name: &str) -> Claim {
    judged_with(cells, &[], name)
}

/// The claim with configurations timed by themselves beside the cells.
fn judged_with(cells: &[Cell], times: &[TimeCell], name: &str) -> Claim {
    let setup = cell("real-softmax-l1-s1-e1", &[0.5]).setup;
    let finished = Finished { times: times.to_vec(), ..Finished::new(&setup, cells) };
    judge(&finished, &[]).into_iter().find(|c| c.name == name).unwrap()
}

fn gradient(id: &str, g: f64) -> Cell {
    let mut cell = cell(id, &[0.5]);
    cell.attempts[0].epochs[0].largest_gradient = Some(g);
    cell
}

/// A secure cell of 20 equal epochs on a quiet machine.
fn flat(config: &str, accuracy: f64, seconds: f64) -> Cell {
    let mut cell = cell(&format!("secure-{config}-s1-e20"), &[accuracy; 20]);
    for e in &mut cell.attempts[0].epochs {
        (e.seconds, e.cpu_seconds, e.other_cpu_seconds) = (seconds, Some(2.0 * seconds), Some(0.01 * seconds));
    }
    cell
}

/// Secure cells of the paper's heads at every depth and rounding, 20 equal epochs each.
fn grid(accuracy: impl Fn(usize, Rounding, Head) -> f64, seconds: impl Fn(usize, Rounding, Head) -> f64) -> Vec<Cell> {
    let of =
        |(l, r): (usize, Rounding)| HEADS.map(|h| flat(&format!("{h}-l{l}-{r}"), accuracy(l, r, h), seconds(l, r, h)));
    configurations().flat_map(of).collect()
}

fn without(cells: &[Cell], part: &str) -> Vec<Cell> {
    cells.iter().filter(|c| !c.id.to_string().contains(part)).cloned().collect()
}

#[test]
fn nothing_is_claimed_without_cells() {
    for claim in judge(&Finished::new(&cell("real-softmax-l1-s1-e1", &[0.5]).setup, &[]), &[]) {
        assert_eq!(claim.verdict, Judgement::NotTested, "{claim:?}");
        assert!(claim.numbers.iter().any(|n| n.starts_with("needs")), "{claim:?}");
    }
}

#[test]
fn gradient_claims_know_their_limits() {
    let verdict = |cells: &[Cell], name| judged(cells, name).verdict;
    let all = |real: f64, integer: f64| -> Vec<Cell> {
        let of = |head: &str| {
            [("real", "", real), ("integer", "-prob", integer), ("integer", "-nearest", integer)]
                .map(|(side, rounding, g)| gradient(&format!("{side}-{head}-l1{rounding}-s1-e1"), g))
        };
        ["softmax", "relu-prob", "relu-prob-cut"].into_iter().flat_map(of).collect()
    };
    assert_eq!(verdict(&all(10.0, 10.000005), "gradient-bound"), Judgement::Holds);
    assert_eq!(verdict(&all(10.000001, 10.0), "gradient-bound"), Judgement::DoesNotHold);
    assert_eq!(verdict(&all(10.0, 10.1), "gradient-bound"), Judgement::DoesNotHold);
    for part in ["real-relu-prob-l1", "integer-relu-prob-cut-l1-prob", "nearest"] {
        assert_eq!(verdict(&without(&all(10.0, 10.0), part), "gradient-bound"), Judgement::NotTested, "{part}");
    }
    assert_eq!(verdict(&[gradient("real-relu-prob-l1-s1-e1", 11.0)], "gradient-bound"), Judgement::DoesNotHold);
    assert_eq!(verdict(&[gradient("real-relu-eps-l1-s1-e1", 1e6)], "gradient-bound"), Judgement::NotTested);
    assert_eq!(verdict(&all(1.0, 1.0), "softmax-gradient"), Judgement::Holds);
    assert_eq!(verdict(&all(1.0 + 1e-12, 1.0), "softmax-gradient"), Judgement::DoesNotHold);
    assert_eq!(verdict(&without(&all(1.0, 1.0), "integer"), "softmax-gradient"), Judgement::NotTested);
}

#[test]
fn a_replacement_must_be_below_softmax_beyond_sampling_error_everywhere() {
    let cells = |gap: f64| -> Vec<Cell> {
        let both = |c: (usize, Rounding)| {
            let config = format!("l{}-{}", c.0, c.1);
            [flat(&format!("softmax-{config}"), 0.97, 10.0), flat(&format!("relu-prob-{config}"), 0.97 - gap, 10.0)]
        };
        configurations().flat_map(both).collect()
    };
    // Twice the standard error of the difference is 0.0048.
    assert_eq!(judged(&cells(0.006), "relu-prob-printed").verdict, Judgement::Holds);
    assert_eq!(judged(&cells(0.004), "relu-prob-printed").verdict, Judgement::DoesNotHold);
    assert_eq!(judged(&cells(0.006)[2..], "relu-prob-printed").verdict, Judgement::NotTested, "one depth is missing");
    assert_eq!(judged(&cells(0.006), "relu-prob-coded").verdict, Judgement::NotTested);
}

/// Cells of relu-grad with more than one layer, all alike.
fn deep(of: impl Fn(&str) -> Cell) -> Vec<Cell> {
    let deep = configurations().filter(|(layers, _)| *layers > 1);
    deep.map(|(layers, rounding)| of(&format!("secure-relu-grad-l{layers}-{rounding}-s1-e20"))).collect()
}

/// A cell whose attempts at 0.01 and its halves end after so many epochs, the last after all of them if it is 20.
fn halving(id: &str, epochs: &[usize]) -> Cell {
    let mut one = cell(id, &[0.8]);
    one.attempts.clear();
    for (k, &n) in epochs.iter().enumerate() {
        let mut accuracy = vec![0.8; n];
        if n < 20 {
            accuracy[n - 1] = 0.1;
        }
        let mut attempt = cell(id, &accuracy).attempts.remove(0);
        attempt.learning_rate = 0.01 * 0.5f64.powi(k as i32);
        one.attempts.push(attempt);
    }
    one
}

#[test]
fn relu_grad_is_open_until_no_smaller_rate_exists() {
    const A: &str = "relu-grad-diverges-a";
    let mut failed = cell("secure-relu-grad-l2-prob-s1-e20", &[0.8, 0.1]);
    assert_eq!(judged(&[failed.clone()], A).verdict, Judgement::NotTested);
    failed.attempts[0].learning_rate = 128.0 * 0.5f64.powi(31);
    let everywhere = deep(|id| Cell { id: id.parse().unwrap(), ..failed.clone() });
    assert_eq!(judged(&everywhere, A).verdict, Judgement::Holds);
    assert_eq!(judged(&everywhere[1..], A).verdict, Judgement::NotTested, "one depth is missing");
    assert_eq!(judged(&everywhere, "relu-grad-diverges-a-50").verdict, Judgement::NotTested);
    assert_eq!(judged(&[flat("relu-grad-l3-nearest", 0.8, 10.0)], A).verdict, Judgement::DoesNotHold);
    let mut fallen = flat("relu-grad-l3-nearest", 0.3, 10.0);
    fallen.attempts[0].epochs[0].correct *= 3;
    assert_eq!(judged(&[fallen], A).verdict, Judgement::NotTested, "from 90 % to 30 %");
    // Always the most frequent class: the paper's rule does not fire, and nothing is learnt.
    assert_eq!(judged(&[flat("relu-grad-l3-nearest", 0.1135, 10.0)], A).verdict, Judgement::NotTested);
    let mut long = cell("secure-relu-grad-l2-prob-s1-e50", &[0.8; 30]);
    assert_eq!(judged(&[long.clone()], A).verdict, Judgement::DoesNotHold, "it lasts 30 epochs");
    long.attempts[0].epochs.truncate(20);
    assert_eq!(judged(&[long], A).verdict, Judgement::NotTested, "it ends with epoch 20");
}

/// One cell, three verdicts: it trains at 0.000625, fails at every rate from 0.00195 up, and by the published rule is
/// in its fourth attempt after 20 epochs.
#[test]
fn readings_of_smallest_possible_differ() {
    let verdicts = |cells: &[Cell]| ["a", "b", "c"].map(|r| judged(cells, &format!("relu-grad-diverges-{r}")).verdict);
    use Judgement::{DoesNotHold, Holds, NotTested};
    let cells = deep(|id| halving(id, &[2, 4, 7, 12, 20]));
    assert_eq!(verdicts(&cells), [DoesNotHold, Holds, DoesNotHold]);
    let claim = judged(&cells, "relu-grad-diverges-c");
    assert!(claim.numbers[0].contains("3 restarts, then 0.00125 with 80.0 % after epoch 20"), "{claim:?}");
    // An attempt that ends with epoch 20 diverges by the published rule.
    assert_eq!(verdicts(&deep(|id| halving(id, &[2, 4, 7, 7, 20]))), [DoesNotHold, Holds, Holds]);
    // Nothing near 0.00195 was tried.
    assert_eq!(verdicts(&deep(|id| halving(id, &[2, 4, 7]))), [NotTested, NotTested, NotTested]);
    // 0.00195 itself, in cells of their own, decides for (b).
    let mut own = deep(|id| halving(id, &[2, 4, 7]));
    own.extend(deep(|id| {
        let mut one = cell(&format!("{id}-r128"), &[0.8; 20]);
        one.attempts[0].learning_rate = 128.0 / 65_536.0;
        one
    }));
    assert_eq!(verdicts(&own), [DoesNotHold, DoesNotHold, NotTested]);
    // The order of the published code is another head.
    let code = cell("integer-relu-grad-code-l2-prob-s1-e20", &[0.8; 20]);
    assert_eq!(verdicts(&[code]), [NotTested; 3]);
}

#[test]
fn savings_are_expected_with_one_layer_only() {
    // relu-prob saves little; relu-grad what is given.
    let cells = |one: f64, more: f64| {
        grid(
            |_, _, _| 0.9,
            |layers, _, head| match head {
                Head::ReluGrad if layers == 1 => one,
                Head::ReluGrad => more,
                Head::Softmax => 10.0,
                _ => 9.8,
            },
        )
    };
    let verdicts = |cells: &[Cell]| ["saving-1-layer", "saving-more-layers"].map(|name| judged(cells, name).verdict);
    use Judgement::{DoesNotHold, Holds, NotTested};
    assert_eq!(verdicts(&cells(5.0, 8.0)), [Holds, Holds]);
    assert_eq!(verdicts(&cells(5.0, 7.0)), [Holds, DoesNotHold]);
    assert_eq!(verdicts(&cells(9.0, 9.0)), [DoesNotHold, Holds]);
    assert_eq!(verdicts(&without(&cells(5.0, 8.0), "relu-prob-l3")), [Holds, NotTested]);
    assert_eq!(verdicts(&without(&cells(5.0, 8.0), "relu-prob-l1")), [NotTested, Holds]);
    let changed = |change: fn(&mut Cell)| {
        let mut cells = cells(5.0, 8.0);
        cells.iter_mut().filter(|c| c.id.head == Head::Softmax).for_each(change);
        cells
    };
    assert_eq!(verdicts(&changed(|c| c.machine.cpus = 36)), [NotTested; 2], "seconds of another machine");
    assert_eq!(verdicts(&changed(|c| c.program = "another".into())), [NotTested; 2], "seconds of another program");
    let busy = |c: &mut Cell| c.attempts[0].epochs.iter_mut().take(11).for_each(|e| e.other_cpu_seconds = Some(5.0));
    assert_eq!(verdicts(&changed(busy)), [NotTested; 2], "most epochs beside other work");
    let some = |c: &mut Cell| c.attempts[0].epochs.iter_mut().take(3).for_each(|e| e.other_cpu_seconds = Some(5.0));
    assert_eq!(verdicts(&changed(some)), [Holds; 2], "few epochs beside other work do not move a median");
    let unknown = |c: &mut Cell| c.attempts[0].epochs.iter_mut().for_each(|e| e.other_cpu_seconds = None);
    assert_eq!(verdicts(&changed(unknown)), [NotTested; 2], "nothing says that it was quiet");
    let mut short = cells(5.0, 7.0);
    short.iter_mut().flat_map(|c| &mut c.attempts).for_each(|a| a.epochs.truncate(19));
    assert_eq!(verdicts(&short), [NotTested; 2], "claims about time need whole grids");
    let claim = judged(&short, "saving-more-layers");
    assert!(claim.numbers[0].contains("fewer than 20 whole epochs"), "{claim:?}");
}

#[test]
fn being_first_is_told_in_time_and_not_in_epochs() {
    let cells = |accuracy: f64| {
        let grad = |h| h == Head::ReluGrad;
        grid(|_, _, h| if grad(h) { accuracy } else { 0.95 }, |_, _, h| if grad(h) { 5.0 } else { 10.0 })
    };
    assert_eq!(judged(&cells(0.94), "first-in-time").verdict, Judgement::Holds);
    assert_eq!(judged(&without(&cells(0.94), "l2-nearest"), "first-in-time").verdict, Judgement::NotTested);
    let slow = grid(|_, _, _| 0.9, |_, _, h| if h == Head::Softmax { 1000.0 } else { 1.0 });
    assert_eq!(judged(&slow, "first-in-time").verdict, Judgement::NotTested, "no time in common");
    let claim = judged(&cells(0.96), "first-in-time");
    assert_eq!(claim.verdict, Judgement::DoesNotHold);
    assert!(claim.numbers.iter().any(|n| n.contains("relu-grad: 19 times compared")), "{claim:?}");
}

#[test]
fn cheaper_means_faster_at_no_lower_accuracy() {
    let cells = |accuracy: f64, seconds: f64| {
        let nearest = |r| r == Rounding::Nearest;
        grid(|_, r, _| if nearest(r) { 0.95 } else { accuracy }, |_, r, _| if nearest(r) { 20.0 } else { seconds })
    };
    assert_eq!(judged(&cells(0.949, 10.0), "rounding-cost").verdict, Judgement::Holds);
    assert_eq!(judged(&cells(0.93, 10.0), "rounding-cost").verdict, Judgement::DoesNotHold);
    assert_eq!(judged(&cells(0.95, 20.0), "rounding-cost").verdict, Judgement::DoesNotHold);
    let two = without(&cells(0.949, 10.0), "l3");
    assert_eq!(judged(&two, "rounding-cost").verdict, Judgement::NotTested, "a depth is missing");
}

/// Timing cells of the paper's heads at every depth and rounding.
fn times(seconds: impl Fn(usize, Rounding, Head) -> f64) -> Vec<TimeCell> {
    let of = |(l, r)| HEADS.map(|h| timed(&format!("{h}-l{l}-{r}"), seconds(l, r, h)));
    configurations().flat_map(of).collect()
}

#[test]
fn seconds_are_those_of_clean_timing_cells_where_there_are_any() {
    let all = |saved: f64| times(|_, _, h| if h == Head::Softmax { 10.0 } else { 10.0 - saved });
    // No training cell at all, and cells that say the opposite.
    let slow = grid(|_, _, _| 0.9, |_, _, h| if h == Head::Softmax { 10.0 } else { 100.0 });
    for cells in [vec![], slow.clone()] {
        assert_eq!(judged_with(&cells, &all(4.0), "saving-1-layer").verdict, Judgement::Holds);
        assert_eq!(judged_with(&cells, &all(4.0), "saving-more-layers").verdict, Judgement::DoesNotHold);
        assert_eq!(judged_with(&cells, &all(1.0), "saving-1-layer").verdict, Judgement::DoesNotHold);
        assert_eq!(judged_with(&cells, &all(1.0), "saving-more-layers").verdict, Judgement::Holds);
    }
    // A measurement that other work disturbed says nothing.
    let mut disturbed = all(4.0);
    disturbed.iter_mut().for_each(|t| t.epochs[1].secure.others = Some(99.0));
    let claim = judged_with(&[], &disturbed, "saving-more-layers");
    assert_eq!(claim.verdict, Judgement::NotTested);
    assert!(claim.numbers[0].contains("has other processes beside it"), "{claim:?}");
    assert_eq!(judged_with(&slow, &disturbed, "saving-1-layer").verdict, Judgement::DoesNotHold, "training cells do");
    let mut other = all(4.0);
    other[0].machine.kernel = "avx2".into();
    let claim = judged_with(&[], &other, "saving-1-layer");
    assert_eq!(claim.verdict, Judgement::NotTested);
    assert!(claim.numbers.iter().any(|n| n.contains("different machines")), "{claim:?}");
}

#[test]
fn accuracies_against_time_may_be_the_integer_models() {
    let on = |cells: Vec<Cell>, side: Side| -> Vec<Cell> {
        cells.into_iter().map(|c| Cell { id: c.id.on(side), ..c }).collect()
    };
    let cells = |accuracy: f64| {
        let grad = |h| h == Head::ReluGrad;
        on(grid(|_, _, h| if grad(h) { accuracy } else { 0.95 }, |_, _, _| 1.0), Side::Integer)
    };
    let times = times(|_, r, h| match (r, h) {
        (Rounding::Nearest, _) => 20.0,
        (_, Head::ReluGrad) => 5.0,
        _ => 10.0,
    });
    for (accuracy, verdict) in [(0.94, Judgement::Holds), (0.96, Judgement::DoesNotHold)] {
        assert_eq!(judged_with(&cells(accuracy), &times, "first-in-time").verdict, verdict);
        assert_eq!(judged(&cells(accuracy), "first-in-time").verdict, Judgement::NotTested, "no seconds");
    }
    // Softmax ends its first epoch at 10 s, relu-grad its second to twentieth from then on.
    let claim = judged_with(&cells(0.96), &times, "first-in-time");
    assert!(claim.numbers.iter().any(|n| n.contains("prob, relu-grad: 19 times compared")), "{claim:?}");
    assert_eq!(judged_with(&cells(0.94), &times, "rounding-cost").verdict, Judgement::Holds);
    let claim = judged_with(&[], &times, "rounding-cost");
    assert_eq!(claim.verdict, Judgement::NotTested, "seconds without accuracy");
}

#[test]
fn a_late_decline_and_its_cure() {
    let falling: Vec<f64> = (0..20).map(|e| if e < 10 { 0.97 } else { 0.96 }).collect();
    let plain = cell("integer-softmax-l2-nearest-s1-e20", &falling);
    let control = |accuracy: &[f64]| cell("integer-softmax-l2-prob-s1-e20", accuracy);
    assert_eq!(judged(&[plain.clone(), control(&[0.97; 20])], "late-decline").verdict, Judgement::Holds);
    // Everything else is there, and steady.
    let steady = grid(|_, _, _| 0.97, |_, _, _| 1.0);
    assert_eq!(judged(&steady, "late-decline").verdict, Judgement::DoesNotHold);
    let but = |cells: &[Cell]| [without(&steady, "-softmax-l2"), cells.to_vec()].concat();
    let claim = judged(&but(&[plain.clone(), control(&falling)]), "late-decline");
    assert_eq!(claim.verdict, Judgement::DoesNotHold, "not the rounding");
    assert!(claim.numbers.last().unwrap().starts_with("1 of 12 configurations fall beyond"), "{claim:?}");
    let open = judged(&steady[1..], "late-decline");
    assert_eq!(open.verdict, Judgement::NotTested, "what is missing might fall");
    assert_eq!(judged(std::slice::from_ref(&plain), "late-decline").verdict, Judgement::NotTested, "no control");
    assert_eq!(judged(std::slice::from_ref(&plain), "velocity-bits").verdict, Judgement::NotTested);
    let everywhere = |softmax: &[f64]| -> Vec<Cell> {
        let of = |l: usize| {
            HEADS.map(|h| {
                let accuracy = if (l, h) == (2, Head::Softmax) { softmax } else { &[0.97; 20] };
                cell(&format!("secure-{h}-l{l}-nearest-s1-e20-v8"), accuracy)
            })
        };
        DEPTHS.into_iter().flat_map(of).collect()
    };
    let with = |cured: &[Cell]| judged(&[steady.clone(), cured.to_vec()].concat(), "velocity-bits").verdict;
    assert_eq!(with(&everywhere(&[0.97; 20])), Judgement::Holds);
    assert_eq!(with(&everywhere(&[0.97; 20])[1..]), Judgement::NotTested);
    assert_eq!(with(&everywhere(&falling)), Judgement::DoesNotHold);
    assert_eq!(with(&everywhere(&[0.97; 5])), Judgement::DoesNotHold, "it ends early with the extra bits only");
    let ends = cell("integer-softmax-l2-nearest-s1-e20", &[0.97; 5]);
    let claim = judged(&but(&[ends, control(&[0.97; 20])]), "late-decline");
    assert_eq!(claim.verdict, Judgement::NotTested, "an end under nearest rounding only is not steady");
    let collapse: Vec<f64> = (0..20).map(|e| if e < 10 { 0.97 } else { 0.3 }).collect();
    let collapses = cell("integer-softmax-l2-nearest-s1-e20", &collapse);
    let claim = judged(&but(&[collapses, control(&[0.97; 20])]), "late-decline");
    assert_eq!(claim.verdict, Judgement::NotTested, "nor is a collapse a decline");
    let cured = cell("integer-softmax-l2-nearest-s1-e20-v8", &[0.97; 20]);
    let some = judged(&[plain, cured], "velocity-bits");
    assert_eq!(some.verdict, Judgement::NotTested);
    assert!(some.numbers[0].contains("softmax, 8 bits"), "{some:?}");
}

#[test]
fn depth_and_length() {
    let cells = |three| grid(|l, _, _| if l == 3 { three } else { 0.97 }, |_, _, _| 1.0);
    assert_eq!(judged(&cells(0.972), "third-layer").verdict, Judgement::Holds);
    assert_eq!(judged(&cells(0.98), "third-layer").verdict, Judgement::DoesNotHold);
    assert_eq!(judged(&without(&cells(0.972), "l3-prob"), "third-layer").verdict, Judgement::NotTested);
    let long = |accuracy: &[f64]| -> Vec<Cell> {
        let deep = configurations().filter(|(layers, _)| *layers > 1);
        deep.map(|(l, r)| cell(&format!("secure-softmax-l{l}-{r}-s1-e50"), accuracy)).collect()
    };
    let verdicts = |cells: &[Cell]| [2, 3].map(|l| judged(cells, &format!("98-percent-{l}-layers")).verdict);
    use Judgement::{DoesNotHold, Holds, NotTested};
    assert_eq!(verdicts(&long(&[0.979; 50])), [Holds; 2], "within two standard errors");
    assert_eq!(verdicts(&long(&[0.979; 50])[1..]), [NotTested, Holds]);
    assert_eq!(verdicts(&long(&[0.97; 50])), [DoesNotHold; 2]);
    assert_eq!(verdicts(&long(&[0.99; 30])), [DoesNotHold; 2], "a run that ends is no success");
    let plain = |three: f64| {
        let of = |l: usize, a: f64| cell(&format!("real-softmax-l{l}-s1-e20"), &[a; 20]);
        judged(&[of(2, 0.97), of(3, three)], "real-third-layer").verdict
    };
    assert_eq!([plain(0.972), plain(0.98)], [Holds, DoesNotHold]);
}

#[test]
fn accuracy_is_reduced_by_what_trains_below_softmax_and_by_what_does_not_train() {
    let cells = |relu_prob: f64| {
        grid(
            |layers, _, head| match head {
                Head::Softmax => 0.97,
                Head::ReluGrad if layers > 1 => 0.1135,
                Head::ReluProb => relu_prob,
                _ => 0.9,
            },
            |_, _, _| 1.0,
        )
    };
    assert_eq!(judged(&cells(0.95), "always-reduced").verdict, Judgement::Holds);
    assert_eq!(judged(&cells(0.969), "always-reduced").verdict, Judgement::DoesNotHold);
    assert_eq!(judged(&without(&cells(0.95), "relu-grad-l1"), "always-reduced").verdict, Judgement::NotTested);
}

#[test]
fn seeds_of_which_only_one_is_secure_are_judged_together() {
    let mut cells = grid(|_, _, h| if h == Head::Softmax { 0.97 } else { 0.968 }, |_, _, _| 1.0);
    let claim = |cells: &[Cell]| judged(cells, "relu-prob-printed");
    assert_eq!(claim(&cells).verdict, Judgement::DoesNotHold, "0.2 points are within chance");
    for seed in [2, 3] {
        for (l, r) in configurations() {
            for (head, a) in [("softmax", 0.97), ("relu-prob", 0.93)] {
                cells.push(cell(&format!("integer-{head}-l{l}-{r}-s{seed}-e20"), &[a; 20]));
            }
        }
    }
    let judged = claim(&cells);
    assert!(judged.numbers[0].contains("94.27") && judged.numbers[0].contains("3 seeds"), "{judged:?}");
}

#[test]
fn table_2_is_judged_column_by_column() {
    let rows = super::super::table2::rows().unwrap();
    let setup = cell("real-softmax-l1-s1-e1", &[0.5]).setup;
    let verdict = |rows: &[table2::Row], name: &str| {
        judge(&Finished::new(&setup, &[]), rows).into_iter().find(|c| c.name == name).unwrap().verdict
    };
    for column in ["differentiable", "known-loss", "comparison", "division", "exponential"] {
        assert_eq!(verdict(&rows, &format!("table2-{column}")), Judgement::Holds, "{column}");
    }
    assert_eq!(verdict(&rows, "table2-established"), Judgement::NotTested);
    let mut wrong = rows;
    wrong[0].exponential = false;
    assert_eq!(verdict(&wrong, "table2-exponential"), Judgement::DoesNotHold);
}
