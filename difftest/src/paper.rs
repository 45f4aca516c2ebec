//! The evaluation of the source paper (Keller and Sun, arXiv 2011.11202, section 4), repeated: a grid of training runs,
//! its tables, its claims.
//!
//! * *cell*: one training run, side x head x layers x rounding x seed ([`cell`]); cells are independent, so any batch
//!   system can spread them.
//! * *timing cell*: the seconds of an epoch of one secure configuration, measured by itself ([`time_cell`]).
//! * *attempt*: what one cell did at one learning rate; the paper's rule starts another at half the rate ([`train`]).
//! * [`data`](mod@data): what all cells learn from; [`trainee`]: a side in training; [`observed`] and [`nearness`]:
//!   what is kept of its steps; [`published`]: where the paper's code differs from its formulas; [`machine`]: what
//!   seconds depend on.
//! * [`standard_error`] and [`wording`]: means with their errors, and numbers as texts write them.
//! * [`store`]: a folder of finished cells; [`record`]: all cells in one compact file; [`grid`]: which there are, and
//!   running those that are missing; [`finished`]: all of them together.
//! * [`table1`], [`compared`], [`seconds`], [`table2`], [`claims`], [`explain`]: what follows from finished cells, and
//!   from nothing else.
//! * [`result`] puts it together; [`text`], [`document`], `page` and [`csv`] show it, [`report`] writes the files.

pub mod cell;
pub mod claims;
pub mod compared;
pub mod csv;
pub mod data;
pub mod document;
pub mod explain;
pub mod finished;
pub mod grid;
pub mod machine;
pub mod nearness;
pub mod observed;
#[cfg(feature = "html")]
pub mod page;
pub mod published;
pub mod record;
pub mod report;
pub mod result;
pub mod seconds;
pub mod standard_error;
pub mod store;
pub mod table1;
pub mod table2;
pub mod text;
pub mod time_cell;
pub mod train;
pub mod trainee;
pub mod wording;

pub use cell::{Cell, Id, Setup, Side};
pub use finished::Finished;
pub use result::Findings;
