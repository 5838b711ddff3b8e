//! A table as text for a terminal.

use super::{Align, Table, TableCell, TableColumn, plain};
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle, TableStyle, Width,
};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Spaces between two columns.
const GAP: usize = 2;
/// No column of text is narrower than its longest word, up to this many columns of the terminal. Longer words
/// are broken.
const MAX_UNBROKEN: usize = 24;
/// A line under the header, and nothing else. The gap is half a padding and half this style's.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// A column as it is drawn.
struct TextColumn<'a> {
    column: &'a TableColumn,
    cells: Vec<String>,
    /// Its least width: that of numbers, and of the longest word.
    min_width: usize,
    /// The width in which nothing is wrapped.
    max_width: usize,
}

impl<'a> TextColumn<'a> {
    fn of(table: &'a Table, at: usize) -> Self {
        let column = &table.columns[at];
        let cells: Vec<String> =
            table.rows.iter().map(|row| row.get(at).unwrap_or(&TableCell::Missing).plain()).collect();
        let [name, unit] = [&column.name, &column.unit].map(|text| plain(text));
        let max_cell = cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
        let min_cell = match column.align {
            Align::Right => max_cell,
            Align::Left => cells.iter().map(|cell| longest_word(cell)).max().unwrap_or(0).min(MAX_UNBROKEN),
        };
        TextColumn {
            column,
            min_width: min_cell.max(longest_word(&name)).max(unit.width()),
            max_width: max_cell.max(name.width()).max(unit.width()),
            cells,
        }
    }

    /// The lines of its name, which is broken where it is wider than `width`.
    fn name(&self, width: usize) -> Vec<String> {
        let name = plain(&self.column.name);
        textwrap::wrap(&name, width.max(1)).into_iter().map(|line| line.into_owned()).collect()
    }
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(|word| word.width()).max().unwrap_or(0)
}

impl Table {
    /// Text for terminals: columns padded with spaces, and a line under the header.
    pub fn to_text(&self) -> String {
        self.draw(None)
    }

    /// The same for a terminal with `width` columns. Words are wrapped where that is enough; otherwise the
    /// table continues below with the columns that are left, beside the first one.
    pub fn to_text_within(&self, width: usize) -> String {
        self.draw(Some(width))
    }

    /// The same for a terminal with `width` columns, if there is one.
    pub fn to_text_for(&self, width: Option<usize>) -> String {
        self.draw(width)
    }

    fn draw(&self, width: Option<usize>) -> String {
        let columns: Vec<_> = (0..self.columns.len()).map(|at| TextColumn::of(self, at)).collect();
        let title = if self.title.is_empty() { String::new() } else { plain(&self.title) + "\n" };
        let whole = columns.iter().map(|column| column.max_width + GAP).sum::<usize>().saturating_sub(GAP);
        let parts: Vec<String> = match width.filter(|width| whole > *width) {
            None => vec![draw_part(&columns.iter().collect::<Vec<_>>(), None)],
            Some(width) => parts(&columns, width).iter().map(|part| draw_part(part, Some(width))).collect(),
        };
        title + &parts.join("\n")
    }
}

/// The columns by the parts of the table in which they stand: as many as fit, and the first one in each.
fn parts<'a>(columns: &'a [TextColumn<'a>], width: usize) -> Vec<Vec<&'a TextColumn<'a>>> {
    let Some((first, rest)) = columns.split_first() else { return Vec::new() };
    let mut parts = vec![vec![first]];
    let mut used = first.min_width;
    for column in rest {
        let more = GAP + column.min_width;
        if let Some(part) = parts.last_mut()
            && (used + more <= width || part.len() == 1)
        {
            part.push(column);
            used += more;
        } else {
            parts.push(vec![first, column]);
            used = first.min_width + more;
        }
    }
    parts
}

/// Columns beside each other; no `width`: without wrapping.
fn draw_part(columns: &[&TextColumn<'_>], width: Option<usize>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(STYLE);
    let name_width =
        |column: &TextColumn<'_>| if width.is_some() { column.min_width } else { column.max_width };
    let names: Vec<_> = columns.iter().map(|column| column.name(name_width(column))).collect();
    let lines = names.iter().map(Vec::len).max().unwrap_or(0);
    let has_units = columns.iter().any(|column| !column.column.unit.is_empty());
    table.set_header(columns.iter().zip(&names).map(|(column, name)| {
        // All units stand in one line, and the ends of names in the one above.
        let above = std::iter::repeat_n(String::new(), lines - name.len());
        let unit = has_units.then(|| plain(&column.column.unit));
        above.chain(name.iter().cloned()).chain(unit).collect::<Vec<_>>().join("\n")
    }));
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        table.add_row(columns.iter().map(|column| column.cells.get(row).map_or("", String::as_str)));
    }
    if let Some(width) = width {
        // The padding of the last column is not seen.
        let columns = u16::try_from(width + 1).unwrap_or(u16::MAX);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    }
    for (drawn, column) in table.column_iter_mut().zip(columns) {
        drawn.set_padding((0, 1));
        if column.column.align == Align::Right {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
        if width.is_some() {
            let with_padding = u16::try_from(column.min_width + 1).unwrap_or(u16::MAX);
            drawn.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(with_padding)));
        }
    }
    let mut out = String::new();
    let header_lines = lines + usize::from(has_units);
    for (n, line) in table.lines().enumerate() {
        let line = if n == header_lines { without_padding(&line) } else { line };
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// The line under the header, as wide as the columns without their padding.
fn without_padding(line: &str) -> String {
    let runs = line.split(' ').map(|run| run.chars().skip(1).collect::<String>());
    runs.collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;
    use proptest::prelude::*;

    /// Breaks: columns on a terminal are aligned, and escape sequences are removed.
    #[test]
    fn text_is_aligned() {
        let expected = "\
Times
profile         time
                   s
────────────  ──────
linux-2.6.17    52.4
速い [2J      1234.0
none               –
";
        assert_eq!(table().to_text(), expected);
    }

    /// Breaks: a terminal of 80 columns breaks the lines of a wide table; or words and numbers are broken
    /// although there is room for them.
    #[test]
    fn wide_tables_fit_a_terminal() {
        let mut t = Table::with("Flows", "flow|completion [s]|longest silence [s]|why");
        t.row(vec!["bulk".into(), 52.41.into(), 1.25.into(), "the link is slower than the sender".into()]);
        assert_eq!(t.to_text_within(80), t.to_text());
        let expected = "\
Flows
                  longest
flow  completion  silence  why
               s        s
────  ──────────  ───────  ─────────────────
bulk        52.4     1.25  the link is
                           slower than the
                           sender
";
        assert_eq!(t.to_text_within(44), expected);
        let expected = "\
Flows
flow  completion
               s
────  ──────────
bulk        52.4

      longest
flow  silence  why
            s
────  ───────  ───────
bulk     1.25  the
               link is
               slower
               than
               the
               sender
";
        assert_eq!(t.to_text_within(22), expected);
    }

    proptest! {
        /// Breaks: a table is wider than the terminal although its words are not.
        #[test]
        fn no_line_is_wider_than_the_terminal(
            names in proptest::collection::vec("[a-z ]{0,12}", 1..9),
            cells in proptest::collection::vec("[a-z0-9 ]{0,40}", 0..40),
            width in (2 * MAX_UNBROKEN + GAP)..120,
        ) {
            let mut t = Table::new("", names.iter().map(|name| TableColumn::text(name)).collect());
            for row in cells.chunks(names.len()) {
                t.row(row.iter().map(|cell| cell.as_str().into()));
            }
            for line in t.to_text_within(width).lines() {
                prop_assert!(line.width() <= width, "{line:?}");
            }
        }
    }
}
