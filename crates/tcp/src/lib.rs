//! The TCP engine: one connection, sans-IO.
//!
//! It never reads a clock, opens a socket or starts a thread: segments and time come in as values, segments
//! and a deadline go out. It knows nothing of IP, hosts or ports beyond its own two.
//!
//! Start reading at [`Connection`]; then [`recovery`] (what is lost), [`cc`] (how fast) and
//! [`config`] (what can be chosen).

#![forbid(unsafe_code)]

pub mod ack;
mod ack_request;
pub mod cc;
#[cfg(debug_assertions)]
mod check_turn;
pub mod config;
mod connection;
mod ports;
pub mod receive;
pub mod recovery;
pub mod rto;
mod segment;
mod segments;
mod send_buffer;
mod time_wait;
mod trim;
mod window;

pub use connection::{
    Blocked, CauseCounts, CloseReason, Connection, ConnectionEvent, ConnectionInspection, ConnectionMemory,
    ConnectionState, Counters, Details, FLOOR_IPV4, FLOOR_IPV6, LimitTimes, MIN_ORPHAN_RATE, PathError,
    Pressure, Reason, ResumedConnection, Transmit, TransmitRoom, slowest_pacing_rate,
};
pub use farpace_wire::Ecn;
pub use ports::Ports;
pub use segment::{OutgoingSegment, Segment};
pub use segments::{Acknowledged, LostSegment, RateSample, SegmentRow, Segments, Tags};
pub use send_buffer::SendBuffer;
pub use time_wait::{TimeWait, TimeWaitOutcome};
pub use window::Window;
