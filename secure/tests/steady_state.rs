//! Training settles: after its first steps no share and no message is allocated any more, at the size that is trained
//! in earnest.

use secure::buffer::Words;
use secure::engine::EngineConfig;
use secure::testing::Training;
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

#[test]
fn no_share_and_no_message_is_allocated_any_more() {
    for rounding in Rounding::ALL {
        for head in Head::ALL {
            let spec = TrainSpec {
                network: NetworkSpec { widths: vec![784, 128, 10] },
                head,
                epsilon: 0.1,
                rounding,
                fixed: FixedSpec::default(),
                sgd: SgdSpec { batch: 128, ..SgdSpec::default() },
            };
            let mut training = Training::start(EngineConfig::new(spec), 200);
            training.steps(20);
            let before = Words::allocated();
            let steps = 20;
            let messages = training.steps(steps).messages;
            let allocated = Words::allocated() - before;
            // Some remain: how many vectors are in use at once depends on how far one party is ahead of another.
            assert!(messages > 80 * u64::from(steps), "{messages}");
            assert!(allocated < u64::from(steps), "{head}, {rounding}: {allocated} vectors in {steps} steps");
        }
    }
}
