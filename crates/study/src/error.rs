//! Why a study cannot be made, read or written.

use crate::axis::AxisError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a study cannot be made, read or written.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A text behind `--vary` that is not an axis.
    #[error("--vary {0}")]
    Axis(#[from] AxisError),
    /// Options that do not fit together.
    #[error("{0}")]
    Invalid(String),
    /// The scenario, or one of the values, is not possible. The text is that of the scenario's error.
    #[error("{0}")]
    Scenario(String),
    /// A file cannot be read or written.
    #[error("cannot {verb} `{}`: {error}", path.display())]
    File {
        /// `read` or `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of the study is damaged.
    #[error("`{}` is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Another process writes to the study.
    #[error(
        "another sweep is writing to `{}`: wait for it, or choose another folder with --out",
        .0.display()
    )]
    Busy(PathBuf),
    /// The folder holds something else.
    #[error("`{}` holds other files and no study: choose another folder with --out", .0.display())]
    NoStudy(PathBuf),
    /// There is no study.
    #[error("there is no study in `{}`", .0.display())]
    Missing(PathBuf),
    /// The study was made by another version.
    #[error(
        "the study in `{}` was made by farpace {found}, and this is {own}: their rows do not belong \
         together. Use that version, choose another folder with --out, or begin anew with --restart",
        path.display()
    )]
    OtherVersion {
        /// The folder.
        path: PathBuf,
        /// The version it names.
        found: String,
        /// The version of this program.
        own: String,
    },
    /// The study was made from another scenario.
    #[error(
        "the study in `{}` was made from another scenario (`{found}`, or other --set values). Choose \
         another folder with --out, or begin anew with --restart",
        .path.display()
    )]
    OtherScenario {
        /// The folder.
        path: PathBuf,
        /// The name of its scenario.
        found: String,
    },
    /// Studies that cannot be merged.
    #[error("{0}")]
    Merge(String),
}

impl StudyError {
    pub(crate) fn read(path: &Path, error: io::Error) -> Self {
        StudyError::File { verb: "read", path: path.to_owned(), error }
    }
    pub(crate) fn write(path: &Path, error: io::Error) -> Self {
        StudyError::File { verb: "write", path: path.to_owned(), error }
    }
}
