//! What captures show, whoever made them: packets as lines of text or JSON, what hosts tell of their NICs,
//! and whether flows are paced.
//!
//! Start reading at [`PacketLine`]; [`frame::read`] makes a packet of the bytes of a capture,
//! [`ShownSegment`] counts numbers from the start of a connection ([`ShownConnections`]). [`nics_heard`] and
//! [`nics_known`] show lists of NICs and paths, [`pacing`] is the proof of pacing. This crate never prints,
//! and never reads a clock.

#![forbid(unsafe_code)]

mod below;
mod connections;
pub mod frame;
mod line;
pub mod nics_heard;
pub mod nics_known;
mod options;
pub mod pacing;
mod segment;

pub use connections::{MAX_CONNECTIONS, Numbering, ShownConnections};
pub use line::{PacketLine, What};
pub use segment::ShownSegment;
