//! Chance: what a side that has learnt nothing gets right, given how often each label occurs. Accuracy means something
//! only beside it.

use serde::Serialize;
use std::collections::BTreeMap;

/// The test set as seen by somebody who knows nothing of its images.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Chance {
    /// Part of the rows that carry the most frequent label: the accuracy of the best constant answer.
    pub share: f64,
    /// Rows that accuracy is measured on.
    pub rows: usize,
}

/// Standard errors by which an accuracy must exceed chance to be told from it.
const DEVIATIONS: f64 = 3.0;

impl Chance {
    /// Chance on rows with these labels.
    pub fn of(labels: impl IntoIterator<Item = usize>) -> Self {
        let (mut counts, mut rows) = (BTreeMap::<usize, usize>::new(), 0);
        for label in labels {
            *counts.entry(label).or_default() += 1;
            rows += 1;
        }
        Chance { share: counts.into_values().max().unwrap_or(0) as f64 / rows.max(1) as f64, rows }
    }

    /// Chance on `rows` rows if every one of `classes` labels is as frequent.
    pub fn balanced(classes: usize, rows: usize) -> Self {
        Chance { share: 1.0 / classes.max(1) as f64, rows }
    }

    /// Accuracy below this is chance: a tenth more than the share, or where there is less room above it, a tenth of
    /// that. For ten balanced classes this is the 11 % of the source paper's code.
    pub fn level(&self) -> f64 {
        self.share + self.share.min(1.0 - self.share) / 10.0
    }

    /// Accuracy up to this cannot be told from chance on so few rows: three standard errors above the share.
    pub fn doubtful(&self) -> f64 {
        let variance = self.share * (1.0 - self.share) / self.rows.max(1) as f64;
        self.share + DEVIATIONS * variance.sqrt()
    }

    /// Accuracy from which on something was clearly learnt: a ninth of the way from chance to no error, and not
    /// doubtful. For ten balanced classes this is twice chance.
    pub fn learnt(&self) -> f64 {
        (self.share + (1.0 - self.share) / 9.0).max(self.doubtful())
    }
}

impl std::fmt::Display for Chance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chance {:.2} %", 100.0 * self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_the_share_of_the_most_frequent_label() {
        assert_eq!(Chance::of([0, 1, 0, 1]), Chance { share: 0.5, rows: 4 });
        assert_eq!(Chance::of([7, 7, 7, 255]).share, 0.75);
        assert_eq!(Chance::of([3]).share, 1.0);
        assert_eq!(Chance::of([]).share, 0.0);
        let mnist = Chance::of(fixtures::mnist().unwrap().test.labels.into_iter().map(usize::from));
        assert_eq!(mnist, Chance { share: 0.1135, rows: 10_000 });
        assert!((mnist.level() - 0.12485).abs() < 1e-12, "a network that always says 1 is at chance");
        assert!(mnist.doubtful() < mnist.level());
    }

    #[test]
    fn ten_balanced_classes_have_the_limits_of_the_papers_code_and_no_limit_passes_one() {
        let ten = Chance::balanced(10, 10_000);
        assert!((ten.level() - 0.11).abs() < 1e-12 && (ten.learnt() - 0.2).abs() < 1e-12);
        let two = Chance::balanced(2, 1000);
        assert!((two.level() - 0.55).abs() < 1e-12 && two.learnt() < 0.56);
        for share in [0.004, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let chance = Chance { share, rows: 1_000_000 };
            assert!(share <= chance.level() && chance.level() <= chance.learnt() && chance.learnt() <= 1.0, "{share}");
        }
        assert!(Chance::balanced(2, 40).doubtful() > 0.7, "40 rows tell little");
    }
}
