//! Frames that come in at the NIC of a host, and what becomes of those that are no TCP segments.

use super::Host;
use crate::internet::MIN_MTU;
use crate::ip::icmp::{IcmpError, PathMessage, SoftError, echo_reply, path_message};
use crate::secret::Tuple;
use farpace_path::{Cx, DropReason, PortFrames};
use farpace_tcp::PathError;
use farpace_tcp::config::MAX_SUPER_SEGMENT;
use farpace_units::Seq;
use farpace_wire::ip::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP};
use farpace_wire::ipv6::{ExtensionFault, NO_NEXT_HEADER};
use farpace_wire::{IpView, MacAddr, Packet, Unreachable};
use std::net::IpAddr;

impl Host {
    /// There is a switch or a hub behind its NIC, and other stations behind that: frames for their MAC
    /// addresses are no mistake. The NIC takes them in and counts them. Without this, they are dropped with a
    /// reason.
    pub fn share_link(&mut self) {
        self.shares_line = true;
    }

    /// Frames for other stations that its NIC passed over.
    pub const fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// The address of its NIC.
    pub fn mac(&self) -> MacAddr {
        self.internet.mac()
    }

    /// Frames that ended at its NIC, like PAUSE.
    pub const fn port_frames(&self) -> &PortFrames {
        &self.frames
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.internet.addresses[0]
    }

    /// The address from which it talks to `remote`.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        self.internet.source_for(remote)
    }

    /// All its addresses.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.internet.addresses
    }

    /// Its device takes packets of several segments, with up to `most` bytes of payload, and cuts them (TSO):
    /// connections send super-segments from now on ([`Packet::segment_size`]). Zero, as at first: each
    /// segment is a packet. To be called before there are connections.
    pub fn set_super_segments(&mut self, most: u32) {
        self.internet.limits.super_segment = most.min(MAX_SUPER_SEGMENT);
    }

    /// Its device takes IP packets of up to `mtu` bytes (68 at least): datagrams go out in fragments of at
    /// most that, and connections that begin from now on neither send nor offer larger segments. Without
    /// this, datagrams are cut at 1500 bytes, and segments have the size of their configuration.
    pub fn set_mtu(&mut self, mtu: u16) {
        self.internet.limits.mtu = Some(mtu.max(MIN_MTU));
    }

    /// A frame comes in.
    pub(super) fn on_frame(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        let Some(packet) = self.frames.take(packet, cx) else { return };
        if packet.verify_checksums().is_err() {
            return cx.drop(packet, DropReason::BadChecksum);
        }
        if packet.segment_size().is_some() && packet.udp().is_ok() {
            return self.on_super_datagram(packet, cx);
        }
        if let Ok((ip, tcp)) = packet.ip_tcp() {
            let (local, remote, header) = (ip.dst(), ip.src(), tcp.header());
            let is_faulty = is_faulty(&ip);
            if let Some(packet) = self.expected((local, remote), is_faulty, packet, cx) {
                let ports = (header.dst_port, header.src_port);
                let tuple = Tuple { local, remote, local_port: ports.0, remote_port: ports.1 };
                self.on_tcp(tuple, header, packet, cx);
            }
            return;
        }
        let Some(packet) = self.internet.discover(packet, cx) else { return };
        let about = packet.ip().map(|ip| ((ip.dst(), ip.src()), is_faulty(&ip)));
        let Some((ends, is_faulty)) = about else { return cx.drop(packet, DropReason::Malformed) };
        if let Some(packet) = self.expected(ends, is_faulty, packet, cx) {
            self.on_ip(packet, cx);
        }
    }

    /// Datagrams that a sender has left in one packet (USO): each is taken as if it had come alone.
    fn on_super_datagram(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        cx.consume(packet.clone());
        packet.split_segments(|mut part| {
            cx.made();
            // One that waits must not keep all the others.
            part.detach_payload();
            self.on_frame(part, cx);
        });
    }

    /// `packet`, if it is for us and from somebody.
    fn expected(
        &mut self,
        (local, remote): (IpAddr, IpAddr),
        is_faulty: bool,
        packet: Packet,
        cx: &mut Cx<'_>,
    ) -> Option<Packet> {
        let ours = self.internet.is_ours(local);
        let (_, station) = packet.macs();
        if self.shares_line && !ours && station != self.internet.mac() && !station.is_multicast() {
            self.passed_over += 1;
            cx.consume(packet);
            return None;
        }
        let why = if !ours {
            DropReason::NoRoute
        } else if is_faulty {
            let fault = packet.ip().and_then(|ip| ip.extension_fault());
            if let Some(ExtensionFault::ParameterProblem { code, pointer }) = fault {
                self.internet.complain(IcmpError::ParameterProblem { code, pointer }, &packet, cx);
            }
            DropReason::Malformed
        } else if self.internet.is_martian(remote) {
            DropReason::Martian
        } else {
            return Some(packet);
        };
        cx.drop(packet, why);
        None
    }

    /// A packet for us that is not TCP, or that is a fragment.
    fn on_ip(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        let Some(ip) = packet.ip() else { return cx.drop(packet, DropReason::Malformed) };
        if ip.fragment().is_some() {
            // What has come together is looked at as if it had come in one piece.
            if let Some(whole) = self.internet.assemble(packet, cx) {
                self.on_frame(whole, cx);
            }
            return;
        }
        match ip.protocol() {
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => self.on_icmp(packet, cx),
            PROTOCOL_UDP => self.on_udp(packet, cx),
            PROTOCOL_TCP => cx.drop(packet, DropReason::Malformed),
            // RFC 8200 §4.7: nothing follows, which is no error.
            NO_NEXT_HEADER if matches!(ip, IpView::V6(_)) => cx.consume(packet),
            _ => {
                self.internet.complain(IcmpError::ProtocolUnreachable, &packet, cx);
                cx.drop(packet, DropReason::NoListener);
            }
        }
    }

    fn on_icmp(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        let ident = self.internet.next_ident();
        if let Some(reply) = echo_reply(&packet, ident as u16) {
            if let Some(to) = reply.ip().map(|ip| ip.dst()) {
                self.internet.send_in_parts(reply, ident, to, cx);
            }
        } else if let Some(message) = path_message(&packet) {
            self.on_path_message(&message, cx);
        }
        cx.consume(packet);
    }

    /// Tells connections what could not be delivered on the link: as a report from a router, it is no reason
    /// to give up (RFC 1122 §2.4, §4.2.3.9).
    #[inline]
    pub(super) fn report_given_up(&mut self, cx: &mut Cx<'_>) {
        if self.internet.given_up.is_empty() {
            return;
        }
        // What is sent in answer may fail as well; the connections hear of that next time.
        for (tuple, seq) in std::mem::take(&mut self.internet.given_up) {
            self.on_path_error(
                &tuple,
                PathError::Unreachable { hard: false, why: Unreachable::Host },
                seq,
                cx,
            );
        }
    }

    fn on_path_error(&mut self, tuple: &Tuple, error: PathError, seq: Seq, cx: &mut Cx<'_>) {
        let Some(slot) = self.connections.find(tuple) else { return };
        if let Some(entry) = self.connections.at(slot) {
            entry.connection.on_path_error(cx.now(), error, seq);
        }
        self.service(slot, cx);
    }

    /// An ICMP error about a packet that may be ours: whoever sent it judges.
    fn on_path_message(&mut self, message: &PathMessage, cx: &mut Cx<'_>) {
        let quoted = &message.quoted;
        self.datagrams.sockets_mut().on_path_message(message);
        self.run_ready(cx);
        let (Some((local_port, remote_port)), Some(seq)) = (quoted.ports, quoted.seq) else { return };
        let (local, remote) = (quoted.addresses.src(), quoted.addresses.dst());
        let error = match message.soft_error {
            SoftError::TooBig { mtu } => {
                PathError::TooBig { mtu: u32::try_from(mtu.get()).unwrap_or(u32::MAX) }
            }
            SoftError::Unreachable { hard, why } => PathError::Unreachable { hard, why },
            SoftError::TimeExceeded => PathError::Discarded,
            SoftError::ParameterProblem => PathError::Malformed,
        };
        self.on_path_error(&Tuple { local, remote, local_port, remote_port }, error, seq, cx);
    }
}

/// A host discards the packet because of its IPv6 extension headers, or because a source route sends it on to
/// others (RFC 7126 §4.3).
fn is_faulty(ip: &IpView<'_>) -> bool {
    ip.extension_fault().is_some() || ip.is_source_routed()
}
