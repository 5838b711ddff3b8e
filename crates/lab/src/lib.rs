//! Whole networks in virtual time: scenarios say what there is, the world moves it.
//!
//! Start reading at [`World`].
//!
//! Unsafe code is denied in the whole workspace; here it is not forbidden, because one module maps files into
//! memory (`payload/map.rs`).

pub mod checks;
mod datagrams;
mod doors;
mod line_way;
mod machines;
mod network;
mod nics;
mod outcome;
mod pacing;
mod parts;
mod payload;
mod programs;
mod queueing;
mod run;
pub mod scenario;
mod silence;
mod watch;

pub use doors::{DoorInfo, Doors};
pub use farpace_path::world::{ElementId, End, Ledger, Observer, WireId, World, WorldError};
pub use network::NetworkError;
pub use outcome::{DatagramOutcome, DropCount, FlowOutcome, NicOutcome, NicsOutcome, Outcome, PacingOutcome};
pub use payload::{Mismatch, Payload, PayloadError, Verifier, VerifyError};
pub use run::{Inputs, Progress, Run, RunError, Sample};
pub use silence::{Silence, SilenceMeter};
pub use watch::{CaptureError, CaptureFile};
