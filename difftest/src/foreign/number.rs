//! A matrix of a trace: integers at a scale, or reals.

use crate::trace::{Tensor, Values};
use ndarray::Array2;

/// A matrix with what its elements mean.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// Integers that stand for multiples of 2^-scale.
    Units {
        /// The integers.
        v: Array2<i64>,
        /// Their scale in bits.
        scale: u32,
    },
    /// Real numbers, as floats.
    Reals {
        /// The reals.
        v: Array2<f64>,
        /// The relative error that storing them may have added: half the distance between neighbours at 1.
        half_ulp: f64,
    },
}

impl Number {
    /// The tensor as a matrix of the given shape; `None` if it has another shape. Dimensions of length 1 may be left
    /// out or added.
    pub fn of(tensor: &Tensor, (rows, columns): (usize, usize), scale: u32) -> Option<Self> {
        let long = |shape: &[usize]| shape.iter().copied().filter(|&d| d != 1).collect::<Vec<_>>();
        if long(&tensor.shape) != long(&[rows, columns]) {
            return None;
        }
        let reals = |v: Vec<f64>, half_ulp| {
            Some(Number::Reals { v: Array2::from_shape_vec((rows, columns), v).ok()?, half_ulp })
        };
        match &tensor.values {
            Values::Units(v) => {
                Some(Number::Units { v: Array2::from_shape_vec((rows, columns), v.clone()).ok()?, scale })
            }
            Values::Doubles(v) => reals(v.clone(), f64::EPSILON / 2.0),
            Values::Singles(v) => reals(v.iter().map(|&v| f64::from(v)).collect(), f64::from(f32::EPSILON) / 2.0),
        }
    }

    /// Rows and columns.
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Number::Units { v, .. } => v.dim(),
            Number::Reals { v, .. } => v.dim(),
        }
    }

    /// The values as reals; exact for integers below 2^53.
    pub fn reals(&self) -> Array2<f64> {
        match self {
            Number::Units { v, scale } => {
                let unit = 2f64.powi(-(*scale as i32));
                v.mapv(|v| v as f64 * unit)
            }
            Number::Reals { v, .. } => v.clone(),
        }
    }

    /// The relative error that storing an element may have added; 0 for integers.
    pub fn half_ulp(&self) -> f64 {
        match self {
            Number::Units { .. } => 0.0,
            Number::Reals { half_ulp, .. } => *half_ulp,
        }
    }

    /// Rows become columns.
    pub fn transposed(&self) -> Self {
        match self {
            Number::Units { v, scale } => Number::Units { v: v.t().as_standard_layout().into_owned(), scale: *scale },
            Number::Reals { v, half_ulp } => {
                Number::Reals { v: v.t().as_standard_layout().into_owned(), half_ulp: *half_ulp }
            }
        }
    }

    /// The elements where `keep` is true, 0 elsewhere.
    pub fn masked(&self, keep: &Array2<bool>) -> Self {
        match self {
            Number::Units { v, scale } => {
                let v = ndarray::Zip::from(v).and(keep).map_collect(|&v, &k| if k { v } else { 0 });
                Number::Units { v, scale: *scale }
            }
            Number::Reals { v, half_ulp } => {
                let v = ndarray::Zip::from(v).and(keep).map_collect(|&v, &k| if k { v } else { 0.0 });
                Number::Reals { v, half_ulp: *half_ulp }
            }
        }
    }

    /// Which elements are above 0.
    pub fn positive(&self) -> Array2<bool> {
        match self {
            Number::Units { v, .. } => v.mapv(|v| v > 0),
            Number::Reals { v, .. } => v.mapv(|v| v > 0.0),
        }
    }
}
