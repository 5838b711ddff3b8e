//! Published and measured values, one row per profile (Table 2 of the paper on communication stops as a
//! figure).

use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, Panel, PanelSpec, Size};
use crate::scale::Scale;
use crate::svg::{Colour, Px, text_width};
use farpace_units::number;

/// A mean with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedEstimate {
    /// The mean, or the only value.
    pub mean: f64,
    /// Minimum and maximum, if known.
    pub range: Option<(f64, f64)>,
}

/// A row of the figure, such as a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow<'a> {
    /// Its name.
    pub label: &'a str,
    /// Its values, in the order of [`Sides`].
    pub values: [Option<ComparedEstimate>; 2],
}

/// The meaning of the two values of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides<'a> {
    /// Names of the values, such as "paper" and "measured".
    pub names: [&'a str; 2],
    /// Text in place of a missing value.
    pub missing: [&'a str; 2],
}

/// [`comparison_of`] published and measured values.
pub fn comparison(title: &str, quantity: &str, rows: &[ComparisonRow<'_>]) -> Drawing {
    let sides = Sides { names: ["paper", "measured"], missing: ["not stated", "not measured"] };
    comparison_of(title, quantity, sides, rows)
}

/// Dots for means, whiskers from minimum to maximum, with the first value above the second in each row.
/// `quantity` is the label of the horizontal axis with its unit: `"completion time (s)"`.
pub fn comparison_of(title: &str, quantity: &str, sides: Sides<'_>, rows: &[ComparisonRow<'_>]) -> Drawing {
    Drawing::of(|size| draw(size, title, quantity, sides, rows))
}

/// Height of a row.
const ROW: f64 = 46.0;
/// Maximum number of rows; further ones are omitted.
const MAX_ROWS: usize = 60;

fn draw(size: Size, title: &str, quantity: &str, sides: Sides<'_>, rows: &[ComparisonRow<'_>]) -> String {
    let rows = rows.get(..MAX_ROWS).unwrap_or(rows);
    let values = rows.iter().flat_map(|r| r.values).flatten();
    let ends = values.flat_map(|e| [Some(e.mean), e.range.map(|r| r.0), e.range.map(|r| r.1)]).flatten();
    let (lo, hi) =
        ends.filter(|v| v.is_finite()).fold((f64::MAX, 0.0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    // The position of a dot matters, not its distance from zero. If all values are far from zero, the axis
    // does not start there.
    let lo = if lo > hi / 2.0 && lo < hi { lo - (hi - lo) * 0.25 } else { lo.min(0.0) };
    // Space for the value behind the last whisker.
    let hi = hi + (hi - lo) * size.pick(0.1, 0.22);
    let widest = rows.iter().map(|r| text_width(r.label, 12.0)).fold(0.0, f64::max);
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend: vec![
            (LegendEntry::Circle(Colour::Grey, false), sides.names[0].to_owned()),
            (LegendEntry::Circle(Colour::Blue, true), sides.names[1].to_owned()),
            (LegendEntry::Line(Colour::Grey, ""), "range".to_owned()),
        ],
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: String::new(),
            height: ROW * rows.len().max(1) as f64,
            y: None,
        }],
        x_label: quantity,
        x: Scale::linear(lo, hi),
        left: (widest + 22.0).clamp(40.0, size.pick(300.0, 150.0)),
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if rows.is_empty() {
        chart.nothing("no data");
    }
    for (i, row) in rows.iter().enumerate() {
        let middle = panel.top + ROW * (i as f64 + 0.5);
        let mut y = middle + 4.0;
        let lines = crate::svg::wrap(row.label, 12.0, panel.left - 14.0);
        y -= 7.0 * lines.len().saturating_sub(1) as f64;
        for line in lines {
            chart.note(panel.left - 10.0, y, "end", Colour::Ink, &line);
            y += 14.0;
        }
        let [above, below] = row.values;
        whisker(&mut chart, &panel, middle - 10.0, above.ok_or(sides.missing[0]), false);
        whisker(&mut chart, &panel, middle + 10.0, below.ok_or(sides.missing[1]), true);
    }
    chart.finish()
}

fn whisker(chart: &mut Chart, panel: &Panel, y: f64, value: Result<ComparedEstimate, &str>, full: bool) {
    let colour = if full { Colour::Blue } else { Colour::Grey };
    let e = match value {
        Ok(e) if e.mean.is_finite() => e,
        Ok(_) => return chart.note(panel.left + 6.0, y + 4.0, "start", colour, "not a number"),
        Err(missing) => return chart.note(panel.left + 6.0, y + 4.0, "start", colour, missing),
    };
    let x = panel.px(e.mean);
    let mut end = x + 5.0;
    if let Some((min, max)) = e.range {
        let (a, b) = (panel.px(min), panel.px(max));
        end = end.max(b);
        let path = format!("M{a} {}v8M{a} {1}H{b}M{b} {0}v8", Px(y - 4.0), Px(y), a = Px(a), b = Px(b));
        chart.line(&path, colour, 1.5, "");
    }
    let paint = if full {
        colour.fill()
    } else {
        format!("class=\"hollow s-{}\" fill=\"#ffffff\" stroke=\"{}\"", colour.class(), colour.hex())
    };
    chart.raw(&format!("<circle {paint} stroke-width=\"2\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/>", Px(x), Px(y)));
    chart.note(end + 7.0, y + 4.0, "start", colour, &number(e.mean));
}
