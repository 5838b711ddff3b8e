//! The IPv4 header (RFC 791 §3.1).

use crate::checksum::{Sum, checksum};
use crate::error::{Layer, WireError};
use std::net::Ipv4Addr;

/// Bytes of the header without options.
pub const IPV4_LEN: usize = 20;
/// Bytes of the longest header.
pub const MAX_IPV4_LEN: usize = 60;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// A view of an IPv4 header. Version, header length and total length are valid; the checksum has not been
/// verified.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    fixed: &'a [u8; IPV4_LEN],
    options: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// Parses the header at the start of `bytes`. The payload may be missing: the caller compares
    /// [`total_len`](Self::total_len) with its length.
    ///
    /// # Errors
    /// A version other than 4, a header length below 20 or beyond `bytes`, or a total length below the header
    /// length.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let layer = Layer::Ipv4;
        let have = bytes.len();
        let Some((fixed, rest)) = bytes.split_first_chunk::<IPV4_LEN>() else {
            return Err(WireError::Truncated { layer, need: IPV4_LEN, have });
        };
        let version = fixed[0] >> 4;
        if version != 4 {
            return Err(WireError::Version { layer, version });
        }
        let len = usize::from(fixed[0] & 15) * 4;
        if len < IPV4_LEN {
            return Err(WireError::HeaderLength { layer, len });
        }
        let Some(options) = rest.get(..len - IPV4_LEN) else {
            return Err(WireError::Truncated { layer, need: len, have });
        };
        let view = Ipv4View { fixed, options };
        if usize::from(view.total_len()) < len {
            return Err(WireError::TotalLength { layer, length: view.total_len().into(), have });
        }
        Ok(view)
    }

    /// Bytes of this header, options included: 20 to 60.
    pub const fn header_len(&self) -> usize {
        IPV4_LEN + self.options.len()
    }
    /// The TOS byte: DSCP and ECN.
    pub const fn tos(&self) -> u8 {
        self.fixed[1]
    }
    /// Differentiated services code point (RFC 2474), 6 bits.
    pub const fn dscp(&self) -> u8 {
        self.fixed[1] >> 2
    }
    /// Explicit congestion notification (RFC 3168), 2 bits.
    pub const fn ecn(&self) -> u8 {
        self.fixed[1] & 3
    }
    /// Length of header and payload in bytes.
    pub const fn total_len(&self) -> u16 {
        self.word(2)
    }
    /// Identification.
    pub const fn ident(&self) -> u16 {
        self.word(4)
    }
    /// The three flag bits: reserved (4), don't fragment (2), more fragments (1).
    pub const fn flags(&self) -> u8 {
        self.fixed[6] >> 5
    }
    /// The don't fragment flag.
    pub const fn dont_fragment(&self) -> bool {
        self.word(6) & DONT_FRAGMENT != 0
    }
    /// The more fragments flag.
    pub const fn more_fragments(&self) -> bool {
        self.word(6) & MORE_FRAGMENTS != 0
    }
    /// Offset of the fragment, in units of 8 bytes.
    pub const fn fragment_offset(&self) -> u16 {
        self.word(6) & OFFSET
    }
    /// True if the packet is a fragment.
    pub const fn is_fragment(&self) -> bool {
        self.word(6) & (MORE_FRAGMENTS | OFFSET) != 0
    }
    /// Time to live.
    pub const fn ttl(&self) -> u8 {
        self.fixed[8]
    }
    /// The protocol of the payload: one of the numbers in [`ip`](crate::ip).
    pub const fn protocol(&self) -> u8 {
        self.fixed[9]
    }
    /// The checksum field.
    pub const fn checksum(&self) -> u16 {
        self.word(10)
    }
    /// Source.
    pub const fn src(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[12], self.fixed[13], self.fixed[14], self.fixed[15])
    }
    /// Destination.
    pub const fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[16], self.fixed[17], self.fixed[18], self.fixed[19])
    }
    /// True if there is a source route, loose or strict, with addresses left (RFC 791 §3.1).
    pub fn is_source_routed(&self) -> bool {
        const LOOSE: u8 = 131;
        const STRICT: u8 = 137;
        let mut options = self.options;
        loop {
            options = match *options {
                [] | [0, ..] => return false,
                [1, ref rest @ ..] => rest,
                [LOOSE | STRICT, len, pointer, ..] => return pointer <= len,
                [_, len, ..] => options.get(usize::from(len.max(2))..).unwrap_or(&[]),
                [_] => return false,
            };
        }
    }
    /// The options, unparsed.
    pub const fn options(&self) -> &'a [u8] {
        self.options
    }
    /// Verifies the header checksum.
    pub fn verify_checksum(&self) -> Result<(), WireError> {
        match Sum::new().bytes(self.fixed).bytes(self.options).finish() {
            0 => Ok(()),
            _ => Err(WireError::Checksum { layer: Layer::Ipv4 }),
        }
    }
    /// The pseudo header, with which the checksums of TCP and UDP begin (RFC 9293 §3.1, RFC 768), for `len`
    /// bytes after this header.
    pub(crate) fn pseudo_header(&self, protocol: u8, len: u16) -> Sum {
        Sum::new().bytes(&self.fixed[12..20]).word(u16::from(protocol)).word(len)
    }

    const fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.fixed[at], self.fixed[at + 1]])
    }
}

/// The fields of an IPv4 header to encode. Version, lengths and checksum are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header<'a> {
    /// The TOS byte: DSCP and ECN.
    pub tos: u8,
    /// Identification.
    pub ident: u16,
    /// The don't fragment flag.
    pub dont_fragment: bool,
    /// The more fragments flag.
    pub more_fragments: bool,
    /// Units of 8 bytes; bits beyond 13 are ignored.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// The protocol of the payload.
    pub protocol: u8,
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
    /// Options, padded to whole 32-bit words, at most 40 bytes.
    pub options: &'a [u8],
}

impl Ipv4Header<'_> {
    /// Writes the header for `payload_len` bytes after it, with its checksum, and returns its length.
    ///
    /// # Errors
    /// The options are not whole words or too long, or the total length exceeds 65535.
    #[inline]
    pub fn encode(&self, payload_len: usize, out: &mut [u8; MAX_IPV4_LEN]) -> Result<usize, WireError> {
        let cannot = WireError::CannotEncode { layer: Layer::Ipv4 };
        let len = IPV4_LEN + self.options.len();
        if len > MAX_IPV4_LEN || !len.is_multiple_of(4) {
            return Err(cannot);
        }
        let total = len.checked_add(payload_len).and_then(|n| u16::try_from(n).ok()).ok_or(cannot)?;
        let fragment = if self.dont_fragment { DONT_FRAGMENT } else { 0 }
            | if self.more_fragments { MORE_FRAGMENTS } else { 0 }
            | self.fragment_offset & OFFSET;
        out[0] = 0x40 | (len / 4) as u8;
        out[1] = self.tos;
        out[2..4].copy_from_slice(&total.to_be_bytes());
        out[4..6].copy_from_slice(&self.ident.to_be_bytes());
        out[6..8].copy_from_slice(&fragment.to_be_bytes());
        out[8] = self.ttl;
        out[9] = self.protocol;
        out[10..12].fill(0);
        out[12..16].copy_from_slice(&self.src.octets());
        out[16..20].copy_from_slice(&self.dst.octets());
        out[20..len].copy_from_slice(self.options);
        let sum = checksum(&out[..len]);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
        Ok(len)
    }
}
