//! The packets of one transfer for its time-sequence figure, in bounded memory.

use farpace_explain::flow::{Flow, Side};
use farpace_explain::frame::{CapturedSegment, Flags};
use farpace_report::{BinInterval, SequencePiece, TimeSequence};
use farpace_units::Instant;
use std::net::SocketAddr;

/// Pieces of each kind that are kept for a page of one file. With twice as many, two neighbours become one
/// that covers both.
pub const MAX_PIECES: usize = 60_000;
/// The same for a page that is served.
pub const MAX_VIEWED: usize = 2_000_000;
const MB: f64 = 1e6;

/// Collects what the figure of one direction needs.
pub(crate) struct PacketCollector {
    from: SocketAddr,
    to: SocketAddr,
    /// Time 0 of the figure.
    zero: Instant,
    scale: u8,
    /// First byte of data, and the highest one so far as an offset.
    first: Option<u32>,
    highest: i64,
    drawn: TimeSequence,
    limit: usize,
}

impl PacketCollector {
    /// An empty collection for what `side` of `flow` sends, of `limit` pieces. The time axis begins at
    /// `zero`.
    pub(crate) fn new(flow: &Flow, side: Side, zero: Instant, limit: usize) -> Self {
        let [own, other] = [flow.said(side), flow.said(side.other())];
        // Scaling holds only if both ends offer it (RFC 7323 §2.2).
        let scale = own.scale.and(other.scale).unwrap_or(0);
        PacketCollector {
            from: flow.address(side),
            to: flow.address(side.other()),
            zero,
            scale,
            first: None,
            highest: 0,
            drawn: TimeSequence::default(),
            limit,
        }
    }

    /// Takes the next segment of the capture, of any connection.
    pub(crate) fn take(&mut self, segment: &CapturedSegment) {
        let source = SocketAddr::new(segment.src, segment.src_port);
        let destination = SocketAddr::new(segment.dst, segment.dst_port);
        if (source, destination) == (self.from, self.to) {
            self.sent(segment);
        } else if (source, destination) == (self.to, self.from) {
            self.answered(segment);
        }
    }

    fn seconds(&self, at: Instant) -> f64 {
        at.since(self.zero).as_secs_f64()
    }

    /// The place of a number in the stream; numbers wrap around.
    fn offset(&self, seq: u32) -> i64 {
        let Some(first) = self.first else { return 0 };
        let highest = first.wrapping_add(self.highest as u32);
        self.highest + i64::from(seq.wrapping_sub(highest) as i32)
    }

    fn sent(&mut self, segment: &CapturedSegment) {
        if segment.flags.has(Flags::SYN) {
            self.first = Some(segment.seq.wrapping_add(1));
        }
        if segment.len == 0 {
            return;
        }
        self.first.get_or_insert(segment.seq);
        let from = self.offset(segment.seq);
        let to = from + i64::from(segment.len);
        let piece = SequencePiece {
            time: self.seconds(segment.time),
            from: from as f64 / MB,
            to: to as f64 / MB,
            packet: segment.frame,
        };
        let pieces = if from < self.highest { &mut self.drawn.retransmitted } else { &mut self.drawn.sent };
        pieces.push(piece);
        halve(pieces, self.limit);
        self.highest = self.highest.max(to);
    }

    fn answered(&mut self, segment: &CapturedSegment) {
        if !segment.flags.has(Flags::ACK)
            || segment.flags.has(Flags::SYN | Flags::RST)
            || self.first.is_none()
        {
            return;
        }
        let (time, ack) = (self.seconds(segment.time), self.offset(segment.ack));
        if self.drawn.acked.last().is_none_or(|last| last.1 != ack as f64 / MB) {
            self.drawn.acked.push((time, ack as f64 / MB));
            thin(&mut self.drawn.acked, self.limit);
        }
        let edge = ack + (i64::from(segment.window) << self.scale.min(14));
        if self.drawn.window.last().is_none_or(|last| last.1 != edge as f64 / MB) {
            self.drawn.window.push((time, edge as f64 / MB));
            thin(&mut self.drawn.window, self.limit);
        }
        if let Some((left, right)) = segment.options.sack.first() {
            self.drawn.sacked.push(SequencePiece {
                time,
                from: self.offset(*left) as f64 / MB,
                to: self.offset(*right) as f64 / MB,
                packet: segment.frame,
            });
            halve(&mut self.drawn.sacked, self.limit);
        }
    }

    /// What the figure shows, from `start` to `end`.
    pub(crate) fn finish(mut self, start: Instant, end: Instant, timeouts: Vec<f64>) -> TimeSequence {
        let at = |time: Instant| Instant::ZERO + time.since(self.zero);
        self.drawn.interval = Some(BinInterval::new(at(start), at(end)));
        self.drawn.timeouts = timeouts;
        self.drawn
    }
}

/// Two neighbours become one that covers both, if there are too many.
fn halve(pieces: &mut Vec<SequencePiece>, limit: usize) {
    if pieces.len() < 2 * limit {
        return;
    }
    *pieces = pieces
        .chunks(2)
        .filter_map(|pair| {
            let (first, last) = (pair.first()?, pair.last()?);
            Some(SequencePiece { from: first.from.min(last.from), to: first.to.max(last.to), ..*first })
        })
        .collect();
}

/// Every second point goes, if there are too many. Numbers that only grow lose no peak by it.
fn thin(points: &mut Vec<(f64, f64)>, limit: usize) {
    if points.len() >= 2 * limit {
        let mut odd = false;
        points.retain(|_| {
            odd = !odd;
            odd
        });
    }
}
