//! The IPv6 header (RFC 8200 §3) and the extension headers behind it (§4).

use crate::checksum::Sum;
use crate::error::{Layer, WireError};
use crate::fragment_position::Fragment;
use std::net::Ipv6Addr;

/// Bytes of the header without extension headers.
pub const IPV6_LEN: usize = 40;
/// Maximum number of extension headers parsed per packet.
pub const MAX_EXTENSIONS: usize = 8;
/// Maximum length of the extension headers parsed per packet, in bytes.
pub const MAX_EXTENSIONS_LEN: usize = 64;
/// Maximum length of the headers that this crate parses.
pub const MAX_IPV6_LEN: usize = IPV6_LEN + MAX_EXTENSIONS_LEN;
/// Bytes of the fragment header (RFC 8200 §4.5).
pub const FRAGMENT_LEN: usize = 8;

/// Next header number of hop-by-hop options (RFC 8200 §4.3).
pub const HOP_BY_HOP: u8 = 0;
/// Code of a parameter problem: an erroneous field (RFC 4443 §3.4).
pub const ERRONEOUS_FIELD: u8 = 0;
/// Code of a parameter problem: an unrecognized next header.
pub const UNRECOGNIZED_HEADER: u8 = 1;
/// Code of a parameter problem: an unrecognized option.
pub const UNRECOGNIZED_OPTION: u8 = 2;

/// Next header number of the routing header (§4.4).
pub const ROUTING: u8 = 43;
/// Next header number of the fragment header (§4.5).
pub const FRAGMENT: u8 = 44;
/// Next header number of destination options (§4.6).
pub const DESTINATION_OPTIONS: u8 = 60;
/// Next header number for "no next header" (§4.7).
pub const NO_NEXT_HEADER: u8 = 59;

/// Why a host must discard a packet because of its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionFault {
    /// Without an answer.
    Silent,
    /// With a parameter problem message (RFC 4443 §3.4).
    ParameterProblem {
        /// Its code.
        code: u8,
        /// Offset of the field, in bytes from the start of the IPv6 header.
        pointer: u8,
    },
}

/// A view of an IPv6 header with the extension headers behind it that could be parsed. The version is 6.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    bytes: &'a [u8; IPV6_LEN],
    extensions: &'a [u8],
    protocol: u8,
    /// Offset of the field that contains the protocol, from the start of the header.
    protocol_at: u8,
    /// The same field of the previous header. For a fragment, it contains the number of the fragment header.
    before_at: u8,
    fragment: Option<Fragment>,
    fault: Option<ExtensionFault>,
}

impl<'a> Ipv6View<'a> {
    /// Parses the header at the start of `bytes`, and the hop-by-hop options, routing, destination options
    /// and fragment headers behind it. The payload may be missing.
    ///
    /// Parsing ends at the first header of another type, after the fragment header of a fragment, and before
    /// a header that is truncated or would exceed [`MAX_EXTENSIONS`] or [`MAX_EXTENSIONS_LEN`]. None of this
    /// is an error: [`protocol`](Self::protocol) returns the type of the next header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let layer = Layer::Ipv6;
        let Some((header, rest)) = bytes.split_first_chunk::<IPV6_LEN>() else {
            return Err(WireError::Truncated { layer, need: IPV6_LEN, have: bytes.len() });
        };
        match header[0] >> 4 {
            6 => {}
            version => return Err(WireError::Version { layer, version }),
        }
        let mut view = Ipv6View {
            bytes: header,
            extensions: &[],
            protocol: header[6],
            protocol_at: 6,
            before_at: 6,
            fragment: None,
            fault: None,
        };
        if is_extension(view.protocol) {
            view.parse_extensions(rest);
        }
        Ok(view)
    }

    #[cold]
    fn parse_extensions(&mut self, bytes: &'a [u8]) {
        let mut len = 0;
        for _ in 0..MAX_EXTENSIONS {
            if !is_extension(self.protocol) {
                break;
            }
            let Some([next, units]) = bytes.get(len..).and_then(|rest| rest.first_chunk()) else { break };
            let this = match self.protocol {
                FRAGMENT => FRAGMENT_LEN,
                _ => 8 + 8 * usize::from(*units),
            };
            let Some(header) = bytes.get(len..len + this).filter(|_| len + this <= MAX_EXTENSIONS_LEN) else {
                break;
            };
            let is_fragment = self.protocol == FRAGMENT;
            if self.fault.is_none() {
                self.fault = self.fault_of(header, len);
            }
            self.before_at = self.protocol_at;
            // At most `MAX_IPV6_LEN`, so it fits.
            (self.protocol, self.protocol_at) = (*next, (IPV6_LEN + len) as u8);
            len += this;
            if is_fragment && let &[_, _, o0, o1, i0, i1, i2, i3] = header {
                let field = u16::from_be_bytes([o0, o1]);
                let ident = u32::from_be_bytes([i0, i1, i2, i3]);
                let fragment = Fragment { ident, offset: u32::from(field & !7), more: field & 1 == 1 };
                self.fragment = Some(fragment);
                if !fragment.is_whole() {
                    break;
                }
            }
        }
        self.extensions = bytes.get(..len).unwrap_or(&[]);
    }

    /// Why a host must discard the packet because of this extension header, `len` bytes behind the fixed
    /// header.
    fn fault_of(&self, header: &[u8], len: usize) -> Option<ExtensionFault> {
        // At most `MAX_IPV6_LEN`, so it fits.
        let problem = |code, at: usize| ExtensionFault::ParameterProblem { code, pointer: at as u8 };
        let at = IPV6_LEN + len;
        match self.protocol {
            // RFC 8200 §4.1: only directly behind the fixed header.
            HOP_BY_HOP if len > 0 => Some(problem(UNRECOGNIZED_HEADER, self.protocol_at())),
            HOP_BY_HOP | DESTINATION_OPTIONS => match option_fault(header.get(2..)?)? {
                OptionFault::Silent => Some(ExtensionFault::Silent),
                OptionFault::Unrecognized { offset } => Some(problem(UNRECOGNIZED_OPTION, at + 2 + offset)),
            },
            // RFC 8200 §4.4, RFC 5095: no routing type is recognized.
            ROUTING if header.get(3).is_some_and(|left| *left > 0) => Some(problem(ERRONEOUS_FIELD, at + 2)),
            _ => None,
        }
    }

    /// Why a host must discard the packet because of its extension headers. Behind the fragment header of a
    /// fragment nothing is examined.
    pub const fn fault(&self) -> Option<ExtensionFault> {
        self.fault
    }
    /// Length of this header and the parsed extension headers: 40 to 104 bytes.
    pub const fn header_len(&self) -> usize {
        IPV6_LEN + self.extensions.len()
    }
    /// Traffic class: DSCP and ECN as in IPv4.
    pub const fn traffic_class(&self) -> u8 {
        self.bytes[0] << 4 | self.bytes[1] >> 4
    }
    /// Flow label, 20 bits.
    pub const fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.bytes[1] & 15, self.bytes[2], self.bytes[3]])
    }
    /// Number of bytes after the fixed header of 40 bytes, according to the header.
    pub const fn payload_len(&self) -> u16 {
        u16::from_be_bytes([self.bytes[4], self.bytes[5]])
    }
    /// The next header field of the fixed header: a protocol or an extension header.
    pub const fn next_header(&self) -> u8 {
        self.bytes[6]
    }
    /// What follows the parsed extension headers: a protocol, or an extension header that was not parsed. For
    /// a fragment, it is the protocol of the datagram.
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }
    /// Offset of the field that contains [`protocol`](Self::protocol), in bytes from the start of the IPv6
    /// header. A parameter problem message points to it (RFC 4443 §3.4).
    pub const fn protocol_at(&self) -> usize {
        self.protocol_at as usize
    }
    /// For a fragment: offset of the field that contains the number of the fragment header.
    pub(crate) const fn before_at(&self) -> usize {
        self.before_at as usize
    }
    /// The parsed extension headers.
    pub const fn extensions(&self) -> &'a [u8] {
        self.extensions
    }
    /// The fragment header, if there is one. An atomic fragment has one too.
    pub const fn fragment(&self) -> Option<Fragment> {
        self.fragment
    }
    /// Hop limit.
    pub const fn hop_limit(&self) -> u8 {
        self.bytes[7]
    }
    /// Source.
    pub fn src(&self) -> Ipv6Addr {
        self.address(8)
    }
    /// Destination.
    pub fn dst(&self) -> Ipv6Addr {
        self.address(24)
    }
    /// The pseudo header, with which transport checksums begin (RFC 8200 §8.1), for `len` bytes after the
    /// extension headers. It contains the destination of the fixed header, which is not the final one if a
    /// routing header has segments left.
    pub(crate) fn pseudo_header(&self, protocol: u8, len: u32) -> Sum {
        Sum::new().bytes(&self.bytes[8..40]).bytes(&len.to_be_bytes()).word(u16::from(protocol))
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.bytes[at..at + 16]);
        Ipv6Addr::from(octets)
    }
}

/// Why a packet with these options must be discarded.
enum OptionFault {
    Silent,
    Unrecognized { offset: usize },
}

/// The first option that requires its packet to be discarded. Apart from padding none is recognized: the two
/// highest bits of its type say what to do (RFC 8200 §4.2).
fn option_fault(options: &[u8]) -> Option<OptionFault> {
    /// Router alert (RFC 2711) concerns routers.
    const ROUTER_ALERT: u8 = 5;
    let mut offset = 0;
    while let Some(kind) = options.get(offset) {
        if *kind == 0 {
            offset += 1;
            continue;
        }
        let end = options.get(offset + 1).map(|len| offset + 2 + usize::from(*len));
        // It is longer than its header.
        let Some(end) = end.filter(|end| *end <= options.len()) else { return Some(OptionFault::Silent) };
        match kind >> 6 {
            _ if matches!(*kind, 1 | ROUTER_ALERT) => {}
            0 => {}
            1 => return Some(OptionFault::Silent),
            // 3: not for a group, of which no message is sent in any case.
            _ => return Some(OptionFault::Unrecognized { offset }),
        }
        offset = end;
    }
    None
}

const fn is_extension(number: u8) -> bool {
    matches!(number, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS)
}

/// The fields of an IPv6 header to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// DSCP and ECN as in IPv4.
    pub traffic_class: u8,
    /// Flow label; bits beyond 20 are ignored.
    pub flow_label: u32,
    /// The type of the next header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
}

impl Ipv6Header {
    /// Writes the header for `payload_len` bytes after it.
    ///
    /// # Errors
    /// The payload exceeds 65535 bytes (no jumbograms).
    #[inline]
    pub fn encode(&self, payload_len: usize, out: &mut [u8; IPV6_LEN]) -> Result<(), WireError> {
        let Ok(payload_len) = u16::try_from(payload_len) else {
            return Err(WireError::CannotEncode { layer: Layer::Ipv6 });
        };
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        out[..4].copy_from_slice(&first.to_be_bytes());
        out[4..6].copy_from_slice(&payload_len.to_be_bytes());
        out[6] = self.next_header;
        out[7] = self.hop_limit;
        out[8..24].copy_from_slice(&self.src.octets());
        out[24..40].copy_from_slice(&self.dst.octets());
        Ok(())
    }
}
