//! A histogram with logarithmic axes, so that one value among millions is visible.

use super::Level;
use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, PanelSpec, Size};
use crate::palette::Thing;
use crate::scale::Scale;
use crate::svg::{Px, escape};
use crate::{Exploration, ExploreAxis, ExplorePanel, ExploreSeries, SeriesKind};
use farpace_units::number;
use std::fmt::Write;

/// A bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Lower limit of the values.
    pub from: f64,
    /// Upper limit of the values.
    pub to: f64,
    /// Number of values.
    pub count: u64,
}

/// A histogram with logarithmic axes. A line marks the value `mark`. The labels are those of the axes, with
/// units.
pub fn histogram(
    title: &str,
    x_label: &str,
    y_label: &str,
    bars: &[Bar],
    mark: Option<&Level<'_>>,
) -> Drawing {
    Drawing::of(|size| draw(size, title, x_label, y_label, bars, mark))
        .explored(explore(title, x_label, y_label, bars, mark))
}

/// The bars that are drawn.
fn drawable(bars: &[Bar]) -> Vec<&Bar> {
    let drawable = |bar: &&Bar| bar.from.is_finite() && bar.to.is_finite() && bar.to > 0.0 && bar.count > 0;
    bars.iter().filter(drawable).take(MAX).collect()
}

/// The ends of the horizontal axis.
fn ends(bars: &[&Bar], mark: Option<&Level<'_>>) -> (f64, f64) {
    let ends = bars.iter().flat_map(|bar| [bar.from, bar.to]).chain(mark.map(|m| m.value));
    let ends = ends.filter(|v| *v > 0.0);
    let (low, high) = ends.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    (low / AROUND, high * AROUND)
}

/// The upper end of the vertical axis.
fn top(bars: &[&Bar]) -> f64 {
    (bars.iter().map(|bar| bar.count).max().unwrap_or(1) as f64 * 1.5).max(10.0)
}

fn explore(title: &str, x_label: &str, y_label: &str, bars: &[Bar], mark: Option<&Level<'_>>) -> Exploration {
    let bars = drawable(bars);
    let (low, high) = ends(&bars, mark);
    let y = (MIN_COUNT, top(&bars));
    let mut series = ExploreSeries::new(y_label, SeriesKind::Bars, Thing::Count.style());
    for bar in &bars {
        series.push_until(bar.from.max(low), bar.count as f64, bar.to);
    }
    let mark = mark.map(|m| ExploreSeries::marks(m.label, Thing::Level.style(), [(m.value, y.0, y.1)]));
    Exploration {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        x: ExploreAxis::Values(low, high, true),
        panels: if bars.is_empty() {
            Vec::new()
        } else {
            vec![ExplorePanel {
                heading: String::new(),
                y_label: y_label.to_owned(),
                y,
                log: true,
                fit: false,
                series: std::iter::once(series).chain(mark).collect(),
            }]
        },
        events: Vec::new(),
        remote: None,
    }
}

/// Maximum number of bars; further ones are omitted.
const MAX: usize = 1_000;
/// Space left and right of the bars, as a factor.
const AROUND: f64 = 2.0;
/// The lower end of the vertical axis: below one, so that a bar with one value is visible.
const MIN_COUNT: f64 = 0.7;

fn draw(
    size: Size,
    title: &str,
    x_label: &str,
    y_label: &str,
    bars: &[Bar],
    mark: Option<&Level<'_>>,
) -> String {
    let bars = drawable(bars);
    let (low, high) = ends(&bars, mark);
    let legend = mark.map(|mark| (LegendEntry::Line(Thing::Level.colour(), DASH), mark.label.to_owned()));
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend: legend.into_iter().collect(),
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: y_label.to_owned(),
            height: size.pick(220.0, 200.0),
            y: Some(Scale::log(MIN_COUNT, top(&bars))),
        }],
        x_label,
        x: Scale::log(low, high),
        left: 48.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if bars.is_empty() {
        chart.nothing("no data");
        return chart.finish();
    }
    let mut elements = String::new();
    for bar in bars {
        let (left, right, height) = (panel.px(bar.from), panel.px(bar.to), panel.py(bar.count as f64));
        let _ = writeln!(
            elements,
            "<rect {} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            Thing::Count.colour().fill(),
            Px(left),
            Px(height),
            Px((right - left - 0.5).max(1.5)),
            Px(panel.bottom() - height),
            escape(&format!("{}: {} to {}", bar.count, number(bar.from), number(bar.to)))
        );
    }
    chart.raw(&elements);
    if let Some(mark) = mark.filter(|mark| panel.shows(mark.value)) {
        let x = Px(panel.px(mark.value));
        chart.line(
            &format!("M{x} {}V{}", Px(panel.top), Px(panel.bottom())),
            Thing::Level.colour(),
            1.2,
            DASH,
        );
    }
    chart.finish()
}

/// Dash of the mark.
const DASH: &str = "3 3";

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: one value among millions is visible, empty bars are not drawn, and absurd numbers do not cause
    /// a panic.
    #[test]
    fn rare_values_are_visible() {
        let bar = |from, to, count| Bar { from, to, count };
        let bars = [bar(10.0, 11.0, 1_000_000), bar(500.0, 550.0, 1), bar(0.0, 0.5, 3), bar(5.0, 6.0, 0)];
        let odd = [bar(f64::NAN, 1.0, 1), bar(1.0, f64::INFINITY, 1), bar(-2.0, -1.0, 1)];
        let all = [&bars[..], &odd].concat();
        let mark = Level { label: "at the mean rate", value: 12.0 };
        let svg = histogram("Intervals", "time (us)", "frames", &all, Some(&mark)).wide;
        let heights: Vec<f64> = svg
            .split("<rect class=\"f-blue\"")
            .skip(1)
            .map(|rect| rect.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights.len(), 3);
        assert!(heights[0] > heights[1] && heights[1] > 3.0, "{heights:?}");
        assert!(svg.contains("at the mean rate") && !svg.contains("NaN"));
        assert!(histogram("t", "x", "y", &[], None).narrow.contains("no data"));
        assert!(!histogram("t", "x", "y", &bars[..1], None).wide.contains("NaN"));
    }
}
