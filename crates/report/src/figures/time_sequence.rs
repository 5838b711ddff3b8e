//! Data sent, acknowledged and SACKed over time (Fig. 5 of the paper on communication stops).

use super::{covered, time_axis, timeout_key, timeout_lines, timeouts_within};
use crate::BinInterval;
use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, Panel, PanelSpec, Size};
use crate::paths::{PathMarks, StepLine};
use crate::scale::Scale;
use crate::svg::Colour;
use farpace_events::{Cause, Record, RecordDirection};
use farpace_units::Seq;

/// Sequence numbers in MB since `origin` (the first data byte) over `interval`, or over all of `records`: new
/// data and retransmissions, the cumulative ACK, and both edges of the first SACK block of each ACK, which
/// reports the newest segment (RFC 2018 §4).
pub fn time_sequence(title: &str, records: &[Record], origin: Seq, interval: Option<BinInterval>) -> Drawing {
    let rows = Rows::of(records, origin, interval);
    Drawing::of(|size| draw(size, title, &rows))
}

/// A range of sequence numbers at a time, in seconds and MB.
struct SequencePiece {
    time: f64,
    from: f64,
    to: f64,
}

#[derive(Default)]
struct Rows {
    interval: Option<BinInterval>,
    sent: Vec<SequencePiece>,
    retransmitted: Vec<SequencePiece>,
    acked: Vec<(f64, f64)>,
    sacked: Vec<SequencePiece>,
    timeouts: Vec<f64>,
}

const MB: f64 = 1e6;

impl Rows {
    fn of(records: &[Record], origin: Seq, interval: Option<BinInterval>) -> Rows {
        let interval = interval.or_else(|| covered(records));
        let mut rows = Rows { interval, timeouts: timeouts_within(records, interval), ..Rows::default() };
        let (Some(interval), Some(first)) = (interval, records.first()) else { return rows };
        // Signed distances from the first row keep the order in a transfer beyond 4 GB.
        let base = f64::from(first.snd_una.bytes_since(origin));
        let position = |seq: Seq| (base + f64::from(seq.distance(first.snd_una))) / MB;
        for r in records.iter().filter(|r| interval.start <= r.time && r.time <= interval.end) {
            let time = r.time.as_secs_f64();
            match r.direction {
                RecordDirection::Sent if !r.len.is_zero() => {
                    let from = position(r.seq);
                    let piece = SequencePiece { time, from, to: from + r.len.get() as f64 / MB };
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
                        });
                    }
                }
                _ => {}
            }
        }
        rows
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

fn draw(size: Size, title: &str, rows: &Rows) -> String {
    let mut legend = vec![
        (LegendEntry::Mark(Colour::Blue), "data sent".to_owned()),
        (LegendEntry::Mark(Colour::Vermillion), "data retransmitted".to_owned()),
        (LegendEntry::Line(Colour::Ink, ""), "cumulative ACK".to_owned()),
        (LegendEntry::Mark(Colour::Sky), "first SACK block: start".to_owned()),
        (LegendEntry::Mark(Colour::Green), "first SACK block: end".to_owned()),
    ];
    legend.extend(timeout_key(&rows.timeouts));
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
    marks(&mut chart, &panel, rows.sent.iter().map(whole), Colour::Blue, 1.5);
    marks(
        &mut chart,
        &panel,
        rows.sacked.iter().map(|p| (p.time, p.from, p.from)),
        Colour::Sky,
        size.pick(5.0, 3.6),
    );
    marks(
        &mut chart,
        &panel,
        rows.sacked.iter().map(|p| (p.time, p.to, p.to)),
        Colour::Green,
        size.pick(5.0, 3.6),
    );
    marks(&mut chart, &panel, rows.retransmitted.iter().map(whole), Colour::Vermillion, size.pick(3.0, 2.2));
    let mut line = StepLine::new();
    for (time, ack) in &rows.acked {
        line.point(panel.px(*time), panel.py(*ack));
    }
    let ack = line.finish(panel.right());
    chart.line(&ack, Colour::Ink, 1.3, "");
    timeout_lines(&mut chart, &rows.timeouts);
    chart.finish()
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
