use serde::{Deserialize, Serialize};

/// The output head: the gradient of the (implied) loss with respect to the logits. The formulas are the table of heads
/// in `docs/design.md`, section 3, after Keller and Sun (arXiv 2011.11202), section 3, and, for [`Head::ReluEps`],
/// Kanai et al. (NeurIPS 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Head {
    /// p - y, p = softmax(x).
    Softmax,
    /// The paper's formula: threshold on every logit, S over all ReLU.
    ReluProb,
    /// The paper's published code: S over the logits above eps only, strict threshold.
    ReluProbCut,
    /// ReLU(x) / S - y; no loss has this gradient.
    ReluGrad,
    /// The regularised ratio of Kanai et al., without a threshold.
    ReluEps,
}

impl Head {
    /// Every head, in the order of the tables.
    pub const ALL: [Head; 5] = [Head::Softmax, Head::ReluProb, Head::ReluProbCut, Head::ReluGrad, Head::ReluEps];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Head::Softmax => "softmax",
            Head::ReluProb => "relu-prob",
            Head::ReluProbCut => "relu-prob-cut",
            Head::ReluGrad => "relu-grad",
            Head::ReluEps => "relu-eps",
        }
    }

    /// Whether a loss is known whose gradient this is.
    pub const fn has_loss(self) -> bool {
        !matches!(self, Head::ReluGrad)
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
