//! Why there is nothing to see.

use crate::error::ExamineError;
use std::io;
use std::path::{Path, PathBuf};

/// Why files cannot be viewed.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// A path cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory without reports, captures and traces.
    #[error("`{}` has no report, capture or trace: give a directory of farpace run --out", _0.display())]
    Nothing(PathBuf),
    /// A capture or a trace cannot be read.
    #[error(transparent)]
    Examine(#[from] ExamineError),
    /// A report is larger than what is served.
    #[error("`{}` is larger than {} MiB", file.display(), max >> 20)]
    LargeReport {
        /// The file.
        file: PathBuf,
        /// The limit in bytes.
        max: u64,
    },
    /// No file has this number.
    #[error("there is no such file")]
    NoFile,
    /// No capture or trace has this number.
    #[error("there is no such capture")]
    NoCapture,
    /// No figure of the file has this number.
    #[error("there is no such figure")]
    NoFigure,
    /// The port cannot be used.
    #[error("cannot listen on port {port} of 127.0.0.1; --port chooses another")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The system gives no secret for the address.
    #[error("no random numbers")]
    NoRandomNumbers(#[source] io::Error),
    /// The system has no thread for the server.
    #[error("cannot start a thread")]
    NoThread(#[source] io::Error),
}

impl ViewError {
    /// For `map_err`: `path` cannot be read.
    pub(super) fn read(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| ViewError::Read { path: path.to_owned(), source }
    }
}
