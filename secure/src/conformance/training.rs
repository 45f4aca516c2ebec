//! Training steps of every head and depth, and the answers of the network after them.

use super::operands::rng;
use super::tape;
use crate::engine::{Engine, EngineConfig, LayerUnits, ParameterUnits};
use crate::testing::parameters;
use ndarray::{Array1, Array2};
use rand::Rng;
use reference::fixed::{self, Coins, tape::Tape};
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

pub mod one_layer {
    use super::*;
    spec::by_head!(steps_conform, 1, 0);
}

pub mod two_layers {
    use super::*;
    spec::by_head!(steps_conform, 2, 4);
}

pub mod three_layers {
    use super::*;
    spec::by_head!(steps_conform, 3, 0);
}

/// More updates side by side than the joins of the library poll.
mod many_layers {
    use super::*;
    spec::by_rounding!(steps_conform, 33, 0, Head::Softmax);
}

/// Two steps from velocities that are not zero, then the network's answers: weights, biases, velocities, classes, hits.
fn steps_conform(layers: usize, extra_velocity_bits: u32, head: Head, rounding: Rounding) {
    const BATCH: usize = 12;
    let spec = TrainSpec {
        network: NetworkSpec::dense(9, 6, 4, layers),
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { learning_rate: 0.5, momentum: 0.75, batch: BATCH, extra_velocity_bits },
    };
    let mut rng = rng();
    let mut random = |n: usize| -> Vec<i64> { (0..n).map(|_| rng.random_range(-60_000..60_000)).collect() };
    let start = parameters(&spec.network, &mut random);
    let x = random(BATCH * 9);
    let labels: Vec<usize> = (0..BATCH).map(|i| i * 7 % 4).collect();

    let mut engine = Engine::start(EngineConfig { record: true, ..EngineConfig::new(spec.clone()) }).unwrap();
    engine.load(&start).unwrap();
    let mut model = fixed::Model::new(spec.clone()).unwrap();
    model.load(of_model(&start, &spec.network)).unwrap();
    let data = Array2::from_shape_vec((BATCH, 9), x.clone()).unwrap();
    for _ in 0..2 {
        let mut coins = tape(engine.step(&x, &labels).unwrap().rounding);
        model.step(&data, &labels, &mut coins, &mut |_, _| {}).unwrap();
        let secure = of_model(&engine.parameters().unwrap(), &spec.network);
        assert_eq!(&secure, model.parameters(), "{head}, {layers} layers, {rounding}");
    }
    if rounding == Rounding::Nearest {
        let classes = model.predict(&data, &mut Coins::Tape(Tape::default())).unwrap();
        let different = (0..4).filter(|c| classes.contains(c)).count();
        assert!(different > 1 || layers > 3, "too much alike to tell: {classes:?}");
        let hits = classes.iter().zip(&labels).filter(|(c, l)| c == l).count();
        assert_eq!(engine.predict(&x).unwrap(), classes);
        assert_eq!(engine.count_correct(&x, &labels).unwrap(), hits);
    }
}

fn of_model(parameters: &ParameterUnits, network: &NetworkSpec) -> fixed::Parameters {
    let layer = |(l, v): (usize, &LayerUnits)| {
        let matrix = |v: &[i64]| Array2::from_shape_vec(network.shape(l), v.to_vec()).unwrap();
        v.map(|v| matrix(v), |v| Array1::from(v.clone()))
    };
    fixed::Parameters { layers: (1..).zip(&parameters.layers).map(layer).collect() }
}
