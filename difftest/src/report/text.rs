//! The report as text.

use super::number::{count, percent, short};
use super::{Report, TensorRow, budget};
use crate::config::{Config, Mode};
use crate::explain::health;
use crate::run::free::Point;
use crate::side::Spent;
use std::fmt::Write;

/// The lines that say what is run, before it is.
pub fn heading(config: &Config) -> String {
    let Config { spec, mode, steps, seed, .. } = config;
    let widths: Vec<_> = spec.network.widths.iter().map(ToString::to_string).collect();
    let mut out = String::new();
    let mode = match mode {
        Mode::Lockstep => "lock-step: all sides start every step from the same opened weights",
        Mode::Free => "free: every side trains on its own",
    };
    let data = config.data.as_ref().map_or("MNIST as shipped".into(), |d| d.display().to_string());
    let velocity = match spec.sgd.extra_velocity_bits {
        0 => String::new(),
        x => format!(", velocities with {x} extra bits"),
    };
    let _ = writeln!(
        out,
        "difftest   {}   layers {} ({})   {} rounding",
        spec.head,
        spec.network.layers(),
        widths.join("-"),
        spec.rounding
    );
    let _ = writeln!(
        out,
        "           batch {}, lr {}, momentum {}, epsilon {}, f = {}, values below 2^{}{velocity}",
        spec.sgd.batch,
        spec.sgd.learning_rate,
        spec.sgd.momentum,
        spec.epsilon,
        spec.fixed.fraction_bits,
        spec.fixed.value_bits - 1 - spec.fixed.fraction_bits
    );
    let _ = writeln!(out, "           {}, seed {seed}, {data}", count(*steps, "step"));
    let _ = writeln!(out, "           {mode}");
    if let Some(model) = &config.loaded {
        let _ = writeln!(out, "           goes on with {}", model.display());
    }
    if let Some(seed) = config.insecure_seed {
        let _ = writeln!(
            out,
            "           INSECURE: the parties' randomness comes from seed {seed}; their shares hide nothing"
        );
    }
    out
}

fn table(rows: &[TensorRow], f: u32) -> String {
    let mut out = format!(
        "\n{:<26} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}\n\
         {:<26} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}\n",
        "tensor",
        "elements",
        "max error",
        "mean error",
        "max error",
        "mean error",
        "bound",
        "tightness",
        "ambiguous",
        "",
        "",
        "units",
        "units",
        "real",
        "real",
        "units",
        "",
        ""
    );
    for r in rows {
        // Where every element is ambiguous none has an error.
        let error = |text: String| if r.ambiguous < r.elements { text } else { "-".into() };
        let _ = writeln!(
            out,
            "{:<26} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}{}",
            r.tensor,
            r.elements,
            error(short(r.max_error_units)),
            error(short(r.mean_error_units)),
            error(format!("{:.2e}", r.max_error)),
            error(format!("{:.2e}", r.mean_error)),
            short(r.bound_units),
            r.tightness.map_or("-".into(), short),
            r.ambiguous,
            if r.outside > 0 { format!("   {} OUTSIDE", r.outside) } else { String::new() }
        );
    }
    let _ = writeln!(
        out,
        "errors: |secure - real|, a unit is 2^-{f}; bound: at the element with the largest error; tightness: bound / \
         that error"
    );
    out
}

/// How tight the bounds of the tensors that matter most were.
fn medians(rows: &[TensorRow]) -> String {
    let mut out = String::new();
    let value = |v: Option<f64>| v.map_or("-".into(), short);
    for row in rows.iter().filter(|r| budget::SHOWN.contains(&r.tensor.as_str())) {
        let head = if out.is_empty() { "median tightness" } else { "" };
        let _ = write!(out, "{head:<26} {:<15} worst case {}", row.tensor, value(row.median_tightness));
        if let Some(s) = &row.statistical {
            let _ = write!(out, ", statistical {} (bound {} units)", value(s.median_tightness), short(s.bound_units));
        }
        out.push('\n');
    }
    out
}

fn details(report: &Report) -> String {
    let mut out = String::from("\nnearest to their bounds\n");
    for d in &report.details {
        let _ = writeln!(
            out,
            "  {:<34} real {:>16.9}   integer {:>12}   secure {:>12}   error {:.3e}   bound {:.3e}   {}",
            d.at, d.real, d.integer, d.secure, d.error, d.bound, d.verdict
        );
    }
    out
}

fn curve(points: &[Point]) -> String {
    let mut out = format!(
        "\n{:>8} {:>12} {:>12} {:>10} {:>10} {:>10} {:>10}\n{:>8} {:>12} {:>12} {:>10} {:>10} {:>10} {:>10}\n",
        "step",
        "drift",
        "noise floor",
        "loss",
        "loss",
        "accuracy",
        "accuracy",
        "",
        "real-secure",
        "two secure",
        "real",
        "secure",
        "real",
        "secure"
    );
    let loss = |v: Option<Option<f64>>| match v {
        None => "-".to_owned(),
        Some(None) => "infinite".into(),
        Some(Some(v)) => format!("{v:.4}"),
    };
    for p in points {
        let _ = writeln!(
            out,
            "{:>8} {:>12.3e} {:>12.3e} {:>10} {:>10} {:>8.2} % {:>8.2} %",
            p.step,
            p.drift,
            p.noise,
            loss(p.loss.map(|l| l.0)),
            loss(p.loss.map(|l| l.1)),
            100.0 * p.accuracy.0,
            100.0 * p.accuracy.1
        );
    }
    out.push_str("drift: root mean square over all weights; loss and accuracy on the first test rows\n");
    out
}

/// How each side's training went, a line a side.
fn training(report: &Report) -> String {
    let mut out = format!(
        "\n{:<14} {:>20} {:>10} {:>14} {:>14} {:>12} {:>18} {:>18}\n\
         {:<14} {:>20} {:>10} {:>14} {:>14} {:>12} {:>18} {:>18}\n",
        "training watch",
        "loss",
        "accuracy",
        "largest logit",
        "largest weight",
        "dead units",
        "updates vanish",
        "velocities stuck",
        "",
        "first -> last",
        "test",
        "% of range",
        "% of range",
        "",
        "by layer",
        "by layer"
    );
    for w in &report.watch {
        let of_range = |v: f64| format!("{} {:>5}", short(v), percent(100.0 * v / w.limit));
        let _ = writeln!(
            out,
            "{:<14} {:>20} {:>8.2} % {:>14} {:>14} {:>12} {:>18} {:>18}",
            w.side,
            health::losses(w.loss),
            100.0 * w.accuracy,
            of_range(w.largest_logit),
            of_range(w.largest_weight),
            health::dead_units(&w.layers),
            health::percentages(&w.layers, |l| l.vanishing),
            health::percentages(&w.layers, |l| l.stuck)
        );
    }
    let f = report.config.spec.fixed.fraction_bits;
    let rows = match report.config.mode {
        Mode::Lockstep => "of the batches",
        Mode::Free => "of the first test rows, from the weights before and after (all that is opened)",
    };
    let _ = writeln!(out, "loss, logits and dead units {rows}; an update vanishes below 2^-{f}; - is not to be seen");
    if report.watch.iter().flat_map(|w| &w.layers).any(|l| l.stuck.is_some_and(|s| s > 0.0))
        && report.config.spec.sgd.extra_velocity_bits == 0
    {
        out.push_str("stuck: nearest rounding keeps small velocities from decaying; --velocity-bits 8 lets them\n");
    }
    out
}

fn cost(report: &Report) -> String {
    let steps = report.steps.max(1) as f64;
    let each = |s: &Spent| 1e3 * s.seconds / steps;
    let c = &report.cost;
    let mut out = format!(
        "time per step   real {:.2} ms   integer {:.2} ms   secure {:.2} ms, {:.0} times real, kernel {}\n",
        each(&c.real),
        each(&c.integer),
        each(&c.secure),
        c.secure.seconds / c.real.seconds.max(1e-9),
        c.kernel
    );
    let _ = writeln!(
        out,
        "cost per step   {} rounds, {} messages, {:.3} MB (all parties)",
        c.secure.rounds / report.steps.max(1) as u64,
        c.secure.messages / report.steps.max(1) as u64,
        c.secure.bytes as f64 / steps / 1e6
    );
    out
}

/// Everything after the heading.
pub fn body(report: &Report) -> String {
    let mut out = String::new();
    if !report.tensors.is_empty() {
        out += &table(&report.tensors, report.config.spec.fixed.fraction_bits);
    }
    out += &budget::summary(&report.budget);
    out += &medians(&report.tensors);
    if !report.details.is_empty() {
        out += &details(report);
    }
    if !report.curve.is_empty() {
        out += &curve(&report.curve);
    }
    out += &training(report);
    if report.before > 0 {
        let _ = writeln!(out, "\nresumed after step {}: all of this is about the steps since", report.before);
    }
    out.push('\n');
    for check in &report.checks {
        out += &check.line();
    }
    let a = &report.accuracy;
    let _ = writeln!(
        out,
        "\ntest accuracy   real {:.2} %   secure {:.2} %   chance {:.2} %   ({})",
        100.0 * a.real,
        100.0 * a.secure,
        100.0 * a.chance,
        count(a.rows, "row")
    );
    out += &cost(report);
    for failure in report.checks.iter().filter_map(|c| c.failure.as_ref()) {
        let _ = writeln!(out, "\n{failure}");
    }
    out
}
