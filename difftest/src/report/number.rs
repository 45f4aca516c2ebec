//! Numbers as tables show them.

/// A number in at most eight places.
pub fn short(v: f64) -> String {
    match v {
        0.0 => "0".into(),
        v if (0.001..99_999.5).contains(&v.abs()) => format!("{v:.3}"),
        v => format!("{v:.2e}"),
    }
}

/// Per cent in few places, however many there are.
pub fn percent(v: f64) -> String {
    if v < 9999.95 { format!("{v:.1}") } else { format!("{v:.0e}") }
}

/// A number of things: "1 row", "2 rows".
pub fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
