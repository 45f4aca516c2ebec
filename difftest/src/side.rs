//! The sides of a comparison: the trait that all of them implement, and the values that pass through it.

pub mod integer;
pub mod real;
pub mod recorded;
pub mod secure;

pub use crate::bound::{Batch, Tensors};
use crate::error::{Error, KeepingError};
use crate::explain::origin::Truncated;
use ::secure::nn::dense::LayerShare;
use ndarray::Array2;
use reference::fixed::{Parameters, Tape};
use reference::spec::ProbePoint;
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// The names of the three sides, in the order in which they are reported.
pub const SIDES: [&str; 3] = ["real", "integer", "secure"];

/// The tensors of a step that a plaintext side shows.
#[derive(Debug, Clone, Copy)]
pub enum Shows {
    /// Every probed tensor.
    Everything,
    /// Those tensors for which the function holds.
    Only(fn(&ProbePoint) -> bool),
}

/// Copies tensors out of a step while it runs, and takes the time for that, which is no cost of the step.
struct Probe<T> {
    shows: Shows,
    tensors: Tensors<T>,
    start: Instant,
    looking: Duration,
}

impl<T: Clone> Probe<T> {
    fn start(shows: Shows) -> Self {
        Probe { shows, tensors: Tensors::new(), start: Instant::now(), looking: Duration::ZERO }
    }

    fn see(&mut self, point: ProbePoint, tensor: &Array2<T>) {
        let start = Instant::now();
        if match self.shows {
            Shows::Everything => true,
            Shows::Only(shown) => shown(&point),
        } {
            self.tensors.insert(point, tensor.clone());
        }
        self.looking += start.elapsed();
    }

    /// Ends the step.
    fn spent(&self) -> Spent {
        Spent { seconds: self.start.elapsed().saturating_sub(self.looking).as_secs_f64(), ..Spent::default() }
    }
}

/// The elements of a tensor, row-major; a copy of them only where they lie otherwise.
pub fn flat<T: Clone>(tensor: &Array2<T>) -> Cow<'_, [T]> {
    tensor.as_slice().map_or_else(|| tensor.iter().cloned().collect(), Cow::Borrowed)
}

/// The communication and computing that a step took. Sides without parties send nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Spent {
    /// The wall-clock seconds.
    pub seconds: f64,
    /// The number of communication rounds.
    pub rounds: u64,
    /// Messages, all parties.
    pub messages: u64,
    /// Bytes, all parties.
    pub bytes: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, o: Spent) {
        self.seconds += o.seconds;
        self.rounds += o.rounds;
        self.messages += o.messages;
        self.bytes += o.bytes;
    }
}

/// The results of one step.
#[derive(Debug, Clone)]
pub struct Step<T> {
    /// Every probed tensor.
    pub tensors: Tensors<T>,
    /// The coins of every truncation; empty for sides that draw none.
    pub tape: Tape,
    /// The cost of the step.
    pub spent: Spent,
}

/// One side of a comparison. `Value` is `f64` for real numbers and `i64` for units.
pub trait Side {
    /// The type of a tensor's elements.
    type Value;

    /// `real`, `integer`, `secure`, or the name of an engine of your own.
    fn name(&self) -> &'static str;

    /// Starts from the given parameters (units).
    ///
    /// # Errors
    /// Shapes that do not fit the network, or a peer that fails.
    fn load(&mut self, parameters: &Parameters) -> Result<(), Error>;

    /// Takes one step of training. `tape` holds the coins to replay; sides that draw their own ignore it.
    ///
    /// # Errors
    /// Bad shapes or labels; a tape that cannot be; a peer that fails.
    fn step(&mut self, batch: &Batch, tape: Tape) -> Result<Step<Self::Value>, Error>;

    /// Counts the rows that the current parameters classify correctly.
    ///
    /// # Errors
    /// As for [`Side::step`].
    fn correct(&mut self, batch: &Batch) -> Result<usize, Error>;
}

/// A side in units that can open its parameters.
pub trait Opens: Side<Value = i64> {
    /// The parameters as they are now.
    ///
    /// # Errors
    /// A peer that fails.
    fn parameters(&mut self) -> Result<Parameters, Error>;

    /// Has each party keep its own part of what the run needs to go on after `step` steps.
    ///
    /// # Errors
    /// A side that keeps no states, which is every one unless it says otherwise; a peer that fails.
    fn keep(&mut self, run: &str, step: u64) -> Result<(), Error> {
        let _ = (run, step);
        Err(KeepingError::Stateless(self.name()).into())
    }

    /// The number of steps of `run` after which a state was last kept, if any was.
    ///
    /// # Errors
    /// A peer that fails.
    fn kept(&mut self, run: &str) -> Result<Option<u64>, Error> {
        let _ = run;
        Ok(None)
    }

    /// Takes up `run` where a state was last kept, and says after how many steps; `None`: none was, and nothing has
    /// changed.
    ///
    /// # Errors
    /// A peer that fails.
    fn resume(&mut self, run: &str) -> Result<Option<u64>, Error> {
        let _ = run;
        Ok(None)
    }

    /// Hands out what the last step truncated, for sides that record it.
    fn take_truncated(&mut self) -> Vec<Truncated> {
        Vec::new()
    }
}

/// A secure side that trains without opening anything.
pub trait Trains: Opens {
    /// Shares the data, (rows, inputs) at scale f, once.
    ///
    /// # Errors
    /// A peer that fails.
    fn share_data(&mut self, units: &Array2<i64>, labels: &[usize]) -> Result<(), Error>;

    /// Trains on batches of rows of the shared data.
    ///
    /// # Errors
    /// A peer that fails.
    fn train(&mut self, batches: &[Vec<u32>]) -> Result<Spent, Error>;

    /// The shares of the parameters that each party holds; nothing is opened.
    ///
    /// # Errors
    /// A peer that fails.
    fn shares(&mut self) -> Result<[Vec<LayerShare>; 3], Error>;

    /// Gives the parties their shares of the parameters; nothing is opened.
    ///
    /// # Errors
    /// Shares that do not fit the network or each other; a peer that fails.
    fn load_shares(&mut self, shares: [Vec<LayerShare>; 3]) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference::fixed::Coins;
    use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

    fn spec() -> TrainSpec {
        TrainSpec {
            network: NetworkSpec::dense(6, 5, 4, 2),
            head: Head::Softmax,
            epsilon: 0.1,
            rounding: Rounding::Nearest,
            fixed: FixedSpec::default(),
            sgd: SgdSpec { batch: 3, ..SgdSpec::default() },
        }
    }

    /// One step from given weights: the names and shapes of the tensors it shows, and how many rows it then gets right.
    fn smoke<S: Side>(mut side: S) -> (Vec<String>, usize) {
        let parameters = crate::generate::initial(&spec(), 5).unwrap();
        let units = Array2::from_shape_fn((3, 6), |(i, j)| ((i * 67 + j * 31) % 256 * 256) as i64);
        let batch = Batch { reals: units.mapv(|u| u as f64 / 65536.0), units, labels: vec![3, 0, 2] };
        side.load(&parameters).unwrap();
        let step = side.step(&batch, Tape::default()).unwrap();
        assert!(step.spent.seconds > 0.0, "{}", side.name());
        let shown = step.tensors.iter().map(|(point, tensor)| format!("{point} {:?}", tensor.dim())).collect();
        (shown, side.correct(&batch).unwrap())
    }

    #[test]
    fn all_sides_show_the_same_tensors_and_classify_alike() {
        let start = crate::generate::initial(&spec(), 5).unwrap();
        let real = smoke(real::Real::new(spec(), &start).unwrap());
        assert_eq!(real, smoke(integer::Integer::with_coins(spec(), Coins::seeded(1)).unwrap()));
        assert_eq!(real, smoke(secure::Secure::start(spec(), None, true).unwrap()));
    }
}
