//! One dense layer: Z = X W + b, backward, and the update fused with the weight gradient.

use super::product::{product, product_then};
use ndarray::{Array1, Array2, ArrayView2, Axis, Zip};

/// Weights and velocities of one dense layer, real.
pub type Layer = spec::Layer<Array2<f64>, Array1<f64>>;

/// A layer whose velocities are 0.
pub(super) fn at_rest(weights: Array2<f64>, bias: Array1<f64>) -> Layer {
    let (weight_velocity, bias_velocity) = (Array2::zeros(weights.raw_dim()), Array1::zeros(bias.raw_dim()));
    Layer { weights, bias, weight_velocity, bias_velocity }
}

/// Z = X W + b. Shapes (batch, in) -> (batch, out).
pub(super) fn forward(layer: &Layer, x: ArrayView2<f64>, z: &mut Array2<f64>) {
    product_then(x, layer.weights.view(), z.view_mut(), [], |mut z, []| z += &layer.bias);
}

/// X = ReLU(Z) in place: 0 at 0 and -0; a NaN stays NaN.
pub(super) fn relu(z: &mut Array2<f64>) {
    z.mapv_inplace(|z| if z <= 0.0 { 0.0 } else { z });
}

/// G_{l-1} = \[X_{l-1} > 0\] * (G_l W_l^T), shape (batch, in): the derivative of ReLU is 0 at 0. X > 0 exactly where Z
/// > 0.
pub(super) fn backward(layer: &Layer, g: &Array2<f64>, x: &Array2<f64>, below: &mut Array2<f64>) {
    product(g.view(), layer.weights.t(), below.view_mut());
    Zip::from(below).and(x).for_each(|g, &x| *g = if x > 0.0 { *g } else { 0.0 });
}

/// dW = X^T G, db = column sums of G; v <- momentum v - rate d, w <- w + v (rate = lr / batch). Each block of weights
/// is updated as soon as its gradient is there.
pub(super) fn update(
    layer: &mut Layer,
    (x, g): (ArrayView2<f64>, &Array2<f64>),
    (dw, db): (&mut Array2<f64>, &mut Array1<f64>),
    (rate, momentum): (f64, f64),
) {
    let descend = |v: &mut f64, w: &mut f64, d: &f64| {
        *v = momentum * *v - rate * d;
        *w += *v;
    };
    let moved = [layer.weight_velocity.view_mut(), layer.weights.view_mut()];
    product_then(x.t(), g.view(), dw.view_mut(), moved, |dw, [v, w]| Zip::from(v).and(w).and(&dw).for_each(descend));
    db.fill(0.0);
    g.axis_iter(Axis(0)).for_each(|row| *db += &row);
    Zip::from(&mut layer.bias_velocity).and(&mut layer.bias).and(&*db).for_each(descend);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn relu_and_its_derivative_are_zero_at_zero() {
        let mut x = array![[0.0, -0.0, 5e-324, -5e-324, f64::NAN, f64::INFINITY]];
        relu(&mut x);
        assert!(x[[0, 4]].is_nan(), "a NaN must stay visible");
        x[[0, 4]] = 0.0;
        assert_eq!(x, array![[0.0, 0.0, 5e-324, 0.0, 0.0, f64::INFINITY]]);
        assert!(x[[0, 1]].is_sign_positive());
        let layer = at_rest(array![[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], array![0.0]);
        let mut below = Array2::from_elem((1, 6), f64::NAN);
        backward(&layer, &array![[10.0]], &x, &mut below);
        assert_eq!(below, array![[0.0, 0.0, 30.0, 0.0, 0.0, 60.0]]);
    }

    #[test]
    fn a_layer_by_hand() {
        let mut layer = at_rest(array![[1.0, 2.0], [3.0, 4.0]], array![0.5, -0.5]);
        layer.weight_velocity.fill(1.0);
        let (x, g) = (array![[1.0, 2.0], [0.0, 1.0]], array![[1.0, 0.0], [2.0, -1.0]]);
        let mut z = Array2::zeros((2, 2));
        forward(&layer, x.view(), &mut z);
        assert_eq!(z, array![[7.5, 9.5], [3.5, 3.5]]);
        let (mut dw, mut db) = (Array2::zeros((2, 2)), Array1::from_elem(2, f64::NAN));
        update(&mut layer, (x.view(), &g), (&mut dw, &mut db), (0.5, 0.25));
        assert_eq!(dw, array![[1.0, 0.0], [4.0, -1.0]]);
        assert_eq!(db, array![3.0, -1.0]);
        assert_eq!(layer.weight_velocity, array![[-0.25, 0.25], [-1.75, 0.75]]);
        assert_eq!(layer.weights, array![[0.75, 2.25], [1.25, 4.75]]);
        assert_eq!((layer.bias_velocity, layer.bias), (array![-1.5, 0.5], array![-1.0, 0.0]));
    }
}
