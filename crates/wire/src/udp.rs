//! The UDP header (RFC 768).

use crate::error::{Layer, WireError};

/// Length of the header in bytes.
pub const UDP_LEN: usize = 8;
/// Offset of the checksum field.
pub(crate) const CHECKSUM_AT: usize = 6;

/// The ports of a datagram. Lengths and checksum are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct UdpHeader {
    /// Source port; zero if no reply is expected.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl UdpHeader {
    /// Writes the header for `payload_len` bytes after it, with a zero checksum field.
    ///
    /// # Errors
    /// The total length exceeds 65535.
    #[inline]
    pub fn encode(&self, payload_len: usize, out: &mut [u8; UDP_LEN]) -> Result<(), WireError> {
        let len = payload_len.checked_add(UDP_LEN).and_then(|len| u16::try_from(len).ok());
        let len = len.ok_or(WireError::CannotEncode { layer: Layer::Udp })?;
        out[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        out[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        out[4..6].copy_from_slice(&len.to_be_bytes());
        out[6..8].fill(0);
        Ok(())
    }
}

/// A view of a UDP header.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a> {
    bytes: &'a [u8; UDP_LEN],
}

impl<'a> UdpView<'a> {
    /// Parses the header at the start of `bytes`. The payload may be missing: the caller compares
    /// [`total_len`](Self::total_len) with its length.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        match bytes.first_chunk() {
            Some(bytes) => Ok(UdpView { bytes }),
            None => Err(WireError::Truncated { layer: Layer::Udp, need: UDP_LEN, have: bytes.len() }),
        }
    }

    /// The header in host form.
    pub const fn header(&self) -> UdpHeader {
        UdpHeader { src_port: self.src_port(), dst_port: self.dst_port() }
    }
    /// Source port.
    pub const fn src_port(&self) -> u16 {
        self.word(0)
    }
    /// Destination port.
    pub const fn dst_port(&self) -> u16 {
        self.word(2)
    }
    /// Length of header and payload in bytes.
    pub const fn total_len(&self) -> u16 {
        self.word(4)
    }
    /// The checksum field. Zero means no checksum, which only IPv4 allows.
    pub const fn checksum(&self) -> u16 {
        self.word(CHECKSUM_AT)
    }

    const fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }
}

/// The value of the checksum field for `sum`. A sum of zero is sent as 0xffff (RFC 768).
pub(crate) const fn checksum_field(sum: u16) -> u16 {
    if sum == 0 { 0xffff } else { sum }
}
