//! A router: forwards by destination address and counts the time to live down (RFC 791, RFC 1812 §5.3.1).

use crate::{Cx, DropReason, Element, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use thiserror::Error;

/// Why routes cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RouterError {
    /// A prefix length above 32.
    #[error("a prefix length of {0} is impossible: an IPv4 prefix has 0 to 32 bits")]
    PrefixLength(u8),
    /// A way out that is not there.
    #[error("{prefix}/{bits} leads to port {}, but the router has ports 0 to {}", port.0, ports - 1)]
    NoSuchPort {
        /// The prefix.
        prefix: Ipv4Addr,
        /// Its length.
        bits: u8,
        /// The port it leads to.
        port: Port,
        /// How many ports there are.
        ports: u16,
    },
    /// A router without ports.
    #[error("a router needs at least one port")]
    NoPorts,
    /// More than [`Routes::MOST`].
    #[error("a router holds at most {most} routes", most = Routes::MOST)]
    TooMany,
}

/// The first `bits` bits of an address; those after them are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    bits: u8,
    net: u32,
}

impl Prefix {
    /// The prefix of `bits` bits that `address` lies in.
    ///
    /// # Errors
    /// More than 32 bits.
    pub fn new(address: Ipv4Addr, bits: u8) -> Result<Self, RouterError> {
        if bits > 32 {
            return Err(RouterError::PrefixLength(bits));
        }
        Ok(Prefix { bits, net: address.to_bits() & mask(bits) })
    }
    /// One address alone.
    pub const fn host(address: Ipv4Addr) -> Self {
        Prefix { bits: 32, net: address.to_bits() }
    }
}

const fn mask(bits: u8) -> u32 {
    match u32::MAX.checked_shl(32 - bits as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

/// Which port leads where. The longest prefix wins.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    by_prefix: BTreeMap<Prefix, Port>,
    /// Prefix lengths there are, longest first.
    lengths: Vec<u8>,
}

impl Routes {
    /// Most routes of one router.
    pub const MOST: usize = 65_536;

    /// Packets to `prefix` leave by `port`. A route to the same prefix is replaced.
    ///
    /// # Errors
    /// More than [`Routes::MOST`] routes.
    pub fn add(&mut self, prefix: Prefix, port: Port) -> Result<(), RouterError> {
        if self.by_prefix.len() >= Self::MOST && !self.by_prefix.contains_key(&prefix) {
            return Err(RouterError::TooMany);
        }
        self.by_prefix.insert(prefix, port);
        if let Err(at) = self.lengths.binary_search_by(|bits| prefix.bits.cmp(bits)) {
            self.lengths.insert(at, prefix.bits);
        }
        Ok(())
    }
    /// Where `to` leads.
    pub fn find(&self, to: Ipv4Addr) -> Option<Port> {
        let prefix = |bits: &u8| Prefix { bits: *bits, net: to.to_bits() & mask(*bits) };
        self.lengths.iter().find_map(|bits| self.by_prefix.get(&prefix(bits)).copied())
    }
}

/// A router with a fixed table. It takes no time and has no queue: the links around it have. A packet may
/// leave by the port it came in at.
#[derive(Clone, Debug)]
pub struct Router {
    routes: Routes,
    /// For each port, where the last packet that came in there went.
    last: Vec<Option<(Ipv4Addr, Port)>>,
    forwarded: u64,
    no_route: u64,
    expired: u64,
}

impl Router {
    /// A router with `ports` ports.
    ///
    /// # Errors
    /// No ports, or a route to a port that is not there.
    pub fn new(ports: u16, routes: Routes) -> Result<Self, RouterError> {
        if ports == 0 {
            return Err(RouterError::NoPorts);
        }
        if let Some((prefix, port)) = routes.by_prefix.iter().find(|(_, port)| port.0 >= ports) {
            let address = Ipv4Addr::from_bits(prefix.net);
            return Err(RouterError::NoSuchPort { prefix: address, bits: prefix.bits, port: *port, ports });
        }
        Ok(Router { routes, last: vec![None; usize::from(ports)], forwarded: 0, no_route: 0, expired: 0 })
    }
    /// Packets forwarded so far.
    pub const fn forwarded(&self) -> u64 {
        self.forwarded
    }

    fn way_out(&mut self, from: Port, to: Ipv4Addr) -> Option<Port> {
        let last = self.last.get_mut(usize::from(from.0))?;
        if let Some((address, port)) = last
            && *address == to
        {
            return Some(*port);
        }
        let port = self.routes.find(to)?;
        *last = Some((to, port));
        Some(port)
    }
}

impl Element for Router {
    fn ports(&self) -> u16 {
        self.last.len() as u16
    }
    fn is_passive(&self) -> bool {
        true
    }
    fn on_packet(&mut self, port: Port, mut packet: Packet, cx: &mut Cx<'_>) {
        let Some((to, ttl)) = packet.ipv4().map(|ip| (ip.dst(), ip.ttl())) else {
            cx.drop(packet, DropReason::Malformed);
            return;
        };
        // RFC 1812 §5.3.1: a packet whose TTL would become zero goes no further.
        if ttl <= 1 {
            self.expired += 1;
            cx.drop(packet, DropReason::TtlExpired);
            return;
        }
        let Some(out) = self.way_out(port, to) else {
            self.no_route += 1;
            cx.drop(packet, DropReason::NoRoute);
            return;
        };
        packet.decrement_ttl();
        self.forwarded += 1;
        cx.emit(out, packet);
    }
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        vec![
            ("forwarded", self.forwarded.to_string()),
            ("no route", self.no_route.to_string()),
            ("time to live over", self.expired.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::{Bed, packet};
    use farpace_wire::{Ipv4Tcp, MacAddr, TcpHeader};
    use proptest::prelude::*;

    fn to(dst: [u8; 4], ttl: u8) -> Packet {
        let (src_mac, dst_mac) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let lower = Ipv4Tcp { src_mac, dst_mac, src: [10, 0, 0, 1].into(), dst: dst.into(), ttl, tos: 0 };
        lower.build(1, &TcpHeader::default(), "payload".into())
    }

    /// Breaks: a packet takes the wrong way, or one that cannot go on gets through or has the wrong cause.
    #[test]
    fn the_longest_prefix_wins_and_every_end_has_its_cause() {
        let mut routes = Routes::default();
        for (prefix, bits, port) in [([10, 0, 0, 0], 8, 0), ([10, 1, 0, 0], 16, 1), ([10, 1, 2, 3], 32, 2)] {
            routes.add(Prefix::new(prefix.into(), bits).unwrap(), Port(port)).unwrap();
        }
        let mut bed = Bed::new(Router::new(3, routes).unwrap());
        for (dst, ttl) in [
            ([10, 1, 2, 3], 9),
            ([10, 1, 2, 3], 2),
            ([10, 1, 2, 4], 9),
            ([10, 2, 2, 3], 9),
            ([11, 0, 0, 1], 9),
            ([10, 1, 2, 3], 1),
        ] {
            bed.packet(Instant::ZERO, Port(0), to(dst, ttl));
        }
        let ports: Vec<_> = bed.emitted.iter().map(|(_, port, _)| port.0).collect();
        assert_eq!(ports, [2, 2, 1, 0]);
        let reasons: Vec<_> = bed.dropped.iter().map(|(_, reason)| *reason).collect();
        assert_eq!(reasons, [DropReason::NoRoute, DropReason::TtlExpired]);
        assert_eq!(bed.element.forwarded(), 4);
    }

    /// Breaks: a default route, or the refusal of routes that lead nowhere.
    #[test]
    fn edges_of_the_table() {
        let mut routes = Routes::default();
        assert_eq!(Prefix::new([0, 0, 0, 0].into(), 33), Err(RouterError::PrefixLength(33)));
        routes.add(Prefix::new([1, 2, 3, 4].into(), 0).unwrap(), Port(3)).unwrap();
        assert_eq!(routes.find([255, 0, 0, 1].into()), Some(Port(3)));
        assert!(matches!(Router::new(3, routes), Err(RouterError::NoSuchPort { port: Port(3), .. })));
        assert!(matches!(Router::new(0, Routes::default()), Err(RouterError::NoPorts)));
    }

    /// Breaks: a router mends a header that was damaged on the way, and the host would take it for good.
    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = packet(1, 10);
        packet.flip_bit(14 * 8 + 32); // Identification.
        packet.decrement_ttl();
        assert!(packet.verify_checksums().is_err());
    }

    proptest! {
        /// Breaks: forwarded packets have wrong checksums (RFC 1624), or something else in them changed.
        #[test]
        fn the_time_to_live_goes_down_and_the_checksum_stays_right(ttl in 2u8.., dst: [u8; 4]) {
            let mut packet = to(dst, ttl);
            packet.decrement_ttl();
            packet.verify_checksums().unwrap();
            let mut expected = to(dst, ttl - 1);
            expected.complete_checksum();
            packet.complete_checksum();
            // 0 and ffff are the same sum; only one of them can be written by adjusting.
            let mut sum = expected.headers()[24..26].to_vec();
            if sum == [0, 0] && packet.headers()[24..26] == [0xff, 0xff] {
                sum = vec![0xff, 0xff];
            }
            let mut header = expected.headers().to_vec();
            header[24..26].copy_from_slice(&sum);
            prop_assert_eq!(packet.headers(), header);
            prop_assert_eq!(packet.payload(), expected.payload());
        }
    }
}
