/// A setting beyond its limit, or settings that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The network has no layer, or too many.
    #[error("--layers is {0}; it must be 1 to {MOST_LAYERS}", MOST_LAYERS = Self::MOST_LAYERS)]
    Layers(usize),
    /// A length of a run is 0.
    #[error("{flag} is 0; {of} has at least 1")]
    Nothing {
        /// The flag that gives the length.
        flag: &'static str,
        /// The thing whose length it is.
        of: &'static str,
    },
    /// The steps of a run are more than can be counted.
    #[error("{0} is too large to count its steps; choose fewer")]
    Uncountable(&'static str),
    /// No data set was named, and the library was built without one.
    #[error("no data set was named, and this build holds none; name a folder, or build with the feature mnist")]
    NoData,
    /// No tensor of the run has this name.
    #[error("--probe {name} is no tensor of this run; choose one of {}", .known.join(", "))]
    NoTensor {
        /// The name that was given.
        name: String,
        /// The names of the run's tensors.
        known: Vec<String>,
    },
}

impl ConfigError {
    /// The most layers that a network of the harness has.
    pub const MOST_LAYERS: usize = 64;
}
