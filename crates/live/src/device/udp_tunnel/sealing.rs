//! Packets of the host, sealed into the datagrams of one call.

use super::framing::WireguardFraming;
use super::peer::{OVERHEAD, TunnelPeer};
use super::socket::{LONGEST, OutgoingBatch, SendFate, TunnelSocket};
use super::{UdpTunnel, probe};
use boringtun::noise::TunnResult;
use farpace_wire::{AddressPair, Ecn, Packet};
use quinn_udp::EcnCodepoint;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Datagrams in one call: what Linux takes since 4.18 (UDP_MAX_SEGMENTS).
pub(super) const MAX_SEGMENTS: usize = 64;
/// What boringtun wants behind every datagram: room for a handshake, which it may begin instead.
const SLACK: usize = 256;
/// Messages to the host itself that may wait.
const MAX_LOCAL: usize = 64;
/// Type of a data message (the others are handshakes).
const DATA: u8 = 4;

/// Datagrams that were sealed and are not yet sent, and how far in the queue of packets they reach.
pub(super) struct SealedBatch {
    buffer: Vec<u8>,
    plain: Vec<u8>,
    len: usize,
    segment: usize,
    count: usize,
    /// The last datagram is shorter than the others: nothing can follow.
    closed: bool,
    to: Option<(u32, SocketAddr, Option<IpAddr>)>,
    ecn: Option<EcnCodepoint>,
    /// Packets at the front of the queue that are in here as a whole.
    packets: usize,
    /// Segments of the packet behind them that are in here, too, or have left before.
    segments: usize,
}

/// What becomes of a packet when a batch is filled.
enum PutOutcome {
    /// It is in.
    Whole,
    /// As many of its segments as there was room for.
    Part(usize),
    /// Nobody has its address, or it is no IP packet.
    Nowhere,
    /// It is too long for the path.
    TooLong(u16),
}

impl SealedBatch {
    pub fn new() -> Self {
        SealedBatch {
            buffer: vec![0; LONGEST + SLACK],
            plain: Vec::with_capacity(LONGEST),
            len: 0,
            segment: 0,
            count: 0,
            closed: false,
            to: None,
            ecn: None,
            packets: 0,
            segments: 0,
        }
    }

    /// Puts the segments of `packet` from `first` on in.
    fn put(
        &mut self,
        packet: &Packet,
        first: usize,
        (index, peer): (u32, &mut TunnelPeer),
        socket: &TunnelSocket,
        addresses: Option<AddressPair>,
    ) -> PutOutcome {
        let max_segments = socket.max_segments();
        let Some(endpoint) = peer.endpoint else { return PutOutcome::Nowhere };
        if !packet.has_ip() {
            return self.put_frame(packet, (index, peer), endpoint, addresses);
        }
        let Some(ecn) = packet.ip().map(|ip| codepoint(ip.ecn())) else { return PutOutcome::Nowhere };
        let to = (index, endpoint, peer.from);
        if self.count > 0 && (self.to != Some(to) || self.ecn != ecn) {
            return PutOutcome::Part(first);
        }
        let header = packet.headers_from_ip().len();
        let longest = header + packet.segment_size().map_or(packet.payload().len(), usize::from);
        if let Some(limit) = peer.pmtu.limit().filter(|limit| longest > usize::from(*limit)) {
            return PutOutcome::TooLong(limit);
        }
        let mut part = packet.clone();
        for number in first.. {
            if !packet.nth_segment(number, &mut part) {
                break;
            }
            let datagram = header + part.payload().len() + OVERHEAD;
            let fits = self.count == 0
                || (!self.closed
                    && datagram <= self.segment
                    && self.count < max_segments.min(MAX_SEGMENTS)
                    && self.len + datagram <= LONGEST);
            if !fits {
                return PutOutcome::Part(number);
            }
            part.complete_checksum();
            self.plain.clear();
            self.plain.extend_from_slice(part.headers_from_ip());
            self.plain.extend_from_slice(part.payload());
            let Some(room) = self.buffer.get_mut(self.len..) else { return PutOutcome::Part(number) };
            match peer.tunn.encapsulate(&self.plain, room) {
                TunnResult::WriteToNetwork(message) if message.first() == Some(&DATA) => {
                    let len = message.len();
                    if self.count == 0 {
                        (self.segment, self.to, self.ecn) = (len, Some(to), ecn);
                    }
                    self.closed = len < self.segment;
                    self.len += len;
                    self.count += 1;
                    peer.sent += self.plain.len() as u64;
                }
                // There are no keys: boringtun keeps the packet, and begins a handshake.
                TunnResult::WriteToNetwork(message) => {
                    let (to, from, segment) = (endpoint, peer.from, message.len());
                    socket.send(&OutgoingBatch { to, from, ecn: None, segment, bytes: message });
                }
                _ => {}
            }
        }
        peer.pmtu.on_data();
        PutOutcome::Whole
    }

    /// A frame that is not IP, in a datagram of its own.
    fn put_frame(
        &mut self,
        frame: &Packet,
        (index, peer): (u32, &mut TunnelPeer),
        endpoint: SocketAddr,
        addresses: Option<AddressPair>,
    ) -> PutOutcome {
        let Some(addresses) = addresses else { return PutOutcome::Nowhere };
        if self.count > 0 {
            return PutOutcome::Part(0);
        }
        // Without keys boringtun would keep it, and send it when it says nothing any more.
        if !peer.is_ready() {
            return PutOutcome::Nowhere;
        }
        WireguardFraming::wrap(frame, addresses, peer.pmtu.mtu(), &mut self.plain);
        if let TunnResult::WriteToNetwork(message) = peer.tunn.encapsulate(&self.plain, &mut self.buffer)
            && message.first() == Some(&DATA)
        {
            (self.len, self.segment, self.count, self.closed) = (message.len(), message.len(), 1, true);
            (self.to, self.ecn) = (Some((index, endpoint, peer.from)), None);
            peer.sent += self.plain.len() as u64;
        }
        PutOutcome::Whole
    }

    fn clear(&mut self) {
        (self.len, self.segment, self.count, self.closed, self.to) = (0, 0, 0, false, None);
        (self.packets, self.ecn) = (0, None);
    }
}

impl UdpTunnel {
    /// Seals and sends packets from the front of the queue as long as the system takes them. A packet leaves
    /// the queue when all its segments are sent, so that the queue is empty only when nothing waits here.
    pub(super) fn seal_all(&mut self, packets: &mut VecDeque<Packet>) {
        loop {
            if self.batch.count > 0 && !self.send_batch() {
                return;
            }
            let done = self.batch.packets.min(packets.len());
            for packet in packets.drain(..done) {
                self.counters.sent += 1;
                self.counters.bytes_sent += packet.network_len().get();
            }
            self.batch.clear();
            if packets.is_empty() {
                self.batch.segments = 0;
                return;
            }
            self.fill_batch(packets);
        }
    }

    /// Fills the batch from the front of the queue.
    fn fill_batch(&mut self, packets: &VecDeque<Packet>) {
        // Where frames are carried, there is one peer for all of them.
        let only = self.framing.and_then(|_| self.peers.keys().next().copied());
        let addresses = only.and_then(|only| self.peers.get(&only)?.host()).zip(self.addresses.first());
        let addresses = addresses.and_then(|(peer, own)| match (own, peer) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => Some(AddressPair::V4(*own, peer)),
            _ => None,
        });
        for packet in packets {
            let first = self.batch.segments;
            let index = match only {
                Some(only) => Some(only),
                None => packet.ip().and_then(|ip| route(&mut self.last_route, &self.peers, ip.dst())),
            };
            let peer = index.and_then(|index| Some((index, self.peers.get_mut(&index)?)));
            let put = match peer {
                Some((index, peer)) => {
                    peer.asked.get_or_insert_with(|| self.clock.now());
                    self.batch.put(packet, first, (index, peer), &self.socket, addresses)
                }
                None => PutOutcome::Nowhere,
            };
            match put {
                PutOutcome::Whole => {}
                PutOutcome::Part(segments) => {
                    self.batch.segments = segments;
                    return;
                }
                PutOutcome::Nowhere => self.counters.refused += 1,
                PutOutcome::TooLong(mtu) => {
                    self.counters.refused += 1;
                    if self.local.len() < MAX_LOCAL {
                        self.local.extend(probe::too_long(packet, mtu));
                    }
                }
            }
            self.batch.packets += 1;
            self.batch.segments = 0;
        }
    }

    /// False: there is no room now.
    fn send_batch(&mut self) -> bool {
        let SealedBatch { buffer, len, segment, count, to, ecn, .. } = &self.batch;
        let Some((index, to, from)) = *to else { return true };
        let bytes = buffer.get(..*len).unwrap_or_default();
        self.counters.writes += 1;
        match self.socket.send(&OutgoingBatch { to, from, ecn: *ecn, segment: *segment, bytes }) {
            SendFate::Blocked => return false,
            SendFate::Sent => self.counters.segments_sent += *count as u64,
            SendFate::Refused => self.counters.refused += *count as u64,
            SendFate::TooLong => {
                self.counters.refused += *count as u64;
                let now = self.clock.now();
                let size = u16::try_from(segment - OVERHEAD).unwrap_or(u16::MAX);
                if let Some(peer) = self.peers.get_mut(&index) {
                    peer.pmtu.on_too_long(now, size);
                }
            }
        }
        true
    }
}

/// To whom a packet for this address goes: who has the longest network with it.
fn route(last: &mut Option<(IpAddr, u32)>, peers: &BTreeMap<u32, TunnelPeer>, to: IpAddr) -> Option<u32> {
    if let Some((address, index)) = *last
        && address == to
    {
        return Some(index);
    }
    let of =
        |(index, peer): (&u32, &TunnelPeer)| Some((peer.allows(to)?, peer.proven || peer.configured, *index));
    let (_, _, index) = peers.iter().filter_map(of).max()?;
    *last = Some((to, index));
    Some(index)
}

const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}
