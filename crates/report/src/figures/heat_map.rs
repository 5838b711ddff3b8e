//! A matrix of positive and negative values, with colours that show their magnitude.

use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, PanelSpec, Size};
use crate::scale::Scale;
use crate::svg::{Colour, Px, escape, text_width};
use farpace_units::number;

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow<'a> {
    /// Its name.
    pub label: &'a str,
    /// One value per column; none without a measurement.
    pub values: Vec<Option<f64>>,
}

/// A heat map of `rows` by `columns`. `signs` are the meanings of positive and negative values, with the
/// unit.
pub fn heat_map(title: &str, signs: [&str; 2], columns: &[&str], rows: &[HeatRow<'_>]) -> Drawing {
    Drawing::of(|size| draw(size, title, signs, columns, rows))
}

const ROW: f64 = 20.0;
/// Size of the type of numbers and column labels.
const TYPE: f64 = 11.0;
/// Maximum number of rows and columns; further ones are omitted.
pub const MAX_FIELDS: usize = 60;
/// Opacity of the largest value; numbers remain legible on it.
const STRONGEST: f64 = 0.75;

fn draw(
    size: Size,
    title: &str,
    [positive, negative]: [&str; 2],
    columns: &[&str],
    rows: &[HeatRow<'_>],
) -> String {
    let (columns, rows) =
        (columns.get(..MAX_FIELDS).unwrap_or(columns), rows.get(..MAX_FIELDS).unwrap_or(rows));
    let widest = |labels: &mut dyn Iterator<Item = &str>, size| {
        labels.map(|l| text_width(l, size)).fold(0.0, f64::max)
    };
    let head = widest(&mut columns.iter().copied(), TYPE) + 14.0;
    let left = widest(&mut rows.iter().map(|r| r.label), TYPE) * 1.06 + 16.0;
    let values = rows.iter().flat_map(|r| r.values.iter().take(columns.len())).flatten();
    let largest = values.copied().filter(|v| v.is_finite()).fold(0.0f64, |top, v| top.max(v.abs()));
    let any_negative = rows.iter().flat_map(|r| &r.values).flatten().any(|v| *v < 0.0);
    let mut legend = vec![(LegendEntry::Area(Colour::Blue, STRONGEST), positive.to_owned())];
    if any_negative {
        legend.push((LegendEntry::Area(Colour::Vermillion, STRONGEST), negative.to_owned()));
    }
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend,
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: String::new(),
            height: head + ROW * rows.len().max(1) as f64,
            y: None,
        }],
        x_label: "",
        x: Scale::cases(columns.len()),
        left: left.clamp(40.0, size.pick(300.0, 150.0)),
        right: 8.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if rows.is_empty() || columns.is_empty() {
        chart.nothing("no data");
    }
    for (i, label) in columns.iter().enumerate() {
        let (x, y) = (Px(panel.px(i as f64) + 4.0), Px(panel.top + head - 6.0));
        chart.raw(&format!(
            "<text class=\"f-ink\" fill=\"{}\" font-size=\"{TYPE}\" transform=\"translate({x} {y}) \
             rotate(-90)\">{}</text>",
            Colour::Ink.hex(),
            escape(label)
        ));
    }
    let width = panel.px(1.0) - panel.px(0.0) - 2.0;
    let numbers = || rows.iter().flat_map(|r| r.values.iter().take(columns.len())).flatten().copied();
    let fits = |decimals: &usize| numbers().all(|v| text_width(&shown_as(v, *decimals), TYPE) <= width);
    let decimals = (1..=decimals_of(largest)).rev().find(fits).unwrap_or(1);
    for (n, row) in rows.iter().enumerate() {
        let top = panel.top + head + ROW * n as f64;
        text(&mut chart, panel.left - 8.0, top + 14.0, "end", row.label);
        for (i, value) in row.values.iter().take(columns.len()).enumerate() {
            let (from, to) = (panel.px(i as f64 - 0.5), panel.px(i as f64 + 0.5));
            let Some(value) = value.filter(|v| v.is_finite()) else { continue };
            // A value that is rounded to zero has no colour.
            let scale = libm::pow(10.0, digits_of(value, decimals) as f64);
            let shown = (value * scale).round() / scale + 0.0;
            let colour = if value < 0.0 { Colour::Vermillion } else { Colour::Blue };
            let strength = (shown.abs() / largest.max(1e-9)).sqrt() * STRONGEST;
            chart.raw(&format!(
                "<rect {} fill-opacity=\"{strength:.2}\" x=\"{}\" y=\"{}\" width=\"{}\" \
                 height=\"{}\"><title>{}, {}: {}</title></rect>",
                colour.fill(),
                Px(from + 0.5),
                Px(top + 0.5),
                Px(to - from - 1.0),
                Px(ROW - 1.0),
                escape(row.label),
                escape(columns.get(i).copied().unwrap_or_default()),
                number(value)
            ));
            text(&mut chart, panel.px(i as f64), top + 14.0, "middle", &shown_as(shown, decimals));
        }
    }
    chart.finish()
}

/// Decimals of the numbers of a map: those below 10 have three significant digits at the largest of them.
fn decimals_of(largest: f64) -> usize {
    let exponent = libm::floor(libm::log10(largest.max(1e-6)));
    if exponent >= 1.0 { 1 } else { (2.0 - exponent) as usize }
}

/// Numbers of two digits and more have no decimals, where others have one.
fn digits_of(value: f64, decimals: usize) -> usize {
    if decimals == 1 && value.abs() >= 10.0 { 0 } else { decimals }
}

/// A number as its field shows it. With one decimal, whole numbers have none.
fn shown_as(value: f64, decimals: usize) -> String {
    let digits = digits_of(value, decimals);
    if value == 0.0 || (digits == 1 && value.fract() == 0.0) {
        return format!("{value:.0}");
    }
    format!("{value:.digits$}")
}

fn text(chart: &mut Chart, x: f64, y: f64, anchor: &str, text: &str) {
    chart.raw(&format!(
        "<text class=\"f-ink\" fill=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" \
         font-size=\"{TYPE}\">{}</text>",
        Colour::Ink.hex(),
        Px(x),
        Px(y),
        escape(text)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: each field has its number and the colour of its sign, and a missing value has no field.
    #[test]
    fn fields_show_their_numbers() {
        let rows = [
            HeatRow { label: "<10 ms>", values: vec![Some(40.0), None] },
            HeatRow { label: "50 ms", values: vec![Some(-10.0), Some(f64::NAN), Some(99.0)] },
            HeatRow { label: "90 ms", values: vec![Some(-0.04), Some(-0.26)] },
        ];
        let svg = heat_map("Gain", ["saved", "lost"], &["small", "large"], &rows).wide;
        assert!(svg.contains("&lt;10 ms&gt;, small: 40") && svg.contains("50 ms, small: -10"), "{svg}");
        assert_eq!(svg.matches("<title>").count(), 5, "one title of the figure and four of fields: {svg}");
        assert!(svg.contains(">-0.3<") && svg.contains(">40<"), "{svg}");
        assert!(!svg.contains(">-0<") && svg.contains(">0<"), "{svg}");
        let field = |text: &str| svg.lines().find(|l| l.contains(text)).unwrap();
        assert!(field(": 40").contains("f-blue") && field(": 40").contains("\"0.75\""));
        assert!(field(": -10").contains("f-vermillion") && field(": -10").contains("\"0.38\""));
    }

    /// Breaks: a map of small numbers, such as intervals of a fairness index, has 0.1 or 0.0 in every field.
    #[test]
    fn small_numbers_have_digits() {
        let row = |values: &[f64]| HeatRow { label: "r", values: values.iter().copied().map(Some).collect() };
        let svg = |values: &[f64]| heat_map("t", ["", ""], &["a", "b"], &[row(values)]).wide;
        let fairness = svg(&[0.0764, 0.03]);
        assert!(fairness.contains(">0.0764<") && fairness.contains(">0.0300<"), "{fairness}");
        let percent = svg(&[3.043, 4.26]);
        assert!(percent.contains(">3.04<") && percent.contains(">4.26<"), "{percent}");
        let heads = ["c"; MAX_FIELDS];
        let many = heat_map("t", ["", ""], &heads, &[row(&[0.1234; MAX_FIELDS])]).wide;
        assert!(many.contains(">0.1<") && !many.contains(">0.123<"), "what has no place is shorter");
    }
}
