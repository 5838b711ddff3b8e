//! Finds the flow of a frame.

use crate::multi_nic::FlowId;
use farpace_wire::Packet;
use farpace_wire::ip::{IpView, PROTOCOL_TCP, PROTOCOL_UDP};

/// A hash of protocol, addresses and ports, the same for all frames of a connection in one direction.
/// Fragments and packets that are neither TCP nor UDP are hashed by address; all other frames are one flow.
/// The hash is not secret: a sender can force collisions.
#[inline]
pub(super) fn flow_of(packet: &Packet) -> FlowId {
    let Some(ip) = packet.ip() else { return FlowId(0) };
    let (from, to) = match &ip {
        IpView::V4(ip) => (ip.src().to_bits().into(), ip.dst().to_bits().into()),
        IpView::V6(ip) => (ip.src().to_bits(), ip.dst().to_bits()),
    };
    let ports = match ip.protocol() {
        PROTOCOL_TCP => packet.tcp().ok().map(|tcp| (tcp.src_port(), tcp.dst_port())),
        PROTOCOL_UDP => packet.udp().ok().map(|udp| (udp.src_port(), udp.dst_port())),
        _ => None,
    };
    number(from, to, ports.map_or(0, |(from, to)| u64::from(from) << 16 | u64::from(to)), ip.protocol())
}

/// The hash of addresses, ports (source first) and protocol.
#[inline]
pub(super) fn number(from: u128, to: u128, ports: u64, protocol: u8) -> FlowId {
    let fold = |n: u128| (n >> 64) as u64 ^ n as u64;
    let (from, to) = (fold(from), fold(to));
    // Odd constants without structure (digits of pi), so that every input bit reaches the top bits.
    let mixed = from.wrapping_mul(0x243f_6a88_85a3_08d3)
        ^ to.wrapping_mul(0x1319_8a2e_0370_7345).rotate_left(23)
        ^ (ports | u64::from(protocol) << 32).wrapping_mul(0xa409_3822_299f_31d1);
    FlowId((mixed ^ mixed >> 32).wrapping_mul(0x082e_fa98_ec4e_6c89) >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use farpace_wire::udp::UdpHeader;
    use farpace_wire::{AddressPair, Below, MacAddr};
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    fn packet(from: u8, to: u8, ports: (u16, u16)) -> Packet {
        let addresses = AddressPair::V4(Ipv4Addr::new(10, 0, 0, from), Ipv4Addr::new(10, 0, 0, to));
        let below = Below::new(MacAddr::default(), MacAddr::default(), addresses, 64);
        let header = UdpHeader { src_port: ports.0, dst_port: ports.1 };
        below.udp(0, header, Bytes::from_static(b"x")).expect("a datagram")
    }

    /// Breaks: connections that differ in one port have different hashes, so that flow hashing uses all NICs.
    #[test]
    fn flows_differ_by_every_part() {
        let mut seen = BTreeSet::new();
        let mut remainders = [0_u32; 3];
        for port in 1..=3_000 {
            let flow = flow_of(&packet(1, 2, (port, 80)));
            assert!(seen.insert(flow), "port {port}");
            remainders[(flow.0 % 3) as usize] += 1;
        }
        assert!(seen.insert(flow_of(&packet(2, 1, (1, 80)))), "the reverse direction is another flow");
        assert!(seen.insert(flow_of(&packet(1, 3, (1, 80)))));
        assert!(remainders.iter().all(|n| (900..1_100).contains(n)), "{remainders:?}");
        assert_eq!(flow_of(&packet(1, 2, (1, 80))), flow_of(&packet(1, 2, (1, 80))));
    }
}
