//! Why captures cannot be examined.

use farpace_trace::CaptureReadError;
use std::io;
use std::path::{Path, PathBuf};

/// Why captures cannot be examined.
#[derive(Debug, thiserror::Error)]
pub enum ProofInputError {
    /// Standard input was named.
    #[error("a capture is read twice, and standard input cannot be: write it to a file first")]
    StandardInput,
    /// A pipe or a device was named.
    #[error("`{}` is no file: a capture is read twice, so write it to a file first", _0.display())]
    NoFile(PathBuf),
    /// A directory cannot be read.
    #[error("cannot read `{}`", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory without captures.
    #[error("there is no capture (*.pcapng, *.pcap) in `{}`", _0.display())]
    NoCapture(PathBuf),
    /// More captures than a report has.
    #[error("{captures} captures are too many for one report: at most {max}")]
    TooMany {
        /// How many there are.
        captures: usize,
        /// The limit.
        max: usize,
    },
    /// A capture cannot be read.
    #[error("cannot read capture `{}`", file.display())]
    Capture {
        /// The file.
        file: PathBuf,
        /// Why.
        source: CaptureCause,
    },
    /// No flow is one of those that were asked for.
    #[error("no flow of the captures is {_0}")]
    NoFlow(String),
    /// A capture is not the same when it is read again.
    #[error("capture `{}` has changed while it was read", _0.display())]
    Changed(PathBuf),
}

impl ProofInputError {
    pub(super) fn capture(file: &Path, cause: impl Into<CaptureCause>) -> Self {
        ProofInputError::Capture { file: file.to_owned(), source: cause.into() }
    }
}

/// What is wrong with a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureCause {
    /// The system says no.
    #[error(transparent)]
    System(#[from] io::Error),
    /// It is no capture, or a damaged one.
    #[error(transparent)]
    Format(#[from] CaptureReadError),
}
