//! Data sent, acknowledged and SACKed over time (Fig. 5 of the paper on communication stops).

use super::{
    covered, explore_timeouts, time_axis, timeout_events, timeout_key, timeout_lines, timeouts_within,
};
use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, Panel, PanelSpec, Size};
use crate::palette::Thing;
use crate::paths::{PathMarks, StepLine};
use crate::scale::Scale;
use crate::svg::{Colour, Px};
use crate::{BinInterval, EventKind, Exploration, ExploreEvent, ExplorePanel, ExploreSeries, SeriesKind};
use farpace_events::{Cause, Record, RecordDirection};
use farpace_units::{ByteCount, Instant, Seq};
use std::collections::BTreeSet;

/// Sequence numbers in MB since `origin` (the first data byte) over `interval`, or over all of `records`: new
/// data and retransmissions, the cumulative ACK, and both edges of the first SACK block of each ACK, which
/// reports the newest segment (RFC 2018 §4).
pub fn time_sequence(title: &str, records: &[Record], origin: Seq, interval: Option<BinInterval>) -> Drawing {
    sequence(title, &TimeSequence::of(records, origin, interval))
}

/// The same with the segments that the network dropped.
pub fn time_sequence_with_drops(
    title: &str,
    records: &[Record],
    origin: Seq,
    interval: Option<BinInterval>,
    drops: &[RecordedDrops],
) -> Drawing {
    let mut rows = TimeSequence::of(records, origin, interval);
    rows.add_drops(records, origin, drops);
    sequence(title, &rows)
}

/// The same of packets in a capture.
pub fn sequence(title: &str, packets: &TimeSequence) -> Drawing {
    Drawing::of(|size| draw(size, title, packets)).explored(explore(title, packets))
}

fn explore(title: &str, rows: &TimeSequence) -> Exploration {
    let (from, to) = rows.interval.map_or((0.0, 1.0), |i| (i.start.as_secs_f64(), i.end.as_secs_f64()));
    let range = rows.range();
    let y = (range.lo(), range.hi());
    let whole = |p: &SequencePiece| (p.time, p.from, p.to);
    let inside = |p: &&SequencePiece| p.from >= y.0 && p.to <= y.1;
    let marks = |name: &str, thing: Thing, pieces: &[SequencePiece]| {
        packets(
            ExploreSeries::new(name, SeriesKind::Marks, thing.style()),
            pieces.iter().filter(inside),
            whole,
        )
    };
    let sacked = |name: &str, thing: Thing, of: fn(&SequencePiece) -> f64| {
        let series = ExploreSeries::new(name, SeriesKind::Marks, thing.style());
        packets(series, rows.sacked.iter().filter(inside), |p| (p.time, of(p), of(p)))
    };
    let crosses = |drops: &SequenceDrops| {
        let series = ExploreSeries::new(&drops.label, SeriesKind::Crosses, drops.thing.style());
        packets(series, drops.pieces.iter().filter(inside), whole)
    };
    let mut exploration = Exploration::over_time(title, from, to);
    let loss = rows
        .retransmitted
        .first()
        .map(|p| ExploreEvent::new(EventKind::Loss, p.time, p.time, "data is sent again for the first time"));
    exploration.events = timeout_events(rows.timeouts.iter().copied()).chain(loss).collect();
    exploration.events.sort_by(|a, b| a.from.total_cmp(&b.from));
    exploration.panels.push(ExplorePanel {
        heading: String::new(),
        y_label: "sequence number (MB since the first data byte)".to_owned(),
        y,
        log: false,
        fit: true,
        series: vec![
            ExploreSeries::steps(
                "edge of the receive window",
                Thing::WindowEdge.style(),
                rows.window.iter().copied().filter(|w| w.1 <= y.1),
            ),
            explore_timeouts(&rows.timeouts, y),
            marks("data sent", Thing::Data, &rows.sent),
            sacked("first SACK block: start", Thing::SackStart, |p| p.from),
            sacked("first SACK block: end", Thing::SackEnd, |p| p.to),
            marks("data retransmitted", Thing::Retransmission, &rows.retransmitted),
            ExploreSeries::steps("cumulative ACK", Thing::Ack.style(), rows.acked.iter().copied())
                .held_until(to),
        ]
        .into_iter()
        .chain(rows.drops.iter().map(crosses))
        .collect(),
    });
    exploration
}

/// Fills a series with pieces and the numbers of their packets, if they have any.
fn packets<'p>(
    mut series: ExploreSeries,
    pieces: impl Iterator<Item = &'p SequencePiece>,
    of: impl Fn(&SequencePiece) -> (f64, f64, f64),
) -> ExploreSeries {
    for piece in pieces {
        let (time, from, to) = of(piece);
        match piece.packet {
            0 => series.push_until(time, from, to),
            packet => series.push_packet(time, from, to, packet),
        }
    }
    series
}

/// A range of sequence numbers at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequencePiece {
    /// Seconds.
    pub time: f64,
    /// First byte, in MB since the first data byte.
    pub from: f64,
    /// The byte after the last, in MB.
    pub to: f64,
    /// Its number in the capture; 0 for none. All pieces of a list have one, or none.
    pub packet: u64,
}

/// What a sequence figure shows, in order of time: seconds, and MB since the first data byte.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeSequence {
    /// The time axis; none for no data.
    pub interval: Option<BinInterval>,
    /// New data.
    pub sent: Vec<SequencePiece>,
    /// Data sent again.
    pub retransmitted: Vec<SequencePiece>,
    /// The cumulative ACK.
    pub acked: Vec<(f64, f64)>,
    /// First SACK blocks.
    pub sacked: Vec<SequencePiece>,
    /// The right edge of the receive window.
    pub window: Vec<(f64, f64)>,
    /// Retransmission timeouts.
    pub timeouts: Vec<f64>,
    /// Dropped data by cause, in the order of the legend.
    pub drops: Vec<SequenceDrops>,
}

/// Data that was dropped, or taken for lost, for one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceDrops {
    /// The cause in words.
    pub label: String,
    /// The cause, which has one colour on every page.
    pub thing: Thing,
    /// The data, in order of time.
    pub pieces: Vec<SequencePiece>,
}

/// Dropped segments of a connection whose records are known.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedDrops {
    /// The cause in words.
    pub label: String,
    /// The cause.
    pub thing: Thing,
    /// Time, first sequence number and payload of each segment, in order of time.
    pub segments: Vec<(Instant, Seq, ByteCount)>,
}

const MB: f64 = 1e6;

impl TimeSequence {
    fn of(records: &[Record], origin: Seq, interval: Option<BinInterval>) -> TimeSequence {
        let interval = interval.or_else(|| covered(records));
        let mut rows = TimeSequence {
            interval,
            timeouts: timeouts_within(records, interval),
            ..TimeSequence::default()
        };
        let (Some(interval), Some(first)) = (interval, records.first()) else { return rows };
        let position = place_of(first, origin);
        for r in records.iter().filter(|r| interval.start <= r.time && r.time <= interval.end) {
            let time = r.time.as_secs_f64();
            match r.direction {
                RecordDirection::Sent if !r.len.is_zero() => {
                    let from = position(r.seq);
                    let piece = SequencePiece { time, from, to: from + r.len.get() as f64 / MB, packet: 0 };
                    let retransmitted = r.cause.is_some_and(Cause::is_retransmission);
                    if retransmitted { rows.retransmitted.push(piece) } else { rows.sent.push(piece) }
                }
                RecordDirection::Received => {
                    rows.acked.push((time, position(r.snd_una)));
                    if let Some(block) = r.sack.first() {
                        rows.sacked.push(SequencePiece {
                            time,
                            from: position(block.start),
                            to: position(block.end),
                            packet: 0,
                        });
                    }
                }
                _ => {}
            }
        }
        rows
    }

    fn add_drops(&mut self, records: &[Record], origin: Seq, drops: &[RecordedDrops]) {
        let (Some(interval), Some(first)) = (self.interval, records.first()) else { return };
        let position = place_of(first, origin);
        for cause in drops {
            let inside = cause.segments.iter().filter(|s| interval.start <= s.0 && s.0 <= interval.end);
            let piece = |(at, seq, len): &(Instant, Seq, ByteCount)| {
                let (time, from) = (at.as_secs_f64(), position(*seq));
                SequencePiece { time, from, to: from + len.get() as f64 / MB, packet: 0 }
            };
            let pieces: Vec<SequencePiece> = inside.map(piece).collect();
            if !pieces.is_empty() {
                self.drops.push(SequenceDrops { label: cause.label.clone(), thing: cause.thing, pieces });
            }
        }
    }

    /// The vertical axis: what was sent and acknowledged. SACK blocks are ignored, because a peer may send
    /// any values.
    fn range(&self) -> Scale {
        let sent = self.sent.iter().chain(&self.retransmitted).flat_map(|p| [p.from, p.to]);
        let acked = self.acked.iter().map(|a| a.1);
        let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in sent.chain(acked) {
            lo = lo.min(v);
            hi = hi.max(v);
        }
        let room = (hi - lo).max(0.002) * 0.03;
        Scale::linear(lo - room, hi + room)
    }
}

/// Where sequence numbers are, in MB since `origin`: signed distances from the first row keep the order in a
/// transfer beyond 4 GB.
fn place_of(first: &Record, origin: Seq) -> impl Fn(Seq) -> f64 + use<> {
    let (una, base) = (first.snd_una, f64::from(first.snd_una.bytes_since(origin)));
    move |seq| (base + f64::from(seq.distance(una))) / MB
}

fn draw(size: Size, title: &str, rows: &TimeSequence) -> String {
    let mut legend = vec![
        (LegendEntry::Mark(Thing::Data.colour()), "data sent".to_owned()),
        (LegendEntry::Mark(Thing::Retransmission.colour()), "data retransmitted".to_owned()),
        (LegendEntry::Line(Thing::Ack.colour(), ""), "cumulative ACK".to_owned()),
        (LegendEntry::Mark(Thing::SackStart.colour()), "first SACK block: start".to_owned()),
        (LegendEntry::Mark(Thing::SackEnd.colour()), "first SACK block: end".to_owned()),
    ];
    if !rows.window.is_empty() {
        let style = LegendEntry::Line(Thing::WindowEdge.colour(), Thing::WindowEdge.dash());
        legend.push((style, "edge of the receive window".to_owned()));
    }
    legend.extend(timeout_key(&rows.timeouts));
    legend.extend(rows.drops.iter().map(|d| (LegendEntry::Cross(d.thing.colour()), d.label.clone())));
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend,
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: "sequence number (MB since the first data byte)".to_owned(),
            height: size.pick(300.0, 280.0),
            y: Some(rows.range()),
        }],
        x_label: "time since start (s)",
        x: time_axis(rows.interval),
        left: 52.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if rows.sent.is_empty() && rows.retransmitted.is_empty() && rows.acked.is_empty() {
        chart.nothing("no data");
        return chart.finish();
    }
    let whole = |p: &SequencePiece| (p.time, p.from, p.to);
    marks(&mut chart, &panel, rows.sent.iter().map(whole), Thing::Data.colour(), 1.5);
    marks(
        &mut chart,
        &panel,
        rows.sacked.iter().map(|p| (p.time, p.from, p.from)),
        Thing::SackStart.colour(),
        size.pick(5.0, 3.6),
    );
    marks(
        &mut chart,
        &panel,
        rows.sacked.iter().map(|p| (p.time, p.to, p.to)),
        Thing::SackEnd.colour(),
        size.pick(5.0, 3.6),
    );
    marks(
        &mut chart,
        &panel,
        rows.retransmitted.iter().map(whole),
        Thing::Retransmission.colour(),
        size.pick(3.0, 2.2),
    );
    let mut edge = StepLine::new();
    for (time, at) in rows.window.iter().filter(|w| panel.shows_y(w.1)) {
        edge.point(panel.px(*time), panel.py(*at));
    }
    let edge = edge.finish(panel.right());
    chart.line(&edge, Thing::WindowEdge.colour(), 1.1, Thing::WindowEdge.dash());
    let mut line = StepLine::new();
    for (time, ack) in &rows.acked {
        line.point(panel.px(*time), panel.py(*ack));
    }
    let ack = line.finish(panel.right());
    chart.line(&ack, Thing::Ack.colour(), 1.3, "");
    timeout_lines(&mut chart, &rows.timeouts);
    for drops in &rows.drops {
        chart.line(&crosses(&panel, &drops.pieces), drops.thing.colour(), 1.8, "");
    }
    chart.finish()
}

/// A cross for each piece, but one only in each square of four pixels, which bounds the path.
fn crosses(panel: &Panel, pieces: &[SequencePiece]) -> String {
    let mut path = String::new();
    let mut taken = BTreeSet::new();
    for p in pieces.iter().filter(|p| panel.shows(p.time) && panel.shows_y(p.from) && panel.shows_y(p.to)) {
        let (x, y) = (panel.px(p.time), panel.py((p.from + p.to) / 2.0));
        if taken.insert(((x / 4.0) as i32, (y / 4.0) as i32)) {
            path.push_str(&format!("M{} {}l7 7m0 -7l-7 7", Px(x - 3.5), Px(y - 3.5)));
        }
    }
    path
}

fn marks(
    chart: &mut Chart,
    panel: &Panel,
    pieces: impl Iterator<Item = (f64, f64, f64)>,
    colour: Colour,
    thickness: f64,
) {
    let mut marks = PathMarks::new(panel);
    for (time, from, to) in pieces {
        if panel.shows_y(to) && panel.shows_y(from) {
            marks.cover(time, from, to);
        }
    }
    chart.line(&marks.finish(thickness), colour, thickness, "");
}
