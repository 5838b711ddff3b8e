//! Two captures of the same connection: aligned by the packets that are in both, with the difference of the
//! clocks.

use crate::flow::{Flow, Stat};
use crate::frame::{CapturedSegment, Flags};
use farpace_units::{Instant, Span};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Packets of one connection that are remembered of each capture. What comes later is not compared.
pub const MAX_PACKETS: usize = 4_000_000;
/// Stretches of time in which the least delays are looked for.
const STRETCHES: usize = 16;

/// What tells a packet from all others of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PacketIdentity {
    src: SocketAddr,
    seq: u32,
    ack: u32,
    len: u32,
    tsval: u32,
    ip_id: u16,
    flags: u8,
    window: u32,
}

impl PacketIdentity {
    fn of(segment: &CapturedSegment) -> Self {
        PacketIdentity {
            src: SocketAddr::new(segment.src, segment.src_port),
            seq: segment.seq,
            ack: segment.ack,
            len: segment.len,
            tsval: segment.options.timestamps.map_or(0, |(value, _)| value),
            ip_id: segment.ip_id,
            flags: segment.flags.0,
            window: segment.window,
        }
    }
}

/// The packets of one connection in one capture.
#[derive(Debug, Default)]
pub struct PacketsSeen {
    seen: Vec<(PacketIdentity, Instant, u64)>,
    /// Packets beyond [`MAX_PACKETS`].
    pub left_out: u64,
}

impl PacketsSeen {
    /// Takes a segment if it belongs to the connection between these ends. Super-segments are taken apart,
    /// so that they are found again in a capture where they are apart.
    pub fn take(&mut self, segment: &CapturedSegment, ends: [SocketAddr; 2], mss: u32) {
        let src = SocketAddr::new(segment.src, segment.src_port);
        let dst = SocketAddr::new(segment.dst, segment.dst_port);
        if [src, dst] != ends && [dst, src] != ends {
            return;
        }
        let mut identity = PacketIdentity::of(segment);
        let pieces = segment.len.div_ceil(mss.max(1)).max(1);
        for piece in 0..pieces {
            if self.seen.len() >= MAX_PACKETS {
                self.left_out += 1;
                return;
            }
            if pieces > 1 || mss > 0 && segment.len == mss {
                // Pieces carry what their super-segment carries, but for their place; PSH stays with the
                // last.
                identity.seq = segment.seq.wrapping_add(piece * mss);
                identity.len = mss.min(segment.len - piece * mss);
                identity.flags = segment.flags.0 & !Flags::PSH;
                identity.ip_id = 0;
            }
            self.seen.push((identity, segment.time, segment.frame));
        }
    }
}

/// One direction between the two captures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Between {
    /// Packets in both captures.
    pub both: u64,
    /// Packets that left by the first capture on their way and are not in the second: lost between them.
    pub lost: u64,
    /// Delay between the two beyond the least, with the clocks aligned.
    pub queued: Stat,
}

/// What two captures tell together.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The clock of the second capture is ahead of the first's by so much at the beginning, in seconds.
    /// Half of the least round trip between them is how wrong that can be.
    pub offset: f64,
    /// By so much the second clock gains, in parts of a million.
    pub drift: f64,
    /// The least round trip between the two captures.
    pub round: Span,
    /// From the first to the second.
    pub forward: Between,
    /// From the second to the first.
    pub backward: Between,
}

/// Aligns two captures of one connection, in whatever order they are given. None if they have too few packets
/// in common.
pub fn align(flow: &Flow, first: &PacketsSeen, second: &PacketsSeen) -> Option<Pair> {
    match near_to_far(flow, first, second)? {
        (pair, true) => Some(pair),
        // There are no negative round trips: the second capture is the one near the client.
        (_, false) => near_to_far(flow, second, first).map(|(pair, _)| pair.mirrored()),
    }
}

impl Pair {
    /// The same with the captures in the other order.
    fn mirrored(self) -> Pair {
        let (offset, drift) = (-self.offset, -self.drift);
        Pair { offset, drift, forward: self.backward, backward: self.forward, ..self }
    }
}

/// The same if the first capture is nearer to the client; false if that cannot be.
fn near_to_far(flow: &Flow, first: &PacketsSeen, second: &PacketsSeen) -> Option<(Pair, bool)> {
    let client = flow.ends[0];
    let mut in_second: BTreeMap<(PacketIdentity, u32), (Instant, u64)> = BTreeMap::new();
    let mut counts: BTreeMap<PacketIdentity, u32> = BTreeMap::new();
    for (identity, time, frame) in &second.seen {
        let n = counts.entry(*identity).or_default();
        in_second.insert((*identity, *n), (*time, *frame));
        *n += 1;
    }
    counts.clear();
    let mut pairs: [Vec<(f64, f64)>; 2] = [Vec::new(), Vec::new()];
    let mut only_first = 0;
    for (identity, time, _) in &first.seen {
        let n = counts.entry(*identity).or_default();
        let there = in_second.remove(&(*identity, *n));
        *n += 1;
        match there {
            Some((other, _)) => {
                let way = usize::from(identity.src != client);
                let (at, gap) =
                    (time.as_secs_f64(), other.as_nanos() as f64 / 1e9 - time.as_nanos() as f64 / 1e9);
                // Towards the second capture: delay + offset; from it: offset - delay.
                pairs[way].push((at, if way == 0 { gap } else { -gap }));
            }
            None if identity.src == client => only_first += 1,
            None => {}
        }
    }
    let only_second = in_second.keys().filter(|(identity, _)| identity.src != client).count() as u64;
    let [towards, back] = &pairs;
    if towards.len() < 3 || back.len() < 3 {
        return None;
    }
    let (a, b) = (envelope(towards), envelope(back));
    // Least delay each way: towards = delay + offset, back = delay - offset, if both ways are equally long.
    let offset = |t: f64| (line(a, t) - line(b, t)) / 2.0;
    let start = towards.first()?.0.min(back.first()?.0);
    let between = |samples: &[(f64, f64)], least: (f64, f64), lost: u64| {
        let mut queued = Stat::default();
        for (at, gap) in samples {
            queued.add(Span::from_nanos(((gap - line(least, *at)).max(0.0) * 1e9) as u64));
        }
        Between { both: samples.len() as u64, lost, queued }
    };
    let round = line(a, start) + line(b, start);
    let pair = Pair {
        offset: offset(start),
        drift: (a.1 - b.1) / 2.0 * 1e6,
        round: Span::from_nanos((round.max(0.0) * 1e9) as u64),
        forward: between(towards, a, only_first),
        backward: between(back, b, only_second),
    };
    Some((pair, round >= 0.0))
}

fn line((intercept, slope): (f64, f64), at: f64) -> f64 {
    intercept + slope * at
}

/// The line through the least values of two halves of the time: what clocks that drift make of a constant
/// delay.
fn envelope(samples: &[(f64, f64)]) -> (f64, f64) {
    let from = samples.first().map_or(0.0, |s| s.0);
    let to = samples.last().map_or(0.0, |s| s.0);
    let width = ((to - from) / STRETCHES as f64).max(1e-9);
    let mut least: Vec<(f64, f64)> = Vec::new();
    for sample in samples {
        let stretch = ((sample.0 - from) / width) as usize;
        match least.get_mut(stretch) {
            Some(l) if l.1 <= sample.1 => {}
            Some(l) => *l = *sample,
            None => least.resize(stretch + 1, *sample),
        }
    }
    // The lower convex hull's longest part would be exact; the least of each half is enough for a few parts
    // per million.
    let half = least.len().div_ceil(2);
    let low = |part: &[(f64, f64)]| part.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(first), Some(second)) = (low(&least[..half]), low(least.get(half..).unwrap_or_default()))
    else {
        return (least.first().map_or(0.0, |l| l.1), 0.0);
    };
    let time = second.0 - first.0;
    let slope = if time > 1.0 { (second.1 - first.1) / time } else { 0.0 };
    // Clocks differ by hundreds of parts in a million at most; more is a queue.
    let slope = if slope.abs() > 5e-4 { 0.0 } else { slope };
    let intercept = samples.iter().map(|(at, gap)| gap - slope * at).fold(f64::INFINITY, f64::min);
    (intercept, slope)
}
