//! Several values over time in one panel, for example the windows or rates of several algorithms.

use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, PanelSpec, Size};
use crate::palette::{Style, Thing, styles};
use crate::paths::StepLine;
use crate::scale::Scale;
use crate::svg::Px;
use crate::{Exploration, ExplorePanel, ExploreSeries};

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
    let drawing = Drawing::of(|size| draw(size, title, y_label, series, level));
    drawing.explored(explore(title, y_label, series, level))
}

/// The latest time and the largest value, with some space above.
fn ends(series: &[TimeLine<'_>], level: Option<&Level<'_>>) -> (f64, f64) {
    let points = series.iter().flat_map(|s| &s.points).filter(|p| p.0.is_finite() && p.1.is_finite());
    let (end, peak) = points.fold((0.0f64, 0.0f64), |(end, peak), p| (end.max(p.0), peak.max(p.1)));
    (end, peak.max(level.map_or(0.0, |l| l.value)) * 1.06)
}

fn explore(title: &str, y_label: &str, series: &[TimeLine<'_>], level: Option<&Level<'_>>) -> Exploration {
    let series = series.get(..MAX).unwrap_or(series);
    let (end, top) = ends(series, level);
    let mut drawn: Vec<ExploreSeries> = Vec::new();
    drawn.extend(level.map(|l| ExploreSeries::level(l.label, Thing::Level.style(), l.value)));
    for (s, style) in series.iter().zip(styles(series.iter().map(|s| s.label))) {
        drawn.push(ExploreSeries::steps(s.label, style, s.points.iter().copied()));
    }
    let mut exploration = Exploration::over_time(title, 0.0, if end > 0.0 { end } else { 1.0 });
    exploration.panels.push(ExplorePanel {
        heading: String::new(),
        y_label: y_label.to_owned(),
        y: (0.0, if top > 0.0 { top } else { 1.0 }),
        log: false,
        fit: false,
        series: drawn,
    });
    exploration
}

fn draw(
    size: Size,
    title: &str,
    y_label: &str,
    series: &[TimeLine<'_>],
    level: Option<&Level<'_>>,
) -> String {
    let series = series.get(..MAX).unwrap_or(series);
    let (end, top) = ends(series, level);
    let styles = styles(series.iter().map(|s| s.label));
    let mut legend: Vec<(LegendEntry, String)> = Vec::new();
    for (s, Style { colour, dash }) in series.iter().zip(styles.iter().copied()) {
        legend.push((LegendEntry::Line(colour, dash), s.label.to_owned()));
    }
    if let Some(level) = level {
        legend.push((LegendEntry::Line(Thing::Level.colour(), LEVEL), level.label.to_owned()));
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
        chart.line(
            &format!("M{} {y}H{}", Px(panel.left), Px(panel.right())),
            Thing::Level.colour(),
            1.1,
            LEVEL,
        );
    }
    for (s, Style { colour, dash }) in series.iter().zip(styles.iter().copied()) {
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
const LEVEL: &str = Thing::Level.dash();
