//! The Internet layer of a host: its addresses, how packets get on their way, and what comes in besides TCP.

use crate::ip::discovery::{self, DiscoveryMessage};
use crate::ip::fragments::{FragmentDrop, FragmentReassembly};
use crate::ip::icmp::{ErrorSource, IcmpError};
use crate::ip::neighbours::{NeighbourAction, Neighbours, Resolved};
use crate::secret::Tuple;
use farpace_path::{Cx, DropReason, Port, TransmitQueue};
use farpace_tcp::config::{Config, MIN_MSS};
use farpace_units::{ByteCount, Instant, Seq};
use farpace_wire::ipv4::IPV4_LEN;
use farpace_wire::ipv6::IPV6_LEN;
use farpace_wire::tcp::TCP_LEN;
use farpace_wire::{AddressPair, Below, MacAddr, Packet, fragment};
use std::borrow::Cow;
use std::net::IpAddr;

/// Longest IP packet that goes out uncut where nobody has said what the device takes.
const DEFAULT_MTU: u16 = 1500;
/// The least MTU of a link (RFC 791). A device with less is taken for one with this.
pub(crate) const MIN_MTU: u16 = 68;
/// Time to live of what the host sends.
const TTL: u8 = 64;

/// What a host reaches without a router, and who takes the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalLink {
    /// Prefixes of the link: an address and how many of its bits count. Link-local addresses need none.
    pub prefixes: Vec<(IpAddr, u8)>,
    /// Routers of the link, the preferred first. Of each family the first is used; without one, everybody is
    /// taken for a neighbour.
    pub gateways: Vec<IpAddr>,
}

impl LocalLink {
    /// True for the broadcast address of an IPv4 network of the link.
    fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(v4) = address else { return false };
        self.prefixes.iter().any(|(net, bits)| {
            let host = u32::MAX.checked_shr((*bits).into()).unwrap_or(0);
            // A network of one or two addresses has none (RFC 3021).
            *bits < 31 && same_prefix(*net, address, *bits) && v4.to_bits() & host == host
        })
    }

    /// Who is to be asked for, so that a packet gets to `to`.
    fn next_hop(&self, to: IpAddr) -> IpAddr {
        let near = is_link_local(to) || self.prefixes.iter().any(|(net, bits)| same_prefix(*net, to, *bits));
        let gateway = self.gateways.iter().find(|gateway| gateway.is_ipv4() == to.is_ipv4());
        if near { to } else { gateway.copied().unwrap_or(to) }
    }
}

fn same_prefix(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits()).leading_zeros() >= u32::from(bits.min(32))
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits()).leading_zeros() >= u32::from(bits.min(128))
        }
        _ => false,
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// What the device and the memory of a host allow its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Most payload bytes of a super-segment.
    pub super_segment: u32,
    /// Longest IP packet; none: nobody has said.
    pub mtu: Option<u16>,
    /// Most bytes of an autotuned buffer; none: what its configuration says.
    pub buffer: Option<ByteCount>,
}

/// What a host knows of the network around it.
pub(crate) struct Internet {
    /// Its own addresses, the preferred first.
    pub addresses: Vec<IpAddr>,
    pub limits: ConnectionLimits,
    mac: MacAddr,
    /// None: everybody's MAC address follows from the IP address, as in the lab.
    resolving: Option<(LocalLink, Neighbours)>,
    fragments: FragmentReassembly,
    errors: ErrorSource,
    ident: u32,
    /// The queue below, if it is asked for room.
    pub transmit_queue: Option<TransmitQueue>,
    /// Segments that could not be delivered on the link: whose, and their numbers.
    pub given_up: Vec<(Tuple, Seq)>,
}

impl Internet {
    /// `ident`: where the numbers of packets that may be cut begin.
    pub fn new(address: IpAddr, ident: u32) -> Self {
        Internet {
            addresses: vec![address],
            limits: ConnectionLimits::default(),
            mac: mac_of(address),
            resolving: None,
            fragments: FragmentReassembly::default(),
            errors: ErrorSource::default(),
            ident,
            transmit_queue: None,
            given_up: Vec::new(),
        }
    }

    /// The address of the NIC.
    pub const fn mac(&self) -> MacAddr {
        self.mac
    }

    /// From now on neighbours are asked for their MAC addresses.
    pub fn join(&mut self, mac: MacAddr, link: LocalLink) {
        self.mac = mac;
        self.resolving = Some((link, Neighbours::default()));
    }

    /// True if `to` is an address of this host.
    pub fn is_ours(&self, to: IpAddr) -> bool {
        self.addresses.contains(&to)
    }

    /// The address from which the host talks to `remote`.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let same = |a: &&IpAddr| a.is_ipv4() == remote.is_ipv4();
        let near = |a: &&IpAddr| same(a) && is_link_local(**a) == is_link_local(remote);
        self.addresses.iter().find(near).or(self.addresses.iter().find(same)).copied()
    }

    /// True if no honest packet comes from `from`: nobody, a group, everybody, everybody on the link, or this
    /// host itself (LAND).
    pub fn is_martian(&self, from: IpAddr) -> bool {
        let link = self.resolving.as_ref().map(|(link, _)| link);
        !is_host(from) || self.is_ours(from) || link.is_some_and(|link| link.is_broadcast(from))
    }

    /// What packets between these two have below their transport header.
    pub fn below(&self, local: IpAddr, remote: IpAddr) -> Option<Below> {
        Some(Below::new(self.mac, mac_of(remote), AddressPair::new(local, remote)?, TTL))
    }

    /// Sends `packet`, which was made for `to`, or lets it wait until the MAC address is known.
    pub fn send(&mut self, packet: Packet, to: IpAddr, cx: &mut Cx<'_>) {
        cx.made();
        if let Some(queue) = &self.transmit_queue {
            queue.sent(cx.now(), packet.len());
        }
        let Some((link, neighbours)) = &mut self.resolving else { return cx.emit(Port(0), packet) };
        match neighbours.resolve(cx.now(), link.next_hop(to), packet) {
            Resolved::Known(mac, mut packet) => {
                packet.set_macs(self.mac, mac);
                cx.emit(Port(0), packet);
            }
            Resolved::Waits => {}
            Resolved::Dropped(packet) => cx.drop(packet, DropReason::HostLimit),
            Resolved::Failed(packet) => self.give_up(packet, cx),
        }
        self.follow_up(cx);
    }

    /// The same for a packet that may be cut, if it is longer than the device takes. `ident` is its number.
    pub fn send_in_parts(&mut self, packet: Packet, ident: u32, to: IpAddr, cx: &mut Cx<'_>) {
        let mtu = usize::from(self.limits.mtu.unwrap_or(DEFAULT_MTU));
        // What cannot be cut is not sent: it would not arrive.
        for part in fragment(packet, mtu, ident).unwrap_or_default() {
            self.send(part, to, cx);
        }
    }

    /// A number for a packet that may be cut.
    pub fn next_ident(&mut self) -> u32 {
        self.ident = self.ident.wrapping_add(1);
        self.ident
    }

    /// A packet of ours that nobody takes. Its connection will hear of it.
    fn give_up(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        if let Ok((ip, tcp)) = packet.ip_tcp() {
            let (local, remote) = (ip.src(), ip.dst());
            let (local_port, remote_port) = (tcp.src_port(), tcp.dst_port());
            self.given_up.push((Tuple { local, remote, local_port, remote_port }, tcp.seq()));
        }
        cx.drop(packet, DropReason::Unresolved);
    }

    /// Does what the neighbour cache wants done.
    fn follow_up(&mut self, cx: &mut Cx<'_>) {
        while let Some(action) = self.resolving.as_mut().and_then(|(_, neighbours)| neighbours.poll()) {
            match action {
                NeighbourAction::Ask { target, to } => {
                    let same = |a: &&IpAddr| a.is_ipv4() == target.is_ipv4();
                    let own = self.addresses.iter().find(same);
                    if let Some(question) =
                        own.and_then(|own| discovery::question(target, to, *own, self.mac))
                    {
                        cx.made();
                        cx.emit(Port(0), question);
                    }
                }
                NeighbourAction::Send { mut packet, to } => {
                    packet.set_macs(self.mac, to);
                    cx.emit(Port(0), packet);
                }
                NeighbourAction::Failed { packet, .. } => self.give_up(packet, cx),
            }
        }
    }

    /// True if `packet` was about neighbours; it is taken then.
    pub fn discover(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        let Some(message) = discovery::read(&packet, self.mac, |to| self.addresses.contains(&to)) else {
            return Some(packet);
        };
        cx.consume(packet);
        let answer = match message {
            DiscoveryMessage::Shown { from, mac, heard, answer } => {
                if let Some((_, neighbours)) = &mut self.resolving {
                    neighbours.on_heard(cx.now(), from, mac, heard);
                }
                answer
            }
            DiscoveryMessage::Asked { answer } => Some(answer),
            DiscoveryMessage::Conflict(_) | DiscoveryMessage::Nothing => None,
        };
        if let Some(answer) = answer {
            cx.made();
            cx.emit(Port(0), answer);
        }
        self.follow_up(cx);
        None
    }

    /// TCP makes progress with `remote`: the way there is good (RFC 4861 §7.3.1).
    pub fn confirm(&mut self, now: Instant, remote: IpAddr) {
        if let Some((link, neighbours)) = &mut self.resolving {
            neighbours.confirm(now, link.next_hop(remote));
        }
    }

    /// True if neighbours are asked for, and so want to be confirmed.
    pub fn resolves(&self) -> bool {
        self.resolving.is_some()
    }

    /// Packets that wait here.
    pub fn held(&self) -> u64 {
        self.fragments.held() + self.resolving.as_ref().map_or(0, |(_, neighbours)| neighbours.held())
    }

    /// When something is to be done here.
    pub fn deadline(&self) -> Option<Instant> {
        let neighbours = self.resolving.as_ref().and_then(|(_, neighbours)| neighbours.deadline());
        match (neighbours, self.fragments.deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The deadline has come, or has not.
    pub fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if let Some((_, neighbours)) = &mut self.resolving {
            neighbours.on_deadline(cx.now());
        }
        self.follow_up(cx);
        if self.fragments.deadline().is_some_and(|at| at <= cx.now()) {
            let mut dropped = Vec::new();
            self.fragments.on_deadline(cx.now(), &mut dropped);
            self.drop_fragments(dropped, cx);
        }
    }

    /// Puts a fragment to the others. Gives the datagram, once it is whole.
    pub fn assemble(&mut self, fragment: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut dropped = Vec::new();
        let whole = self.fragments.on_fragment(cx.now(), fragment, &mut dropped);
        self.drop_fragments(dropped, cx);
        let whole = whole?;
        whole.parts.into_iter().for_each(|part| cx.consume(part));
        cx.made();
        Some(whole.packet)
    }

    fn drop_fragments(&mut self, dropped: Vec<(Packet, FragmentDrop)>, cx: &mut Cx<'_>) {
        for (packet, why) in dropped {
            // RFC 1122 §3.3.2: the sender is told if the first fragment is there to be quoted.
            let first = packet.ip().and_then(|ip| ip.fragment()).is_some_and(|f| f.offset == 0);
            if why == FragmentDrop::Expired && first {
                self.complain(IcmpError::ReassemblyTimeExceeded, &packet, cx);
            }
            cx.drop(packet, DropReason::Fragment);
        }
    }

    /// Tells the sender of `offending` what is wrong with it.
    pub fn complain(&mut self, error: IcmpError, offending: &Packet, cx: &mut Cx<'_>) {
        let Some((own, sender)) = offending.ip().map(|ip| (ip.dst(), ip.src())) else { return };
        if let Some(message) = self.errors.error(cx.now(), error, offending, own) {
            self.send(message, sender, cx);
        }
    }
}

/// `config` for connections between these ends. Its segment size is for IPv4; the longer header of IPv6 is
/// taken from the payload (RFC 6691 §3), so that packets have the same length.
///
/// Super-segments are what its device takes, and no segment is longer than that.
pub(crate) fn fitted<'a>(config: &'a Config, tuple: &Tuple, limits: ConnectionLimits) -> Cow<'a, Config> {
    let mut config = Cow::Borrowed(config);
    if limits.super_segment != config.super_segment {
        config.to_mut().super_segment = limits.super_segment;
    }
    let most =
        limits.mtu.map_or(u16::MAX, |mtu| mtu.saturating_sub((IPV4_LEN + TCP_LEN) as u16).max(MIN_MSS));
    if config.mss > most {
        config.to_mut().mss = most;
    }
    if let Some(most) = limits.buffer
        && (config.receive_buffer, config.send_buffer)
            != (config.receive_buffer.limited_to(most), config.send_buffer.limited_to(most))
    {
        let config = config.to_mut();
        config.receive_buffer = config.receive_buffer.limited_to(most);
        config.send_buffer = config.send_buffer.limited_to(most);
    }
    if tuple.local.is_ipv6() {
        let config = config.to_mut();
        config.network_header = IPV6_LEN as u16;
        config.mss = config.mss.saturating_sub((IPV6_LEN - IPV4_LEN) as u16).max(MIN_MSS);
    }
    config
}

/// True if `address` can be that of a single machine (RFC 9293 §3.9.2.3, RFC 1122 §3.2.1.3).
pub fn is_host(address: IpAddr) -> bool {
    let special = match address {
        // 0/8 is "this network", 240/4 with the broadcast address is reserved.
        IpAddr::V4(v4) => v4.octets()[0] == 0 || v4.octets()[0] >= 240,
        IpAddr::V6(v6) => v6.to_ipv4_mapped().is_some(),
    };
    !(special || address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

/// The MAC address of a lab host: locally administered, made from its IP address.
fn mac_of(address: IpAddr) -> MacAddr {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            MacAddr([0x02, 0x00, a, b, c, d])
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            MacAddr([0x02, 0x06, a, b, c, d])
        }
    }
}
