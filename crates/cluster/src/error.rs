//! Why a cluster cannot make runs.

use farpace_study::StudyError;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use thiserror::Error;

/// Why a cluster cannot make runs.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// There is no such interpreter.
    #[error(
        "there is no `{}`: --ray needs Python 3.10 or later (Debian: apt-get install python3), or the name \
         of another one with --python",
        .0.display()
    )]
    NoPython(PathBuf),
    /// The interpreter cannot be run.
    #[error("cannot run `{}`", python.display())]
    Python {
        /// The interpreter.
        python: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The interpreter lacks something, or has another farpace.
    #[error("`{}` {problem}", python.display())]
    Packages {
        /// The interpreter.
        python: PathBuf,
        /// What is wrong, and the command that mends it.
        problem: String,
    },
    /// The folder of the study.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The program cannot be started, asked or ended.
    #[error("cannot {what}")]
    Program {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A message of the program cannot be understood.
    #[error("`farpace.ray` said something else than it should")]
    Message(#[source] serde_json::Error),
    /// An answer for the program cannot be written as JSON.
    #[error(transparent)]
    Answer(serde_json::Error),
    /// The program ended before all runs were made.
    #[error("`{} -m farpace.ray` ended early: {status}", python.display())]
    EndedEarly {
        /// The interpreter.
        python: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },
    /// Runs were taken, and nothing was said of them.
    #[error("{0} runs did not come back from the cluster")]
    NotBack(usize),
    /// The program did not end when it was told to.
    #[error("the cluster did not withdraw its tasks")]
    NotWithdrawn,
    /// The program says that it cannot go on.
    #[error("{0}")]
    Failed(String),
    /// The study was planned by another build of farpace: its rows would not belong together.
    #[error("this is farpace {own}, and the study is made by {study}: install the same build there")]
    OtherBuild {
        /// The build of this worker.
        own: String,
        /// The build of the study.
        study: String,
    },
}

impl ClusterError {
    /// For `map_err`: the program cannot be started, asked or ended.
    pub(crate) fn program(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| ClusterError::Program { what, source }
    }
}
