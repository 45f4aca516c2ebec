//! One named array of a trace.

/// The elements of a tensor, row-major.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Integers in units: the value is the integer times 2^-scale. Unsigned 64-bit words are read as two's complement.
    Units(Vec<i64>),
    /// Reals in double precision.
    Doubles(Vec<f64>),
    /// Reals in single precision.
    Singles(Vec<f32>),
}

impl Values {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Values::Units(v) => v.len(),
            Values::Doubles(v) => v.len(),
            Values::Singles(v) => v.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An array with its shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// The length of each dimension; empty for a single number.
    pub shape: Vec<usize>,
    /// The elements, as many as the product of the shape.
    pub values: Values,
}

impl Tensor {
    /// A tensor whose elements fit its shape; `None` if they do not, or if the shape has more elements than can be
    /// counted.
    pub fn new(shape: Vec<usize>, values: Values) -> Option<Self> {
        (elements(&shape)? == values.len()).then_some(Tensor { shape, values })
    }

    /// A matrix or vector of units.
    pub fn units<D: ndarray::Dimension>(array: &ndarray::Array<i64, D>) -> Self {
        Tensor { shape: array.shape().to_vec(), values: Values::Units(array.iter().copied().collect()) }
    }

    /// A matrix or vector of doubles.
    pub fn doubles<D: ndarray::Dimension>(array: &ndarray::Array<f64, D>) -> Self {
        Tensor { shape: array.shape().to_vec(), values: Values::Doubles(array.iter().copied().collect()) }
    }
}

/// The number of elements of a shape, if it can be counted.
pub fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
}
