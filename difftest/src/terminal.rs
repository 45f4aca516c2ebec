//! Text on its way to a terminal. What comes out of files (names, recorded commands, messages of parsers that quote
//! their input) may hold control sequences that move the cursor, set the title or write lines of their own; nothing
//! that this program prints needs one. All output passes here.

use std::borrow::Cow;

/// Whether a character acts on the terminal or on the order of the text around it, instead of being shown.
fn acts(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    (c.is_control() && c != '\t') || reorders || breaks || c == '\u{feff}'
}

/// `text` with everything escaped that a terminal would act upon, but its line breaks.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| acts(c) && c != '\n')
}

/// `text` on one line, with everything escaped that a terminal would act upon.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// Recorded text of several lines, each marked as a quotation, so that none passes for a line of this program's own.
pub fn quoted(text: &str) -> String {
    text.split('\n').map(|l| format!("  | {}\n", line(l))).collect()
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_acts_on_a_terminal_is_shown_instead() {
        assert_eq!(lines("PASS  ±2 σ\n  again"), "PASS  ±2 σ\n  again");
        assert_eq!(lines("\u{1b}[2K\rPASS\n"), "\\u{1b}[2K\\rPASS\n");
        assert_eq!(line("a\nb\u{9b}31m\u{202e}\u{2028}"), "a\\nb\\u{9b}31m\\u{202e}\\u{2028}");
        assert_eq!(quoted("FAIL\nPASS  bit-exact\u{7}"), "  | FAIL\n  | PASS  bit-exact\\u{7}\n");
    }

    proptest! {
        #[test]
        fn nothing_that_acts_is_left(text in any::<String>()) {
            prop_assert!(!line(&text).contains(acts));
            prop_assert!(!lines(&text).contains(|c| acts(c) && c != '\n'));
            prop_assert!(quoted(&text).lines().all(|l| l.starts_with("  | ") && !l.contains(acts)));
        }
    }
}
