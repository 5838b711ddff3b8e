//! ICMP at a host (RFC 792, RFC 4443): what it answers, what it complains of, and what it learns.

use crate::is_host_address;
use crate::limiter::Limiter;
use farpace_units::{ByteCount, Instant};
use farpace_wire::ip::{PROTOCOL_ICMP, PROTOCOL_ICMPV6};
use farpace_wire::{AddressPair, Below, Icmp, IpVersion, IpView, Packet, Quoted, Unreachable};
use std::net::IpAddr;

/// Errors that a host sends in a second at most (RFC 1812 §4.3.2.8, RFC 4443 §2.4(f)); as many may go at
/// once.
pub const MAX_ERRORS_PER_SECOND: u64 = 100;
/// Bytes of an error over IPv4 at most, with its IP header (RFC 1812 §4.3.2.3).
pub const MAX_ERROR_V4: usize = 576;
/// Bytes of an error over IPv6 at most, with its IP header: the least MTU (RFC 4443 §2.4(c)).
pub const MAX_ERROR_V6: usize = 1280;
/// The least MTU of an IPv4 link (RFC 791).
pub const MIN_MTU_V4: u32 = 68;
/// The least MTU of an IPv6 link (RFC 8200 §5).
pub const MIN_MTU_V6: u32 = 1280;

/// Time to live of what is sent here.
const TTL: u8 = 64;
/// Bytes of ICMP before what is quoted.
const ICMP_LEN: usize = 8;
/// MTUs of common links (RFC 1191 §7.1): what a router may have meant that says "too big" and no more.
const PLATEAUS: [usize; 11] = [65_535, 32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68];

/// Errors that a host or a router sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpError {
    /// Nobody listens at the UDP port.
    PortUnreachable,
    /// Nobody knows the protocol, or the IPv6 extension header.
    ProtocolUnreachable,
    /// No way to the destination.
    NoRoute,
    /// The next hop does not answer.
    HostUnreachable,
    /// The next link does not take so much.
    TooBig {
        /// What it takes: bytes of an IP packet.
        mtu: ByteCount,
    },
    /// The time to live is over.
    TtlExceeded,
    /// The fragments did not come together.
    ReassemblyTimeExceeded,
    /// A field of the IPv6 headers (RFC 4443 §3.4).
    ParameterProblem {
        /// What is wrong with it.
        code: u8,
        /// Where it is, in bytes from the start of the packet.
        pointer: u8,
    },
}

/// Sends errors, no more than [`MAX_ERRORS_PER_SECOND`].
#[derive(Debug)]
pub struct ErrorSource {
    limiter: Limiter,
    suppressed: u64,
}

impl Default for ErrorSource {
    fn default() -> Self {
        ErrorSource { limiter: Limiter::new(MAX_ERRORS_PER_SECOND), suppressed: 0 }
    }
}

impl ErrorSource {
    /// The error about `packet` to its sender, from our address `from`, if there may be one. It goes to the
    /// Ethernet address that `packet` came from.
    ///
    /// There is none about an error, a fragment other than the first, a packet to a group or to everybody, or
    /// one from an address that is not a single host's (RFC 1122 §3.2.2, RFC 4443 §2.4(e)).
    pub fn error(&mut self, now: Instant, error: IcmpError, packet: &Packet, from: IpAddr) -> Option<Packet> {
        let (ip, ethernet) = (packet.ip()?, packet.ethernet().ok()?);
        let version = version(&ip);
        let is_group = ip.dst().is_multicast() || ip.dst() == IpAddr::from([255; 4]);
        // RFC 4443 §2.4(e.3): path MTU discovery works for groups too.
        let may_be_group = version == IpVersion::V6 && matches!(error, IcmpError::TooBig { .. });
        if (is_group || ethernet.dst.is_multicast()) && !may_be_group {
            return None;
        }
        if !is_host_address(ip.src()) || is_later_fragment(&ip) || may_be_error(packet, &ip) {
            return None;
        }
        let addresses = AddressPair::new(from, ip.src())?;
        let mut frame = Vec::with_capacity(packet.len().as_len());
        packet.write_frame(&mut frame);
        let (longest, ip_len) = match version {
            IpVersion::V4 => (MAX_ERROR_V4, 20),
            IpVersion::V6 => (MAX_ERROR_V6, 40),
        };
        let network = frame.len() - packet.network_len().as_len();
        let end = frame.len().min(network + longest - ip_len - ICMP_LEN);
        let message = message(error, &ip, &frame[network..end]);
        let answer = Below::new(ethernet.dst, ethernet.src, addresses, TTL).icmp(0, &message).ok()?;
        if !self.limiter.allows(now) {
            self.suppressed += 1;
            return None;
        }
        Some(answer)
    }

    /// Errors that were not sent because there were too many.
    pub const fn suppressed(&self) -> u64 {
        self.suppressed
    }
}

fn message<'a>(error: IcmpError, ip: &IpView<'_>, quoted: &'a [u8]) -> Icmp<'a> {
    let unreachable = |why| Icmp::Unreachable { why, quoted };
    match (error, ip) {
        (IcmpError::PortUnreachable, _) => unreachable(Unreachable::Port),
        (IcmpError::NoRoute, _) => unreachable(Unreachable::Route),
        (IcmpError::HostUnreachable, _) => unreachable(Unreachable::Host),
        (IcmpError::ProtocolUnreachable, IpView::V4(_)) => unreachable(Unreachable::Protocol),
        // RFC 4443 §3.4: unrecognised next header.
        (IcmpError::ProtocolUnreachable, IpView::V6(ip)) => {
            Icmp::ParameterProblem { code: 1, pointer: ip.protocol_at() as u32, quoted }
        }
        (IcmpError::TooBig { mtu }, _) => {
            Icmp::TooBig { mtu: u32::try_from(mtu.get()).unwrap_or(u32::MAX), quoted }
        }
        (IcmpError::ParameterProblem { code, pointer }, _) => {
            Icmp::ParameterProblem { code, pointer: pointer.into(), quoted }
        }
        (IcmpError::TtlExceeded, _) => Icmp::TimeExceeded { code: 0, quoted },
        (IcmpError::ReassemblyTimeExceeded, _) => Icmp::TimeExceeded { code: 1, quoted },
    }
}

const fn version(ip: &IpView<'_>) -> IpVersion {
    match ip {
        IpView::V4(_) => IpVersion::V4,
        IpView::V6(_) => IpVersion::V6,
    }
}

fn is_later_fragment(ip: &IpView<'_>) -> bool {
    ip.fragment().is_some_and(|fragment| fragment.offset > 0)
}

/// True for an ICMP error, and for ICMP of which that cannot be known.
fn may_be_error(packet: &Packet, ip: &IpView<'_>) -> bool {
    matches!(ip.protocol(), PROTOCOL_ICMP | PROTOCOL_ICMPV6)
        && packet.icmp().map_or(true, |message| message.is_error(version(ip)))
}

/// An error about a packet that this host may have sent. Whether it did, only the one who has the connection
/// can say: [`Quoted::seq`] must be among its outstanding sequence numbers (RFC 5927 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMessage {
    /// What went wrong.
    pub soft_error: SoftError,
    /// With which packet.
    pub quoted: Quoted,
}

/// What went wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftError {
    /// It did not fit through a link.
    TooBig {
        /// Bytes of an IP packet that fit; estimated if the router did not say (RFC 1191 §5). At least the
        /// least MTU of the IP version.
        mtu: ByteCount,
    },
    /// It was not delivered.
    Unreachable {
        /// Why.
        why: Unreachable,
        /// It never will be, as far as the sender of the error knows: protocol or port unreachable (RFC 1122
        /// §4.2.3.9).
        hard: bool,
    },
    /// Its time to live ran out, or its fragments did not come together.
    TimeExceeded,
    /// A header was not understood.
    ParameterProblem,
}

/// The reply to an echo request in `packet`, from the address that was asked: whether it is ours the caller
/// knows. None if it is no echo request, or one that came to a group or not from a single host (RFC 1122
/// §3.2.2.6). `ident` is the identification of the reply's IPv4 header.
pub fn echo_reply(packet: &Packet, ident: u16) -> Option<Packet> {
    let (ip, ethernet) = (packet.ip()?, packet.ethernet().ok()?);
    let Ok(Icmp::EchoRequest { ident: theirs, seq, data }) = packet.icmp() else { return None };
    if !is_host_address(ip.src()) || !is_host_address(ip.dst()) || ethernet.dst.is_multicast() {
        return None;
    }
    let below = Below::new(ethernet.dst, ethernet.src, ip.addresses().reversed(), TTL);
    let below = Below { tos: ip.dscp() << 2, dont_fragment: false, ..below };
    below.icmp(ident, &Icmp::EchoReply { ident: theirs, seq, data }).ok()
}

/// What the error in `packet` says. None if it is no error, or quotes too little to be of use. Whether
/// [`quoted`](PathMessage::quoted) comes from an address of ours is for the caller to check.
pub fn path_message(packet: &Packet) -> Option<PathMessage> {
    let (version, message) = (version(&packet.ip()?), packet.icmp().ok()?);
    let quoted = message.quoted()?;
    let soft_error = match message {
        Icmp::TooBig { mtu, .. } => {
            let below = |plateau: &&usize| **plateau < quoted.total_len;
            let mtu = match (version, mtu) {
                (IpVersion::V4, 0) => PLATEAUS.iter().find(below).map_or(MIN_MTU_V4, |mtu| *mtu as u32),
                (IpVersion::V4, mtu) => mtu.max(MIN_MTU_V4),
                // RFC 8201 §4: never below the least MTU.
                (IpVersion::V6, mtu) => mtu.max(MIN_MTU_V6),
            };
            SoftError::TooBig { mtu: ByteCount::new(mtu.into()) }
        }
        Icmp::Unreachable { why, .. } => {
            let hard = matches!(why, Unreachable::Protocol | Unreachable::Port);
            SoftError::Unreachable { why, hard }
        }
        Icmp::TimeExceeded { .. } => SoftError::TimeExceeded,
        // RFC 4443 §3.4: this is how IPv6 says that it does not know the protocol.
        Icmp::ParameterProblem { code: 1, .. } if version == IpVersion::V6 => {
            SoftError::Unreachable { why: Unreachable::Protocol, hard: true }
        }
        Icmp::ParameterProblem { .. } => SoftError::ParameterProblem,
        _ => return None,
    };
    Some(PathMessage { soft_error, quoted })
}

#[cfg(test)]
mod tests;
