//! The claims, with their numbers folded away.

use super::super::claims::Judgement;
use super::super::result::Findings;
use crate::report::html::{Page, escape};

pub(super) fn claims(page: &mut Page, found: &Findings) {
    page.heading("Claims");
    page.paragraph("The paper's claims in our words, judged from the finished cells. ± is one standard error.");
    for c in &found.claims {
        let class = match c.verdict {
            Judgement::Holds => "pass",
            Judgement::DoesNotHold => "fail",
            Judgement::NotTested => "open",
        };
        let lines: String = c.numbers.iter().map(|n| format!("<li>{}</li>", escape(n))).collect();
        page.push(&format!(
            "<h3><b class=\"{class}\">{}</b> {}</h3>\n<p>{} ({}.) Test: {}</p>\n<details><summary>numbers \
             ({})</summary><ul>{lines}</ul></details>",
            c.verdict,
            escape(c.name),
            escape(&c.statement),
            escape(c.place),
            escape(&c.test),
            c.numbers.len()
        ));
    }
}
