//! What is between a gateway and the paths to its peer.

use crate::peer_end::PeerEnd;
use farpace_path::{Cx, DropReason, Element, Inspection, Port, Prefix};
use farpace_units::{Instant, Span};
use farpace_wire::{Arp, ArpOperation, MacAddr, Packet};
use std::net::{IpAddr, Ipv4Addr};

/// Between two requests for the peer, until it has answered, ...
const FIRST_REQUESTS: Span = Span::from_millis(200);
/// ... and afterwards: paths that have failed for long forget it.
const REQUESTS: Span = Span::from_secs(2);

/// One end of the link between two gateways, as the layer over its paths knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// Its MAC address on the first path.
    pub mac: MacAddr,
    /// Its address inside the tunnels. No host has it.
    pub address: Ipv4Addr,
}

/// Counters of a [`PeerLink`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLinkStats {
    /// Packets for the peer.
    pub sent: u64,
    /// Packets of the peer.
    pub received: u64,
    /// Packets from or for addresses that are not behind the side where they came from or go to.
    pub foreign: u64,
}

/// The link between two gateways: port 0 is the WAN side of the gateway, port 1 leads to the layer over the
/// paths ([`MultiNic`](https://docs.rs/farpace-link)).
///
/// The contract:
/// * What passes is from a prefix of one site to a prefix of the other; everything else is dropped. So a peer
///   reaches no host but those of the site, and hosts of the site cannot speak to the tunnel itself. Where
///   prefixes overlap, the longest one that contains an address says whose it is.
/// * Super-segments are cut: paths carry frames of one segment each.
/// * The peer is asked for its paths by ARP, again and again, and answered.
/// * The peer hears of the [orderly end](PeerLink::begin_end) of this gateway, and this gateway of that of
///   the peer.
#[derive(Debug)]
pub struct PeerLink {
    own: LinkEnd,
    peer: LinkEnd,
    behind_own: Vec<Prefix>,
    behind_peer: Vec<Prefix>,
    heard: bool,
    next: Instant,
    end: PeerEnd,
    stats: PeerLinkStats,
}

impl PeerLink {
    /// The port of the gateway.
    pub const GATEWAY: Port = Port(0);
    /// The port of the layer over the paths.
    pub const PATHS: Port = Port(1);

    /// A link to a peer that was not heard yet, with the prefixes behind both.
    pub fn new(
        now: Instant,
        own: LinkEnd,
        peer: LinkEnd,
        behind_own: Vec<Prefix>,
        behind_peer: Vec<Prefix>,
    ) -> Self {
        let (end, stats) = (PeerEnd::default(), PeerLinkStats::default());
        PeerLink { own, peer, behind_own, behind_peer, heard: false, next: now, end, stats }
    }
    /// The counters.
    pub const fn stats(&self) -> PeerLinkStats {
        self.stats
    }
    /// True if the peer was heard.
    pub const fn has_heard(&self) -> bool {
        self.heard
    }

    /// This gateway ends: the peer is asked to hand its connections over.
    pub fn begin_end(&mut self, cx: &mut Cx<'_>) {
        self.end.begin(cx.now());
        self.say_end(cx);
    }
    /// After [`begin_end`](PeerLink::begin_end): the peer has no connections left, or has not answered for
    /// 2 s.
    pub fn may_end(&self, now: Instant) -> bool {
        self.end.is_done(now)
    }
    /// The peer is about to end, and asks for the connections to be handed over.
    pub fn peer_ends(&self, now: Instant) -> bool {
        self.end.peer_ends(now)
    }
    /// The peer has said that it ends, in the last 5 s.
    pub fn peer_ended_lately(&self, now: Instant) -> bool {
        self.end.peer_ended_lately(now)
    }
    /// If both gateways end: the peer ends last, so this one hands its connections over first.
    pub fn peer_is_last(&self) -> bool {
        self.peer.address < self.own.address
    }
    /// The number of connections, for a peer that ends.
    pub fn set_left(&mut self, connections: usize) {
        self.end.set_left(connections);
    }

    fn request(&self) -> Arp {
        Arp::request(self.own.mac, self.own.address, self.peer.address)
    }
    fn say_end(&mut self, cx: &mut Cx<'_>) {
        let request = self.request();
        if let Some(question) = self.end.question(cx.now(), request) {
            cx.made();
            cx.emit(Self::PATHS, question.packet(self.peer.mac));
        }
    }

    fn is_of_tunnel(&self, address: IpAddr) -> bool {
        address == self.own.address || address == self.peer.address
    }
    /// True if a packet that comes from the side with the prefixes `from` may go to the side with those of
    /// `to`.
    fn may_pass(&self, packet: &Packet, from: &[Prefix], to: &[Prefix]) -> bool {
        packet.ip().is_some_and(|ip| {
            let (src, dst) = (ip.src(), ip.dst());
            is_behind(src, from, to)
                && is_behind(dst, to, from)
                && !self.is_of_tunnel(src)
                && !self.is_of_tunnel(dst)
        })
    }

    fn on_arp(&mut self, arp: &Arp, cx: &mut Cx<'_>) {
        if arp.sender != self.peer.address || arp.sender_mac != self.peer.mac {
            return;
        }
        self.heard = true;
        if arp.operation == ArpOperation::Request && arp.target == self.own.address {
            cx.made();
            cx.emit(Self::PATHS, arp.reply(self.own.mac).packet(self.peer.mac));
        }
        if let Some(answer) = self.end.on_arp(cx.now(), arp, self.request()) {
            cx.made();
            cx.emit(Self::PATHS, answer.packet(self.peer.mac));
        }
    }
}

/// True if the longest prefix that contains `address` is one of `own`, and not one of `others`. An address
/// with the same prefix on both sides is behind neither.
fn is_behind(address: IpAddr, own: &[Prefix], others: &[Prefix]) -> bool {
    let longest = |prefixes: &[Prefix]| {
        prefixes.iter().filter(|prefix| prefix.contains(address)).map(|prefix| prefix.bits()).max()
    };
    longest(own) > longest(others)
}

impl Element for PeerLink {
    fn ports(&self) -> u16 {
        2
    }

    fn on_packet(&mut self, port: Port, mut packet: Packet, cx: &mut Cx<'_>) {
        if port == Self::GATEWAY {
            if !self.may_pass(&packet, &self.behind_own, &self.behind_peer) {
                self.stats.foreign += 1;
                return cx.drop(packet, DropReason::Martian);
            }
            packet.set_macs(self.own.mac, self.peer.mac);
            if packet.segment_size().is_none() {
                self.stats.sent += 1;
                return cx.emit(Self::PATHS, packet);
            }
            let whole = cx.hand_over(packet);
            return whole.split_segments(|part| {
                self.stats.sent += 1;
                cx.made();
                cx.emit(Self::PATHS, part);
            });
        }
        if let Ok(arp) = packet.arp() {
            self.on_arp(&arp, cx);
            return cx.consume(packet);
        }
        if !self.may_pass(&packet, &self.behind_peer, &self.behind_own) {
            self.stats.foreign += 1;
            return cx.drop(packet, DropReason::Martian);
        }
        self.stats.received += 1;
        cx.emit(Self::GATEWAY, packet);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.say_end(cx);
        if cx.now() < self.next {
            return;
        }
        self.next = cx.now() + if self.heard { REQUESTS } else { FIRST_REQUESTS };
        cx.made();
        cx.emit(Self::PATHS, self.request().packet(MacAddr::BROADCAST));
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.end.deadline().map_or(self.next, |end| end.min(self.next)))
    }

    fn held(&self) -> u64 {
        0
    }

    fn inspect(&self) -> Inspection {
        let PeerLinkStats { sent, received, foreign } = self.stats;
        vec![
            ("heard", self.heard.to_string()),
            ("sent", sent.to_string()),
            ("received", received.to_string()),
            ("foreign", foreign.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use farpace_path::Effects;
    use farpace_units::RandomStream;
    use farpace_wire::tcp::{TcpFlags, TcpHeader};
    use farpace_wire::{AddressPair, Below};

    const OWN: LinkEnd = LinkEnd { mac: MacAddr([2, 0, 0, 0, 0, 1]), address: Ipv4Addr::new(100, 64, 0, 1) };
    const PEER: LinkEnd = LinkEnd { mac: MacAddr([2, 0, 0, 0, 0, 2]), address: Ipv4Addr::new(100, 64, 0, 2) };

    fn link() -> PeerLink {
        link_between(&["10.1.0.0/16"], &["0.0.0.0/0"])
    }
    fn link_between(own: &[&str], peer: &[&str]) -> PeerLink {
        let prefixes = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        PeerLink::new(Instant::ZERO, OWN, PEER, prefixes(own), prefixes(peer))
    }
    fn with(link: &mut PeerLink, at: Instant, call: impl FnOnce(&mut PeerLink, &mut Cx<'_>)) -> Effects {
        let (mut effects, mut rng) = (Effects::default(), RandomStream::new(1, "link"));
        call(link, &mut Cx::new(at, &mut effects, &mut rng));
        effects
    }
    fn packet(from: [u8; 4], to: [u8; 4], len: usize) -> Packet {
        packet_between(AddressPair::V4(from.into(), to.into()), len)
    }
    fn packet_between(addresses: AddressPair, len: usize) -> Packet {
        let below = Below::new(MacAddr::default(), MacAddr::default(), addresses, 9);
        below.tcp(0, &TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() }, Bytes::from(vec![7; len]))
    }

    // Breaks: a host of the site, or the peer, reaches what is not behind the other side, or the tunnel
    // itself.
    #[test]
    fn only_the_prefixes_of_both_sites_pass() {
        let mut link = link();
        for (port, from, to, passes) in [
            (PeerLink::GATEWAY, [10, 1, 0, 2], [8, 8, 8, 8], true),
            (PeerLink::GATEWAY, [10, 2, 0, 2], [8, 8, 8, 8], false),
            (PeerLink::GATEWAY, [10, 1, 0, 2], [100, 64, 0, 2], false),
            (PeerLink::PATHS, [8, 8, 8, 8], [10, 1, 0, 2], true),
            (PeerLink::PATHS, [8, 8, 8, 8], [10, 2, 0, 2], false),
            (PeerLink::PATHS, [100, 64, 0, 1], [10, 1, 0, 2], false),
        ] {
            let packet = packet(from, to, 10);
            let effects = with(&mut link, Instant::ZERO, |link, cx| link.on_packet(port, packet, cx));
            assert_eq!(effects.emitted.len(), usize::from(passes), "{from:?} to {to:?}");
            assert_eq!(effects.dropped.len(), usize::from(!passes));
        }
        assert_eq!(link.stats(), PeerLinkStats { sent: 1, received: 1, foreign: 4 });
    }

    /// Breaks: a peer uses addresses of a network of this site that lies within one of its own, or hosts here
    /// use those of a network of the peer that lies within one of this site.
    #[test]
    fn the_longest_prefix_says_whose_an_address_is() {
        // Our prefixes, those of the peer, and an address of each side.
        for (own, peer, ours, theirs) in [
            (["10.1.0.0/16"], ["10.0.0.0/8"], "10.1.0.2", "10.2.0.2"),
            (["10.0.0.0/8"], ["10.1.0.0/16"], "10.2.0.2", "10.1.0.2"),
            (["10.1.0.0/16"], ["0.0.0.0/0"], "10.1.255.255", "10.2.0.0"),
            (["0.0.0.0/0"], ["10.1.0.0/16"], "10.2.0.0", "10.1.255.255"),
            (["fd01:1::/32"], ["fd00::/8"], "fd01:1::2", "fd02::2"),
            (["fd00::/8"], ["fd01:1::/32"], "fd02::2", "fd01:1::2"),
            (["fd01:1::/64"], ["::/0"], "fd01:1::ffff:2", "fd01:1:0:1::2"),
        ] {
            let mut link = link_between(&own, &peer);
            let pair = |from: &str, to: &str| match (from.parse().unwrap(), to.parse().unwrap()) {
                (IpAddr::V4(from), IpAddr::V4(to)) => AddressPair::V4(from, to),
                (IpAddr::V6(from), IpAddr::V6(to)) => AddressPair::V6(from, to),
                _ => unreachable!(),
            };
            for (port, from, to, passes) in [
                (PeerLink::GATEWAY, ours, theirs, true),
                (PeerLink::PATHS, theirs, ours, true),
                // An address of the other side as the source, or one of the same side as the destination.
                (PeerLink::PATHS, ours, ours, false),
                (PeerLink::PATHS, theirs, theirs, false),
                (PeerLink::PATHS, ours, theirs, false),
                (PeerLink::GATEWAY, theirs, theirs, false),
                (PeerLink::GATEWAY, ours, ours, false),
                (PeerLink::GATEWAY, theirs, ours, false),
            ] {
                let packet = packet_between(pair(from, to), 10);
                let effects = with(&mut link, Instant::ZERO, |link, cx| link.on_packet(port, packet, cx));
                assert_eq!(effects.emitted.len(), usize::from(passes), "{own:?} {port:?}: {from} to {to}");
            }
        }
        let same = link_between(&["10.1.0.0/16"], &["10.1.0.0/16"]);
        let packet = packet([10, 1, 0, 2], [10, 1, 0, 3], 10);
        assert!(!same.may_pass(&packet, &same.behind_own, &same.behind_peer));
    }

    // Breaks: a super-segment leaves as a frame that fits into no path, or its parts are addressed to nobody.
    #[test]
    fn super_segments_are_cut() {
        let mut link = link();
        let mut packet = packet([10, 1, 0, 2], [8, 8, 8, 8], 3_000);
        packet.set_segment_size(1_000);
        let effects =
            with(&mut link, Instant::ZERO, |link, cx| link.on_packet(PeerLink::GATEWAY, packet, cx));
        assert_eq!(effects.emitted.len(), 3);
        for (port, part) in effects.emitted {
            assert_eq!(
                (port, part.payload().len(), part.macs()),
                (PeerLink::PATHS, 1_000, (OWN.mac, PEER.mac))
            );
        }
    }

    // Breaks: the paths of the peer are never learned, or forgotten for good when all of them have failed.
    #[test]
    fn the_peer_is_asked_for_and_answered() {
        let mut link = link();
        let asked = with(&mut link, Instant::ZERO, |link, cx| link.on_wake(cx));
        let request = asked.emitted[0].1.arp().unwrap();
        assert_eq!((request.operation, request.target), (ArpOperation::Request, PEER.address));
        assert_eq!(link.deadline(), Some(Instant::ZERO + FIRST_REQUESTS));
        let theirs = |mac| Arp::request(mac, PEER.address, OWN.address).packet(MacAddr::BROADCAST);
        let forged = theirs(MacAddr([2, 9, 9, 9, 9, 9]));
        let silent = with(&mut link, Instant::ZERO, |link, cx| link.on_packet(PeerLink::PATHS, forged, cx));
        assert!(silent.emitted.is_empty() && !link.has_heard());
        let request = theirs(PEER.mac);
        let answered =
            with(&mut link, Instant::ZERO, |link, cx| link.on_packet(PeerLink::PATHS, request, cx));
        let answer = answered.emitted[0].1.arp().unwrap();
        assert_eq!(
            (answer.operation, answer.sender_mac, answer.target),
            (ArpOperation::Reply, OWN.mac, PEER.address)
        );
        assert!(link.has_heard());
        let now = link.deadline().unwrap();
        with(&mut link, now, |link, cx| link.on_wake(cx));
        assert_eq!(link.deadline(), Some(now + REQUESTS));
    }
}
