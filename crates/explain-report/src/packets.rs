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

/// Parts of a transfer's time for the shares of interfaces.
const SHARE_BINS: usize = 200;
/// Interfaces that are told apart; data of further ones is left out.
const MAX_INTERFACES: usize = 40;

/// Characters of an interface's name that are shown.
const MAX_NAME: usize = 40;

/// How much of a transfer each interface of a capture has.
#[derive(Clone, Debug)]
pub struct PathShares {
    /// The first bin begins here, in seconds.
    pub(crate) start: f64,
    /// The width of a bin, in seconds.
    pub(crate) bin: f64,
    /// The interfaces with data; after [`name`](Self::name) in their order.
    pub(crate) paths: Vec<PathShare>,
}

/// The data of one interface.
#[derive(Clone, Debug)]
pub(crate) struct PathShare {
    interface: u32,
    pub(crate) name: String,
    bytes: Vec<u64>,
}

impl PathShares {
    fn new(start: f64, end: f64) -> Self {
        PathShares { start, bin: ((end - start) / SHARE_BINS as f64).max(1e-6), paths: Vec::new() }
    }

    /// Orders the interfaces, and gives them the names that the capture has for them.
    fn name(&mut self, names: &[Option<String>]) {
        self.paths.sort_by_key(|path| path.interface);
        for path in &mut self.paths {
            if let Some(Some(name)) = names.get(path.interface as usize) {
                let name: String = name.chars().take(MAX_NAME).collect();
                path.name = format!("{name} (interface {})", path.interface);
            }
        }
    }

    fn add(&mut self, time: f64, interface: u32, bytes: u64) {
        let known = self.paths.iter().position(|p| p.interface == interface);
        let at = known.unwrap_or(self.paths.len());
        if known.is_none() && at < MAX_INTERFACES {
            let name = format!("interface {interface}");
            self.paths.push(PathShare { interface, name, bytes: vec![0; SHARE_BINS] });
        }
        let bin = ((time - self.start) / self.bin).max(0.0) as usize;
        let slot = self.paths.get_mut(at).and_then(|p| p.bytes.get_mut(bin.min(SHARE_BINS - 1)));
        if let Some(slot) = slot {
            *slot += bytes;
        }
    }

    /// A line: `of` a path's bytes in a bin and those of all paths.
    pub(crate) fn points(&self, path: &PathShare, of: &dyn Fn(u64, u64) -> Option<f64>) -> Vec<(f64, f64)> {
        let all = |bin: usize| self.paths.iter().filter_map(|p| p.bytes.get(bin)).sum();
        let at = |bin: usize| self.start + self.bin * bin as f64;
        let bins = path.bytes.iter().enumerate();
        let mut points: Vec<(f64, f64)> =
            bins.filter_map(|(bin, bytes)| Some((at(bin), of(*bytes, all(bin))?))).collect();
        points.extend(points.last().copied().map(|(_, value)| (at(SHARE_BINS), value)));
        points
    }
}

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
    shares: PathShares,
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
            shares: PathShares::new(flow.start.since(zero).as_secs_f64(), flow.end.since(zero).as_secs_f64()),
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
        self.shares.add(self.seconds(segment.time), segment.interface, u64::from(segment.len));
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
    pub(crate) fn finish(
        mut self,
        start: Instant,
        end: Instant,
        timeouts: Vec<f64>,
        interfaces: &[Option<String>],
    ) -> (TimeSequence, PathShares) {
        let at = |time: Instant| Instant::ZERO + time.since(self.zero);
        self.drawn.interval = Some(BinInterval::new(at(start), at(end)));
        self.drawn.timeouts = timeouts;
        self.shares.name(interfaces);
        (self.drawn, self.shares)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: shares of interfaces do not add up, or are in the wrong time; a capture with many
    /// interfaces, or with a long name, takes memory or room without limit.
    #[test]
    fn shares_add_up_and_are_bounded() {
        let mut shares = PathShares::new(1.0, 3.0);
        shares.add(1.0, 7, 100);
        shares.add(1.001, 2, 300);
        shares.add(99.0, 2, 50);
        shares.name(&[None, None, Some("n".repeat(1_000))]);
        let long = format!("{} (interface 2)", "n".repeat(MAX_NAME));
        let names: Vec<&str> = shares.paths.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, [long.as_str(), "interface 7"]);
        let share = |at: usize| {
            shares.points(&shares.paths[at], &|own, all| (all > 0).then(|| own as f64 / all as f64))
        };
        assert_eq!(share(0)[0], (1.0, 0.75));
        assert_eq!(share(1)[0], (1.0, 0.25));
        // What is late is in the last bin, and nothing is shared between.
        assert_eq!((share(0).len(), share(0)[1].1), (3, 1.0));
        assert!((share(0)[2].0 - 3.0).abs() < 1e-9);
        for interface in 0..1_000 {
            shares.add(2.0, interface, 1);
        }
        assert_eq!(shares.paths.len(), MAX_INTERFACES);
    }
}
