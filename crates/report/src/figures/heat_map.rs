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
const MAX: usize = 60;
/// Opacity of the largest value; numbers remain legible on it.
const STRONGEST: f64 = 0.75;

fn draw(
    size: Size,
    title: &str,
    [positive, negative]: [&str; 2],
    columns: &[&str],
    rows: &[HeatRow<'_>],
) -> String {
    let (columns, rows) = (columns.get(..MAX).unwrap_or(columns), rows.get(..MAX).unwrap_or(rows));
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
    for (n, row) in rows.iter().enumerate() {
        let top = panel.top + head + ROW * n as f64;
        text(&mut chart, panel.left - 8.0, top + 14.0, "end", row.label);
        for (i, value) in row.values.iter().take(columns.len()).enumerate() {
            let (from, to) = (panel.px(i as f64 - 0.5), panel.px(i as f64 + 0.5));
            let Some(value) = value.filter(|v| v.is_finite()) else { continue };
            // A value that is rounded to zero has no colour.
            let shown = if value.abs() < 10.0 { (value * 10.0).round() / 10.0 } else { value.round() } + 0.0;
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
            let digits = usize::from(shown.fract() != 0.0);
            text(&mut chart, panel.px(i as f64), top + 14.0, "middle", &format!("{shown:.digits$}"));
        }
    }
    chart.finish()
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
}
