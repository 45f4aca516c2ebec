//! The evaluation on a terminal.

use super::claims::CONTRADICTS;
use super::compared::Compared;
use super::result::Findings;
use super::table1::{CHECKPOINTS, Checkpoints};
use crate::count::counted;
use std::fmt::Write;

/// Table 1 beside the paper's, table 1 by side, and the claims.
pub fn text(found: &Findings) -> String {
    let mut out = String::new();
    beside(&mut out, &found.table1);
    sides(&mut out, found);
    out.push_str("\nClaims\n");
    for claim in &found.claims {
        let _ = writeln!(out, "{:13} {}: {}", claim.verdict.to_string(), claim.name, claim.statement);
        let _ = writeln!(out, "{:13}   {}; test: {}", "", claim.place, claim.test);
        let mut numbers: Vec<&String> = claim.numbers.iter().collect();
        numbers.sort_by_key(|n| !n.ends_with(CONTRADICTS));
        numbers.iter().for_each(|n| _ = writeln!(out, "{:13}   {n}", ""));
    }
    out
}

fn cells<T: Copy>(at: Checkpoints<Option<T>>, text: impl Fn(T) -> String) -> String {
    at.all().map(|v| format!("{:>7}", v.map_or("-".into(), &text))).join("")
}

fn beside(out: &mut String, all: &[Compared]) {
    if all.is_empty() {
        return;
    }
    let epochs = CHECKPOINTS.map(|e| e.to_string()).join(", ");
    let _ = writeln!(
        out,
        "\nTable 1 beside the paper's: test accuracy in % after epochs {epochs}; * is a difference beyond twice its \
         standard error"
    );
    for c in all {
        let by_itself = c.time.timed_on.as_ref().map_or(String::new(), |day| format!(" (by itself, {day})"));
        let seconds = match (c.time.seconds, c.time.paper_seconds) {
            (Some(s), Some(p)) => format!(", {:.2} s an epoch, paper {p} s", s.value),
            (Some(s), None) => format!(", {:.2} s an epoch", s.value),
            _ => String::new(),
        };
        let _ =
            writeln!(out, "{} ({}, {} secure){seconds}{by_itself}", c.name(), counted(c.seeds, "seed"), c.secure_seeds);
        if c.seeds == 0 {
            continue;
        }
        let last = c.last.map_or(String::new(), |l| format!("   epoch {}: {:.2}", l.epoch, l.accuracy));
        let _ = writeln!(out, "  {:13}{}{last}", "ours", cells(c.ours, |m| format!("{:.2}", m.mean)));
        let _ = writeln!(out, "  {:13}{}", "real numbers", cells(c.real, |m| format!("{:.2}", m.mean)));
        if c.paper_diverges {
            let _ = writeln!(out, "  {:13}{:>7}", "paper", "diverges");
        } else {
            let _ = writeln!(out, "  {:13}{}", "paper", cells(c.paper, |v| format!("{v:.1}")));
            let (d, b) = (c.difference.all(), c.beyond.all());
            let marked = [0, 1, 2, 3].map(|i| {
                let text = d[i].map(|d| format!("{d:+.2}{}", if b[i] == Some(true) { "*" } else { "" }));
                format!("{:>7}", text.unwrap_or_else(|| "-".into()))
            });
            let _ = writeln!(out, "  {:13}{}", "difference", marked.join(""));
        }
        if let Some(why) = &c.explanation {
            let _ = writeln!(out, "  {why}");
        }
    }
}

fn sides(out: &mut String, found: &Findings) {
    let _ = writeln!(
        out,
        "\nTable 1 by side\n{:8}{:58}{:>9}{:>9}{:>8}{:>7}{:>7}{:>7}  outcome",
        "side", "configuration", "s/epoch", "cpu s", "5", "10", "15", "20"
    );
    for r in &found.sides {
        let seconds = r.seconds_per_epoch.map_or("-".into(), |m| format!("{:.2}", m.value));
        let cpu = r.cpu_seconds.map_or("-".into(), |s| format!("{s:.2}"));
        let accuracy = cells(r.accuracy, |m| format!("{:.2}", m.value));
        let last = r.last.map_or(String::new(), |l| format!(" (epoch {}: {:.2} %)", l.epoch, l.accuracy));
        let _ = writeln!(
            out,
            "{:8}{:58}{seconds:>9}{cpu:>9} {accuracy}  {}{last}",
            r.side.to_string(),
            r.name(),
            r.outcome
        );
    }
    found.machines.iter().for_each(|m| _ = writeln!(out, "machine: {m}"));
    if let Some(why) = found.sides.iter().find_map(|r| r.untimed.as_ref()) {
        let _ = writeln!(out, "seconds bear no claim about time everywhere: {why}");
    }
}
