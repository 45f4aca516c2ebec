//! One sentence on each configuration whose difference from the paper is more than chance, made from the numbers at
//! hand.
//!
//! A sentence says what an experiment of this project shows, or that the cause is not known; it never guesses.

use super::cell::Cell;
use super::claims::divergence::{Found, Reading, found, seeds};
use super::compared::{Compared, compare, pooled};
use super::time_cell::TimeCell;
use super::wording::short;
use crate::count::counted;
use reference::spec::Head;

/// A difference that several configurations in a table of this size show by chance, points: the spread is itself
/// estimated from few seeds.
const SMALL: f64 = 0.5;

/// Every configuration of the paper that some cell is of, with its explanation.
pub fn explained(cells: &[Cell], times: &[TimeCell]) -> Vec<Compared> {
    let mut all = compare(cells, times);
    let sentences: Vec<_> = all.iter().map(|c| sentence(c, &all, cells)).collect();
    for (compared, sentence) in all.iter_mut().zip(sentences) {
        compared.explanation = sentence;
    }
    all
}

/// The sentence on `this`; nothing where chance explains all of it.
pub fn sentence(this: &Compared, all: &[Compared], cells: &[Cell]) -> Option<String> {
    if !this.differs() {
        return None;
    }
    Some(match this.head {
        Head::ReluGrad if this.paper_diverges => diverging(this, cells),
        _ if largest(this) <= SMALL => small(this),
        Head::ReluProb => formula(this, all),
        Head::ReluProbCut => code(this),
        _ => unknown(this),
    })
}

fn largest(this: &Compared) -> f64 {
    this.difference.all().into_iter().flatten().fold(0.0, |m, d| m.max(d.abs()))
}

fn spread(this: &Compared) -> f64 {
    pooled(&this.ours).unwrap_or_default()
}

fn small(this: &Compared) -> String {
    format!(
        "No more than {:.2} points: the spread of {:.2} points is an estimate from {}, and differences of this \
         size have no cause that could be \
         told from it.",
        largest(this),
        spread(this),
        counted(this.seeds, "seed")
    )
}

/// What the published code sums over, where the formula was trained.
fn formula(this: &Compared, all: &[Compared]) -> String {
    let code = all.iter().find(|c| (c.layers, c.rounding, c.head) == (this.layers, this.rounding, Head::ReluProbCut));
    let nearer = code.filter(|c| largest(c) < largest(this));
    match nearer {
        Some(code) => format!(
            "The paper's figures are those of its code, which sums only logits above eps where the formula sums every \
             positive one: computed as the code does (relu-prob-cut), {}the largest difference is {:.1} instead of \
             {:.1} points.",
            if code.differs() { "" } else { "every figure is within what chance explains, and " },
            largest(code),
            largest(this)
        ),
        None => {
            "The code sums only logits above eps where the formula sums every positive one, which does not explain \
                 this row: relu-prob-cut is no nearer, and the cause is not known."
                .into()
        }
    }
}

fn code(this: &Compared) -> String {
    let ours: Vec<f64> = this.ours.all().into_iter().flatten().map(|m| m.mean).collect();
    let theirs: Vec<f64> = this.paper.all().into_iter().flatten().collect();
    let (rise, fall) = (change(&ours), change(&theirs));
    if rise.signum() != fall.signum() && fall.abs() > 1.0 {
        return format!(
            "From epoch 5 to 20 the paper's single run moves by {fall:+.1} points and our mean by {rise:+.1}: \
             gradients up to 1/eps make such a run depend on its \
             draws (our seeds spread by {:.1} points), and {} seeds do not show how rare its course is.",
            spread(this),
            this.seeds
        );
    }
    format!(
        "The course is the paper's, at a distance of up to {:.1} points with a spread of {:.1}: the head is the \
         code's, and its exact division and order \
         of rounding, which differ, were not tried one by one.",
        largest(this),
        spread(this)
    )
}

fn change(values: &[f64]) -> f64 {
    values.last().zip(values.first()).map_or(0.0, |(last, first)| last - first)
}

fn diverging(this: &Compared, cells: &[Cell]) -> String {
    let judged = |code: bool, reading: Reading| {
        let seeds = seeds(cells, code, this.layers, this.rounding, 20);
        let all: Vec<Found> = seeds.iter().map(|(_, cells)| found(reading, cells)).collect();
        let trains = all.iter().find_map(|f| if let Found::Trains(rate, _) = f { Some(*rate) } else { None });
        let diverges = !all.is_empty() && all.iter().all(|f| *f == Found::Diverges);
        (trains, diverges)
    };
    let whole = match judged(false, Reading::WholeUnits) {
        (_, true) => "it diverges here as well at every rate from 0.00195 up",
        (Some(_), _) => "it trains here even at a rate above 0.00195",
        _ => "rates from 0.00195 up are not all tried here",
    };
    let below = match judged(false, Reading::Representable(20)) {
        (Some(rate), _) => format!(", and trains at {}, which the paper may not have tried", short(rate)),
        (None, true) => ", and at every smaller one".into(),
        _ => String::new(),
    };
    let code = match judged(true, Reading::Representable(20)) {
        (_, true) => "; in the order of the published code it diverges at every rate",
        (Some(_), _) => "; the order of the published code changes nothing of that",
        _ => "",
    };
    format!(
        "The divergence sign stands for the smallest possible rate, which the paper does not give: \
         {whole}{below}{code}."
    )
}

fn unknown(this: &Compared) -> String {
    format!("Up to {:.1} points with a spread of {:.1}; the cause is not known.", largest(this), spread(this))
}
