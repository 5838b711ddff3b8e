//! Errors of writing traces.

use std::io;

/// A trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be written, for example because the disk is full.
    #[error("cannot write the trace: {0}")]
    Io(#[from] io::Error),
    /// The Parquet library reported an error.
    #[error("cannot write the Parquet trace: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The CSV library reported an error.
    #[error("cannot write the CSV trace: {0}")]
    Csv(#[from] csv::Error),
}
