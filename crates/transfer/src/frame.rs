//! Frames: type, length, payload, and for all but data a tag that only those who know the token can make. On
//! a line that is secured below there are no tags.
//!
//! ```text
//! type 1 byte | length of the payload 4 bytes, big endian | payload | tag 16 bytes, not on data and refusals
//! ```
//! The tag is the beginning of BLAKE3, keyed with the key of the direction, over the frame's number in its
//! direction (tagged frames alone, from 0, 8 bytes big endian), type, length and payload. Data has none: the
//! tagged end of each file has the hash of all its bytes.

use crate::fault::TransferError;
use crate::limits::{MAX_CONTROL, MAX_DATA};
use crate::message::{BUSY, DATA, REFUSE, TransferMessage};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes before the payload.
pub(crate) const HEADER: usize = 5;
const TAG: usize = 16;
/// Bytes of a control frame that are read at once.
const PIECE: usize = 65_536;

/// The key of one direction.
#[derive(Clone)]
pub struct FrameKey(pub(crate) [u8; 32]);

impl FrameKey {
    /// A key for those who test or fuzz the decoder.
    pub fn of_bytes(bytes: [u8; 32]) -> FrameKey {
        FrameKey(bytes)
    }
    fn tag(&self, number: u64, header: &[u8], payload: &[u8]) -> [u8; TAG] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&number.to_be_bytes()).update(header).update(payload);
        let mut tag = [0; TAG];
        hasher.finalize_xof().fill(&mut tag);
        tag
    }
}

fn header(kind: u8, len: usize) -> [u8; HEADER] {
    let [a, b, c, d] = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
    [kind, a, b, c, d]
}

/// What has come.
#[derive(Debug)]
pub enum IncomingFrame {
    /// A control message.
    Message(TransferMessage),
    /// So many bytes of a file, which are in the block.
    Data(usize),
}

/// Reads frames.
pub struct FrameReader<'a, R> {
    from: R,
    /// None: the line is secured below.
    key: Option<FrameKey>,
    number: u64,
    buffer: Vec<u8>,
    /// Bytes of the data frame at hand that have not come yet.
    rest: usize,
    moved: &'a AtomicU64,
}

impl<'a, R: Read> FrameReader<'a, R> {
    /// A reader that counts the bytes it has read in `moved`. Without a key frames have no tags.
    pub fn new(from: R, key: Option<FrameKey>, moved: &'a AtomicU64) -> Self {
        FrameReader { from, key, number: 0, buffer: Vec::new(), rest: 0, moved }
    }

    fn fill(&mut self, len: usize, moved: &AtomicU64) -> Result<(), TransferError> {
        self.buffer.clear();
        // As it comes, not as it is announced: a peer that announces much and sends nothing costs nothing.
        while self.buffer.len() < len {
            let from = self.buffer.len();
            self.buffer.resize(len.min(from + PIECE), 0);
            read_all(&mut self.from, self.buffer.get_mut(from..).unwrap_or_default(), moved)?;
        }
        Ok(())
    }

    /// The next frame. Data goes into `block`, which grows to what it needs. What came of a frame whose rest
    /// does not come is given before the error.
    ///
    /// # Errors
    /// The line fails or ends, a frame is too long, its tag is wrong, or it makes no sense.
    pub fn next(&mut self, block: &mut Vec<u8>) -> Result<IncomingFrame, TransferError> {
        if self.rest > 0 {
            return self.data(block);
        }
        let mut head = [0; HEADER];
        // That it is busy does not count as something that came.
        let idle = AtomicU64::new(0);
        read_all(&mut self.from, &mut head, &idle)?;
        let [kind, a, b, c, d] = head;
        let moved = if kind == BUSY { &idle } else { self.moved };
        moved.fetch_add(HEADER as u64, Ordering::Relaxed);
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        if kind == DATA {
            if len > MAX_DATA || len == 0 {
                return Err(TransferError::Protocol("a data frame has a wrong length"));
            }
            self.rest = len;
            return self.data(block);
        }
        if len > MAX_CONTROL {
            return Err(TransferError::Protocol("a control frame is too long"));
        }
        if kind == REFUSE {
            // Only before the keys are proved; see `handshake`.
            return Err(TransferError::Protocol("a refusal in the middle"));
        }
        let Some(key) = &self.key else {
            self.fill(len, moved)?;
            return TransferMessage::decode(kind, &self.buffer)
                .map(IncomingFrame::Message)
                .map_err(TransferError::Protocol);
        };
        let key = key.clone();
        self.fill(len + TAG, moved)?;
        let (payload, tag) = self.buffer.split_at(len);
        let right = key.tag(self.number, &head, payload);
        // In constant time, as blake3 compares: all bytes are looked at.
        let differs = right.iter().zip(tag).fold(0, |differs, (a, b)| differs | (a ^ b));
        if differs != 0 {
            return Err(TransferError::Protocol("a message was changed on its way, or the tokens differ"));
        }
        self.number += 1;
        TransferMessage::decode(kind, payload).map(IncomingFrame::Message).map_err(TransferError::Protocol)
    }
}

impl<R: Read> FrameReader<'_, R> {
    fn data(&mut self, block: &mut Vec<u8>) -> Result<IncomingFrame, TransferError> {
        if block.len() < self.rest {
            block.resize(MAX_DATA, 0);
        }
        let into = block.get_mut(..self.rest).unwrap_or_default();
        let (came, end) = read_until(&mut self.from, into, self.moved);
        self.rest -= came;
        // What has come is kept, although the rest does not come: the next call says why.
        if came == 0 {
            end?;
        }
        Ok(IncomingFrame::Data(came))
    }
}

/// Reads all of `into`.
pub(crate) fn read_all(
    from: &mut impl Read,
    into: &mut [u8],
    moved: &AtomicU64,
) -> Result<(), TransferError> {
    read_until(from, into, moved).1
}

/// Reads all of `into`, or as much as comes: how much, and why not the rest.
fn read_until(
    from: &mut impl Read,
    into: &mut [u8],
    moved: &AtomicU64,
) -> (usize, Result<(), TransferError>) {
    let mut read = 0;
    while let Some(rest) = into.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => return (read, Err(TransferError::Closed)),
            Ok(n) => {
                moved.fetch_add(n as u64, Ordering::Relaxed);
                read += n;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (read, Err(error.into())),
        }
    }
    (read, Ok(()))
}

/// Writes frames, as one side of a transfer does after the handshake.
pub struct FrameWriter<W> {
    to: W,
    key: Option<FrameKey>,
    number: u64,
}

impl<W: Write> FrameWriter<W> {
    pub(crate) fn new(to: W, key: Option<FrameKey>) -> Self {
        FrameWriter { to, key, number: 0 }
    }
    /// Writes a control message; it may wait in a buffer until [`flush`](FrameWriter::flush).
    ///
    /// # Errors
    /// Those of the line, as with all methods here.
    pub fn message(&mut self, message: &TransferMessage) -> io::Result<()> {
        let (kind, payload) = message.encode();
        let head = header(kind, payload.len());
        let Some(key) = &self.key else { return self.to.write_all(&[&head, payload.as_slice()].concat()) };
        let tag = key.tag(self.number, &head, &payload);
        self.number += 1;
        self.to.write_all(&[&head, payload.as_slice(), &tag].concat())
    }
    /// The header of a data frame whose payload the caller writes with [`raw`](FrameWriter::raw).
    ///
    /// # Errors
    /// Those of the line.
    pub fn data_header(&mut self, len: usize) -> io::Result<()> {
        self.to.write_all(&header(DATA, len))
    }
    /// Writes bytes as they are.
    ///
    /// # Errors
    /// Those of the line.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }
    /// Hands what waits in a buffer to the line.
    ///
    /// # Errors
    /// Those of the line.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A refusal, which has no tag because there is no common key.
pub(crate) fn refusal(payload: &[u8]) -> Vec<u8> {
    [&header(REFUSE, payload.len()), payload].concat()
}
