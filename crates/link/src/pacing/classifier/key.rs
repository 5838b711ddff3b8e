//! The key that filters compare.

use crate::pacing::ClassFilter;
use farpace_path::Prefix;
use farpace_wire::Packet;
use farpace_wire::ip::{IpView, PROTOCOL_TCP, PROTOCOL_UDP};
use std::net::IpAddr;

/// The header fields that filters can compare. Of a packet: its fields. Of a filter: the required values, and
/// as a mask, the bits that they cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassifierKey {
    /// IPv4 addresses occupy the low 32 bits.
    dst: u128,
    src: u128,
    rest: u64,
}

// Bit positions in `rest`. The destination port is at position 0.
const SRC_PORT: u32 = 16;
const PROTOCOL: u32 = 32;
const DSCP: u32 = 40;
/// Any IP packet. A condition on an IP header field implies it.
const IP: u64 = 1 << 48;
const V4: u64 = 1 << 49;
const V6: u64 = 1 << 50;
/// The packet has ports.
const PORTS: u64 = 1 << 51;

impl ClassifierKey {
    /// The key as numbers: the destination, its lower half first, the source likewise, and the rest: from the
    /// lowest bit on destination port and source port (16 bits each), protocol and DSCP (8 bits each),
    /// whether it is IP, IPv4, IPv6, and whether it has ports (a bit each). IPv4 addresses are in the low 32
    /// bits.
    pub const fn words(&self) -> [u64; 5] {
        let ClassifierKey { dst, src, rest } = *self;
        [dst as u64, (dst >> 64) as u64, src as u64, (src >> 64) as u64, rest]
    }

    /// The bits that `mask` asks for.
    #[inline]
    pub fn and(&self, mask: &ClassifierKey) -> ClassifierKey {
        ClassifierKey { dst: self.dst & mask.dst, src: self.src & mask.src, rest: self.rest & mask.rest }
    }

    /// The key of a packet.
    #[inline]
    pub fn of_packet(packet: &Packet) -> ClassifierKey {
        let Some(ip) = packet.ip() else { return ClassifierKey { dst: 0, src: 0, rest: 0 } };
        let (dst, src, family) = match &ip {
            IpView::V4(ip) => (ip.dst().to_bits().into(), ip.src().to_bits().into(), V4),
            IpView::V6(ip) => (ip.dst().to_bits(), ip.src().to_bits(), V6),
        };
        let ports = match ip.protocol() {
            PROTOCOL_TCP => packet.tcp().ok().map(|tcp| (tcp.src_port(), tcp.dst_port())),
            PROTOCOL_UDP => packet.udp().ok().map(|udp| (udp.src_port(), udp.dst_port())),
            _ => None,
        };
        let ports = ports.map_or(0, |(src, dst)| PORTS | u64::from(src) << SRC_PORT | u64::from(dst));
        let head = u64::from(ip.protocol()) << PROTOCOL | u64::from(ip.dscp()) << DSCP;
        ClassifierKey { dst, src, rest: IP | family | head | ports }
    }

    /// Mask and value of a filter.
    pub(super) fn of_filter(filter: &ClassFilter) -> (ClassifierKey, ClassifierKey) {
        let ClassFilter { class: _, priority: _, protocol, src, dst, src_port, dst_port, dscp } = filter;
        let (mut mask, mut value) =
            (ClassifierKey { dst: 0, src: 0, rest: 0 }, ClassifierKey { dst: 0, src: 0, rest: 0 });
        let mut require = |bits: u64, at: u32, what: u64| {
            mask.rest |= IP | bits << at;
            value.rest |= IP | what << at;
        };
        if let Some(protocol) = protocol {
            require(0xff, PROTOCOL, protocol.number().into());
        }
        if let Some(dscp) = dscp {
            // Eight bits, so that a value above 63 matches no packet.
            require(0xff, DSCP, (*dscp).into());
        }
        for (port, at) in [(src_port, SRC_PORT), (dst_port, 0)] {
            if let Some(port) = port {
                require(0xffff, at, (*port).into());
                require(PORTS, 0, PORTS);
            }
        }
        for (net, mask_at, at) in [(src, &mut mask.src, &mut value.src), (dst, &mut mask.dst, &mut value.dst)]
        {
            let Some(net) = net else { continue };
            let (bits, address, family) = prefix(*net);
            (*mask_at, *at) = (bits, address);
            // The mask covers both family bits, because each packet has exactly one.
            mask.rest |= IP | V4 | V6;
            value.rest |= IP | family;
        }
        (mask, value)
    }
}

/// Mask, address and family of a prefix.
fn prefix(net: Prefix) -> (u128, u128, u64) {
    let ones = |whole: u32| u128::MAX.checked_shl(whole.saturating_sub(net.bits().into())).unwrap_or(0);
    match net.net() {
        IpAddr::V4(v4) => (ones(32) & u128::from(u32::MAX), v4.to_bits().into(), V4),
        IpAddr::V6(v6) => (ones(128), v6.to_bits(), V6),
    }
}
