//! Coins that do not keep their probabilities, move exact multiples, or are the same wherever the input is the same.

use crate::foreign::case::{Case, Cause};
use crate::foreign::coin::{self, FALSE_ALARM};
use crate::statistics;
use crate::trace::header::TraceRounding;

/// Looks at exact multiples first, then at how coins relate to the fractions they stand for.
pub fn explain(case: &Case) -> Option<Cause> {
    if case.header.rounding != TraceRounding::Probabilistic {
        return None;
    }
    exact_multiples(case).or_else(|| fractions(case))
}

/// Exact multiples of 2^s that moved up: once in 2^s if the coin is (v + 1) / 2^s.
fn exact_multiples(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let multiples = j.fraction.iter().filter(|r| **r == 0.0).count() as u64;
    let moved = j.outside.iter().filter(|&&i| j.fraction.get(i) == Some(&0.0) && j.error[i] == 1.0).count() as u64;
    if multiples == 0 || moved == 0 || moved as usize != j.outside.len() {
        return None;
    }
    let p = 2f64.powi(-(j.shift as i32));
    let likely = statistics::binomial(multiples, moved, p) > -20.0;
    let name = if likely { "coin is (v + 1) / 2^s" } else { "exact multiples move" };
    let evidence = format!(
        "{moved} of {multiples} exact multiples of 2^{} went up, none may; a coin of (v + 1) / 2^{} would move {:.1}",
        j.shift,
        j.shift,
        p * multiples as f64
    );
    Some(Cause { name, evidence, explained: j.outside.len(), failing: j.outside.len() })
}

/// Coins against fractions, where all elements are inside their bounds.
fn fractions(case: &Case) -> Option<Cause> {
    let coins = case.coins.filter(|c| !c.sound() && case.judged.outside.is_empty())?;
    let list: Vec<_> = coin::of(case.judged).collect();
    let n = list.len();
    let count = |of: &dyn Fn(&(bool, f64)) -> bool| list.iter().filter(|c| of(c)).count();
    let up = count(&|c| c.0);
    let as_nearest = count(&|c| (c.1 - 0.5).abs() < 1e-12 || c.0 == (c.1 > 0.5));
    let (name, what) = if coins.log2_p_repeats < FALSE_ALARM {
        ("coins repeat where the input repeats", "equal inputs have equal coins".to_owned())
    } else if up == 0 {
        ("floor", "no coin ever goes up".to_owned())
    } else if up == n {
        ("ceiling", "every coin goes up".to_owned())
    } else if as_nearest == n {
        ("rounds to nearest", "every coin goes to the nearer side".to_owned())
    } else {
        let sum: f64 = list.iter().map(|c| c.1).sum();
        ("coin probabilities", format!("{up} of {n} coins went up, expected {sum:.1}"))
    };
    let evidence = format!(
        "{what}; mean error {:.4} units over {n} coins, chance 2^{:.0}",
        coins.mean_error,
        coins.log2_p.min(coins.log2_p_repeats)
    );
    let failing = case.judged.outside.len();
    Some(Cause { name, evidence, explained: failing, failing })
}
