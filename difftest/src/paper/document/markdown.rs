//! Headings, paragraphs and list items in lines of at most [`WIDTH`] columns.

use std::fmt::Write;

/// Columns of a line of text.
pub const WIDTH: usize = 118;

/// `text` in lines of at most [`WIDTH`] columns, those after the first indented.
pub(super) fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut bare = true;
    // A number and its per cent sign stay together.
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split([' ', '\n']).filter(|w| !w.is_empty()) {
        if !bare && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = rest.to_owned();
            bare = true;
        }
        if !bare {
            line.push(' ');
        }
        line.push_str(word);
        bare = false;
    }
    out + &line + "\n"
}

pub(super) fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    out.push_str(&wrapped(text, "", ""));
}

pub(super) fn item(out: &mut String, text: &str) {
    out.push_str(&wrapped(text, "- ", "  "));
}

pub(super) fn heading(out: &mut String, text: &str) {
    let _ = write!(out, "\n### {text}\n");
}
