//! Counts in words: "1 step", "2 steps".

use std::fmt::Display;

/// A number with the noun that it counts, given in the singular: `1 epoch`, `20 epochs`, `0 mismatches`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let plural = match noun {
        _ if n == N::from(1) => "",
        _ if noun.ends_with(['s', 'x', 'z']) || noun.ends_with("tch") || noun.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{n} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_singular_and_everything_else_is_not() {
        for (n, noun, text) in [
            (1, "step", "1 step"),
            (0, "step", "0 steps"),
            (2, "counted epoch", "2 counted epochs"),
            (1, "class", "1 class"),
            (10, "class", "10 classes"),
            (3, "mismatch", "3 mismatches"),
        ] {
            assert_eq!(counted(n, noun), text);
        }
        assert_eq!((counted(1u64, "row"), counted(21usize, "row")), ("1 row".to_owned(), "21 rows".to_owned()));
    }
}
