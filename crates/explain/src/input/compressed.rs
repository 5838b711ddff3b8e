//! Files as they are, or compressed with gzip or zstd.

use flate2::read::MultiGzDecoder;
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
/// What the system says, and a zstd header that is none.
pub fn open<'a>(input: impl Read + 'a) -> io::Result<(Box<dyn Read + 'a>, Compression)> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let start = input.fill_buf()?;
    if start.starts_with(&[0x1f, 0x8b]) {
        let decoder = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input));
        return Ok((Box::new(decoder), Compression::Gzip));
    }
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = ruzstd::decoding::StreamingDecoder::new(input)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
        return Ok((Box::new(BufReader::with_capacity(BUFFER, decoder)), Compression::Zstd));
    }
    Ok((Box::new(input), Compression::None))
}
