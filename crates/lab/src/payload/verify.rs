//! The receiving end of a payload: every byte is compared.

use super::Payload;
use farpace_units::ByteCount;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first received byte that is not the one that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("received byte {offset} is {received:#04x} where {sent} was sent", sent = SentContent(*expected))]
pub struct Mismatch {
    /// Its offset in the stream, from 0.
    pub offset: u64,
    /// The received byte.
    pub received: u8,
    /// The sent byte; `None` beyond the end.
    pub expected: Option<u8>,
}

struct SentContent(Option<u8>);
impl std::fmt::Display for SentContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(byte) => write!(f, "{byte:#04x}"),
            None => write!(f, "nothing"),
        }
    }
}

/// Why a received stream is not the one that was sent, or could not be written.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// A wrong byte.
    #[error(transparent)]
    Mismatch(Mismatch),
    /// It ended too early.
    #[error("{received} of {sent} were received")]
    Short {
        /// Bytes received, all of them right.
        received: ByteCount,
        /// Bytes sent.
        sent: ByteCount,
    },
    /// The received bytes could not be written.
    #[error("cannot write received bytes to `{}`: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
}

/// Compares the received bytes with the payload, and writes them to a file if one is given.
#[derive(Debug)]
pub struct Verifier {
    payload: Payload,
    received: u64,
    mismatch: Option<Mismatch>,
    /// The memory of the payload before this offset has been freed.
    released: u64,
    output: Option<Output>,
}

#[derive(Debug)]
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    error: Option<io::Error>,
}

impl Verifier {
    /// Memory of a file's payload is freed whenever so many more bytes have been received.
    const RELEASE_EVERY: u64 = 32 << 20;
    const WRITE_BUFFER: usize = 1 << 20;

    /// Expects `payload`.
    pub const fn new(payload: Payload) -> Self {
        Verifier { payload, received: 0, mismatch: None, released: 0, output: None }
    }
    /// Also writes the received bytes to a new file at `path`; an existing file is replaced. If this fails
    /// later, the comparison goes on and [`finish`](Self::finish) reports it.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn write_to(&mut self, path: &Path) -> Result<(), VerifyError> {
        let file = File::create(path).map_err(|error| VerifyError::Write { path: path.to_owned(), error })?;
        let file = BufWriter::with_capacity(Self::WRITE_BUFFER, file);
        self.output = Some(Output { path: path.to_owned(), file, error: None });
        Ok(())
    }
    /// The next bytes of the stream arrive.
    pub fn receive(&mut self, bytes: &[u8]) {
        if let Some(output) = &mut self.output
            && output.error.is_none()
        {
            output.error = output.file.write_all(bytes).err();
        }
        for chunk in bytes.chunks(Payload::LONGEST_SLICE) {
            let expected = self.payload.borrow(self.received, chunk.len());
            if chunk != expected && self.mismatch.is_none() {
                self.mismatch = first_mismatch(self.received, chunk, expected);
            }
            self.received += chunk.len() as u64;
        }
        if self.received - self.released >= Self::RELEASE_EVERY {
            self.payload.release(self.released, self.received);
            self.released = self.received;
        }
    }
    /// The number of bytes received.
    pub const fn received(&self) -> ByteCount {
        ByteCount::new(self.received)
    }
    /// The first wrong byte.
    pub const fn mismatch(&self) -> Option<Mismatch> {
        self.mismatch
    }
    /// True if all bytes have arrived.
    pub fn is_complete(&self) -> bool {
        self.received() >= self.payload.len()
    }
    /// Ends the stream, and the file.
    ///
    /// # Errors
    /// A wrong byte, a stream that is too short, or a file that could not be written: the first of these.
    pub fn finish(self) -> Result<ByteCount, VerifyError> {
        let (received, sent) = (self.received(), self.payload.len());
        let written = self.output.map_or(Ok(()), Output::finish);
        if let Some(mismatch) = self.mismatch {
            return Err(VerifyError::Mismatch(mismatch));
        }
        if received < sent {
            return Err(VerifyError::Short { received, sent });
        }
        written.map(|()| received)
    }
}

impl Output {
    fn finish(self) -> Result<(), VerifyError> {
        let Output { path, mut file, error } = self;
        let written = match error {
            Some(error) => Err(error),
            None => file.flush(),
        };
        written.map_err(|error| VerifyError::Write { path, error })
    }
}

fn first_mismatch(offset: u64, received: &[u8], expected: &[u8]) -> Option<Mismatch> {
    let expected = expected.iter().map(|byte| Some(*byte)).chain(std::iter::repeat(None));
    let mut pairs = (offset..).zip(received.iter().zip(expected));
    let (offset, (received, expected)) = pairs.find(|(_, (r, e))| Some(**r) != *e)?;
    Some(Mismatch { offset, received: *received, expected })
}
