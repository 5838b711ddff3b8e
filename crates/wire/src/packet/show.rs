//! A packet as one line of text.

use super::{NetworkHeader, Packet};
use crate::arp::{Arp, ArpOperation};
use crate::error::WireError;
use crate::ethernet::EtherType;
use crate::icmp::{Icmp, NeighbourDiscovery};
use crate::ip::{IpView, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::pause::PauseFrame;
use std::fmt::{Debug, Formatter, Result};
use std::net::SocketAddr;

impl Debug for Packet {
    /// One line: `10.0.0.1:5001 > 10.0.0.2:80 PSH|ACK seq 1 ack 1 win 229 len 1448`.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let len = self.0.payload.len();
        match self.network() {
            Ok(NetworkHeader::Ip(ip)) => self.ip_line(&ip, f),
            Ok(NetworkHeader::Other(EtherType::ARP)) => match self.arp() {
                Ok(arp) => arp_line(&arp, f),
                Err(why) => write!(f, "ARP ({why}) len {len}"),
            },
            Ok(NetworkHeader::Other(EtherType::MAC_CONTROL)) => match PauseFrame::parse(&self.0.payload) {
                Ok(PauseFrame { opcode: PauseFrame::PAUSE, time }) => write!(f, "PAUSE {time} len {len}"),
                Ok(PauseFrame { opcode, .. }) => write!(f, "MAC control {opcode:#06x} len {len}"),
                Err(why) => write!(f, "MAC control ({why}) len {len}"),
            },
            Ok(NetworkHeader::Other(ether_type)) => write!(f, "EtherType {ether_type:?} len {len}"),
            Err(why) => write!(f, "malformed ({why}) len {}", self.frame_len()),
        }
    }
}

impl Packet {
    fn ip_line(&self, ip: &IpView<'_>, f: &mut Formatter<'_>) -> Result {
        let (src, dst, protocol, len) = (ip.src(), ip.dst(), ip.protocol(), self.0.payload.len());
        if let Some(part) = ip.fragment() {
            let more = if part.more { "+" } else { "" };
            let (ident, offset) = (part.ident, part.offset);
            return write!(f, "{src} > {dst} protocol {protocol} fragment {ident}@{offset}{more} len {len}");
        }
        let malformed = |f: &mut Formatter<'_>, why: WireError| write!(f, "{src} > {dst} ({why}) len {len}");
        match protocol {
            PROTOCOL_TCP => match self.tcp() {
                Ok(tcp) => {
                    let (src, dst) =
                        (SocketAddr::new(src, tcp.src_port()), SocketAddr::new(dst, tcp.dst_port()));
                    write!(f, "{src} > {dst} {} seq {} ack {}", tcp.flags(), tcp.seq(), tcp.ack())?;
                    write!(f, " win {} len {len}", tcp.window())
                }
                Err(why) => malformed(f, why),
            },
            PROTOCOL_UDP => match self.udp() {
                Ok(udp) => {
                    let (src, dst) =
                        (SocketAddr::new(src, udp.src_port()), SocketAddr::new(dst, udp.dst_port()));
                    write!(f, "{src} > {dst} UDP len {len}")
                }
                Err(why) => malformed(f, why),
            },
            number if number == ip.icmp_protocol() => match self.icmp() {
                Ok(icmp) => {
                    write!(f, "{src} > {dst} ICMP ")?;
                    icmp_line(&icmp, f)?;
                    write!(f, " len {len}")
                }
                Err(why) => malformed(f, why),
            },
            _ => write!(f, "{src} > {dst} protocol {protocol} len {len}"),
        }
    }
}

fn arp_line(arp: &Arp, f: &mut Formatter<'_>) -> Result {
    let Arp { operation, sender_mac, sender, target_mac, target } = arp;
    match operation {
        ArpOperation::Request => write!(f, "ARP who has {target}, tell {sender} at {sender_mac}"),
        ArpOperation::Reply => write!(f, "ARP {sender} is at {sender_mac}, to {target} at {target_mac}"),
        ArpOperation::Other(number) => write!(f, "ARP operation {number} of {sender} at {sender_mac}"),
    }
}

fn icmp_line(icmp: &Icmp<'_>, f: &mut Formatter<'_>) -> Result {
    match icmp {
        Icmp::EchoRequest { ident, seq, .. } => write!(f, "echo request {ident}/{seq}"),
        Icmp::EchoReply { ident, seq, .. } => write!(f, "echo reply {ident}/{seq}"),
        Icmp::Unreachable { why, .. } => write!(f, "unreachable {why:?}"),
        Icmp::TooBig { mtu, .. } => write!(f, "too big, MTU {mtu}"),
        Icmp::TimeExceeded { code, .. } => write!(f, "time exceeded {code}"),
        Icmp::ParameterProblem { code, pointer, .. } => write!(f, "parameter problem {code} at {pointer}"),
        Icmp::Neighbour(NeighbourDiscovery::Solicitation { target, .. }) => write!(f, "who has {target}"),
        Icmp::Neighbour(NeighbourDiscovery::Advertisement { target, target_link, .. }) => match target_link {
            Some(mac) => write!(f, "{target} is at {mac}"),
            None => write!(f, "{target} is here"),
        },
        Icmp::Other { kind, code, .. } => write!(f, "type {kind} code {code}"),
    }?;
    match icmp.quoted() {
        None => Ok(()),
        Some(quoted) => {
            let (src, dst) = (quoted.addresses.src(), quoted.addresses.dst());
            match quoted.ports {
                Some((from, to)) => {
                    write!(f, " ({} > {})", SocketAddr::new(src, from), SocketAddr::new(dst, to))
                }
                None => write!(f, " ({src} > {dst})"),
            }
        }
    }
}
