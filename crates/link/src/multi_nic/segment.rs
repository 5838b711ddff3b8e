//! The flow and the sequence number of a TCP segment.

use crate::multi_nic::FlowId;
use crate::multi_nic::flow::number;
use farpace_units::Seq;
use farpace_wire::ip::PROTOCOL_TCP;
use farpace_wire::{AddressPair, Packet, TcpFlags};

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiNicFlowKey {
    addresses: AddressPair,
    /// Source and destination.
    ports: u32,
}

impl MultiNicFlowKey {
    /// From source to destination; `ports` are the source and destination port, as in the header.
    pub const fn new(addresses: AddressPair, ports: u32) -> MultiNicFlowKey {
        MultiNicFlowKey { addresses, ports }
    }
    /// Addresses and ports.
    pub const fn parts(&self) -> (AddressPair, u32) {
        (self.addresses, self.ports)
    }
    /// The identifier of the flow in orders.
    pub fn id(&self) -> FlowId {
        let (from, to) = match self.addresses {
            AddressPair::V4(src, dst) => (src.to_bits().into(), dst.to_bits().into()),
            AddressPair::V6(src, dst) => (src.to_bits(), dst.to_bits()),
        };
        number(from, to, self.ports.into(), PROTOCOL_TCP)
    }
    /// A slot among `slots`, for tables with one slot per flow. Zero if there are none.
    #[inline]
    pub fn slot(&self, slots: usize) -> usize {
        let mut mix = u64::from(self.ports);
        let mut add = |word: u64| mix = (mix ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        match self.addresses {
            AddressPair::V4(src, dst) => add(u64::from(src.to_bits()) << 32 | u64::from(dst.to_bits())),
            AddressPair::V6(src, dst) => {
                for address in [src.to_bits(), dst.to_bits()] {
                    add((address >> 64) as u64);
                    add(address as u64);
                }
            }
        }
        add(0);
        (mix >> 20) as usize % slots.max(1)
    }
}

/// The flow that a segment acknowledges, and the acknowledgment number. None without ACK.
#[inline]
pub(super) fn acknowledged(packet: &Packet) -> Option<(MultiNicFlowKey, Seq)> {
    let (ip, tcp) = packet.ip_tcp().ok()?;
    let ports = u32::from(tcp.dst_port()) << 16 | u32::from(tcp.src_port());
    let flow = MultiNicFlowKey { addresses: ip.addresses().reversed(), ports };
    tcp.flags().contains(TcpFlags::ACK).then_some((flow, tcp.ack()))
}

/// Flow, sequence number, length and flags of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentView {
    pub flow: MultiNicFlowKey,
    pub seq: Seq,
    /// Payload length, without SYN and FIN.
    pub len: u32,
    pub flags: TcpFlags,
}

impl SegmentView {
    /// None if the packet is not an unfragmented TCP segment.
    #[inline]
    pub fn of(packet: &Packet) -> Option<SegmentView> {
        let (ip, tcp) = packet.ip_tcp().ok()?;
        let ports = u32::from(tcp.src_port()) << 16 | u32::from(tcp.dst_port());
        let flow = MultiNicFlowKey { addresses: ip.addresses(), ports };
        let len = u32::try_from(packet.payload().len()).unwrap_or(u32::MAX);
        Some(SegmentView { flow, seq: tcp.seq(), len, flags: tcp.flags() })
    }
    /// The sequence number after the payload.
    pub fn end(&self) -> Seq {
        self.seq + self.len
    }
}

/// Builds segments for tests.
#[cfg(test)]
pub(super) mod made {
    use super::*;
    use bytes::Bytes;
    use farpace_wire::{Below, MacAddr, TcpHeader, Timestamps};

    pub const TO: MacAddr = MacAddr([2, 0, 0, 0, 9, 0]);

    /// The sender's NIC with this number.
    pub fn from(nic: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 8, nic])
    }
    /// A segment of the flow with this source port, with `len` bytes from `seq` on.
    pub fn segment(nic: u8, port: u16, seq: u32, len: usize, flags: TcpFlags, stamp: Option<u32>) -> Packet {
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut header =
            TcpHeader { src_port: port, dst_port: 80, seq: Seq::new(seq), flags, ..TcpHeader::default() };
        header.options.timestamps = stamp.map(|value| Timestamps { value, echo: 0 });
        Below::new(from(nic), TO, addresses, 64).tcp(0, &header, Bytes::from(vec![0; len]))
    }
}
