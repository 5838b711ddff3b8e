//! Whole networks in virtual time: scenarios say what there is, the world moves it.
//!
//! Start reading at [`Run`]: a scenario, made and run bin by bin. [`scenario`] is the language, `network.rs` makes the elements and
//! wires of one, [`World`] moves them.
//!
//! It never reads a clock, opens a socket or starts a thread, and never changes what it looks at: the same scenario and seed give the same
//! bytes, watched or not.
//!
//! Unsafe code is denied in the whole workspace; here it is not forbidden, because one module maps files into
//! memory (`payload/map.rs`).

mod boundary_network;
pub mod checks;
mod datagrams;
mod hosts;
mod link_chain;
mod network;
mod nics;
mod outcome;
mod pacing_nics;
mod parts;
mod payload;
mod programs;
mod queueing;
mod run;
pub mod scenario;
mod silence;
mod watch;

pub use boundary_network::{BoundaryInfo, BoundaryNetwork};
pub use farpace_path::world::{ElementId, End, Ledger, Observer, WireId, World, WorldError};
pub use network::NetworkError;
pub use outcome::{
    DatagramOutcome, DropCount, FlowOutcome, NicOutcome, NicsOutcome, PacingOutcome, RunOutcome,
};
pub use payload::{Mismatch, Payload, PayloadError, Verifier, VerifyError};
pub use run::{FlowSample, Inputs, Run, RunError, RunProgress};
pub use silence::{Silence, SilenceMeter};
pub use watch::{CaptureFile, CaptureOpenError};
