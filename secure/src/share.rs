//! Shares. x = x_0 + x_1 + x_2 (or the exclusive or of three words); party i holds components i and i + 1 mod 3.

mod arithmetic;
mod boolean;
mod factor;

pub(crate) use arithmetic::zip;
pub use arithmetic::{Parts, Share};
pub use boolean::BitShare;
pub use factor::Factor;
