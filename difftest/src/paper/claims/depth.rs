//! Claims about two layers, three layers and long training.

use super::super::cell::{Cell, Side};
use super::super::wording::layers_of;
use super::case::{Accuracy, Cases, Claim, EPOCHS, Evidence, points, seeds};
use reference::spec::{Head, Rounding};

/// A case of "three layers are no better than two".
fn no_better(cases: &mut Cases, at: &str, [two, three]: [Accuracy; 2], runs: &str) {
    let (gain, error) = three.minus(two);
    cases.case(gain <= 2.0 * error, format!("{at}: {three} against {two}, {} ({runs})", points(gain, error)));
}

/// Three layers against two in secure training.
pub fn third_layer(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "third-layer",
        "section 4, text after table 1",
        "Within the epochs of the table, three layers are no more accurate than two.",
        format!(
            "softmax with three layers is not above two by more than two standard errors after {EPOCHS} epochs, under \
             either rounding."
        ),
    );
    for rounding in Rounding::ALL {
        let cells = [2, 3].map(|layers| e.trained(Head::Softmax, layers, rounding, 0, EPOCHS));
        match cells.each_ref().map(|c| e.accuracy(c, EPOCHS)) {
            [Some(two), Some(three)] => no_better(&mut cases, rounding.name(), [two, three], &seeds(&cells[1])),
            _ if cells.iter().any(Vec::is_empty) => cases.missing(rounding.to_string()),
            _ => cases.open(format!("{rounding}: ends early")),
        }
    }
    cases.finish(&format!("secure or integer cells of softmax with 2 and 3 layers and {EPOCHS} epochs"))
}

/// Three layers against two in real numbers.
pub fn real_third_layer(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "real-third-layer",
        "section 4, text after table 1",
        "In plaintext too, three layers are no better than two. (The paper tried it with the TensorFlow tutorial for \
         MNIST, its first dense layer doubled.)",
        format!(
            "softmax in real numbers, on the network and with the optimiser of the table, not the tutorial's: three \
             layers are not above two by more than \
             two standard errors after {EPOCHS} epochs."
        ),
    );
    let of = |layers: usize| -> Vec<&Cell> {
        let fits = |c: &&Cell| {
            let id = &c.id;
            let plain = id.side == Side::Real && id.rate.is_none();
            plain && (id.head, id.layers, id.epochs) == (Head::Softmax, layers, EPOCHS)
        };
        e.cells.iter().filter(fits).collect()
    };
    let cells = [2, 3].map(of);
    match cells.each_ref().map(|c| e.accuracy(c, EPOCHS)) {
        [Some(two), Some(three)] => no_better(&mut cases, "real numbers", [two, three], &seeds(&cells[1])),
        _ => cases.missing("softmax with 2 and 3 layers".into()),
    }
    cases.finish(&format!("real cells of softmax with 2 and 3 layers and {EPOCHS} epochs"))
}

/// 98 % after 50 epochs.
pub fn long_run(e: &Evidence, layers: usize) -> Claim {
    let said = fixtures::paper::text().long_run;
    let (epochs, percent) = (said.epochs, said.accuracy);
    let mut cases = Cases::new(
        if layers == 2 { "98-percent-2-layers" } else { "98-percent-3-layers" },
        "section 4, text after table 1",
        format!("{percent} % are reached after {epochs} epochs with {}, as with the other depth.", layers_of(layers)),
        format!(
            "softmax is not below {percent} % by more than two standard errors after {epochs} epochs, under either \
             rounding."
        ),
    );
    for rounding in Rounding::ALL {
        let cells = e.trained(Head::Softmax, layers, rounding, 0, epochs);
        match e.accuracy(&cells, epochs) {
            Some(a) => {
                let reached = a.value + 2.0 * a.error >= percent / 100.0;
                cases.case(reached, format!("{rounding}: {a} ({})", seeds(&cells)));
            }
            None if cells.is_empty() => cases.missing(rounding.to_string()),
            None => cases.case(false, format!("{rounding}: ends early")),
        }
    }
    cases.finish(&format!("secure or integer cells of softmax with {} and --epochs {epochs}", layers_of(layers)))
}
