//! The arithmetic of a path: sizes of segments, base round-trip time, bottleneck, window.

use super::impairment::{PolicerCounts, PolicerSpec};
use super::processor::ProcessorSpec;
use super::spec::{FlowSpec, ResolvedDirection, Scenario};
use super::topology::Hop;
use farpace_path::ProcessorConfig;
use farpace_units::{ByteCount, Rate, Span};

/// Ethernet header: two addresses and the type.
pub(super) const ETHERNET_HEADER: ByteCount = ByteCount::new(14);
/// IPv4 and TCP headers without options.
const IP_AND_TCP: ByteCount = ByteCount::new(40);
/// The timestamp option with its padding (RFC 7323 appendix A).
const TIMESTAMPS: ByteCount = ByteCount::new(12);

const TIMESTAMPS_KIND: u8 = 8;
const WINDOW_SCALE_KIND: u8 = 3;

/// A full-size data segment of a flow and its acknowledgment, layer by layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSizes {
    /// Payload.
    pub payload: ByteCount,
    /// IP packet.
    pub ip: ByteCount,
    /// Ethernet frame with its header, without a link's `overhead`.
    pub frame: ByteCount,
    /// Ethernet frame of a pure ACK without SACK blocks.
    pub ack_frame: ByteCount,
}

impl SegmentSizes {
    /// Bytes of a data segment that a policer counts.
    pub fn counted(&self, counts: PolicerCounts) -> ByteCount {
        match counts {
            PolicerCounts::Ip => self.ip,
            PolicerCounts::Frame => self.frame,
        }
    }
}

/// What limits a flow on its path, or on all its paths together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBottleneck {
    /// The nominal rate of the link or policer; efficiency is goodput divided by this.
    pub rate: Rate,
    /// The goodput at this rate, without headers.
    pub goodput: Rate,
    /// Its hop; of several paths, the hop on the widest.
    pub hop: Hop,
    /// It is a policer at the entrance, not the link; false for several paths.
    pub is_policer: bool,
    /// The paths that carry this together; above 1 only between hosts with several NICs.
    pub paths: u32,
}

impl Scenario {
    /// The sizes of a flow's segments.
    pub fn segment(&self, flow: &FlowSpec) -> SegmentSizes {
        let mss = flow.sender.mss.unwrap_or(1_460).min(flow.receiver.mss.unwrap_or(1_460));
        let stamped = flow.sender.timestamps.unwrap_or(true)
            && flow.receiver.timestamps.unwrap_or(true)
            && !self.strips_offer(flow, TIMESTAMPS_KIND);
        let options = if stamped { TIMESTAMPS } else { ByteCount::ZERO };
        let ip = ByteCount::new(u64::from(mss)) + IP_AND_TCP;
        // An IPv6 header is longer; the host makes the payload shorter by as much.
        let six = self.hosts.get(&flow.to).and_then(|host| host.address).is_some_and(|a| a.is_ipv6());
        let longer = if six { ByteCount::new(20) } else { ByteCount::ZERO };
        SegmentSizes {
            payload: ByteCount::new(u64::from(mss)) - options - longer,
            ip,
            frame: ip + ETHERNET_HEADER,
            ack_frame: ETHERNET_HEADER + IP_AND_TCP + options + longer,
        }
    }

    /// The properties of a hop.
    pub fn direction(&self, hop: Hop) -> Option<ResolvedDirection<'_>> {
        self.links.get(hop.link).map(|l| l.direction(hop.direction))
    }

    /// Time from sending a full-size segment to receiving its acknowledgment when all queues are empty:
    /// delays and transmission times of all links in both directions, processors and interrupts. Policers and
    /// routers take no time. If rate or delay change, the highest rate and the shortest delay count, here and
    /// in the bottleneck. Of several paths the widest counts.
    pub fn base_rtt(&self, flow: &FlowSpec) -> Span {
        let segment = self.segment(flow);
        let frames = [segment.frame, segment.ack_frame];
        let mut total = self.processing(flow, frames);
        for hop in self.path(flow) {
            for (hop, frame) in [hop, hop.reverse()].into_iter().zip(frames) {
                let Some(d) = self.direction(hop) else { continue };
                total += d.min_delay() + transmission_time(&d, frame);
                total += d.impairments().fold(Span::ZERO, |t, impairment| t + impairment.value.min_delay());
            }
        }
        total
    }

    /// The time that a data frame and its acknowledgment take in the processors of both hosts.
    fn processing(&self, flow: &FlowSpec, [data, ack]: [ByteCount; 2]) -> Span {
        let processor = |host: &str| self.hosts.get(host)?.processor.as_ref().map(ProcessorSpec::config);
        let cost = |host: &str, of: fn(&ProcessorConfig) -> Span, frame: ByteCount| {
            processor(host).map_or(Span::ZERO, |p| of(&p) + p.per_byte * frame.get())
        };
        cost(&flow.from, |p| p.send, data)
            + cost(&flow.to, |p| p.receive, data)
            + cost(&flow.to, |p| p.send, ack)
            + cost(&flow.from, |p| p.receive_ack, ack)
    }

    /// The link or policer that limits a flow most; none if nothing on its path has a rate. Different headers
    /// count at different places, so payload rates are compared. Between hosts with several NICs: the total
    /// of all paths.
    pub fn bottleneck(&self, flow: &FlowSpec) -> Option<PathBottleneck> {
        narrowest(&self.limits(flow))
    }

    /// Full segments that the path of a flow can carry in a time, rounded down; [`u64::MAX`] if nothing on it
    /// has a rate.
    pub fn packets_in(&self, time: Span, flow: &FlowSpec) -> u64 {
        let segment = self.segment(flow).payload.get().max(1);
        self.bottleneck(flow).map_or(u64::MAX, |b| b.goodput.bytes_in(time).get() / segment)
    }

    /// Everything on a flow's path that has a rate, in order. Several paths are one limit together.
    pub(super) fn limits(&self, flow: &FlowSpec) -> Vec<PathBottleneck> {
        match self.paths(flow).as_slice() {
            [] => Vec::new(),
            [hops] => self.limits_on(flow, hops),
            paths => self.combined_limit(flow, paths).map(|(total, _)| total).into_iter().collect(),
        }
    }

    /// Everything on one path that has a rate, in order.
    pub(super) fn limits_on(&self, flow: &FlowSpec, hops: &[Hop]) -> Vec<PathBottleneck> {
        let segment = self.segment(flow);
        let mut limits = Vec::new();
        for &hop in hops {
            let Some(d) = self.direction(hop) else { continue };
            if let Some(p) = &d.spec.policer {
                let goodput = scale(p.rate, segment.payload, segment.counted(p.counts));
                limits.push(PathBottleneck { rate: p.rate, goodput, hop, is_policer: true, paths: 1 });
            }
            if let Some(rate) = d.max_rate() {
                let goodput = scale(rate, segment.payload, d.counted(segment.frame));
                limits.push(PathBottleneck { rate, goodput, hop, is_policer: false, paths: 1 });
            }
        }
        limits
    }

    /// True if neither end of a flow has a buffer of fixed size.
    pub(super) fn is_autotuned(&self, flow: &FlowSpec) -> bool {
        let (sender, receiver) = (flow.sender.resolve(), flow.receiver.resolve());
        sender.is_ok_and(|c| !c.send_buffer.is_fixed())
            && receiver.is_ok_and(|c| !c.receive_buffer.is_fixed())
    }

    /// The most that a flow can have in flight, and what sets that limit. None if its settings are not valid.
    pub(super) fn window(&self, flow: &FlowSpec) -> Option<(ByteCount, &'static str)> {
        let (sender, receiver) = (flow.sender.resolve().ok()?, flow.receiver.resolve().ok()?);
        let clamp = u64::from(sender.cwnd_clamp.get()).saturating_mul(self.segment(flow).payload.get());
        let scaled =
            sender.window_scale && receiver.window_scale && !self.strips_offer(flow, WINDOW_SCALE_KIND);
        // Without scaling, the field holds 16 bits (RFC 9293 §3.1).
        let field = if scaled { u64::MAX } else { 65_535 };
        [
            (receiver.receive_buffer.max, "the receiver's window"),
            (ByteCount::new(field), "a window field without scaling"),
            (sender.send_buffer.max, "the sender's buffer"),
            (ByteCount::new(clamp), "the sender's cwnd_clamp"),
        ]
        .into_iter()
        .min_by_key(|(limit, _)| *limit)
    }
}

/// The lowest limit; the first of equals.
pub(super) fn narrowest(limits: &[PathBottleneck]) -> Option<PathBottleneck> {
    limits.iter().copied().min_by_key(|l| l.goodput)
}

impl ResolvedDirection<'_> {
    /// The bytes of a frame that its rate carries: all on the wire, or those of the IP packet where the link
    /// is recorded.
    pub(super) fn counted(&self, frame: ByteCount) -> ByteCount {
        match self.is_recorded() {
            true => frame - ETHERNET_HEADER,
            false => self.framing().wire_len(frame),
        }
    }
}

/// Transmission time of a frame.
pub(super) fn transmission_time(d: &ResolvedDirection<'_>, frame: ByteCount) -> Span {
    d.max_rate().map_or(Span::ZERO, |r| r.time_for(d.counted(frame)))
}

/// `rate` times `part` / `whole`, rounded to the nearest bit/s.
pub(super) fn scale(rate: Rate, part: ByteCount, whole: ByteCount) -> Rate {
    let whole = u128::from(whole.get().max(1));
    let scaled = (u128::from(rate.bits_per_sec()) * u128::from(part.get()) + whole / 2) / whole;
    Rate::from_bits_per_sec(u64::try_from(scaled).unwrap_or(u64::MAX))
}

/// When a full bucket is empty if packets keep arriving at the rate `arriving` (in the bytes that the policer
/// counts); none if it never is.
pub(super) fn empty_after(policer: &PolicerSpec, arriving: Rate) -> Option<Span> {
    let excess = arriving.bits_per_sec().checked_sub(policer.rate.bits_per_sec()).filter(|e| *e > 0)?;
    Some(Rate::from_bits_per_sec(excess).time_for(policer.burst))
}
