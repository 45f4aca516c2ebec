//! Training settles: after its first steps no share and no message is allocated any more.

use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use secure::engine::{Engine, EngineConfig, LayerUnits, ParameterUnits};
use secure::words::Words;

const ROWS: usize = 200;
const BATCH: u32 = 70;

/// An engine with parameters and data, small numbers that are not zero.
fn engine(spec: &TrainSpec) -> Engine {
    let units = |n: usize| (0..n as i64).map(|i| i * 7919 % 9001 - 4500).collect::<Vec<_>>();
    let layer = |l| {
        let (rows, cols) = spec.network.shape(l);
        LayerUnits {
            weights: units(rows * cols),
            bias: units(cols),
            weight_velocity: vec![0; rows * cols],
            bias_velocity: vec![0; cols],
        }
    };
    let parameters = ParameterUnits { layers: (1..=spec.network.layers()).map(layer).collect() };
    let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
    engine.load(&parameters).unwrap();
    let labels: Vec<usize> = (0..ROWS).map(|i| i * 7 % spec.network.classes()).collect();
    engine.load_data(&units(ROWS * spec.network.inputs()), &labels).unwrap();
    engine
}

#[test]
fn no_share_and_no_message_is_allocated_any_more() {
    let batches = |steps: u32| -> Vec<Vec<u32>> {
        (0..steps).map(|k| (0..BATCH).map(|i| (i * 3 + k) % ROWS as u32).collect()).collect()
    };
    for rounding in Rounding::ALL {
        for head in Head::ALL {
            let spec = TrainSpec {
                network: NetworkSpec { widths: vec![300, 130, 10] },
                head,
                epsilon: 0.1,
                rounding,
                fixed: FixedSpec::default(),
                sgd: SgdSpec { batch: BATCH as usize, ..SgdSpec::default() },
            };
            let mut engine = engine(&spec);
            engine.train(&batches(20)).unwrap();
            let before = Words::allocated();
            let steps = 50;
            let messages = engine.train(&batches(steps)).unwrap().messages;
            let allocated = Words::allocated() - before;
            // Some remain: how many vectors are in use at once depends on how far one party is ahead of another.
            assert!(messages > 80 * u64::from(steps), "{messages}");
            assert!(allocated < u64::from(steps), "{head}, {rounding}: {allocated} vectors in {steps} steps");
        }
    }
}
