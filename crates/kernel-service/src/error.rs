//! Why something cannot hold in the kernel.

use farpace_kernel::KernelError;
use farpace_live::system::SystemError;
use std::io;
use thiserror::Error;

/// Why something cannot hold in the kernel, or cannot be taken away.
#[derive(Debug, Error)]
pub enum KernelServiceError {
    /// A configuration or a device with which it cannot hold.
    #[error("{0}")]
    Refused(String),
    /// The system does not change as it should.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The kernel takes no program, or does not let one go.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A file cannot be read, or a socket not be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The kernel does not let controls go that nobody holds.
    #[error("congestion controls that a killed process has left")]
    Leftovers(#[source] KernelError),
}
