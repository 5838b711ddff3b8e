//! Segments of TCP that follow each other, put together again before the host sees them, as a NIC does (GRO).

use super::super::buffers::FrameBuffers;
use farpace_wire::checksum::{Sum, checksum};
use farpace_wire::ip::PROTOCOL_TCP;
use farpace_wire::{Ecn, IpView, Ipv4View, Ipv6View, MacAddr, Packet, TcpFlags, TcpView};

/// Longest IP packet.
const LONGEST: usize = 65_535;
/// The only two hosts of a tunnel, as its packets say inside of this program.
pub(super) const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
pub(super) const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// Where the flags of TCP stand, and which of them the last segment decides.
const FLAGS_AT: usize = 13;
const PSH: u8 = 0x08;

/// Puts IP packets together. What comes out stays in the order in which it came in.
pub(super) struct Coalescer {
    /// False: every packet stays by itself.
    joins: bool,
    buffers: FrameBuffers,
    open: Option<OpenSuperSegment>,
}

/// A packet that may still grow; its bytes are in the room of the buffers.
struct OpenSuperSegment {
    len: usize,
    ip: usize,
    tcp: usize,
    /// Payload of each segment.
    segment: usize,
    segments: usize,
    next_seq: u32,
    ce: bool,
}

/// A segment that may be put together with others.
struct OwnSegment {
    ip: usize,
    tcp: usize,
    payload: usize,
    seq: u32,
    pushed: bool,
}

impl Coalescer {
    /// Puts packets together, or, if it does not join, makes packets of bytes and no more.
    pub fn new(joins: bool) -> Self {
        Coalescer { joins, buffers: FrameBuffers::new(LONGEST), open: None }
    }

    /// A packet has come. `ce`: congestion was met outside. Returns false for what is no packet.
    pub fn push(&mut self, packet: &[u8], ce: bool, into: &mut Vec<Packet>) -> bool {
        let Some(found) = OwnSegment::of(packet).filter(|_| self.joins) else {
            self.flush(into);
            return self.single(packet, ce, into);
        };
        if !self.append(packet, &found, ce) {
            self.flush(into);
            self.buffers.room()[..packet.len()].copy_from_slice(packet);
            let OwnSegment { ip, tcp, payload, seq, .. } = found;
            let next_seq = seq.wrapping_add(payload as u32);
            let len = packet.len();
            self.open = Some(OpenSuperSegment { len, ip, tcp, segment: payload, segments: 1, next_seq, ce });
        }
        let ends = self.open.as_ref().is_some_and(|open| found.payload < open.segment);
        if found.pushed || ends {
            self.flush(into);
        }
        true
    }

    /// Nothing more comes now.
    pub fn flush(&mut self, into: &mut Vec<Packet>) {
        let Some(open) = self.open.take() else { return };
        let header = &mut self.buffers.room()[..open.ip];
        if let Some(len) = u16::try_from(open.len).ok().filter(|_| open.segments > 1) {
            if open.ip == 40 {
                header[4..6].copy_from_slice(&(len - 40).to_be_bytes());
            } else {
                header[2..4].copy_from_slice(&len.to_be_bytes());
                header[10..12].fill(0);
                let sum = checksum(header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
            }
        }
        let bytes = self.buffers.take(open.len);
        let Ok(mut packet) = Packet::from_shared_ip(PEER_MAC, OUR_MAC, bytes) else { return };
        // Each segment's was right.
        packet.trust_checksum();
        if open.segments > 1 {
            packet.set_segment_size(open.segment as u16);
        }
        if open.ce {
            packet.set_ecn(Ecn::Ce);
        }
        into.push(packet);
    }

    fn single(&mut self, packet: &[u8], ce: bool, into: &mut Vec<Packet>) -> bool {
        self.buffers.room()[..packet.len()].copy_from_slice(packet);
        let bytes = self.buffers.take(packet.len());
        let Ok(mut packet) = Packet::from_shared_ip(PEER_MAC, OUR_MAC, bytes) else { return false };
        if ce {
            packet.set_ecn(Ecn::Ce);
        }
        into.push(packet);
        true
    }

    /// Puts a segment behind the packet that is open. False: it does not belong there.
    fn append(&mut self, packet: &[u8], found: &OwnSegment, ce: bool) -> bool {
        let Some(open) = &mut self.open else { return false };
        let room = self.buffers.room();
        let fits = open.len + found.payload <= LONGEST
            && (found.ip, found.tcp, found.seq, ce) == (open.ip, open.tcp, open.next_seq, open.ce)
            && found.payload <= open.segment
            && same_headers(&room[..open.ip + open.tcp], packet, open.ip, open.tcp);
        if !fits {
            return false;
        }
        let headers = found.ip + found.tcp;
        room[open.len..open.len + found.payload].copy_from_slice(&packet[headers..headers + found.payload]);
        room[open.ip + FLAGS_AT] |= packet[open.ip + FLAGS_AT] & PSH;
        open.len += found.payload;
        open.segments += 1;
        open.next_seq = open.next_seq.wrapping_add(found.payload as u32);
        true
    }
}

impl OwnSegment {
    /// Whether `packet` is a segment with data and a right checksum, and no more flags than an acknowledgment
    /// has.
    fn of(packet: &[u8]) -> Option<OwnSegment> {
        let view = match packet.first()? >> 4 {
            4 => IpView::V4(Ipv4View::parse(packet).ok()?),
            6 => IpView::V6(Ipv6View::parse(packet).ok()?),
            _ => return None,
        };
        let ip = view.header_len();
        let plain = matches!((&view, ip), (IpView::V4(_), 20) | (IpView::V6(_), 40));
        if !plain
            || view.protocol() != PROTOCOL_TCP
            || view.fragment().is_some()
            || view.total_len() != packet.len()
        {
            return None;
        }
        if let IpView::V4(v4) = &view {
            v4.verify_checksum().ok()?;
        }
        let transport = packet.get(ip..)?;
        let tcp = TcpView::parse(transport).ok()?;
        let payload = transport.len() - tcp.header_len();
        let others = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::URG | TcpFlags::CWR;
        if payload == 0 || !tcp.flags().contains(TcpFlags::ACK) || tcp.flags().intersects(others) {
            return None;
        }
        let sum: Sum = view.pseudo_header(PROTOCOL_TCP, transport.len()).bytes(transport);
        (sum.finish() == 0).then_some(OwnSegment {
            ip,
            tcp: tcp.header_len(),
            payload,
            seq: tcp.seq().get(),
            pushed: tcp.flags().contains(TcpFlags::PSH),
        })
    }
}

/// All that must be the same in all segments of one packet: everything but lengths, the number and checksum
/// of IPv4, and the sequence number, PSH and checksum of TCP.
fn same_headers(first: &[u8], packet: &[u8], ip: usize, tcp: usize) -> bool {
    let same = |from: usize, to: usize| first.get(from..to) == packet.get(from..to);
    let below = match ip {
        40 => same(0, 4) && same(6, 40),
        _ => same(0, 2) && same(6, 10) && same(12, 20),
    };
    let flags = |bytes: &[u8]| bytes.get(ip + FLAGS_AT).map(|flags| flags & !PSH);
    below
        && same(ip, ip + 4)
        && same(ip + 8, ip + 13)
        && flags(first) == flags(packet)
        && same(ip + 14, ip + 16)
        && same(ip + 18, ip + tcp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use farpace_units::Seq;
    use farpace_wire::{AddressPair, Below, TcpHeader};

    fn segment(v6: bool, seq: u32, flags: TcpFlags, payload: &[u8]) -> Vec<u8> {
        let pair = match v6 {
            false => AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
            true => AddressPair::V6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()),
        };
        let header = TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: Seq::new(seq),
            ack: Seq::new(9),
            flags,
            window: 100,
            ..TcpHeader::default()
        };
        let packet =
            Below::new(PEER_MAC, OUR_MAC, pair, 64).tcp(seq as u16, &header, Bytes::copy_from_slice(payload));
        let mut frame = Vec::new();
        packet.write_frame(&mut frame);
        frame.split_off(14)
    }

    /// Breaks: bytes get lost or change their order where segments are put together, or what must stay apart
    /// does not.
    #[test]
    fn segments_in_a_row_become_one_packet_and_others_stay_apart() {
        let (ack, push) = (TcpFlags::ACK, TcpFlags::ACK | TcpFlags::PSH);
        for v6 in [false, true] {
            let mut joined = Coalescer::new(true);
            let mut out = Vec::new();
            let data: Vec<u8> = (0..2_500_u32).map(|n| n as u8).collect();
            joined.push(&segment(v6, u32::MAX - 500, ack, &data[..1_000]), false, &mut out);
            joined.push(&segment(v6, 499, ack, &data[1_000..2_000]), false, &mut out);
            joined.push(&segment(v6, 1_499, push, &data[2_000..]), false, &mut out);
            assert_eq!(out.len(), 1, "the last segment ends it");
            assert_eq!((out[0].segment_size(), out[0].segments()), (Some(1_000), 3));
            assert_eq!(out[0].payload()[..], data);
            assert_eq!(out[0].tcp().unwrap().flags(), push);
            let mut parts = Vec::new();
            out[0].clone().split_segments(|part| parts.push(part));
            assert!(parts.iter_mut().all(|part| {
                part.complete_checksum();
                part.verify_checksums().is_ok()
            }));
            // A gap, another flag, damage, a mark.
            out.clear();
            let wrong = {
                let mut bytes = segment(v6, 3_000, ack, &data[..1_000]);
                *bytes.last_mut().unwrap() ^= 1;
                bytes
            };
            let steps = [
                (segment(v6, 0, ack, &data[..1_000]), false),
                (segment(v6, 2_000, ack, &data[..1_000]), false),
                (wrong, false),
                (segment(v6, 3_000, ack, &data[..1_000]), true),
                (segment(v6, 4_000, ack, &data[..1_000]), false),
                (segment(v6, 5_000, ack | TcpFlags::FIN, &data[..10]), false),
            ];
            for (bytes, ce) in &steps {
                assert!(joined.push(bytes, *ce, &mut out));
            }
            joined.flush(&mut out);
            assert_eq!(out.len(), steps.len());
            let right: Vec<_> = out.iter().map(|packet| packet.verify_checksums().is_ok()).collect();
            assert_eq!(right, [true, true, false, true, true, true]);
            assert_eq!(out[3].ip().unwrap().ecn(), Ecn::Ce);
        }
    }

    /// Breaks: what no host understands crashes it.
    #[test]
    fn what_is_no_packet_is_refused() {
        let mut joined = Coalescer::new(true);
        let mut out = Vec::new();
        for bytes in [&[][..], &[0x45], &[0x45; 19], &[0x45; 40], &[0x60; 39], &[0xff; 100]] {
            joined.push(bytes, true, &mut out);
        }
        let whole = segment(false, 1, TcpFlags::ACK, b"data");
        for len in 0..whole.len() {
            assert!(!joined.push(&whole[..len], false, &mut out));
        }
        assert!(out.len() <= 1);
    }
}
