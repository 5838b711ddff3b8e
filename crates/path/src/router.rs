//! A router for IPv4 and IPv6: it forwards by destination address and decrements the time to live (RFC 791,
//! RFC 1812 §5.3.1, RFC 8200 §3).

use crate::prefix::masked;
use crate::{Cx, DropReason, Element, Inspection, Port, PortFrames, Prefix};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::collections::BTreeMap;
use std::net::IpAddr;
use thiserror::Error;

/// Why routes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RouterError {
    /// A prefix length above 32, or 128 for IPv6.
    #[error("a prefix length of {0} is impossible: an IPv4 prefix has 0 to 32 bits, an IPv6 prefix 0 to 128")]
    PrefixLength(u8),
    /// A port that does not exist.
    #[error("{prefix}/{bits} leads to port {}, but the router has ports 0 to {}", port.0, ports - 1)]
    NoSuchPort {
        /// The prefix.
        prefix: IpAddr,
        /// Its length.
        bits: u8,
        /// The port it leads to.
        port: Port,
        /// The number of ports.
        ports: u16,
    },
    /// A router without ports.
    #[error("a router needs at least one port")]
    NoPorts,
    /// More than [`Routes::MAX`].
    #[error("a router holds at most {max} routes", max = Routes::MAX)]
    TooMany,
}

/// The routing table. The longest prefix wins.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    by_prefix: BTreeMap<Prefix, Port>,
    /// The prefix lengths in the table, longest first.
    lengths: Vec<u8>,
}

impl Routes {
    /// Most routes of one router.
    pub const MAX: usize = 65_536;

    /// Packets to `prefix` leave by `port`. A route to the same prefix is replaced.
    ///
    /// # Errors
    /// More than [`Routes::MAX`] routes.
    pub fn add(&mut self, prefix: Prefix, port: Port) -> Result<(), RouterError> {
        if self.by_prefix.len() >= Self::MAX && !self.by_prefix.contains_key(&prefix) {
            return Err(RouterError::TooMany);
        }
        self.by_prefix.insert(prefix, port);
        if let Err(at) = self.lengths.binary_search_by(|bits| prefix.bits().cmp(bits)) {
            self.lengths.insert(at, prefix.bits());
        }
        Ok(())
    }
    /// The port for `to`.
    pub fn find(&self, to: IpAddr) -> Option<Port> {
        let prefix = |bits: &u8| masked(to, *bits).map(|net| Prefix::masked(*bits, net));
        self.lengths.iter().filter_map(prefix).find_map(|prefix| self.by_prefix.get(&prefix).copied())
    }
}

/// A router with a fixed table. It takes no time and has no queue: its links have. A packet may leave by the
/// port at which it came in, unless [other stations share](Router::share_link) that link. Link-local frames,
/// like PAUSE, end at its [ports](PortFrames).
#[derive(Clone, Debug)]
pub struct Router {
    routes: Routes,
    /// For each port, where the last packet that came in there went.
    last: Vec<Option<(IpAddr, Port)>>,
    /// Ports with several stations behind them.
    shared: Vec<bool>,
    frames: PortFrames,
    not_ours: u64,
    forwarded: u64,
    no_route: u64,
    expired: u64,
}

impl Router {
    /// A router with `ports` ports.
    ///
    /// # Errors
    /// No ports, or a route to a port that does not exist.
    pub fn new(ports: u16, routes: Routes) -> Result<Self, RouterError> {
        if ports == 0 {
            return Err(RouterError::NoPorts);
        }
        if let Some((prefix, port)) = routes.by_prefix.iter().find(|(_, port)| port.0 >= ports) {
            return Err(RouterError::NoSuchPort {
                prefix: prefix.net(),
                bits: prefix.bits(),
                port: *port,
                ports,
            });
        }
        Ok(Router {
            routes,
            last: vec![None; usize::from(ports)],
            shared: vec![false; usize::from(ports)],
            frames: PortFrames::default(),
            not_ours: 0,
            forwarded: 0,
            no_route: 0,
            expired: 0,
        })
    }
    /// A switch or a hub, with other stations behind it, is at `port`. Routers of the lab have no addresses
    /// of their own on a link. So a frame from this port that would go back there was meant for another
    /// station, and arrived here because a switch did not know better. The router consumes and counts it.
    pub fn share_link(&mut self, port: Port) {
        if let Some(shared) = self.shared.get_mut(usize::from(port.0)) {
            *shared = true;
        }
    }
    /// Frames that ended at its ports.
    pub const fn port_frames(&self) -> &PortFrames {
        &self.frames
    }
    /// Packets forwarded so far.
    pub const fn forwarded(&self) -> u64 {
        self.forwarded
    }

    fn next_hop(&mut self, from: Port, to: IpAddr) -> Option<Port> {
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
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        let Some(mut packet) = self.frames.take(packet, cx) else { return };
        let Some((to, ttl)) = packet.ip().map(|ip| (ip.dst(), ip.ttl())) else {
            cx.drop(packet, DropReason::Malformed);
            return;
        };
        // RFC 1812 §5.3.1: a packet whose TTL would become zero is not forwarded.
        if ttl <= 1 {
            self.expired += 1;
            cx.drop(packet, DropReason::TtlExpired);
            return;
        }
        let Some(out) = self.next_hop(port, to) else {
            self.no_route += 1;
            cx.drop(packet, DropReason::NoRoute);
            return;
        };
        if out == port && self.shared.get(usize::from(port.0)).is_some_and(|shared| *shared) {
            self.not_ours += 1;
            cx.consume(packet);
            return;
        }
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
        let mut readings = vec![
            ("forwarded", self.forwarded.to_string()),
            ("no route", self.no_route.to_string()),
            ("time to live over", self.expired.to_string()),
            ("for others", self.not_ours.to_string()),
        ];
        readings.extend(self.frames.inspect());
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};
    use farpace_wire::{AddressPair, Below, MacAddr, TcpHeader};
    use proptest::prelude::*;

    fn to(dst: [u8; 4], ttl: u8) -> Packet {
        let (src_mac, dst_mac) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), dst.into());
        let lower = Below::new(src_mac, dst_mac, addresses, ttl);
        lower.tcp(1, &TcpHeader::default(), "payload".into())
    }

    /// Breaks: a packet leaves by the wrong port, or one that cannot go on passes or is dropped for the wrong
    /// reason.
    #[test]
    fn the_longest_prefix_wins_and_every_end_has_its_cause() {
        let mut routes = Routes::default();
        for (prefix, bits, port) in [([10, 0, 0, 0], 8, 0), ([10, 1, 0, 0], 16, 1), ([10, 1, 2, 3], 32, 2)] {
            routes.add(Prefix::new(prefix.into(), bits).unwrap(), Port(port)).unwrap();
        }
        let mut harness = Harness::new(Router::new(3, routes).unwrap());
        for (dst, ttl) in [
            ([10, 1, 2, 3], 9),
            ([10, 1, 2, 3], 2),
            ([10, 1, 2, 4], 9),
            ([10, 2, 2, 3], 9),
            ([11, 0, 0, 1], 9),
            ([10, 1, 2, 3], 1),
        ] {
            harness.packet(Instant::ZERO, Port(0), to(dst, ttl));
        }
        let ports: Vec<_> = harness.emitted.iter().map(|(_, port, _)| port.0).collect();
        assert_eq!(ports, [2, 2, 1, 0]);
        let reasons: Vec<_> = harness.dropped.iter().map(|(_, reason)| *reason).collect();
        assert_eq!(reasons, [DropReason::NoRoute, DropReason::TtlExpired]);
        assert_eq!(harness.element.forwarded(), 4);
    }

    /// Breaks: a default route, or the refusal of routes to ports that do not exist.
    #[test]
    fn edges_of_the_table() {
        let mut routes = Routes::default();
        assert_eq!(Prefix::new([0, 0, 0, 0].into(), 33), Err(RouterError::PrefixLength(33)));
        assert_eq!(Prefix::new([0; 16].into(), 129), Err(RouterError::PrefixLength(129)));
        routes.add(Prefix::new([1, 2, 3, 4].into(), 0).unwrap(), Port(3)).unwrap();
        assert_eq!(routes.find([255, 0, 0, 1].into()), Some(Port(3)));
        assert!(matches!(Router::new(3, routes), Err(RouterError::NoSuchPort { port: Port(3), .. })));
        assert!(matches!(Router::new(0, Routes::default()), Err(RouterError::NoPorts)));
    }

    /// Breaks: IPv6 through routers, or a default route of one family that takes packets of the other.
    #[test]
    fn families_have_their_own_routes() {
        let mut routes = Routes::default();
        let (net, host) = ("2001:db8::".parse().unwrap(), "2001:db8::7".parse().unwrap());
        for (prefix, bits, port) in [(net, 32, 0), (host, 128, 1), ([0; 4].into(), 0, 2)] {
            routes.add(Prefix::new(prefix, bits).unwrap(), Port(port)).unwrap();
        }
        for (to, port) in
            [("2001:db8::7", Some(1)), ("2001:db8::8", Some(0)), ("fe80::1", None), ("9.9.9.9", Some(2))]
        {
            assert_eq!(routes.find(to.parse().unwrap()), port.map(Port), "{to}");
        }
        let pair = farpace_wire::AddressPair::new("2001:db8::1".parse().unwrap(), host).unwrap();
        let below = |ttl| farpace_wire::Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, ttl);
        let mut harness = Harness::new(Router::new(3, routes).unwrap());
        for ttl in [1, 2] {
            harness.packet(
                Instant::ZERO,
                Port(0),
                below(ttl).tcp(1, &TcpHeader::default(), "payload".into()),
            );
        }
        assert_eq!(harness.emitted[0].2.ip().map(|ip| ip.ttl()), Some(1));
        assert_eq!((harness.emitted.len(), harness.dropped[0].1), (1, DropReason::TtlExpired));
    }

    /// Breaks: a router repairs a header that was damaged on the path, and the host accepts it.
    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = packet(1, 10);
        packet.flip_bit(14 * 8 + 32); // Identification.
        packet.decrement_ttl();
        assert!(packet.verify_checksums().is_err());
    }

    proptest! {
        /// Breaks: forwarded packets have wrong checksums (RFC 1624), or other changes.
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
