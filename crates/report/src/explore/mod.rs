//! The data of a figure for readers with a browser: what the drawing shows, at full resolution.
//!
//! Start reading at [`Exploration`]. `explore.js` draws it with Chart.js.

mod encode;
mod script;

pub(crate) use script::{csp, scripts};

use crate::palette::Style;
use encode::numbers;
use serde_json::{Value, json};

/// Points of one series on a page. A longer series is reduced to so many: see [`ExploreSeries::reduced`].
pub const MAX_POINTS: usize = 100_000;
/// Points of one series on a page whose server has finer data.
pub const MAX_OVERVIEW: usize = 8_000;
/// Events of one figure on a page; later ones are left out.
pub const MAX_EVENTS: usize = 2_000;

/// A figure that can be explored: panels above each other with a common horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Exploration {
    /// What it shows.
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x_label: String,
    /// The horizontal axis, which is time in seconds or something else.
    pub x: ExploreAxis,
    /// The panels.
    pub panels: Vec<ExplorePanel>,
    /// What happened when, in order of time.
    pub events: Vec<ExploreEvent>,
    /// The beginning of the address of a server that has finer data: `from=` and `to=` follow. The page then
    /// holds an overview only. None for a page that is whole.
    pub remote: Option<String>,
}

/// A horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub enum ExploreAxis {
    /// Time in seconds, from and to. Figures of one page with this axis move together.
    Time(f64, f64),
    /// Values, from and to; logarithmic or not.
    Values(f64, f64, bool),
    /// Named cases at 0, 1, ...
    Cases(Vec<String>),
}

/// One panel.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplorePanel {
    /// Heading; may be empty.
    pub heading: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Range of the vertical axis.
    pub y: (f64, f64),
    /// The vertical axis is logarithmic.
    pub log: bool,
    /// The vertical axis follows what is visible.
    pub fit: bool,
    /// What is drawn, the first below all others.
    pub series: Vec<ExploreSeries>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// Each value holds until the next.
    Steps,
    /// Values joined by straight lines.
    Line,
    /// A mark from `y` to `until` at each `x`, at least two pixels high.
    Marks,
    /// The panel is shaded from `x` to `until`; `y` means nothing.
    Shades,
    /// A bar from `x` to `until` with the height `y`.
    Bars,
    /// A dot at each `x` and `y`, with its label.
    Dots,
    /// A line from the bottom of the panel to each `x` and `y`.
    Stems,
    /// A cross at each `x`, between `y` and `until`.
    Crosses,
    /// A dashed line across the panel at the first `y`.
    Level,
}

/// One series of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct ExploreSeries {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub kind: SeriesKind,
    /// Its colour and dash.
    pub style: Style,
    /// Positions, in order.
    pub x: Vec<f64>,
    /// Values.
    pub y: Vec<f64>,
    /// The other end of marks, crosses, shades and bars; empty for other kinds.
    pub until: Vec<f64>,
    /// Numbers of packets in the capture; empty if unknown.
    pub packets: Vec<u64>,
    /// Least and largest value at each point, such as of several seeds; empty without.
    pub ranges: Vec<(f64, f64)>,
    /// A label for each point; empty without.
    pub labels: Vec<String>,
}

/// The kind of an event, by which buttons find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Data was lost, or sent again.
    Loss,
    /// A retransmission timer fired.
    Timeout,
    /// Nothing, or hardly anything, was transferred.
    Stall,
    /// Something else that mattered.
    Other,
}

impl EventKind {
    const fn name(self) -> &'static str {
        match self {
            EventKind::Loss => "loss",
            EventKind::Timeout => "timeout",
            EventKind::Stall => "stall",
            EventKind::Other => "other",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct ExploreEvent {
    /// Its kind.
    pub kind: EventKind,
    /// Beginning in seconds.
    pub from: f64,
    /// End in seconds; not before `from`.
    pub to: f64,
    /// How much of the time axis to show around it, in seconds; 0 for what suits the figure.
    pub around: f64,
    /// What it was, in a few words.
    pub text: String,
}

impl ExploreSeries {
    /// A series without points.
    pub fn new(name: impl Into<String>, kind: SeriesKind, style: Style) -> Self {
        ExploreSeries {
            name: name.into(),
            kind,
            style,
            x: Vec::new(),
            y: Vec::new(),
            until: Vec::new(),
            packets: Vec::new(),
            ranges: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Steps, from times and values in order of time.
    pub fn steps(name: &str, style: Style, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut series = ExploreSeries::new(name, SeriesKind::Steps, style);
        points.into_iter().for_each(|(x, y)| series.push(x, y));
        series
    }

    /// The last value holds until `end`.
    #[must_use]
    pub fn held_until(mut self, end: f64) -> Self {
        if let (Some(last), Some(value)) = (self.x.last().copied(), self.y.last().copied())
            && last < end
        {
            self.push(end, value);
        }
        self
    }

    /// Marks, from times and ranges in order of time.
    pub fn marks(name: &str, style: Style, pieces: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let mut series = ExploreSeries::new(name, SeriesKind::Marks, style);
        pieces.into_iter().for_each(|(x, from, to)| series.push_until(x, from, to));
        series
    }

    /// Shaded intervals in order of time.
    pub fn shades(name: &str, style: Style, intervals: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut series = ExploreSeries::new(name, SeriesKind::Shades, style);
        intervals.into_iter().for_each(|(from, to)| series.push_until(from, 0.0, to));
        series
    }

    /// A line across the panel.
    pub fn level(name: &str, style: Style, value: f64) -> Self {
        let mut series = ExploreSeries::new(name, SeriesKind::Level, style);
        series.push(0.0, value);
        series
    }

    /// Adds a point. One that is not finite is left out.
    pub fn push(&mut self, x: f64, y: f64) {
        if x.is_finite() && y.is_finite() {
            self.x.push(x);
            self.y.push(y);
        }
    }

    /// Adds a point with its other end. One that is not finite is left out.
    pub fn push_until(&mut self, x: f64, y: f64, until: f64) {
        if x.is_finite() && y.is_finite() && until.is_finite() {
            self.x.push(x);
            self.y.push(y);
            self.until.push(until);
        }
    }

    /// Adds a mark that is a packet.
    pub fn push_packet(&mut self, x: f64, from: f64, to: f64, packet: u64) {
        let before = self.x.len();
        self.push_until(x, from, to);
        if self.x.len() > before {
            self.packets.push(packet);
        }
    }

    /// The points from `from` to `to`, and of steps and lines one more on each side. Bars,
    /// shades and levels come whole; others must be in order of `x`.
    pub fn within(&self, from: f64, to: f64) -> ExploreSeries {
        if matches!(self.kind, SeriesKind::Shades | SeriesKind::Bars | SeriesKind::Level) {
            return self.clone();
        }
        let beside = usize::from(matches!(self.kind, SeriesKind::Steps | SeriesKind::Line));
        let begin = self.x.partition_point(|x| *x < from).saturating_sub(beside);
        let end = (self.x.partition_point(|x| *x <= to) + beside).min(self.x.len()).max(begin);
        fn part<T: Clone>(all: &[T], begin: usize, end: usize) -> Vec<T> {
            all.get(begin..end).unwrap_or_default().to_vec()
        }
        ExploreSeries {
            name: self.name.clone(),
            kind: self.kind,
            style: self.style,
            x: part(&self.x, begin, end),
            y: part(&self.y, begin, end),
            until: part(&self.until, begin, end),
            packets: part(&self.packets, begin, end),
            ranges: part(&self.ranges, begin, end),
            labels: part(&self.labels, begin, end),
        }
    }

    /// The series with `limit` points at most. Neighbours in order become one group: of steps and lines the
    /// first, least, largest and last value stay, of marks and crosses the whole range. So no peak is lost.
    pub fn reduced(&self, limit: usize) -> ExploreSeries {
        let n = self.x.len();
        if n <= limit.max(4) || self.y.len() != n {
            return self.clone();
        }
        let mut out =
            ExploreSeries { labels: Vec::new(), ..ExploreSeries::new(&self.name, self.kind, self.style) };
        let ranged = self.until.len() == n && matches!(self.kind, SeriesKind::Marks | SeriesKind::Crosses);
        let keep = |out: &mut ExploreSeries, at: usize| {
            out.x.push(self.x[at]);
            out.y.push(self.y[at]);
            if let Some(until) = self.until.get(at) {
                out.until.push(*until);
            }
            if let Some(packet) = self.packets.get(at) {
                out.packets.push(*packet);
            }
        };
        let per_group = if ranged { 1 } else { 4 };
        let groups = (limit / per_group).max(1);
        let size = n.div_ceil(groups);
        for from in (0..n).step_by(size) {
            let group = from..(from + size).min(n);
            if ranged {
                let low = group.clone().map(|i| self.y[i].min(self.until[i])).fold(f64::INFINITY, f64::min);
                let high =
                    group.clone().map(|i| self.y[i].max(self.until[i])).fold(f64::NEG_INFINITY, f64::max);
                keep(&mut out, group.start);
                let last = out.y.len() - 1;
                (out.y[last], out.until[last]) = (low, high);
                continue;
            }
            let by = |a: &usize, b: &usize| self.y[*a].total_cmp(&self.y[*b]);
            let least = group.clone().min_by(by).unwrap_or(group.start);
            let largest = group.clone().max_by(by).unwrap_or(group.start);
            let mut kept = [group.start, least, largest, group.end - 1];
            kept.sort_unstable();
            let mut before = None;
            for at in kept {
                if before != Some(at) {
                    keep(&mut out, at);
                }
                before = Some(at);
            }
        }
        out
    }

    /// The JSON that `explore.js` reads: numbers as differences of integers.
    pub fn to_json(&self, limit: usize) -> Value {
        let series = self.reduced(limit);
        let mut value = json!({
            "name": series.name,
            "kind": series.kind.name(),
            "colour": series.style.colour.class(),
            "dash": series.style.dash,
            "x": numbers(&series.x),
            "y": numbers(&series.y),
        });
        if series.x.len() < self.x.len() {
            value["of"] = self.x.len().into();
        }
        if !series.until.is_empty() {
            value["until"] = numbers(&series.until);
        }
        if !series.packets.is_empty() {
            value["packets"] = numbers(&series.packets.iter().map(|p| *p as f64).collect::<Vec<f64>>());
        }
        if !series.ranges.is_empty() {
            value["low"] = numbers(&series.ranges.iter().map(|r| r.0).collect::<Vec<f64>>());
            value["high"] = numbers(&series.ranges.iter().map(|r| r.1).collect::<Vec<f64>>());
        }
        if !series.labels.is_empty() {
            value["labels"] = series.labels.clone().into();
        }
        value
    }
}

impl SeriesKind {
    const fn name(self) -> &'static str {
        match self {
            SeriesKind::Steps => "steps",
            SeriesKind::Line => "line",
            SeriesKind::Marks => "marks",
            SeriesKind::Shades => "shades",
            SeriesKind::Bars => "bars",
            SeriesKind::Dots => "dots",
            SeriesKind::Stems => "stems",
            SeriesKind::Crosses => "crosses",
            SeriesKind::Level => "level",
        }
    }
}

impl Exploration {
    /// A figure over time in seconds, without panels.
    pub fn over_time(title: &str, from: f64, to: f64) -> Self {
        Exploration {
            title: title.to_owned(),
            x_label: "time since start (s)".to_owned(),
            x: ExploreAxis::Time(from, to),
            panels: Vec::new(),
            events: Vec::new(),
            remote: None,
        }
    }

    /// Points of all series.
    pub fn points(&self) -> usize {
        self.panels.iter().flat_map(|p| &p.series).map(|s| s.x.len()).sum()
    }

    /// Nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.points() == 0
    }

    /// The JSON that `explore.js` reads.
    pub fn to_json(&self) -> Value {
        let axis = match &self.x {
            ExploreAxis::Time(from, to) => json!({ "time": true, "from": from, "to": to }),
            ExploreAxis::Values(from, to, log) => json!({ "from": from, "to": to, "log": log }),
            ExploreAxis::Cases(names) => {
                json!({ "from": -0.5, "to": names.len().max(1) as f64 - 0.5, "cases": names })
            }
        };
        let limit = if self.remote.is_some() { MAX_OVERVIEW } else { MAX_POINTS };
        let panels = self.panels.iter().map(|p| {
            json!({
                "heading": p.heading, "label": p.y_label, "from": p.y.0, "to": p.y.1,
                "log": p.log, "fit": p.fit,
                "series": p.series.iter().map(|s| s.to_json(limit)).collect::<Vec<_>>(),
            })
        });
        let events = self.events.iter().take(MAX_EVENTS).map(ExploreEvent::to_json);
        json!({
            "title": self.title,
            "remote": self.remote,
            "label": self.x_label,
            "x": axis,
            "panels": panels.collect::<Vec<_>>(),
            "events": events.collect::<Vec<_>>(),
        })
    }
}

impl ExploreEvent {
    /// An event.
    pub fn new(kind: EventKind, from: f64, to: f64, text: impl Into<String>) -> Self {
        ExploreEvent { kind, from, to: to.max(from), around: 0.0, text: text.into() }
    }

    fn to_json(&self) -> Value {
        json!({
            "kind": self.kind.name(), "from": self.from, "to": self.to,
            "around": self.around, "text": self.text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::palette::Thing;

    fn style() -> Style {
        Thing::Data.style()
    }

    /// Breaks: a peak among a million values is on the page.
    #[test]
    fn reducing_keeps_peaks() {
        let value = |i: usize| {
            if i == 654_321 {
                9.0
            } else if i == 123 {
                -4.0
            } else {
                (i % 2) as f64
            }
        };
        let series = ExploreSeries::steps("s", style(), (0..1_000_000).map(|i| (i as f64, value(i))));
        let small = series.reduced(1_000);
        assert!(small.x.len() <= 1_004, "{}", small.x.len());
        let at = small.y.iter().position(|y| *y == 9.0).unwrap();
        assert_eq!(small.x[at], 654_321.0);
        assert!(small.y.contains(&-4.0));
        assert_eq!((small.x[0], small.x[small.x.len() - 1]), (0.0, 999_999.0));
        assert!(small.x.is_sorted());
    }

    /// Breaks: a browser that zooms in gets what is between, with what a step line needs on both sides.
    #[test]
    fn a_part_of_a_series_has_its_neighbours() {
        let series = ExploreSeries::steps("s", style(), (0..10).map(|i| (f64::from(i), f64::from(i * i))));
        assert_eq!(series.within(2.5, 4.0).x, [2.0, 3.0, 4.0, 5.0]);
        assert_eq!(series.within(-5.0, -1.0).x, [0.0]);
        assert_eq!(series.within(20.0, 10.0).x, [9.0]);
        let marks = ExploreSeries::marks("m", style(), (0..10).map(|i| (f64::from(i), 0.0, 1.0)));
        let part = marks.within(2.5, 4.0);
        assert_eq!((part.x.len(), part.until.len(), part.packets.len()), (2, 2, 0));
        assert!(marks.within(f64::INFINITY, f64::NEG_INFINITY).x.is_empty());
    }

    /// Breaks: marks that are joined cover all that each of them covered.
    #[test]
    fn reducing_marks_keeps_their_range() {
        let mut series = ExploreSeries::new("m", SeriesKind::Marks, style());
        for i in 0..10_000u64 {
            series.push_packet(
                i as f64,
                i as f64,
                i as f64 + if i == 5_000 { 900_000.0 } else { 1.0 },
                i + 1,
            );
        }
        let small = series.reduced(100);
        assert_eq!((small.x.len(), small.packets.len()), (100, 100));
        assert!(small.until.contains(&905_000.0));
        assert_eq!(small.packets[1], 101);
    }

    /// Breaks: points that are not finite are left out, with all that belongs to them.
    #[test]
    fn odd_numbers_are_left_out() {
        let mut series = ExploreSeries::new("m", SeriesKind::Marks, style());
        series.push_packet(f64::NAN, 1.0, 2.0, 7);
        series.push_packet(1.0, 1.0, f64::INFINITY, 8);
        series.push_packet(1.0, 1.0, 2.0, 9);
        assert_eq!((series.x.len(), series.packets.clone()), (1, vec![9]));
    }
}
