//! Events of a connection as values: one [`Record`] per segment, ACK, window reduction and timer, with its
//! [`Cause`] and the [`RecoveryState`] after it.
//!
//! Start reading at [`Record`]. The engine produces records, and `farpace-trace` writes them to files. This
//! crate never depends on either.

#![forbid(unsafe_code)]

mod cause;
mod fanout;
mod record;
mod state;

pub use cause::Cause;
pub use record::{Record, RecordDirection, RecordSink};
pub use state::RecoveryState;
