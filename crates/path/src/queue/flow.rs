//! Which flow a packet belongs to: a number from its addresses, protocol and ports.

use farpace_wire::Packet;
use std::net::IpAddr;

/// The same for all packets of one direction of a connection, and spread evenly over all numbers, differently
/// for each `salt`. Fragments are classified by their addresses only. All packets other than IP are one flow.
pub(super) fn flow_hash(packet: &Packet, salt: u64) -> u64 {
    let Some(ip) = packet.ip() else { return finish(salt) };
    let mut h = address(address(salt, ip.src()), ip.dst());
    h = mix(h, u64::from(ip.protocol()));
    let ports = packet.tcp().map(|tcp| (tcp.src_port(), tcp.dst_port()));
    if let Ok((src, dst)) = ports.or_else(|_| packet.udp().map(|udp| (udp.src_port(), udp.dst_port()))) {
        h = mix(h, u64::from(src) << 16 | u64::from(dst));
    }
    finish(h)
}

fn address(h: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => mix(h, u64::from(u32::from(v4))),
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            mix(mix(h, (bits >> 64) as u64), bits as u64)
        }
    }
}

fn mix(h: u64, word: u64) -> u64 {
    (h.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The finaliser of SplitMix64: every bit depends on every other.
const fn finish(mut h: u64) -> u64 {
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use farpace_wire::{AddressPair, Below, MacAddr, TcpFlags, TcpHeader};
    use std::collections::BTreeSet;

    /// A frame of `payload` + 54 B from `src_port`.
    pub(in crate::queue) fn from_port(src_port: u16, payload: usize) -> Packet {
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 1, 2].into());
        let header = TcpHeader { src_port, dst_port: 80, flags: TcpFlags::ACK, ..TcpHeader::default() };
        Below::new(MacAddr::default(), MacAddr::default(), addresses, 64).tcp(
            1,
            &header,
            vec![0; payload].into(),
        )
    }

    /// Breaks: one connection is spread over several queues, many share one, or the salt changes nothing.
    #[test]
    fn a_connection_has_one_number() {
        let queue = |port, payload, salt| flow_hash(&from_port(port, payload), salt) % 1_024;
        assert_eq!(queue(40_000, 10, 1), queue(40_000, 1_000, 1));
        let used = |salt| (0..1_024).map(|port| queue(port, 0, salt)).collect::<BTreeSet<_>>().len();
        // 1024 flows in 1024 queues leave 1/e of them empty: 647 are used, with a tolerance of 40.
        assert!((607..=687).contains(&used(1)), "{}", used(1));
        assert!((0..100).any(|port| queue(port, 0, 1) != queue(port, 0, 2)));
    }
}
