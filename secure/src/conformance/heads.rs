//! Gradient, probabilities and loss of every head, for several class counts.

use super::operands::logits;
use super::{FORMATS, conform_in, tape};
use crate::engine::{Engine, EngineConfig};
use crate::nn::heads;
use crate::party::Party;
use crate::protocol::multiply::multiply;
use crate::share::Share;
use crate::testing::share;
use ndarray::Array2;
use reference::fixed::{self, Arithmetic, Monitor};
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

spec::by_head!(head_conforms);

fn head_conforms(head: Head, rounding: Rounding) {
    for (rows, classes) in [(48, 10), (30, 2), (13, 3), (6, 17)] {
        for fixed in FORMATS {
            let epsilon = fixed.encode_up(0.1);
            let x = logits(rows, classes, epsilon);
            let labels: Vec<usize> = (0..rows).map(|r| (r * 7) % classes).collect();
            let mut y = vec![0; rows * classes];
            labels.iter().enumerate().for_each(|(r, &l)| y[r * classes + l] = 1);
            let inputs = [share(rows, classes, &x), share(rows, classes, &y)];
            let what = format!("{head}, {classes} classes");
            conform_in(
                fixed,
                rounding,
                &what,
                &inputs,
                &|p: &Party, v: &[Share]| {
                    p.run(async {
                        let out = heads::gradient(p, head, epsilon, &v[0], &v[1]).await?;
                        let probabilities = heads::probabilities(p, &out).await?;
                        let loss = heads::loss(p, head, epsilon, &out, &v[0], &v[1]).await?;
                        let none = || Share::zeros(0, 1);
                        let (loss, finite) = loss.unwrap_or_else(|| (none(), none()));
                        // An infinite loss has no value: both sides say 0 there.
                        let loss = multiply(p, &loss, &finite).await?;
                        Ok(vec![out.gradient, probabilities, loss, finite])
                    })
                },
                &|a| {
                    let x = Array2::from_shape_vec((rows, classes), x.clone()).unwrap();
                    let rows = fixed::heads::Rows::new(&x, &labels).unwrap();
                    let out = fixed::heads::evaluate(a, head, epsilon, rows, &mut |_, _| {}).unwrap();
                    let finite = out.loss.iter().flatten().map(|l| i64::from(l.is_some())).collect();
                    let loss = out.loss.iter().flatten().map(|l| l.unwrap_or(0)).collect();
                    vec![
                        out.gradient.into_raw_vec_and_offset().0,
                        out.probabilities.into_raw_vec_and_offset().0,
                        loss,
                        finite,
                    ]
                },
            );
        }
    }
}

/// The engine's own way: shared by the client, opened to the client.
#[test]
fn a_head_on_given_logits_is_opened_to_the_client_as_the_model_computes_it() {
    for (head, rounding) in Head::ALL.into_iter().flat_map(|h| Rounding::ALL.map(|r| (h, r))) {
        let spec = TrainSpec {
            network: NetworkSpec::dense(9, 6, 4, 2),
            head,
            epsilon: 0.1,
            rounding,
            fixed: FixedSpec::default(),
            sgd: SgdSpec::default(),
        };
        let (x, labels) = (logits(12, 3, spec.epsilon_units()), [2, 0, 1, 1, 2, 0, 1, 2, 0, 0, 1, 2]);
        let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
        let opened = engine.head(&x, 3, &labels).unwrap();
        let (mut coins, mut monitor) = (tape(opened.rounding), Monitor::new(1));
        let mut a = Arithmetic { fixed: spec.fixed, rounding, coins: &mut coins, monitor: &mut monitor };
        let x = Array2::from_shape_vec((12, 3), x).unwrap();
        let rows = fixed::heads::Rows::new(&x, &labels).unwrap();
        let model = fixed::heads::evaluate(&mut a, head, spec.epsilon_units(), rows, &mut |_, _| {}).unwrap();
        coins.finish().unwrap();
        assert_eq!(opened.gradient, model.gradient.into_raw_vec_and_offset().0, "{head}, {rounding}");
        assert_eq!(opened.probabilities, model.probabilities.into_raw_vec_and_offset().0, "{head}, {rounding}");
        assert_eq!(opened.loss, model.loss, "{head}, {rounding}");
        let infinite = opened.loss.is_some_and(|loss| loss.contains(&None));
        assert!(infinite || !matches!(head, Head::ReluProb | Head::ReluProbCut), "no loss is infinite: {head}");
    }
}
