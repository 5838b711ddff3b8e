//! Segments that a NIC hands over as one (GRO in Linux): the reverse of
//! [`split_segments`](Packet::split_segments).

use super::{Checksum, Packet};
use crate::tcp::{self, TcpFlags};
use bytes::BytesMut;

/// Bytes of an IP packet at most.
const MAX_IP: usize = 65_535;

impl Packet {
    /// True for a TCP segment of the same connection in the same direction.
    pub fn is_same_flow(&self, other: &Packet) -> bool {
        let (Ok((ip, tcp)), Ok((other_ip, other_tcp))) = (self.ip_tcp(), other.ip_tcp()) else {
            return false;
        };
        (ip.src(), ip.dst()) == (other_ip.src(), other_ip.dst())
            && (tcp.src_port(), tcp.dst_port()) == (other_tcp.src_port(), other_tcp.dst_port())
    }

    /// Appends the segment `next` to this one. Both then are one packet, whose
    /// [`segment_size`](Packet::segment_size) is the payload of the first. False, with nothing changed: they
    /// are no two segments in order, or a header says something that the joined one cannot say.
    ///
    /// As in Linux, headers must be the same but for lengths, numbers and checksums, options included. PSH or
    /// FIN, and a segment shorter than the first, are the end: nothing can be appended after them. The joined
    /// IP packet has at most 65,535 bytes. Its checksums are [`Checksum::Partial`]; segments with wrong ones
    /// are not joined.
    pub fn join_segment(&mut self, next: &Packet) -> bool {
        let Some(size) = self.room_for(next) else { return false };
        // Before the lengths change.
        let v4 = self.ipv4().is_some();
        let payload = std::mem::take(&mut self.0.payload);
        let mut joined = payload.try_into_mut().unwrap_or_else(|first| {
            let mut room = BytesMut::with_capacity(MAX_IP);
            room.extend_from_slice(&first);
            room
        });
        joined.extend_from_slice(&next.0.payload);
        self.0.payload = joined.freeze();
        self.0.segment_size = size;
        self.0.checksum = Checksum::Partial;
        let (network, transport) = (usize::from(self.0.network_offset), usize::from(self.0.transport_offset));
        let flags = next.0.header.get(transport + 13).copied().unwrap_or_default();
        self.0.header[transport + 13] |= flags;
        self.0.header[transport + tcp::CHECKSUM_AT..transport + tcp::CHECKSUM_AT + 2].fill(0);
        // At most `MAX_IP`, as was looked at.
        let len = (usize::from(self.0.header_len) - network + self.0.payload.len()) as u16;
        if v4 {
            self.set_ipv4_word(2, len);
        } else {
            let payload = len.saturating_sub(crate::ipv6::IPV6_LEN as u16);
            self.0.header[network + 4..network + 6].copy_from_slice(&payload.to_be_bytes());
        }
        true
    }

    /// The size of segments if `next` can be appended.
    fn room_for(&self, next: &Packet) -> Option<u16> {
        let (Ok((_, tcp)), Ok((_, after))) = (self.ip_tcp(), next.ip_tcp()) else { return None };
        let (len, more) = (self.0.payload.len(), next.0.payload.len());
        let size = self.segment_size().map_or(len, usize::from);
        let ends = TcpFlags::PSH.with(TcpFlags::FIN);
        let in_order = more > 0
            && more <= size
            && len.is_multiple_of(size.max(1))
            && next.segment_size().is_none()
            && after.seq() == tcp.seq() + u32::try_from(len).ok()?;
        let plain = tcp.flags() == TcpFlags::ACK && after.flags().without(ends) == TcpFlags::ACK;
        let from = usize::from(self.0.network_offset);
        let fits = usize::from(self.0.header_len) - from + len + more <= MAX_IP;
        let alike = self.fixed_headers() == next.fixed_headers();
        let alone = self.0.multipath.is_none() && next.0.multipath.is_none();
        let right = self.verify_checksums().is_ok() && next.verify_checksums().is_ok();
        (in_order && plain && fits && alike && alone && right).then_some(u16::try_from(size).ok()?)
    }

    /// The headers without what may differ between two segments that are joined.
    fn fixed_headers(&self) -> Vec<u8> {
        let (network, transport) = (usize::from(self.0.network_offset), usize::from(self.0.transport_offset));
        let mut headers = self.headers().to_vec();
        let mut clear = |at: usize, len: usize| {
            if let Some(bytes) = headers.get_mut(at..at + len) {
                bytes.fill(0);
            }
        };
        if self.ipv4().is_some() {
            clear(network + 2, 4); // length and identification
            clear(network + 10, 2); // checksum
        } else {
            clear(network + 4, 2); // length
        }
        clear(transport + 4, 4); // sequence number
        clear(transport + 13, 1); // flags, which were looked at
        clear(transport + tcp::CHECKSUM_AT, 2);
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::below::Below;
    use crate::ethernet::MacAddr;
    use crate::ip::AddressPair;
    use crate::tcp::TcpHeader;
    use bytes::Bytes;
    use farpace_units::Seq;

    fn segment(v6: bool, seq: u32, len: usize, flags: TcpFlags) -> Packet {
        let addresses = match v6 {
            true => AddressPair::V6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()),
            false => AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
        };
        let below = Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64);
        let header =
            TcpHeader { src_port: 40_000, dst_port: 80, seq: Seq::new(seq), flags, ..TcpHeader::default() };
        let payload: Vec<u8> = (0..len).map(|i| (seq as usize + i) as u8).collect();
        below.tcp(seq as u16, &header, Bytes::from(payload))
    }

    /// Breaks: segments that are joined and split again are not those that came, or are joined where the
    /// receiver would learn another thing.
    #[test]
    fn joined_segments_split_into_themselves() {
        let (ack, push) = (TcpFlags::ACK, TcpFlags::ACK.with(TcpFlags::PSH));
        for v6 in [false, true] {
            let parts = [segment(v6, 0, 100, ack), segment(v6, 100, 100, ack), segment(v6, 200, 40, push)];
            let mut joined = parts[0].clone();
            assert!(joined.join_segment(&parts[1]) && joined.join_segment(&parts[2]));
            assert_eq!((joined.segments(), joined.segment_size()), (3, Some(100)));
            assert!(joined.ip_tcp().is_ok() && joined.verify_checksums().is_ok());
            // What was short or pushed is the end.
            assert!(!joined.join_segment(&segment(v6, 240, 100, ack)));
            let mut split = Vec::new();
            joined.split_segments(|part| split.push(part));
            for (part, came) in split.iter().zip(&parts) {
                assert_eq!(part.payload(), came.payload());
                let (part, came) = (part.tcp().unwrap(), came.tcp().unwrap());
                assert_eq!((part.seq(), part.flags()), (came.seq(), came.flags()));
            }
        }
        let first = segment(false, 0, 100, ack);
        for (why, next) in [
            ("a hole", segment(false, 101, 100, ack)),
            ("once more", segment(false, 0, 100, ack)),
            ("longer", segment(false, 100, 101, ack)),
            ("no data", segment(false, 100, 0, ack)),
            ("CWR", segment(false, 100, 100, ack.with(TcpFlags::CWR))),
            ("another network", segment(true, 100, 100, ack)),
        ] {
            let mut kept = first.clone();
            assert!(!kept.join_segment(&next), "{why}");
            assert_eq!((kept.payload(), kept.segments()), (first.payload(), 1), "{why}");
        }
        let mut pushed = segment(false, 0, 100, push);
        assert!(!pushed.join_segment(&segment(false, 100, 100, ack)));
        assert!(
            first.is_same_flow(&segment(false, 7, 1, push)) && !first.is_same_flow(&segment(true, 0, 1, ack))
        );
        // As large as IP allows.
        let mut large = first.clone();
        let joined =
            (1..1_000).take_while(|n| large.join_segment(&segment(false, n * 100, 100, ack))).count();
        assert_eq!(joined + 1, (MAX_IP - 40) / 100);
    }
}
