//! Dropped packets over time, by cause.

use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, PanelSpec, Size};
use crate::palette::Thing;
use crate::paths::PathMarks;
use crate::scale::Scale;
use crate::{EventKind, Exploration, ExploreEvent, ExplorePanel, ExploreSeries, SeriesKind};

/// What was dropped for one cause at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct DropSeries {
    /// The cause and the place.
    pub label: String,
    /// The cause, which has one colour on every page.
    pub thing: Thing,
    /// Seconds and packets, in order of time.
    pub counts: Vec<(f64, f64)>,
    /// The first drop, in seconds, if it is an event of the figure.
    pub first: Option<f64>,
}

impl DropSeries {
    fn peak(&self) -> f64 {
        self.counts.iter().map(|c| c.1).fold(0.0, f64::max)
    }
}

/// The lower end of the axis, so that a single packet has a height.
const BOTTOM: f64 = 0.7;

/// Stems on a logarithmic axis, from `from` to `to` seconds. `y_label` says what is counted.
pub fn drops(
    title: &str,
    (x_label, y_label): (&str, &str),
    (from, to): (f64, f64),
    series: &[DropSeries],
) -> Drawing {
    // The smaller ones in front of the larger ones.
    let mut sorted: Vec<&DropSeries> = series.iter().collect();
    sorted.sort_by(|a, b| b.peak().total_cmp(&a.peak()));
    let top = sorted.first().map_or(10.0, |s| s.peak()).max(8.0) * 1.3;
    let labels = (x_label, y_label);
    Drawing::of(|size| draw(size, title, labels, (from, to), top, &sorted)).explored(explore(
        title,
        labels,
        (from, to),
        top,
        &sorted,
    ))
}

fn explore(
    title: &str,
    (x_label, y_label): (&str, &str),
    (from, to): (f64, f64),
    top: f64,
    series: &[&DropSeries],
) -> Exploration {
    let mut exploration = Exploration::over_time(title, from, to);
    exploration.x_label = x_label.to_owned();
    let stems = |s: &&DropSeries| {
        let mut stems = ExploreSeries::new(&s.label, SeriesKind::Stems, s.thing.style());
        s.counts.iter().for_each(|(at, n)| stems.push(*at, *n));
        stems
    };
    let events = series.iter().filter_map(|s| {
        let text = format!("the first drop, {}", s.label);
        Some(ExploreEvent::new(EventKind::Loss, s.first?, s.first?, text))
    });
    exploration.events = events.collect();
    exploration.events.sort_by(|a, b| a.from.total_cmp(&b.from));
    exploration.panels.push(ExplorePanel {
        heading: String::new(),
        y_label: y_label.to_owned(),
        y: (BOTTOM, top),
        log: true,
        fit: false,
        series: series.iter().map(stems).collect(),
    });
    exploration
}

fn draw(
    size: Size,
    title: &str,
    (x_label, y_label): (&str, &str),
    (from, to): (f64, f64),
    top: f64,
    series: &[&DropSeries],
) -> String {
    let legend = series.iter().map(|s| (LegendEntry::Mark(s.thing.colour()), s.label.clone()));
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend: legend.collect(),
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: y_label.to_owned(),
            height: size.pick(170.0, 170.0),
            y: Some(Scale::log(BOTTOM, top)),
        }],
        x_label,
        x: Scale::linear(from, to),
        left: 48.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if series.iter().all(|s| s.counts.is_empty()) {
        chart.nothing("no drops");
    }
    for s in series {
        let mut marks = PathMarks::new(&panel);
        for (at, n) in &s.counts {
            marks.cover(*at, BOTTOM, *n);
        }
        chart.line(&marks.finish(2.0), s.thing.colour(), 2.0, "");
    }
    chart.finish()
}
