/// Flags that are beyond their limits or contradict each other.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FlagError {
    /// A number is outside its range.
    #[error("{flag} is {value}; it must be {range}")]
    Range {
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
        /// The range, in words.
        range: String,
    },
    /// A depth of the grid is no depth.
    #[error("--layers has {depth}; depths are 1 to {most}")]
    Depth {
        /// The depth.
        depth: usize,
        /// The largest depth.
        most: usize,
    },
    /// The grid has no cell at this place.
    #[error("--cell is {place}; this grid has cells 0 to {last}, see --list")]
    CellPlace {
        /// The place.
        place: usize,
        /// The last place.
        last: usize,
    },
    /// No cell has this name.
    #[error("--cell: {0}")]
    CellName(String),
    /// Flags belong to the other mode.
    #[error("{flags} {because}; {they} --mode {mode}")]
    Mode {
        /// The flags.
        flags: &'static str,
        /// The reason, beginning with a verb.
        because: &'static str,
        /// "it needs" or "they need".
        they: &'static str,
        /// The mode that they belong to.
        mode: &'static str,
    },
    /// A free run has more rows than one run can.
    #[error(
        "a free run of {steps} steps of {batch} rows is longer than one run can be; it takes {most} steps, and \
         --load-model goes on from there"
    )]
    TooLong {
        /// Steps of the run.
        steps: usize,
        /// Rows of a batch.
        batch: usize,
        /// The most steps with such batches.
        most: usize,
    },
    /// A run has no step of this number.
    #[error("{flag} {step}; a run of {steps} steps has steps 0 to {}", .steps - 1)]
    NoStep {
        /// The flag, with a verb or a colon.
        flag: &'static str,
        /// The number that was given.
        step: String,
        /// Steps of the run.
        steps: usize,
    },
    /// A run is too short for a judgement of an epoch.
    #[error("--restart-on-divergence judges whole epochs; it needs at least {0} steps")]
    ShortOfAnEpoch(usize),
    /// A network link is none.
    #[error(
        "the {name} link has latency {latency_ms} ms and {megabits_per_second} Mbit/s; latency must be 0 or more, \
         bandwidth above 0"
    )]
    Link {
        /// LAN or WAN.
        name: &'static str,
        /// Latency in milliseconds.
        latency_ms: f64,
        /// Bandwidth in Mbit/s.
        megabits_per_second: f64,
    },
    /// There is no folder of recorded results.
    #[error(
        "there are no recorded results here, in fixtures/golden, and the sources of this program are not where it was \
         built; name the folder with --dir"
    )]
    NoGoldens,
    /// The build has no faults to plant.
    #[cfg_attr(feature = "faults", allow(dead_code))]
    #[error(
        "this build cannot plant faults, and no release should; build with: cargo run --release --features faults{0}"
    )]
    NoFaults(&'static str),
    /// A command that runs no parties elsewhere was told where they are.
    #[error("{0}; leave --parties out")]
    Apart(&'static str),
    /// The parties' addresses are not three.
    #[error("--addresses has {0} addresses; give three, one for each party")]
    Addresses(usize),
}
