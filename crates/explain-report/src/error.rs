//! Why a file cannot be explained.

use farpace_explain::input::RecordsError;
use farpace_trace::CaptureReadError;
use std::io;
use std::path::PathBuf;

/// Why a file cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// It cannot be opened or read.
    #[error("cannot read `{}`", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: ReadCause,
    },
    /// It was read once, but cannot be read again.
    #[error("cannot read `{}` again", file.display())]
    ReadAgain {
        /// The file.
        file: PathBuf,
        /// Why.
        source: ReadCause,
    },
    /// A log of `ss` is larger than what is read.
    #[error("`{}` is a log of ss of more than {} MiB: split it", file.display(), max >> 20)]
    LongLog {
        /// The file.
        file: PathBuf,
        /// The limit in bytes.
        max: u64,
    },
}

impl ExamineError {
    /// For `map_err`: `file` cannot be read.
    pub(crate) fn read<C: Into<ReadCause>>(file: &std::path::Path) -> impl Fn(C) -> Self {
        move |source| ExamineError::Read { file: file.to_owned(), source: source.into() }
    }

    /// For `map_err`: `file` cannot be read again.
    pub(crate) fn read_again<C: Into<ReadCause>>(file: &std::path::Path) -> impl Fn(C) -> Self {
        move |source| ExamineError::ReadAgain { file: file.to_owned(), source: source.into() }
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadCause {
    /// The system says no.
    #[error(transparent)]
    System(#[from] io::Error),
    /// It is no capture.
    #[error(transparent)]
    Capture(#[from] CaptureReadError),
    /// It is no trace.
    #[error(transparent)]
    Records(#[from] RecordsError),
}
