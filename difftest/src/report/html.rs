//! Reports as one self-contained HTML file: no script, no network, inline style and SVG; light and dark, phone and
//! print; tables with captions and scopes, plots with titles and descriptions.

mod comparison;
pub(crate) mod plot;
mod ticks;

pub use comparison::comparison;

use std::fmt::Write;

/// A page under construction. Text is escaped where it enters.
#[derive(Debug)]
pub(crate) struct Page {
    title: String,
    body: String,
}

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        Page { title: title.into(), body: String::new() }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.push(&format!("<h2>{}</h2>", escape(text)));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.push(&format!("<p>{}</p>", escape(text)));
    }

    /// Markup as it is.
    pub(crate) fn push(&mut self, markup: &str) {
        self.body.push_str(markup);
        self.body.push('\n');
    }

    pub(crate) fn table(&mut self, table: &Table) {
        self.push(&table.markup());
    }

    pub(crate) fn finish(&self) -> String {
        let title = escape(&self.title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, \
             initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light \
             dark\">\n<title>{title}</title>\n<style>\n{}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n{}</main>\n</body>\n</html>\n",
            include_str!("html/style.css"),
            self.body
        )
    }
}

/// A table whose first column names the rows.
#[derive(Debug, Default)]
pub(crate) struct Table {
    caption: String,
    columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// A text, which is escaped.
    Text(String),
    /// A number, which is escaped and right-aligned.
    Number(String),
    /// A number with a bar: part of the largest, 0 to 1.
    Bar(String, f64),
    /// Escaped, with a class: `pass`, `fail` or `open`.
    Verdict(String, &'static str),
    /// One paragraph a line.
    Lines(Vec<String>),
}

impl Table {
    pub(crate) fn new<const N: usize>(caption: &str, columns: [&str; N]) -> Self {
        Table { caption: caption.into(), columns: columns.map(String::from).to_vec(), rows: Vec::new() }
    }

    pub(crate) fn markup(&self) -> String {
        let mut out = format!(
            "<div class=\"wide\" role=\"region\" tabindex=\"0\" \
             aria-label=\"{}\">\n<table>\n<caption>{}</caption>\n<thead><tr>",
            escape(self.caption.split(['.', ':']).next().unwrap_or_default()),
            escape(&self.caption)
        );
        for column in &self.columns {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(column));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (i, cell) in row.iter().enumerate() {
                match cell {
                    Cell::Text(t) if i == 0 => _ = write!(out, "<th scope=\"row\">{}</th>", escape(t)),
                    Cell::Text(t) => _ = write!(out, "<td>{}</td>", escape(t)),
                    Cell::Number(n) => _ = write!(out, "<td class=\"n\">{}</td>", escape(n)),
                    Cell::Bar(n, part) => {
                        let width = (100.0 * part.clamp(0.0, 1.0)).round();
                        _ = write!(out, "<td class=\"n bar\"><i style=\"width:{width}%\"></i>{}</td>", escape(n));
                    }
                    Cell::Verdict(t, class) => _ = write!(out, "<td><b class=\"{class}\">{}</b></td>", escape(t)),
                    Cell::Lines(lines) => {
                        let lines: Vec<_> = lines.iter().map(|l| escape(l)).collect();
                        _ = write!(out, "<td>{}</td>", lines.join("<br>"));
                    }
                }
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>");
        out
    }
}

/// Text that cannot be taken for markup, in elements and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_table_becomes_markup() {
        let mut table = Table::new("a <b>: c", ["x", "y"]);
        table.rows.push(vec![Cell::Text("<script>".into()), Cell::Lines(vec!["\"1\"".into(), "&".into()])]);
        let markup = table.markup();
        assert!(!markup.contains("<script>") && !markup.contains("<b>"), "{markup}");
        assert!(markup.contains("<th scope=\"row\">&lt;script&gt;</th><td>&quot;1&quot;<br>&amp;</td>"), "{markup}");
        assert!(markup.contains("aria-label=\"a &lt;b&gt;\""), "{markup}");
    }
}
