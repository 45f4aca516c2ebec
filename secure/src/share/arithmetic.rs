use super::pick;
use super::same_shape;
use crate::buffer::Words;
use crate::error::Result;
use crate::id::PartyId;
use crate::kernel::wide;
use serde::{Deserialize, Serialize};

/// One party's replicated share of a matrix over Z_2^64. One that comes from elsewhere has as many words as elements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ReadShare")]
pub struct Share {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub cols: usize,
    /// Component i at party i, row-major.
    pub own: Words,
    /// Component i + 1 at party i, row-major.
    pub next: Words,
}

/// One party's additive part of a matrix: the three parts add up to it. Not masked, so never sent as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ReadParts")]
pub struct Parts {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub cols: usize,
    /// This party's part, row-major.
    pub part: Words,
}

/// A share as it was read.
#[derive(Deserialize)]
struct ReadShare {
    rows: usize,
    cols: usize,
    own: Words,
    next: Words,
}

impl TryFrom<ReadShare> for Share {
    type Error = &'static str;

    fn try_from(ReadShare { rows, cols, own, next }: ReadShare) -> std::result::Result<Self, Self::Error> {
        match rows.checked_mul(cols) {
            Some(n) if own.len() == n && next.len() == n => Ok(Share { rows, cols, own, next }),
            _ => Err("a share whose words are not as many as its elements"),
        }
    }
}

/// Parts as they were read.
#[derive(Deserialize)]
struct ReadParts {
    rows: usize,
    cols: usize,
    part: Words,
}

impl TryFrom<ReadParts> for Parts {
    type Error = &'static str;

    fn try_from(ReadParts { rows, cols, part }: ReadParts) -> std::result::Result<Self, Self::Error> {
        match rows.checked_mul(cols) {
            Some(n) if part.len() == n => Ok(Parts { rows, cols, part }),
            _ => Err("parts whose words are not as many as their elements"),
        }
    }
}

impl Share {
    /// A share from its two components.
    pub fn new(rows: usize, cols: usize, own: Words, next: Words) -> Self {
        debug_assert!(own.len() == rows * cols && next.len() == rows * cols);
        Share { rows, cols, own, next }
    }

    /// The share of zero in which every component is zero: public.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Share::new(rows, cols, Words::zeros(rows * cols), Words::zeros(rows * cols))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// True if the matrix has no element.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The shape, (rows, cols).
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The elements in the same order as a matrix of another shape.
    #[must_use]
    pub fn reshape(mut self, rows: usize, cols: usize) -> Self {
        debug_assert_eq!(self.len(), rows * cols);
        (self.rows, self.cols) = (rows, cols);
        self
    }

    /// Applies a linear map to each component.
    #[must_use]
    pub fn map(&self, f: impl Fn(u64) -> u64 + Copy) -> Self {
        let each = |v: &[u64]| wide(|| v.iter().map(|&x| f(x)).collect());
        Share::new(self.rows, self.cols, each(&self.own), each(&self.next))
    }

    /// The share times a public integer, wrapping.
    #[must_use]
    pub fn scale(&self, by: i64) -> Self {
        self.map(|v| v.wrapping_mul(by as u64))
    }

    /// The share times 2^bits, wrapping.
    #[must_use]
    pub fn shift_left(&self, bits: u32) -> Self {
        self.map(|v| v << bits)
    }

    /// Adds another operand of the same shape in place, wrapping.
    ///
    /// # Errors
    /// Shapes differ.
    pub fn add_assign(&mut self, other: &Share) -> Result<()> {
        same_shape("add", self.shape(), other.shape())?;
        zip(&mut self.own, &other.own, u64::wrapping_add);
        zip(&mut self.next, &other.next, u64::wrapping_add);
        Ok(())
    }

    /// Subtracts another share of the same shape in place, wrapping.
    ///
    /// # Errors
    /// Shapes differ.
    pub fn sub_assign(&mut self, other: &Share) -> Result<()> {
        same_shape("subtract", self.shape(), other.shape())?;
        zip(&mut self.own, &other.own, u64::wrapping_sub);
        zip(&mut self.next, &other.next, u64::wrapping_sub);
        Ok(())
    }

    /// The sum of two shares of one shape, wrapping.
    ///
    /// # Errors
    /// Shapes differ.
    pub fn plus(mut self, other: &Share) -> Result<Share> {
        self.add_assign(other)?;
        Ok(self)
    }

    /// The difference of two shares of one shape, wrapping.
    ///
    /// # Errors
    /// Shapes differ.
    pub fn minus(mut self, other: &Share) -> Result<Share> {
        self.sub_assign(other)?;
        Ok(self)
    }

    /// Adds a public integer to every element: it goes into component 0.
    #[must_use]
    pub fn plus_public(mut self, id: PartyId, v: i64) -> Self {
        match id {
            PartyId::P0 => self.own.iter_mut().for_each(|x| *x = x.wrapping_add(v as u64)),
            PartyId::P1 => {}
            PartyId::P2 => self.next.iter_mut().for_each(|x| *x = x.wrapping_add(v as u64)),
        }
        self
    }

    /// v - self for a public v.
    #[must_use]
    pub fn from_public(&self, id: PartyId, v: i64) -> Self {
        self.map(u64::wrapping_neg).plus_public(id, v)
    }

    /// The transpose, (cols, rows).
    #[must_use]
    pub fn transpose(&self) -> Self {
        let t = |v: &[u64]| {
            let mut out = Words::with_capacity(v.len());
            for c in 0..self.cols {
                out.extend((0..self.rows).map(|r| v[r * self.cols + c]));
            }
            out
        };
        Share::new(self.cols, self.rows, t(&self.own), t(&self.next))
    }

    /// The sum of every column, (1, cols).
    #[must_use]
    pub fn sum_rows(&self) -> Self {
        let sum = |v: &[u64]| {
            let mut out = Words::zeros(self.cols);
            for row in v.chunks_exact(self.cols.max(1)) {
                zip(&mut out, row, u64::wrapping_add);
            }
            out
        };
        Share::new(1, self.cols, sum(&self.own), sum(&self.next))
    }

    /// The sum of every row, (rows, 1).
    #[must_use]
    pub fn sum_cols(&self) -> Self {
        let sum = |v: &[u64]| -> Words {
            v.chunks_exact(self.cols.max(1)).map(|row| row.iter().fold(0, |a: u64, &b| a.wrapping_add(b))).collect()
        };
        Share::new(self.rows, 1, sum(&self.own), sum(&self.next))
    }

    /// A column vector repeated to `cols` columns.
    #[must_use]
    pub fn broadcast(&self, cols: usize) -> Self {
        debug_assert_eq!(self.cols, 1);
        let rep = |v: &[u64]| {
            let mut out = Words::with_capacity(v.len() * cols);
            v.iter().for_each(|&x| out.extend(std::iter::repeat_n(x, cols)));
            out
        };
        Share::new(self.rows, cols, rep(&self.own), rep(&self.next))
    }

    /// The rows of `self`, then those of `other`.
    ///
    /// # Errors
    /// Widths differ.
    pub fn stack(mut self, other: &Share) -> Result<Share> {
        same_shape("stack", (0, self.cols), (0, other.cols))?;
        self.own.extend_from_slice(&other.own);
        self.next.extend_from_slice(&other.next);
        self.rows += other.rows;
        Ok(self)
    }

    /// The rows `from..to`, (to - from, cols).
    #[must_use]
    pub fn row_range(&self, from: usize, to: usize) -> Self {
        let r = from * self.cols..to * self.cols;
        Share::new(to - from, self.cols, self.own[r.clone()].into(), self.next[r].into())
    }

    /// The rows with these (public) numbers, in this order.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Self {
        let pick = |component: &[u64]| pick(component, self.cols, rows);
        Share::new(rows.len(), self.cols, pick(&self.own), pick(&self.next))
    }

    /// The sum of the two components that this party holds.
    pub fn local_sum(&self) -> Words {
        wide(|| self.own.iter().zip(&self.next).map(|(a, b)| a.wrapping_add(*b)).collect())
    }

    /// The view that comparison and truncation work on: the value is a + b with a = x_0 + x_1 known to party 0 and b =
    /// x_2 known to parties 1 and 2. Party 0 gets a, the others b.
    pub fn two_sided(&self, id: PartyId) -> Words {
        match id {
            PartyId::P0 => self.local_sum(),
            PartyId::P1 => self.next.clone(),
            PartyId::P2 => self.own.clone(),
        }
    }

    /// The two components as a matrix product tells them apart (`protocol/matmul.rs`): parties 1 and 2 double the
    /// first, and the second is component 2, which both of them hold; at party 0, which does not have it, component 0
    /// comes second.
    pub(crate) fn far_and_middle(&self, id: PartyId) -> (&Words, &Words) {
        match id {
            PartyId::P1 => (&self.own, &self.next),
            PartyId::P0 | PartyId::P2 => (&self.next, &self.own),
        }
    }

    /// This party's additive part of the same value: component i.
    pub fn parts(&self) -> Parts {
        Parts { rows: self.rows, cols: self.cols, part: self.own.clone() }
    }
}

impl Parts {
    /// Adds (scaled) shares into the parts, locally.
    ///
    /// # Errors
    /// Shapes differ.
    pub fn add_share(&mut self, other: &Share) -> Result<()> {
        same_shape("add", (self.rows, self.cols), other.shape())?;
        zip(&mut self.part, &other.own, u64::wrapping_add);
        Ok(())
    }

    /// Adds another operand of the same shape in place, wrapping.
    ///
    /// # Errors
    /// Shapes differ.
    pub fn add_assign(&mut self, other: &Parts) -> Result<()> {
        same_shape("add", (self.rows, self.cols), (other.rows, other.cols))?;
        zip(&mut self.part, &other.part, u64::wrapping_add);
        Ok(())
    }

    /// Adds a public integer: party 0 does.
    #[must_use]
    pub fn plus_public(mut self, id: PartyId, v: i64) -> Self {
        if id == PartyId::P0 {
            self.part.iter_mut().for_each(|x| *x = x.wrapping_add(v as u64));
        }
        self
    }
}

/// One party's additive part of 2 V for a matrix V of unreduced values: V modulo 2^63, as matrix products leave it and
/// as truncation takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubled(pub Parts);

impl From<Parts> for Doubled {
    fn from(mut parts: Parts) -> Self {
        wide(|| parts.part.iter_mut().for_each(|v| *v <<= 1));
        Doubled(parts)
    }
}

/// a = f(a, b), element by element.
pub(crate) fn zip(a: &mut [u64], b: &[u64], f: impl Fn(u64, u64) -> u64) {
    wide(|| a.iter_mut().zip(b).for_each(|(x, y)| *x = f(*x, *y)));
}
