//! One leg of a split connection: TCP with one of the two hosts, under the address of the other.

use crate::ledger::LegNumbers;
use crate::view::{LegLimit, LegView};
use farpace_tcp::{
    Blocked, CloseReason, Connection, ConnectionEvent, ConnectionState, OutgoingSegment, Segment, Transmit,
};
use farpace_units::{Instant, Span};
use farpace_wire::{Below, Ecn, IpView, Packet};

/// Segments that are asked for at once.
const BATCH: usize = 64;

/// A leg. Its peer is a host; it speaks with the addresses, ports, time to live and DSCP of the other host.
pub(crate) struct Leg {
    pub tcp: Connection,
    /// From the other host to the peer.
    below: Below,
    ident: u16,
    /// The peer has finished sending, and all that it sent can be read.
    pub peer_closed: bool,
    /// The leg is over.
    pub closed: Option<CloseReason>,
    /// What limits it, since when, and for how long each limit did before.
    limit: LegLimit,
    limited_since: Instant,
    limit_times: [Span; LegLimit::COUNT],
}

impl Leg {
    /// A leg whose packets look like `packet`, which the other host has sent.
    pub fn new(now: Instant, tcp: Connection, packet: &Packet) -> Option<Self> {
        let ip = packet.ip()?;
        let (src, dst) = packet.macs();
        let mut leg = Leg {
            tcp,
            below: Below::new(src, dst, ip.addresses(), ip.ttl()),
            ident: 0,
            peer_closed: false,
            closed: None,
            limit: LegLimit::Idle,
            limited_since: now,
            limit_times: [Span::ZERO; LegLimit::COUNT],
        };
        leg.imitate(packet);
        Some(leg)
    }

    /// Further packets to the peer look like `packet`, which the other host has sent.
    pub fn imitate(&mut self, packet: &Packet) {
        let Some(ip) = packet.ip() else { return };
        self.below.ttl = ip.ttl();
        self.below.tos = ip.dscp() << 2;
        if let IpView::V6(v6) = ip {
            self.below.flow_label = v6.flow_label();
        }
    }

    /// Notes what the connection tells.
    pub fn hear(&mut self) {
        while let Some(event) = self.tcp.poll_event() {
            match event {
                ConnectionEvent::PeerClosed => self.peer_closed = true,
                ConnectionEvent::Closed(reason) => self.closed = Some(reason),
                _ => {}
            }
        }
    }

    /// Nothing is left to do but to wait for segments that come late. The hosts themselves can do that:
    /// their numbers are those of the legs.
    pub fn is_over(&self) -> bool {
        matches!(self.tcp.state(), ConnectionState::Closed | ConnectionState::TimeWait)
    }

    /// Nothing waits here that was acknowledged to one host and not by the other.
    pub fn is_empty(&self) -> bool {
        self.tcp.readable().is_zero() && self.tcp.unacknowledged().is_zero()
    }

    /// The numbers that it speaks with.
    pub fn numbers(&self) -> LegNumbers {
        let [unacknowledged, next, expected] = self.tcp.numbers();
        LegNumbers { unacknowledged, next, expected }
    }

    /// Sends what may be sent now. True if anything was.
    pub fn transmit(
        &mut self,
        now: Instant,
        batch: &mut Vec<OutgoingSegment>,
        mut send: impl FnMut(Packet),
    ) -> bool {
        let mut any = false;
        loop {
            let result = self.tcp.poll_transmit(now, batch, BATCH);
            for out in batch.drain(..) {
                any = true;
                send(self.packet(out));
            }
            if !matches!(result, Transmit::Sent(_)) {
                self.note_limit(now, result);
                return any;
            }
        }
    }

    /// What the last segments that could have been sent wait for.
    fn note_limit(&mut self, now: Instant, result: Transmit) {
        let limit = match result {
            _ if self.is_over() => LegLimit::Over,
            Transmit::Blocked(Blocked::CongestionWindow) => LegLimit::CongestionWindow,
            Transmit::Blocked(Blocked::ReceiveWindow) => LegLimit::ReceiveWindow,
            Transmit::Blocked(Blocked::Pacing) if self.tcp.is_paced_by_cap() => LegLimit::Policy,
            Transmit::Blocked(Blocked::Pacing) => LegLimit::Pacing,
            _ if self.tcp.unacknowledged().is_zero() => LegLimit::Idle,
            _ => LegLimit::Source,
        };
        if limit != self.limit {
            self.limit_times = self.limit_times(now);
            (self.limit, self.limited_since) = (limit, now);
        }
    }

    fn limit_times(&self, now: Instant) -> [Span; LegLimit::COUNT] {
        let mut times = self.limit_times;
        times[self.limit as usize] += now.since(self.limited_since);
        times
    }

    fn packet(&mut self, out: OutgoingSegment) -> Packet {
        let segments = out.segment.segments();
        let Segment { header, payload, ecn, segment_size } = out.segment;
        let below = Below { tos: self.below.tos | ecn.bits(), ..self.below };
        self.ident = self.ident.wrapping_add(1);
        let mut packet = below.tcp(self.ident, &header, payload);
        packet.set_segment_size(segment_size);
        packet.set_loss_tolerant(self.tcp.loss_tolerant());
        // The parts of a super-segment are numbered on when it is cut.
        self.ident = self.ident.wrapping_add((segments - 1) as u16);
        packet
    }

    /// For people and metrics.
    pub fn view(&self, now: Instant) -> LegView {
        let (inspection, details) = (self.tcp.inspect(), self.tcp.details(now));
        let counters = self.tcp.counters();
        LegView {
            state: inspection.state,
            srtt: inspection.srtt,
            min_rtt: details.min_rtt,
            cwnd: inspection.cwnd,
            in_flight: inspection.in_flight,
            peer_window: inspection.rwnd,
            mss: inspection.mss,
            pacing: details.pacing,
            bandwidth: inspection.bandwidth,
            segments_sent: counters.data_segments_sent,
            bytes_sent: counters.bytes_sent,
            bytes_retransmitted: counters.bytes_sent_again,
            bytes_received: counters.bytes_received,
            timeouts: counters.timeouts,
            readable: self.tcp.readable(),
            unacknowledged: self.tcp.unacknowledged(),
            limit: self.limit,
            limit_times: self.limit_times(now),
        }
    }
}

/// The TCP segment in a packet.
pub(crate) fn segment_of(packet: &Packet) -> Option<Segment> {
    let (ip, tcp) = packet.ip_tcp().ok()?;
    let (header, ecn): (_, Ecn) = (tcp.header(), ip.ecn());
    Some(Segment {
        header,
        payload: packet.payload().clone(),
        ecn,
        segment_size: packet.segment_size().unwrap_or(0),
    })
}
