//! What farpace keeps inside the kernel of this host: pacing classes on devices, what is pinned in the BPF
//! file system and who takes it away, and what controls and classes do, as text, JSON and metrics.
//!
//! Start reading at `classes::up` and `KernelStatus`. Without the feature `bpf` this crate is empty. It
//! never prints.

#![forbid(unsafe_code)]
#![cfg(feature = "bpf")]

mod class_looks;
pub mod class_probe;
pub mod classes;
mod error;
pub mod setup;
mod status;

pub use class_looks::ClassLooks;
pub use error::KernelServiceError;
pub use status::KernelStatus;
