//! Reduction of a failing step to the fewest rows, and the fewest classes beside their labels, on which the same check
//! still fails. The learning rate divided by the batch, i.e. what each row adds, is kept.

use super::fresh;
use crate::check::Outcome;
use crate::error::Error;
use crate::side::Opens;
use crate::trace::step_file::StepFile;
use reference::spec::TrainSpec;

/// Runs that a reduction may take.
const TRIES: usize = 400;

/// A failing step on the fewest rows and classes on which one of the checks that `failed` still does, as far as leaving
/// out halves, quarters, ..., single ones finds them. A class that is the label of a row is not left out.
///
/// # Errors
/// A side that cannot go on.
pub fn shrink<S: Opens>(
    file: &StepFile,
    failed: &[Outcome],
    start: &mut impl FnMut(&TrainSpec) -> Result<S, Error>,
) -> Result<StepFile, Error> {
    let again = |c: &Outcome| !c.passed && failed.iter().any(|f| !f.passed && f.name == c.name);
    let (mut smallest, mut tries) = (file.clone(), 0);
    let mut fails = |rows: &[usize], classes: &[usize]| -> Result<bool, Error> {
        let Some(part) = file.part(rows, classes).filter(|_| tries < TRIES) else { return Ok(false) };
        tries += 1;
        let (checks, written) = match fresh(&part, start) {
            Ok(run) => run,
            // Parties that stop on a part fail in another way than those that finished the whole.
            Err(Error::Secure(_) | Error::Protocol(_)) => return Ok(false),
            Err(e) => return Err(e),
        };
        let fails = checks.iter().any(again);
        if fails {
            smallest = written;
        }
        Ok(fails)
    };
    let (mut rows, mut classes): (Vec<_>, Vec<_>) = ((0..file.rows()).collect(), (0..file.classes()).collect());
    // Fewer classes may need fewer rows, and the other way round.
    loop {
        let before = (rows.len(), classes.len());
        rows = fewest(rows, |rows| fails(rows, &classes))?;
        classes = fewest(classes, |classes| fails(&rows, classes))?;
        if before == (rows.len(), classes.len()) {
            return Ok(smallest);
        }
    }
}

/// What is left of `all` after leaving out halves, quarters, ..., single ones wherever it still `fails`; at least one.
fn fewest(mut all: Vec<usize>, mut fails: impl FnMut(&[usize]) -> Result<bool, Error>) -> Result<Vec<usize>, Error> {
    let mut piece = all.len().div_ceil(2);
    loop {
        let mut from = 0;
        while from < all.len() {
            let rest = [&all[..from], &all[(from + piece).min(all.len())..]].concat();
            if !rest.is_empty() && fails(&rest)? {
                all = rest;
            } else {
                from += piece;
            }
        }
        if piece <= 1 {
            return Ok(all);
        }
        piece = piece.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_out_finds_what_a_failure_needs_wherever_it_stands() {
        for needed in [vec![0], vec![12], vec![3, 4], vec![0, 6, 12], (0..13).collect()] {
            let fails = |some: &[usize]| Ok(needed.iter().all(|n| some.contains(n)));
            assert_eq!(fewest((0..13).collect(), fails).unwrap(), needed);
        }
        assert_eq!(fewest(vec![7], |_| Ok(true)).unwrap(), [7]);
    }
}
