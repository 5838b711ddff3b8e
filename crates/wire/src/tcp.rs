//! The TCP header (RFC 9293 §3.1).

mod ack_control;
mod flags;
mod options;

pub use ack_control::{AckControl, AckDelay, CdlCapability, Tarr};
pub use flags::TcpFlags;
pub use options::{
    MAX_OPTIONS_LEN, RawOptions, SACK_BLOCKS, SackBlock, SackBlocks, TcpOptions, Timestamps, raw_options,
};

use crate::error::{Layer, WireError};
use farpace_units::Seq;

/// Bytes of the header without options.
pub const TCP_LEN: usize = 20;
/// Bytes of the longest header.
pub const MAX_TCP_LEN: usize = TCP_LEN + MAX_OPTIONS_LEN;
/// Where the checksum field is.
pub(crate) const CHECKSUM_AT: usize = 16;

/// The TCP header of a segment in host form. `encode` and `parse` keep every field. Unknown options can be
/// read with [`raw_options`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// SEG.SEQ.
    pub seq: Seq,
    /// SEG.ACK; meaningless unless the ACK flag is set.
    pub ack: Seq,
    /// All twelve flag bits.
    pub flags: TcpFlags,
    /// SEG.WND as on the wire, before scaling.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// The options the engine uses.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// Parses the header at the start of `bytes`, and returns it with its length (20 to 60 bytes). The
    /// checksum is not verified. Malformed options are skipped: see [`TcpOptions::parse`].
    ///
    /// # Errors
    /// The header is truncated, or the data offset is below 5.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(TcpHeader, usize), WireError> {
        let view = TcpView::parse(bytes)?;
        Ok((view.header(), view.header_len()))
    }

    /// Writes the header with a zero checksum field, and returns its length (a multiple of 4). Options are in
    /// the order of Linux: MSS, SACK-permitted and timestamps, window scale, ACK control, SACK. If they do
    /// not fit, ACK control is omitted as a whole, and then trailing SACK blocks.
    #[inline]
    pub fn encode(&self, out: &mut [u8; MAX_TCP_LEN]) -> usize {
        let len = TCP_LEN + self.options.encode(&mut out[TCP_LEN..]);
        let offset_and_flags = (len as u16 / 4) << 12 | self.flags.bits();
        out[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        out[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        out[4..8].copy_from_slice(&self.seq.get().to_be_bytes());
        out[8..12].copy_from_slice(&self.ack.get().to_be_bytes());
        out[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
        out[14..16].copy_from_slice(&self.window.to_be_bytes());
        out[16..18].fill(0);
        out[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        len
    }
}

/// A view of a TCP header, including unknown options.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<'a> {
    fixed: &'a [u8; TCP_LEN],
    options: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Parses the header at the start of `bytes`; the payload may be missing. Errors as for
    /// [`TcpHeader::parse`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let layer = Layer::Tcp;
        let have = bytes.len();
        let Some((fixed, rest)) = bytes.split_first_chunk::<TCP_LEN>() else {
            return Err(WireError::Truncated { layer, need: TCP_LEN, have });
        };
        let len = usize::from(fixed[12] >> 4) * 4;
        if len < TCP_LEN {
            return Err(WireError::HeaderLength { layer, len });
        }
        match rest.get(..len - TCP_LEN) {
            Some(options) => Ok(TcpView { fixed, options }),
            None => Err(WireError::Truncated { layer, need: len, have }),
        }
    }

    /// The header in host form.
    #[inline]
    pub fn header(&self) -> TcpHeader {
        TcpHeader {
            src_port: self.src_port(),
            dst_port: self.dst_port(),
            seq: self.seq(),
            ack: self.ack(),
            flags: self.flags(),
            window: self.window(),
            urgent: self.urgent(),
            options: TcpOptions::parse(self.options),
        }
    }
    /// Source port.
    pub const fn src_port(&self) -> u16 {
        self.word(0)
    }
    /// Destination port.
    pub const fn dst_port(&self) -> u16 {
        self.word(2)
    }
    /// SEG.SEQ.
    pub const fn seq(&self) -> Seq {
        Seq::new(self.long(4))
    }
    /// SEG.ACK, whether or not the ACK flag is set.
    pub const fn ack(&self) -> Seq {
        Seq::new(self.long(8))
    }
    /// Bytes of this header, options included: 20 to 60.
    pub const fn header_len(&self) -> usize {
        TCP_LEN + self.options.len()
    }
    /// All twelve flag bits.
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags::from_bits(self.word(12))
    }
    /// SEG.WND before scaling.
    pub const fn window(&self) -> u16 {
        self.word(14)
    }
    /// The checksum field.
    pub const fn checksum(&self) -> u16 {
        self.word(CHECKSUM_AT)
    }
    /// Urgent pointer.
    pub const fn urgent(&self) -> u16 {
        self.word(18)
    }
    /// The options, unparsed.
    pub const fn options(&self) -> &'a [u8] {
        self.options
    }
    /// Every option as kind and data; see [`raw_options`].
    pub const fn raw_options(&self) -> RawOptions<'a> {
        raw_options(self.options)
    }

    const fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.fixed[at], self.fixed[at + 1]])
    }
    const fn long(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.fixed[at], self.fixed[at + 1], self.fixed[at + 2], self.fixed[at + 3]])
    }
}
