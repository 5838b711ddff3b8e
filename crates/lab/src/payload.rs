//! The bytes of a transfer: a file or a pattern, passed by reference, and checked on arrival.

mod map;
mod verify;

pub use verify::{Mismatch, Verifier, VerifyError};

use bytes::Bytes;
use farpace_units::{ByteCount, RandomStream};
use map::Map;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a payload cannot be used.
#[derive(Debug, Error)]
pub enum PayloadError {
    /// It cannot be opened or read.
    #[error("cannot read payload `{}`: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// A directory, a pipe or a device.
    #[error("payload `{}` is {what}, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The file is empty.
    #[error("payload `{}` is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be mapped into memory.
    #[error("cannot map payload `{}` of {len} into memory: {error}", path.display())]
    Map {
        /// The file.
        path: PathBuf,
        /// Its length.
        len: ByteCount,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
}

/// The bytes of one transfer, never copied and never all in memory. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub struct Payload {
    len: ByteCount,
    source: PayloadSource,
}

#[derive(Clone, Debug)]
enum PayloadSource {
    /// `bytes` refers to `map`.
    File { bytes: Bytes, map: Map },
    /// [`BLOCK`] bytes that repeat, and so much of the repetition that no slice straddles the end; less if
    /// the payload is shorter. It begins at `start`.
    Pattern { bytes: Bytes, start: usize },
}

/// The period of the pattern: the first prime above 1 Mi, so that bytes with an offset of a power of two, a
/// segment or a window never look right.
const BLOCK: usize = 1_048_583;

impl Payload {
    /// Longest slice that [`slice`](Payload::slice) returns, longer than any segment.
    pub const LONGEST_SLICE: usize = BLOCK;

    /// The contents of a file, mapped into memory. The file must not change while it is in use. If it
    /// changes, the bytes that are sent are undefined; if it becomes shorter, the system ends the process.
    ///
    /// # Errors
    /// A file that is missing, unreadable, empty or not a regular file.
    pub fn file(path: &Path) -> Result<Self, PayloadError> {
        let open = |error| PayloadError::Open { path: path.to_owned(), error };
        // Examined before it is opened: opening a pipe would wait for a writer.
        let kind = path.metadata().map_err(open)?.file_type();
        if !kind.is_file() {
            let what = if kind.is_dir() { "a directory" } else { "a pipe, socket or device" };
            return Err(PayloadError::NotAFile { path: path.to_owned(), what });
        }
        let file = File::open(path).map_err(open)?;
        let len = ByteCount::new(file.metadata().map_err(open)?.len());
        if len.is_zero() {
            return Err(PayloadError::Empty { path: path.to_owned() });
        }
        let map = Map::new(&file).map_err(|error| PayloadError::Map { path: path.to_owned(), len, error })?;
        // The length may have changed in between; that of the mapping counts.
        let bytes = Bytes::from_owner(map.clone());
        Ok(Payload { len: ByteCount::of_len(bytes.len()), source: PayloadSource::File { bytes, map } })
    }
    /// `len` pseudo-random bytes that depend only on `seed` and repeat after a little more than 1 MiB.
    pub fn pattern(seed: u64, len: ByteCount) -> Self {
        let mut block = vec![0; len.as_len().min(BLOCK)];
        RandomStream::new(seed, "payload pattern").fill(&mut block);
        // A shorter payload does not repeat.
        if len.as_len() > BLOCK {
            block.extend_from_within(..);
        }
        Payload { len, source: PayloadSource::Pattern { bytes: Bytes::from(block), start: 0 } }
    }
    /// `len` bytes of the same pattern from another place on, which thousands of flows share. The pattern
    /// must be longer than [`LONGEST_SLICE`](Self::LONGEST_SLICE); a file is returned as it is.
    pub(crate) fn shifted(&self, places: u64, len: ByteCount) -> Self {
        match &self.source {
            PayloadSource::Pattern { bytes, .. } if bytes.len() > BLOCK => {
                let start = (places % BLOCK as u64) as usize;
                Payload { len, source: PayloadSource::Pattern { bytes: bytes.clone(), start } }
            }
            _ => self.clone(),
        }
    }
    /// The number of bytes.
    pub const fn len(&self) -> ByteCount {
        self.len
    }
    /// True for a pattern of no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len.is_zero()
    }
    /// The bytes from `offset` on, `len` of them or as many as there are, without copying. A slice longer
    /// than [`LONGEST_SLICE`](Self::LONGEST_SLICE) is cut to it.
    #[inline]
    pub fn slice(&self, offset: u64, len: usize) -> Bytes {
        let (from, to) = self.range(offset, len);
        match &self.source {
            PayloadSource::File { bytes, .. } | PayloadSource::Pattern { bytes, .. } => bytes.slice(from..to),
        }
    }
    /// The same bytes, borrowed.
    #[inline]
    fn borrow(&self, offset: u64, len: usize) -> &[u8] {
        let (from, to) = self.range(offset, len);
        match &self.source {
            PayloadSource::File { bytes, .. } | PayloadSource::Pattern { bytes, .. } => &bytes[from..to],
        }
    }
    /// Their place in memory.
    #[inline]
    fn range(&self, offset: u64, len: usize) -> (usize, usize) {
        let left = (self.len - ByteCount::new(offset)).as_len();
        let len = len.min(left).min(Self::LONGEST_SLICE);
        let from = match &self.source {
            _ if len == 0 => 0,
            // A mapped file has a length that fits.
            PayloadSource::File { .. } => offset as usize,
            PayloadSource::Pattern { start, .. } => ((offset + *start as u64) % BLOCK as u64) as usize,
        };
        (from, from + len)
    }
    /// The bytes before `offset` are hardly needed again: a file's memory may be freed. They can still be
    /// read.
    fn release(&self, from: u64, to: u64) {
        if let PayloadSource::File { map, .. } = &self.source {
            map.release(from, to);
        }
    }
}

#[cfg(test)]
mod tests;
