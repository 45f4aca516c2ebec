//! Numbers as tables show them.

/// A number in at most eight places.
pub fn short(v: f64) -> String {
    match v {
        0.0 => "0".into(),
        v if (0.001..99_999.5).contains(&v.abs()) => format!("{v:.3}"),
        v => format!("{v:.2e}"),
    }
}
