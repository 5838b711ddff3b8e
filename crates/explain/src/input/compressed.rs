//! Files as they are, or compressed with gzip or zstd.

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes that are read ahead.
const BUFFER: usize = 1 << 18;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

/// Opens a file of any of these kinds by its first bytes.
///
/// # Errors
/// What the system says.
pub fn open<'a>(input: impl Read + 'a) -> io::Result<(Box<dyn Read + 'a>, Compression)> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let start = input.fill_buf()?;
    if start.starts_with(&[0x1f, 0x8b]) {
        let decoder = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input));
        return Ok((Box::new(decoder), Compression::Gzip));
    }
    // RFC 8878, sections 3.1.1 and 3.1.2: a frame, or one to be skipped, with which pzstd begins.
    if matches!(start, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
        let decoder = BufReader::with_capacity(BUFFER, ZstdFrames::new(input));
        return Ok((Box::new(decoder), Compression::Zstd));
    }
    Ok((Box::new(input), Compression::None))
}

/// The last block of a frame, without content, and a checksum that is not looked at.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// All frames of a zstd file, one after the other. What was decoded before an error comes before the error.
struct ZstdFrames<R> {
    source: R,
    frame: FrameDecoder,
    failure: Option<io::Error>,
    is_over: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(source: R) -> Self {
        ZstdFrames { source, frame: FrameDecoder::new(), failure: None, is_over: false }
    }

    /// Begins the next frame; false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.source).take(u64::from(length));
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string())),
            }
        }
        Ok(false)
    }

    /// Decodes some blocks of the frame.
    fn decode(&mut self) -> io::Result<()> {
        let blocks = BlockDecodingStrategy::UptoBytes(BUFFER);
        let Err(error) = self.frame.decode_blocks(&mut self.source, blocks) else { return Ok(()) };
        // The decoder keeps back what later blocks could refer to, until the frame ends.
        if let Err(error) = self.frame.decode_blocks(LAST_BLOCK.as_slice(), BlockDecodingStrategy::All) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() && self.frame.can_collect() == 0 {
            if let Some(error) = self.failure.take() {
                self.is_over = true;
                return Err(error);
            }
            if self.is_over {
                return Ok(0);
            }
            let done = if self.frame.is_finished() {
                self.begin().map(|begun| self.is_over = !begun)
            } else {
                self.decode()
            };
            self.failure = done.err();
        }
        self.frame.read(buf)
    }
}
