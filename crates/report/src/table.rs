//! Tables in three formats: HTML, plain text for terminals, JSON.
//!
//! Start reading at [`Table`].

mod text;

use crate::html::prose;
use crate::svg::escape;
use farpace_units::number;
use serde_json::{Value, json};
use std::fmt::Write;

/// A table with more columns does not fit on a phone.
const MAX_PHONE_COLUMNS: usize = 3;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left, for text.
    Left,
    /// Right, for numbers.
    Right,
}

/// The header of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    name: String,
    unit: String,
    align: Align,
}

impl TableColumn {
    /// A column of text.
    pub fn text(name: &str) -> Self {
        TableColumn { name: name.to_owned(), unit: String::new(), align: Align::Left }
    }
    /// Name and unit, `time (s)`; without a name, that of the column before it that has one.
    fn label(&self, before: &[TableColumn]) -> String {
        let named = before.iter().rev().find(|c| !c.name.is_empty());
        let name = if self.name.is_empty() { named.map_or("", |c| &c.name) } else { &self.name };
        if self.unit.is_empty() {
            name.to_owned()
        } else {
            format!("{name} ({})", self.unit).trim().to_owned()
        }
    }
    /// A column of numbers in `unit` (may be empty).
    pub fn number(name: &str, unit: &str) -> Self {
        TableColumn { name: name.to_owned(), unit: unit.to_owned(), align: Align::Right }
    }
}

/// A value in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    /// Text.
    Text(String),
    /// A number with this number of decimals, or with about three digits if it is not given.
    Number(f64, Option<u8>),
    /// Text that a page shows as a link: the text elsewhere, what the page shows, and a file beside the page.
    Link(String, String, String),
    /// Unknown: `–`.
    Missing,
}

impl From<&str> for TableCell {
    fn from(text: &str) -> TableCell {
        TableCell::Text(text.to_owned())
    }
}
impl From<String> for TableCell {
    fn from(text: String) -> TableCell {
        TableCell::Text(text)
    }
}
impl From<f64> for TableCell {
    fn from(value: f64) -> TableCell {
        TableCell::Number(value, None)
    }
}
impl From<u64> for TableCell {
    fn from(value: u64) -> TableCell {
        TableCell::Number(value as f64, Some(0))
    }
}
/// A number with so many decimals.
impl From<(f64, u8)> for TableCell {
    fn from((value, decimals): (f64, u8)) -> TableCell {
        TableCell::Number(value, Some(decimals))
    }
}
impl<T: Into<TableCell>> From<Option<T>> for TableCell {
    fn from(value: Option<T>) -> TableCell {
        value.map_or(TableCell::Missing, Into::into)
    }
}

/// Cells of a row, from anything that a [`TableCell`] can be made from.
#[macro_export]
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$($crate::TableCell::from($cell)),*] };
}

impl TableCell {
    /// A number with its sign and so many decimals.
    pub fn signed(value: f64, decimals: usize) -> TableCell {
        if value.is_finite() { format!("{value:+.decimals$}").into() } else { TableCell::Missing }
    }
    fn shown(&self) -> String {
        match self {
            TableCell::Text(text) | TableCell::Link(text, ..) => text.clone(),
            TableCell::Number(value, Some(decimals)) if value.is_finite() => {
                format!("{:.*}", usize::from(*decimals), value + 0.0)
            }
            TableCell::Number(value, _) => number(*value),
            TableCell::Missing => "–".to_owned(),
        }
    }
    /// For a terminal: one line, without control characters.
    fn plain(&self) -> String {
        plain(&self.shown())
    }
    fn json(&self) -> Value {
        match self {
            TableCell::Text(text) | TableCell::Link(text, ..) => json!(text),
            // A value that is not finite becomes null.
            TableCell::Number(value, _) => json!(value),
            TableCell::Missing => Value::Null,
        }
    }
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A table with a title. Missing cells at the end of a row are unknown; surplus cells are discarded.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) title: String,
    columns: Vec<TableColumn>,
    rows: Vec<Vec<TableCell>>,
}

impl Table {
    /// A table without rows. The title may be empty.
    pub fn new(title: &str, columns: Vec<TableColumn>) -> Self {
        Table { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// A table without rows. `heads` are separated by `|`. A head that ends in a unit in brackets, which may
    /// be empty, is that of a column of numbers; any other one is that of a column of words.
    pub fn with(title: impl Into<String>, heads: &str) -> Self {
        let column = |head: &str| match head.trim().strip_suffix(']').and_then(|head| head.rsplit_once('[')) {
            Some((name, unit)) => TableColumn::number(name.trim(), unit),
            None => TableColumn::text(head.trim()),
        };
        Table { title: title.into(), columns: heads.split('|').map(column).collect(), rows: Vec::new() }
    }

    /// Adds a column of numbers.
    pub fn column(&mut self, name: &str, unit: &str) -> &mut Self {
        self.columns.push(TableColumn::number(name, unit));
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = TableCell>) -> &mut Self {
        let mut cells: Vec<TableCell> = cells.into_iter().collect();
        cells.resize(self.columns.len(), TableCell::Missing);
        self.rows.push(cells);
        self
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// `{"title", "columns": [{"name", "unit"}], "rows": [[...]]}`. Numbers stay numbers, and unknown cells
    /// are null.
    pub fn to_json(&self) -> Value {
        let columns = self.columns.iter().map(|c| json!({ "name": c.name, "unit": c.unit }));
        let rows = self.rows.iter().map(|r| r.iter().map(TableCell::json).collect::<Value>());
        json!({ "title": self.title, "columns": columns.collect::<Value>(), "rows": rows.collect::<Value>() })
    }

    /// A `<table>` in a box that scrolls horizontally on narrow screens, the `nth` of its title on the page:
    /// a screen reader tells boxes apart by their names.
    pub fn to_html(&self, nth: u32) -> String {
        let class = |c: &TableColumn| if c.align == Align::Right { " class=\"n\"" } else { "" };
        // On a phone the rows of a wide table become lists.
        let stacked = if self.columns.len() > MAX_PHONE_COLUMNS { " class=\"stacked\"" } else { "" };
        let name = if self.title.is_empty() { "Table" } else { &self.title };
        let nth = if nth > 1 { format!(", {nth}") } else { String::new() };
        let mut out = format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}{nth}\"><table{stacked}>",
            escape(&name.replace('`', ""))
        );
        if !self.title.is_empty() {
            let _ = write!(out, "<caption>{}</caption>", prose(&self.title));
        }
        out.push_str("<thead><tr>");
        for c in &self.columns {
            if c.name.is_empty() && c.unit.is_empty() {
                // An empty cell is the head of nothing.
                out.push_str("<td></td>");
                continue;
            }
            let _ = write!(out, "<th scope=\"col\"{}>{}", class(c), escape(&c.name));
            if !c.unit.is_empty() {
                let _ = write!(out, "<span class=\"unit\">{}</span>", escape(&c.unit));
            }
            out.push_str("</th>");
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (i, (cell, c)) in row.iter().zip(&self.columns).enumerate() {
                let text = match cell {
                    TableCell::Link(_, label, path) => {
                        format!("<a href=\"{}\">{}</a>", escape(path), escape(label))
                    }
                    _ => prose(&cell.shown()),
                };
                let _ = match i {
                    0 if !text.is_empty() => write!(out, "<th scope=\"row\"{}>{text}</th>", class(c)),
                    _ => {
                        let label = c.label(self.columns.get(..i).unwrap_or_default());
                        write!(out, "<td{} data-label=\"{}\">{text}</td>", class(c), escape(&label))
                    }
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn table() -> Table {
        let mut t = Table::new("Times", vec![TableColumn::text("profile"), TableColumn::number("time", "s")]);
        t.row(vec!["linux-2.6.17".into(), 52.4.into()]);
        t.row(vec!["速い\u{1b}[2J".into(), TableCell::Number(1234.0, Some(1))]);
        t.row(vec!["none".into()]);
        t
    }

    /// Breaks: JSON contains numbers as numbers, in the right columns.
    #[test]
    fn json_keeps_numbers() {
        let expected = json!({
            "title": "Times",
            "columns": [{"name": "profile", "unit": ""}, {"name": "time", "unit": "s"}],
            "rows": [["linux-2.6.17", 52.4], ["速い\u{1b}[2J", 1234.0], ["none", null]],
        });
        assert_eq!(table().to_json(), expected);
    }

    /// Breaks: heads in one string become other columns, or a unit becomes part of a name.
    #[test]
    fn heads_stand_in_one_string() {
        let mut short = Table::with("Times", "profile | time [s] | runs []");
        short.column("loss", "%").row(cells!["a", (1.25, 1), 3_u64, TableCell::signed(0.5, 1)]);
        let columns = vec![
            TableColumn::text("profile"),
            TableColumn::number("time", "s"),
            TableColumn::number("runs", ""),
            TableColumn::number("loss", "%"),
        ];
        let mut long = Table::new("Times", columns);
        let number = |value, decimals| TableCell::Number(value, Some(decimals));
        long.row(vec!["a".into(), number(1.25, 1), number(3.0, 0), "+0.5".into()]);
        assert_eq!(short, long);
    }

    /// Breaks: on a phone a value is named by its unit alone, or backticks stand in a page.
    #[test]
    fn a_column_without_a_name_has_that_of_the_one_before() {
        let mut t = Table::with("What `x` does", "path | delay [ms, mean] | [ms, 95 %] | best | [Mbit/s]");
        t.row(cells!["`a`", (1.0, 1), (2.0, 1), "cubic", (3.0, 1)]);
        let html = t.to_html(1);
        for part in ["delay (ms, 95 %)", "best (Mbit/s)", "<code>x</code>", "<code>a</code>"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains('`'), "{html}");
    }

    /// Breaks: cells cannot inject markup, and numbers are aligned right.
    #[test]
    fn html_is_escaped() {
        let mut t = Table::new("<script>", vec![TableColumn::text("<b>"), TableColumn::number("n", "<i>")]);
        t.row(vec!["<u>".into(), f64::NAN.into(), "cut".into()]);
        t.row(vec![TableCell::Link("<u>".into(), "see".into(), "\"<b>".into())]);
        let html = t.to_html(1);
        assert!(t.to_html(2).contains(", 2\"><table"), "two boxes of one name");
        for bad in ["<script", "<b>", "<i>", "<u>", "cut", "NaN"] {
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(html.contains("<a href=\"&quot;&lt;b&gt;\">see</a>"));
        assert!(html.contains("<td class=\"n\" data-label=\"n (&lt;i&gt;)\">–</td>"));
    }
}
