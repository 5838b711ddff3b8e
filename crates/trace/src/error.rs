//! What can go wrong when a trace or a capture is written.

use std::io;

/// A trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be written: disk full, pipe closed.
    #[error("cannot write the trace: {0}")]
    Io(#[from] io::Error),
    /// The Parquet library refused.
    #[error("cannot write the Parquet trace: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The CSV library refused.
    #[error("cannot write the CSV trace: {0}")]
    Csv(#[from] csv::Error),
}
