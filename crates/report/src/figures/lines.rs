//! Several values over time in one panel, for example the windows or rates of several algorithms.

use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, PanelSpec, Size};
use crate::paths::StepLine;
use crate::scale::Scale;
use crate::svg::{Colour, Px};

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeLine<'a> {
    /// Its name.
    pub label: &'a str,
    /// Seconds and values in order of time. Each value holds until the next.
    pub points: Vec<(f64, f64)>,
}

/// A horizontal line across the panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Level<'a> {
    /// Its name.
    pub label: &'a str,
    /// Its value.
    pub value: f64,
}

/// Step lines over time, starting at 0 s, in one panel. `y_label` is the label of the vertical axis with its
/// unit.
pub fn lines(title: &str, y_label: &str, series: &[TimeLine<'_>], level: Option<&Level<'_>>) -> Drawing {
    Drawing::of(|size| draw(size, title, y_label, series, level))
}

/// Colour and dash of the line with this index, which differ in print too.
pub(super) fn style(index: usize) -> (Colour, &'static str) {
    const STYLES: [(Colour, &str); 7] = [
        (Colour::Blue, ""),
        (Colour::Vermillion, "6 3"),
        (Colour::Green, ""),
        (Colour::Orange, "2 2"),
        (Colour::Purple, ""),
        (Colour::Sky, "8 3 2 3"),
        (Colour::Grey, "4 2"),
    ];
    STYLES.get(index % STYLES.len()).copied().unwrap_or((Colour::Ink, ""))
}

fn draw(
    size: Size,
    title: &str,
    y_label: &str,
    series: &[TimeLine<'_>],
    level: Option<&Level<'_>>,
) -> String {
    let series = series.get(..MAX).unwrap_or(series);
    let points = series.iter().flat_map(|s| &s.points).filter(|p| p.0.is_finite() && p.1.is_finite());
    let (end, peak) = points.fold((0.0f64, 0.0f64), |(end, peak), p| (end.max(p.0), peak.max(p.1)));
    let top = peak.max(level.map_or(0.0, |l| l.value)) * 1.06;
    let mut legend: Vec<(LegendEntry, String)> = Vec::new();
    for (i, s) in series.iter().enumerate() {
        let (colour, dash) = style(i);
        legend.push((LegendEntry::Line(colour, dash), s.label.to_owned()));
    }
    if let Some(level) = level {
        legend.push((LegendEntry::Line(Colour::Ink, LEVEL), level.label.to_owned()));
    }
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend,
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: y_label.to_owned(),
            height: size.pick(270.0, 240.0),
            y: Some(Scale::linear(0.0, top)),
        }],
        x_label: "time since start (s)",
        x: Scale::linear(0.0, end),
        left: 48.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if series.iter().all(|s| s.points.is_empty()) {
        chart.nothing("no data");
        return chart.finish();
    }
    if let Some(level) = level {
        let y = Px(panel.py(level.value));
        chart.line(&format!("M{} {y}H{}", Px(panel.left), Px(panel.right())), Colour::Ink, 1.1, LEVEL);
    }
    for (i, s) in series.iter().enumerate() {
        let (colour, dash) = style(i);
        let mut line = StepLine::new();
        for (time, value) in &s.points {
            line.point(panel.px(*time), panel.py(*value));
        }
        let last = s.points.last().map_or(0.0, |p| p.0);
        chart.line(&line.finish(panel.px(last)), colour, 1.5, dash);
    }
    chart.finish()
}

/// Maximum number of lines; further ones are omitted.
const MAX: usize = 40;
/// Dash of a level.
const LEVEL: &str = "2 3";
