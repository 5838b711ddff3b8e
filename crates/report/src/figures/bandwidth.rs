//! Bandwidth per time bin over a whole run (Figs. 1 and 8 of the paper on communication stops).

use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, Panel, PanelSpec, Size};
use crate::palette::{Style, Thing};
use crate::scale::Scale;
use crate::svg::{Colour, Px, text_width};
use crate::{BinInterval, BinnedSeries, EventKind, Exploration, ExploreEvent, ExplorePanel, ExploreSeries};
use farpace_units::{Instant, Rate, Span};

/// A run in a bandwidth figure. Each gets a separate panel, because two curves between zero and the link rate
/// would hide each other.
#[derive(Clone, Debug)]
pub struct BandwidthSeries<'a> {
    /// Name of the run.
    pub label: &'a str,
    /// Bytes per bin.
    pub bins: &'a BinnedSeries,
    /// Intervals to shade, in order; see [`BinnedSeries::silences`].
    pub silences: &'a [BinInterval],
}

/// A rate to draw as a dashed line, such as the policed rate or the link rate.
#[derive(Clone, Debug)]
pub struct RateLimit<'a> {
    /// Its name.
    pub label: &'a str,
    /// The rate.
    pub rate: Rate,
}

/// Bandwidth per bin over time. If several bins share a pixel column, the band shows their minimum and
/// maximum and the line their mean, so that neither peaks nor silent intervals disappear.
pub fn bandwidth(title: &str, series: &[BandwidthSeries<'_>], limits: &[RateLimit<'_>]) -> Drawing {
    Drawing::of(|size| draw(size, title, series, limits)).explored(explore(title, series, limits))
}

/// The colour of the panel with this index.
fn colour(index: usize) -> Thing {
    if index.is_multiple_of(2) { Thing::Rate } else { Thing::OtherRate }
}

/// The highest rate of the figure, in Mbit/s, with some space above.
fn top(series: &[BandwidthSeries<'_>], limits: &[RateLimit<'_>]) -> f64 {
    let peak = series.iter().flat_map(|s| (0..s.bins.bytes().len()).map(|i| s.bins.rate(i))).max();
    let limit = limits.iter().map(|l| l.rate).max();
    let top = peak.max(limit).unwrap_or(Rate::default()).as_mbit_f64() * 1.08;
    if top > 0.0 { top } else { 1.0 }
}

fn explore(title: &str, series: &[BandwidthSeries<'_>], limits: &[RateLimit<'_>]) -> Exploration {
    let end = series.iter().map(|s| s.bins.end()).max().unwrap_or(Instant::ZERO).as_secs_f64();
    let mut exploration = Exploration::over_time(title, 0.0, end);
    for (index, s) in series.iter().enumerate() {
        let time = |i: usize| (Instant::ZERO + s.bins.bin() * i as u64).as_secs_f64();
        let rates = (0..s.bins.bytes().len()).map(|i| (time(i), s.bins.rate(i).as_mbit_f64()));
        let name = if series.len() == 1 { "rate" } else { s.label };
        let stops = s.silences.iter().map(|i| (i.start.as_secs_f64(), i.end.as_secs_f64()));
        let mut drawn = vec![
            ExploreSeries::shades("stop (hardly any packet)", Thing::Stop.style(), stops.clone()),
            ExploreSeries::steps(name, colour(index).style(), rates).held_until(s.bins.end().as_secs_f64()),
        ];
        for (limit, dash) in limits.iter().zip(DASHES.into_iter().cycle()) {
            let style = Style { dash, ..Thing::Level.style() };
            drawn.push(ExploreSeries::level(limit.label, style, limit.rate.as_mbit_f64()));
        }
        exploration.events.extend(stops.zip(s.silences).map(|((from, to), silence)| {
            ExploreEvent::new(EventKind::Stall, from, to, format!("a stop of {}", silence.span().rounded()))
        }));
        exploration.panels.push(ExplorePanel {
            heading: heading(s),
            y_label: format!("Mbit/s in bins of {}", s.bins.bin()),
            y: (0.0, top(series, limits)),
            log: false,
            fit: false,
            series: drawn,
        });
    }
    exploration
}

fn draw(size: Size, title: &str, series: &[BandwidthSeries<'_>], limits: &[RateLimit<'_>]) -> String {
    let end = series.iter().map(|s| s.bins.end()).max().unwrap_or(Instant::ZERO);
    let y = Scale::linear(0.0, top(series, limits));
    let mut legend = Vec::new();
    let many = size.pick(800, 340);
    if series.iter().any(|s| s.bins.bytes().len() > many) {
        // Each panel has its own colour.
        let colour = if series.len() == 1 { Thing::Rate.colour() } else { Colour::Grey };
        legend.push((LegendEntry::Area(colour, 0.4), "minimum to maximum bin".to_owned()));
        legend.push((LegendEntry::Line(colour, ""), "mean".to_owned()));
    }
    if series.iter().any(|s| !s.silences.is_empty()) {
        legend
            .push((LegendEntry::Area(Thing::Stop.colour(), SILENCE), "stop (hardly any packet)".to_owned()));
    }
    for (limit, dash) in limits.iter().zip(DASHES.into_iter().cycle()) {
        legend.push((LegendEntry::Line(Colour::Ink, dash), limit.label.to_owned()));
    }
    let height = if series.len() <= 1 { size.pick(230.0, 220.0) } else { 150.0 };
    let panels = series.iter().map(|s| PanelSpec {
        heading: heading(s),
        y_label: format!("Mbit/s in bins of {}", s.bins.bin()),
        height,
        y: Some(y),
    });
    let mut panels: Vec<PanelSpec> = panels.collect();
    if panels.is_empty() {
        panels.push(PanelSpec { heading: String::new(), y_label: "Mbit/s".to_owned(), height, y: Some(y) });
    }
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend,
        panels,
        x_label: "time since start (s)",
        x: Scale::linear(0.0, end.as_secs_f64()),
        left: 48.0,
        right: 20.0,
    });
    if end == Instant::ZERO {
        chart.nothing("no data");
        return chart.finish();
    }
    let frames = chart.panels.clone();
    for (index, (s, panel)) in series.iter().zip(&frames).enumerate() {
        let colour = colour(index).colour();
        shade_silences(&mut chart, panel, s.silences);
        let (band, line) = paths(panel, s.bins);
        chart.area(&band, colour, 0.4);
        chart.line(&line, colour, 1.1, "");
        label_silences(&mut chart, panel, s.silences);
        for (limit, dash) in limits.iter().zip(DASHES.into_iter().cycle()) {
            let y = Px(panel.py(limit.rate.as_mbit_f64()));
            chart.line(&format!("M{} {y}H{}", Px(panel.left), Px(panel.right())), Colour::Ink, 1.2, dash);
        }
    }
    chart.finish()
}

/// Dashes of limits. The legend contains their names, so that no label hides a peak.
const DASHES: [&str; 3] = ["7 4", "2 3", "10 3 2 3"];
/// Opacity of silent intervals.
const SILENCE: f64 = 0.22;
/// Maximum number of labelled intervals. Ten times as many are drawn.
const MAX_LABELS: usize = 200;

fn heading(s: &BandwidthSeries<'_>) -> String {
    // A flow that starts late has not had the time before.
    let first = s.bins.bytes().iter().position(|bytes| !bytes.is_zero()).unwrap_or(0);
    let mut text = format!("{} · mean {}", s.label, s.bins.mean_from(first).rounded());
    if first > 0 {
        text.push_str(&format!(" from {} on", (s.bins.bin() * first as u64).rounded()));
    }
    let silent: Span = s.silences.iter().fold(Span::ZERO, |sum, i| sum + i.span());
    if !silent.is_zero() {
        let total = s.bins.end().since(Instant::ZERO);
        text.push_str(&format!(" · stopped for {} of {}", silent.rounded(), total.rounded()));
    }
    text
}
fn shade_silences(chart: &mut Chart, panel: &Panel, silences: &[BinInterval]) {
    for s in silences.iter().take(10 * MAX_LABELS) {
        let (from, to) = (s.start.as_secs_f64(), s.end.as_secs_f64());
        let since_start = |at: Instant| at.since(Instant::ZERO).rounded();
        let tip = format!("stopped from {} to {}", since_start(s.start), since_start(s.end));
        chart.shade(panel, from, to, Thing::Stop.colour(), SILENCE, &tip);
    }
}

fn label_silences(chart: &mut Chart, panel: &Panel, silences: &[BinInterval]) {
    for s in silences.iter().take(MAX_LABELS) {
        let (a, b) = (panel.px(s.start.as_secs_f64()), panel.px(s.end.as_secs_f64()));
        let text = s.span().rounded();
        if text_width(&text, 12.0) + 4.0 < b - a {
            chart.note((a + b) / 2.0, panel.bottom() - 8.0, "middle", Colour::Ink, &text);
        }
    }
}

/// The band from minimum to maximum (empty if there is at most one bin per column) and the mean line.
fn paths(panel: &Panel, bins: &BinnedSeries) -> (String, String) {
    let n = bins.bytes().len();
    let right = panel.px(bins.end().as_secs_f64());
    let columns = (right - panel.left).floor().max(1.0) as usize;
    let mbit = |i: usize| bins.rate(i).as_mbit_f64();
    if n <= columns {
        let mut line = crate::paths::StepLine::new();
        for i in 0..n {
            let t = (Instant::ZERO + bins.bin() * i as u64).as_secs_f64();
            line.point(panel.px(t), panel.py(mbit(i)));
        }
        return (String::new(), line.finish(right));
    }
    let (mut upper, mut lower, mut line) = (String::new(), Vec::new(), String::new());
    for column in 0..columns {
        let within = (column * n / columns)..((column + 1) * n / columns);
        let count = within.len().max(1) as f64;
        let (mut min, mut max, mut sum) = (f64::INFINITY, 0.0f64, 0.0);
        for i in within {
            let v = mbit(i);
            min = min.min(v);
            max = max.max(v);
            sum += v;
        }
        let x = panel.left + column as f64;
        let next = Px(x + 1.0);
        let command = if column == 0 { format!("M{} ", Px(x)) } else { "V".to_owned() };
        upper.push_str(&format!("{command}{}H{next}", Px(panel.py(max))));
        line.push_str(&format!("{command}{}H{next}", Px(panel.py(sum / count))));
        lower.push((x, panel.py(min)));
    }
    for (x, y) in lower.into_iter().rev() {
        upper.push_str(&format!("V{}H{}", Px(y), Px(x)));
    }
    upper.push('Z');
    (upper, line)
}
