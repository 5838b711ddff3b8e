//! Whole networks in virtual time: a scenario describes a network, the world runs it.
//!
//! Start reading at [`Run`]: it builds a scenario and runs it bin by bin. [`scenario`] is the language,
//! `network.rs` makes the elements and wires of a scenario, [`World`] runs them.
//!
//! The lab never reads a clock, opens a socket or starts a thread, and observers never change a run: the same
//! scenario and seed give the same bytes, observed or not.
//!
//! Unsafe code is denied in the whole workspace. Here it is not forbidden, because one module maps files into
//! memory (`payload/map.rs`).

mod awaited;
mod boundary_network;
pub mod checks;
mod datagrams;
mod drop_log;
mod exchanges;
mod hosts;
mod link_chain;
mod network;
mod network_error;
mod nics;
mod outcome;
mod pacing_nics;
mod parts;
mod payload;
mod programs;
mod queueing;
mod run;
mod run_observer;
pub mod scenario;
mod silence;

pub use boundary_network::{BoundaryInfo, BoundaryNetwork};
pub use drop_log::{DropMeter, DroppedSegment};
pub use farpace_path::world::{ElementId, End, Ledger, Observer, WireId, World, WorldError};
pub use network_error::NetworkError;
pub use outcome::{
    DatagramOutcome, DropCount, FlowOutcome, NicOutcome, NicRate, NicsOutcome, PacingOutcome, RunOutcome,
};
pub use payload::{Mismatch, Payload, PayloadError, Verifier, VerifyError};
pub use run::{FlowSample, Inputs, Run, RunError, RunProgress};
pub use run_observer::{CaptureFile, CaptureOpenError};
pub use silence::{QuietStretch, Silence, SilenceMeter};
