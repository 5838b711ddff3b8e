//! ICMP for IPv4 (RFC 792, RFC 1191) and IPv6 (RFC 4443) in a common form, with neighbour discovery (RFC
//! 4861).

mod neighbour;
mod nic_list;

pub use neighbour::{NeighbourDiscovery, solicited_node, solicited_node_mac};
pub use nic_list::{neighbour_nics, with_nics};

use crate::checksum::Sum;
use crate::error::{Layer, WireError};
use crate::quoted::Quoted;

/// Length of the fixed part of a message.
pub const ICMP_LEN: usize = 8;
/// Offset of the checksum field.
const CHECKSUM_AT: usize = 2;

/// The IP version of a message: type numbers differ, meanings do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Why a destination is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unreachable {
    /// No route to the network.
    Route,
    /// The host does not exist.
    Host,
    /// The host does not support the protocol. Over IPv6 this is a parameter problem instead.
    Protocol,
    /// The port is closed.
    Port,
    /// Forbidden by an administrator.
    Prohibited,
    /// Any other code.
    Other(u8),
}

impl Unreachable {
    /// From the code field.
    pub const fn from_code(version: IpVersion, code: u8) -> Self {
        match (version, code) {
            (_, 0) => Unreachable::Route,
            (IpVersion::V4, 1) | (IpVersion::V6, 3) => Unreachable::Host,
            (IpVersion::V4, 2) => Unreachable::Protocol,
            (IpVersion::V4, 3) | (IpVersion::V6, 4) => Unreachable::Port,
            (IpVersion::V4, 13) | (IpVersion::V6, 1) => Unreachable::Prohibited,
            (_, code) => Unreachable::Other(code),
        }
    }
    /// The code field, if the version has one.
    pub const fn code(self, version: IpVersion) -> Option<u8> {
        Some(match (version, self) {
            (_, Unreachable::Route) => 0,
            (IpVersion::V4, Unreachable::Host) => 1,
            (IpVersion::V4, Unreachable::Protocol) => 2,
            (IpVersion::V6, Unreachable::Protocol) => return None,
            (IpVersion::V4, Unreachable::Port) => 3,
            (IpVersion::V4, Unreachable::Prohibited) => 13,
            (IpVersion::V6, Unreachable::Host) => 3,
            (IpVersion::V6, Unreachable::Port) => 4,
            (IpVersion::V6, Unreachable::Prohibited) => 1,
            (_, Unreachable::Other(code)) => code,
        })
    }
}

/// An ICMP message. Its payload is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp<'a> {
    /// Echo request.
    EchoRequest {
        /// Identifies the series of requests.
        ident: u16,
        /// Sequence number in the series.
        seq: u16,
        /// Data to be returned.
        data: &'a [u8],
    },
    /// Echo reply.
    EchoReply {
        /// As in the request.
        ident: u16,
        /// As in the request.
        seq: u16,
        /// As in the request.
        data: &'a [u8],
    },
    /// Destination unreachable.
    Unreachable {
        /// The reason.
        why: Unreachable,
        /// The beginning of the packet in question; see [`Quoted::parse`].
        quoted: &'a [u8],
    },
    /// Packet too big; over IPv4 "fragmentation needed" with the MTU of RFC 1191.
    TooBig {
        /// The MTU of that link, in bytes. Zero from routers older than RFC 1191. Written into 16 bits over
        /// IPv4.
        mtu: u32,
        /// The beginning of the packet.
        quoted: &'a [u8],
    },
    /// Time exceeded.
    TimeExceeded {
        /// 0: time to live. 1: reassembly of fragments.
        code: u8,
        /// The beginning of the packet.
        quoted: &'a [u8],
    },
    /// Parameter problem.
    ParameterProblem {
        /// Over IPv6 1 means an unknown next header, 2 an unknown option.
        code: u8,
        /// Offset of the problem in the packet. 8 bits over IPv4.
        pointer: u32,
        /// The beginning of the packet.
        quoted: &'a [u8],
    },
    /// Neighbour discovery; only over IPv6.
    Neighbour(NeighbourDiscovery),
    /// Any other message.
    Other {
        /// The type field.
        kind: u8,
        /// The code field.
        code: u8,
        /// The bytes after the checksum: at least four.
        body: &'a [u8],
    },
}

/// Type numbers, in the order of [`Numbers`].
struct Numbers {
    unreachable: u8,
    time_exceeded: u8,
    parameter_problem: u8,
    echo_request: u8,
    echo_reply: u8,
}

impl IpVersion {
    const fn numbers(self) -> Numbers {
        match self {
            IpVersion::V4 => Numbers {
                unreachable: 3,
                time_exceeded: 11,
                parameter_problem: 12,
                echo_request: 8,
                echo_reply: 0,
            },
            IpVersion::V6 => Numbers {
                unreachable: 1,
                time_exceeded: 3,
                parameter_problem: 4,
                echo_request: 128,
                echo_reply: 129,
            },
        }
    }
}

/// Destination unreachable code 4 over IPv4: fragmentation needed and DF set.
const V4_FRAGMENTATION_NEEDED: u8 = 4;
/// ICMPv6 type of packet too big.
const V6_TOO_BIG: u8 = 2;

impl<'a> Icmp<'a> {
    /// Parses a message of the given version, without verifying the checksum. Refuses messages shorter than
    /// eight bytes, and neighbour discovery with invalid options.
    pub fn parse(version: IpVersion, bytes: &'a [u8]) -> Result<Icmp<'a>, WireError> {
        let Some((header, rest)) = bytes.split_first_chunk::<ICMP_LEN>() else {
            return Err(WireError::Truncated { layer: Layer::Icmp, need: ICMP_LEN, have: bytes.len() });
        };
        let &[kind, code, _, _, a, b, c, d] = header;
        let (ident, seq) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let word = u32::from_be_bytes([a, b, c, d]);
        let numbers = version.numbers();
        Ok(match (version, kind) {
            (_, n) if n == numbers.echo_request && code == 0 => Icmp::EchoRequest { ident, seq, data: rest },
            (_, n) if n == numbers.echo_reply && code == 0 => Icmp::EchoReply { ident, seq, data: rest },
            (IpVersion::V4, 3) if code == V4_FRAGMENTATION_NEEDED => {
                Icmp::TooBig { mtu: seq.into(), quoted: rest }
            }
            (IpVersion::V6, V6_TOO_BIG) if code == 0 => Icmp::TooBig { mtu: word, quoted: rest },
            (_, n) if n == numbers.unreachable => {
                Icmp::Unreachable { why: Unreachable::from_code(version, code), quoted: rest }
            }
            (_, n) if n == numbers.time_exceeded => Icmp::TimeExceeded { code, quoted: rest },
            (_, n) if n == numbers.parameter_problem => {
                let pointer = if version == IpVersion::V4 { a.into() } else { word };
                Icmp::ParameterProblem { code, pointer, quoted: rest }
            }
            (IpVersion::V6, neighbour::SOLICITATION | neighbour::ADVERTISEMENT) if code == 0 => {
                Icmp::Neighbour(NeighbourDiscovery::parse(kind, a, rest)?)
            }
            _ => Icmp::Other { kind, code, body: bytes.get(4..).unwrap_or(&[]) },
        })
    }

    /// The bytes of the message, with a checksum over them and `pseudo`: nothing for IPv4, the pseudo-header
    /// for IPv6 (RFC 4443 §2.3).
    ///
    /// None if the message does not exist in this version.
    pub(crate) fn encode(&self, version: IpVersion, pseudo: impl FnOnce(usize) -> Sum) -> Option<Vec<u8>> {
        let numbers = version.numbers();
        let is_v4 = version == IpVersion::V4;
        let pair = |a: u16, b: u16| {
            let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
            [a, b, c, d]
        };
        let (kind, code, word, body) = match *self {
            Icmp::EchoRequest { ident, seq, data } => (numbers.echo_request, 0, pair(ident, seq), data),
            Icmp::EchoReply { ident, seq, data } => (numbers.echo_reply, 0, pair(ident, seq), data),
            Icmp::Unreachable { why, quoted } => (numbers.unreachable, why.code(version)?, [0; 4], quoted),
            Icmp::TooBig { mtu, quoted } if is_v4 => {
                let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
                (numbers.unreachable, V4_FRAGMENTATION_NEEDED, pair(0, mtu), quoted)
            }
            Icmp::TooBig { mtu, quoted } => (V6_TOO_BIG, 0, mtu.to_be_bytes(), quoted),
            Icmp::TimeExceeded { code, quoted } => (numbers.time_exceeded, code, [0; 4], quoted),
            Icmp::ParameterProblem { code, pointer, quoted } => {
                let word = match is_v4 {
                    true => [u8::try_from(pointer).unwrap_or(u8::MAX), 0, 0, 0],
                    false => pointer.to_be_bytes(),
                };
                (numbers.parameter_problem, code, word, quoted)
            }
            Icmp::Neighbour(_) if is_v4 => return None,
            Icmp::Neighbour(neighbour) => {
                let (kind, flags, body) = neighbour.encode();
                return Some(message(kind, 0, [flags, 0, 0, 0], &body, pseudo));
            }
            Icmp::Other { kind, code, body } => {
                let (word, rest) = body.split_first_chunk()?;
                (kind, code, *word, rest)
            }
        };
        Some(message(kind, code, word, body, pseudo))
    }

    /// True for error messages. An error message must not cause another one (RFC 1122 §3.2.2, RFC 4443 §2.4).
    pub fn is_error(&self, version: IpVersion) -> bool {
        match self {
            Icmp::Unreachable { .. }
            | Icmp::TooBig { .. }
            | Icmp::TimeExceeded { .. }
            | Icmp::ParameterProblem { .. } => true,
            Icmp::EchoRequest { .. } | Icmp::EchoReply { .. } | Icmp::Neighbour(_) => false,
            // Source quench and redirect; over IPv6 types from 128 on are informational.
            Icmp::Other { kind, .. } => match version {
                IpVersion::V4 => matches!(kind, 4 | 5),
                IpVersion::V6 => *kind < 128,
            },
        }
    }

    /// The packet that an error message quotes, if enough of it is present.
    pub fn quoted(&self) -> Option<Quoted> {
        match self {
            Icmp::Unreachable { quoted, .. }
            | Icmp::TooBig { quoted, .. }
            | Icmp::TimeExceeded { quoted, .. }
            | Icmp::ParameterProblem { quoted, .. } => Quoted::parse(quoted).ok(),
            _ => None,
        }
    }
}

fn message(kind: u8, code: u8, word: [u8; 4], body: &[u8], pseudo: impl FnOnce(usize) -> Sum) -> Vec<u8> {
    let mut out = Vec::with_capacity(ICMP_LEN + body.len());
    out.extend_from_slice(&[kind, code, 0, 0]);
    out.extend_from_slice(&word);
    out.extend_from_slice(body);
    let sum = pseudo(out.len()).bytes(&out).finish();
    out[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    out
}
