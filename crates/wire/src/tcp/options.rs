//! TCP options (RFC 9293 §3.2): those that the engine uses, decoded, and all of them, raw.

use super::ack_control::{AckControl, EXPERIMENT};
use crate::error::WireError;
use arrayvec::ArrayVec;
use farpace_units::Seq;

/// Maximum length of the options of a TCP header.
pub const MAX_OPTIONS_LEN: usize = 40;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// TCP timestamps (RFC 7323 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the echoed value.
    pub echo: u32,
}

/// A SACK block (RFC 2018 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SackBlock {
    /// Left edge: the first byte received.
    pub start: Seq,
    /// Right edge: the byte after the last one received.
    pub end: Seq,
}

/// Maximum number of SACK blocks in a header (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 4;

/// SACK blocks in wire order.
pub type SackBlocks = ArrayVec<SackBlock, SACK_BLOCKS>;

/// The options that the engine uses, decoded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size (kind 2, only with SYN).
    pub mss: Option<u16>,
    /// Window scale shift (kind 3, only with SYN), as on the wire: may exceed 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4, only with SYN).
    pub sack_permitted: bool,
    /// Timestamps (kind 8).
    pub timestamps: Option<Timestamps>,
    /// ACK control (kinds 253 and 254).
    pub ack_control: AckControl,
    /// SACK blocks (kind 5) in wire order.
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// Decodes the options of a header. Options of unknown kinds, and those with a wrong length for their
    /// kind, are skipped. Of repeated options the last one is used. A length below 2 or beyond the end hides
    /// where the next option begins, so the rest is skipped (RFC 9293 §3.1, MUST-7). [`raw_options`] reports
    /// this error.
    #[inline]
    pub fn parse(bytes: &[u8]) -> TcpOptions {
        let mut options = TcpOptions::default();
        // The options of nearly every segment of an established connection (RFC 7323 appendix A).
        if let [NOP, NOP, TIMESTAMPS, 10, data @ ..] = bytes
            && let Some((data, [])) = data.split_first_chunk::<8>()
        {
            options.timestamps = Some(Timestamps::from_wire(data));
            return options;
        }
        for (kind, data) in raw_options(bytes).map_while(Result::ok) {
            match (kind, data) {
                (MSS, &[a, b]) => options.mss = Some(u16::from_be_bytes([a, b])),
                (WINDOW_SCALE, &[shift]) => options.window_scale = Some(shift),
                (SACK_PERMITTED, []) => options.sack_permitted = true,
                (TIMESTAMPS, _) => {
                    if let Ok(data) = data.try_into() {
                        options.timestamps = Some(Timestamps::from_wire(data));
                    }
                }
                (SACK, _) => {
                    if let (blocks, []) = data.as_chunks::<8>() {
                        options.sack = blocks.iter().take(SACK_BLOCKS).map(SackBlock::from_wire).collect();
                    }
                }
                (kind, data) if EXPERIMENT.contains(&kind) => {
                    options.ack_control.take(data);
                }
                _ => {}
            }
        }
        options
    }

    /// Writes the options in the order of Linux, padded to whole 32-bit words, and returns their length (0 to
    /// 40): MSS; SACK-permitted and timestamps; window scale; ACK control; SACK blocks. The options before
    /// ACK control take at most 20 bytes. If ACK control does not fit, it is omitted as a whole; this takes
    /// at least four of its options. Then as many SACK blocks are written as fit, first ones first.
    #[inline]
    pub(crate) fn encode(&self, out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(room) = out.get_mut(at..at + bytes.len()) {
                room.copy_from_slice(bytes);
                at += bytes.len();
            }
        };
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            put(&[MSS, 4, a, b]);
        }
        match (self.sack_permitted, self.timestamps.is_some()) {
            (true, true) => put(&[SACK_PERMITTED, 2, TIMESTAMPS, 10]),
            (false, true) => put(&[NOP, NOP, TIMESTAMPS, 10]),
            (true, false) => put(&[NOP, NOP, SACK_PERMITTED, 2]),
            (false, false) => {}
        }
        if let Some(timestamps) = self.timestamps {
            put(&timestamps.value.to_be_bytes());
            put(&timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        if !self.ack_control.is_empty() {
            put(&self.ack_control.to_wire());
        }
        if !self.sack.is_empty() { self.encode_sack(at, out) } else { at }
    }

    fn encode_sack(&self, at: usize, out: &mut [u8]) -> usize {
        let Some(([nop, nop2, kind, len], room)) = out[at..].split_first_chunk_mut::<4>() else { return at };
        let fit = self.sack.len().min(room.len() / 8);
        if fit == 0 {
            return at;
        }
        (*nop, *nop2, *kind, *len) = (NOP, NOP, SACK, (2 + 8 * fit) as u8);
        for (block, room) in self.sack.iter().zip(room.as_chunks_mut::<4>().0.chunks_exact_mut(2)) {
            room[0] = block.start.get().to_be_bytes();
            room[1] = block.end.get().to_be_bytes();
        }
        at + 4 + 8 * fit
    }
}

impl Timestamps {
    const fn from_wire(&[a, b, c, d, e, f, g, h]: &[u8; 8]) -> Timestamps {
        Timestamps { value: u32::from_be_bytes([a, b, c, d]), echo: u32::from_be_bytes([e, f, g, h]) }
    }
}

impl SackBlock {
    const fn from_wire(&[a, b, c, d, e, f, g, h]: &[u8; 8]) -> SackBlock {
        let (start, end) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        SackBlock { start: Seq::new(start), end: Seq::new(end) }
    }
}

/// Iterator over the options of a header; see [`raw_options`].
#[derive(Clone, Debug)]
pub struct RawOptions<'a> {
    rest: &'a [u8],
}

/// Iterates over the options in `bytes` (the header after its first 20 bytes) as kind and data, with NOPs and
/// unknown kinds. It ends at the end-of-options option, at the end of the bytes, or after an `Err` for an
/// option whose length is below 2 or reaches beyond the end.
pub const fn raw_options(bytes: &[u8]) -> RawOptions<'_> {
    RawOptions { rest: bytes }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = Result<(u8, &'a [u8]), WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match *self.rest {
            [] | [END, ..] => {
                self.rest = &[];
                None
            }
            [NOP, ref rest @ ..] => {
                self.rest = rest;
                Some(Ok((NOP, &[])))
            }
            [kind, len, ref rest @ ..] if len >= 2 && usize::from(len) - 2 <= rest.len() => {
                let (data, rest) = rest.split_at(usize::from(len) - 2);
                self.rest = rest;
                Some(Ok((kind, data)))
            }
            [kind, ..] => {
                self.rest = &[];
                Some(Err(WireError::Option { kind }))
            }
        }
    }
}
