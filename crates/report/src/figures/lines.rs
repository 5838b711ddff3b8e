//! Values over time in panels above each other, for example the delay and the length of each queue.

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

/// A line with a style of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct StyledLine<'a> {
    /// Its name. Lines with one name and style in several panels are one entry of the legend.
    pub label: &'a str,
    /// Its colour and dash.
    pub style: Style,
    /// Seconds and values in order of time. Each value holds until the next.
    pub points: Vec<(f64, f64)>,
}

/// A horizontal line across a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Level<'a> {
    /// Its name.
    pub label: &'a str,
    /// Its value.
    pub value: f64,
}

/// A panel.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePanel<'a> {
    /// Its heading; may be empty.
    pub heading: &'a str,
    /// The label of the vertical axis, with its unit.
    pub y_label: &'a str,
    /// What is drawn, at most 40 lines; further ones are omitted.
    pub lines: Vec<StyledLine<'a>>,
    /// A level.
    pub level: Option<Level<'a>>,
}

/// Maximum number of lines of a panel.
const MAX: usize = 40;

impl LinePanel<'_> {
    fn shown(&self) -> &[StyledLine<'_>] {
        self.lines.get(..MAX).unwrap_or(&self.lines)
    }
    /// The largest value, with some space above.
    fn top(&self) -> f64 {
        let values = self.shown().iter().flat_map(|l| &l.points).map(|p| p.1).filter(|v| v.is_finite());
        let top = values.chain(self.level.as_ref().map(|l| l.value)).fold(0.0f64, f64::max) * 1.06;
        if top > 0.0 { top } else { 1.0 }
    }
}

/// The first and the last time of all lines.
fn ends(panels: &[LinePanel<'_>]) -> (f64, f64) {
    let times = panels.iter().flat_map(|p| p.shown()).flat_map(|l| &l.points).map(|p| p.0);
    let (from, to) =
        times.filter(|t| t.is_finite()).fold((f64::INFINITY, 0.0f64), |(a, b), t| (a.min(t), b.max(t)));
    (from.min(to), to.max(from.min(to) + 1e-6))
}

/// Step lines over time, starting at 0 s, in one panel. `y_label` is the label of the vertical axis with its
/// unit. Names that are on several pages have one style.
pub fn lines(title: &str, y_label: &str, series: &[TimeLine<'_>], level: Option<&Level<'_>>) -> Drawing {
    let style = styles(series.iter().map(|l| l.label));
    let styled = series.iter().zip(style);
    let lines = styled.map(|(l, style)| StyledLine { label: l.label, style, points: l.points.clone() });
    let panel = LinePanel { heading: "", y_label, lines: lines.collect(), level: level.cloned() };
    let panels = [panel];
    let (_, to) = ends(&panels);
    drawing(title, "time since start (s)", (0.0, to), &panels)
}

/// Step lines over time in panels with one time axis, whose label is `x_label`.
pub fn line_panels(title: &str, x_label: &str, panels: &[LinePanel<'_>]) -> Drawing {
    drawing(title, x_label, ends(panels), panels)
}

fn drawing(title: &str, x_label: &str, ends: (f64, f64), panels: &[LinePanel<'_>]) -> Drawing {
    let drawing = Drawing::of(|size| draw(size, title, x_label, ends, panels));
    drawing.explored(explore(title, x_label, ends, panels))
}

fn explore(title: &str, x_label: &str, (from, to): (f64, f64), panels: &[LinePanel<'_>]) -> Exploration {
    let mut exploration = Exploration::over_time(title, from, to);
    exploration.x_label = x_label.to_owned();
    for panel in panels {
        let level =
            panel.level.as_ref().map(|l| ExploreSeries::level(l.label, Thing::Level.style(), l.value));
        let drawn =
            panel.shown().iter().map(|l| ExploreSeries::steps(l.label, l.style, l.points.iter().copied()));
        exploration.panels.push(ExplorePanel {
            heading: panel.heading.to_owned(),
            y_label: panel.y_label.to_owned(),
            y: (0.0, panel.top()),
            log: false,
            fit: false,
            series: level.into_iter().chain(drawn).collect(),
        });
    }
    exploration
}

fn draw(size: Size, title: &str, x_label: &str, (from, to): (f64, f64), panels: &[LinePanel<'_>]) -> String {
    let mut legend: Vec<(LegendEntry, String)> = Vec::new();
    let mut add = |entry: (LegendEntry, String)| {
        if !legend.contains(&entry) {
            legend.push(entry);
        }
    };
    for panel in panels {
        for l in panel.shown() {
            add((LegendEntry::Line(l.style.colour, l.style.dash), l.label.to_owned()));
        }
        if let Some(level) = &panel.level {
            add((LegendEntry::Line(Thing::Level.colour(), LEVEL), level.label.to_owned()));
        }
    }
    let height = if panels.len() == 1 { size.pick(270.0, 240.0) } else { size.pick(190.0, 180.0) };
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend,
        panels: panels
            .iter()
            .map(|p| PanelSpec {
                heading: p.heading.to_owned(),
                y_label: p.y_label.to_owned(),
                height,
                y: Some(Scale::linear(0.0, p.top())),
            })
            .collect(),
        x_label,
        x: Scale::linear(from, to),
        left: 48.0,
        right: 20.0,
    });
    if panels.iter().flat_map(|p| p.shown()).all(|l| l.points.is_empty()) {
        chart.nothing("no data");
        return chart.finish();
    }
    for (panel, frame) in panels.iter().zip(chart.panels.clone()) {
        if let Some(level) = &panel.level {
            let path = format!("M{} {}H{}", Px(frame.left), Px(frame.py(level.value)), Px(frame.right()));
            chart.line(&path, Thing::Level.colour(), 1.1, LEVEL);
        }
        for l in panel.shown() {
            let mut line = StepLine::new();
            for (time, value) in &l.points {
                line.point(frame.px(*time), frame.py(*value));
            }
            let last = l.points.last().map_or(0.0, |p| p.0);
            chart.line(&line.finish(frame.px(last)), l.style.colour, 1.5, l.style.dash);
        }
    }
    chart.finish()
}

/// Dash of a level.
const LEVEL: &str = Thing::Level.dash();
