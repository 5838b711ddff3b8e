//! Sockets for programs: streams, listeners and datagram sockets of a driver's host, for use by other
//! threads.
//!
//! Start reading at [`Stack`], then [`Stream`]. Data crosses between the threads of a program and the driver
//! in `duplex.rs` (the shared state and its limits), `pump.rs` and `bridge.rs` (the driver's side) and
//! `shared.rs` (waiting). A single segment wakes no thread: a program that is behind finds more data at its
//! next call, and a driver with pending work is not notified again.

#[cfg(feature = "tokio")]
mod asynchronous;
mod bound;
mod bridge;
mod datagram;
mod datagram_bridge;
mod datagram_wire;
mod duplex;
mod engine;
mod interrupted;
mod linger;
mod list;
mod list_text;
mod listener;
mod options;
mod pipe;
pub mod posix;
mod pump;
mod registry;
mod settings;
mod shared;
mod snapshot;
mod stack;
mod stream;

pub use bound::BoundSocket;
pub use datagram::LiveUdpSocket;
pub use datagram_wire::OutgoingDatagram;
pub use engine::Engine;
pub use interrupted::Interrupted;
pub use list::{Acks, ListedProtocol, Listing, MAX_ROWS, SocketRow};
pub use list_text::list_text;
pub use listener::{IncomingConnections, Listening, LiveListener};
pub use options::{DEFAULT_BACKLOG, OptionsError, SocketOptions};
pub use shared::{Readiness, ReadinessWatch};
pub use snapshot::{ConnectionSnapshot, LimitedBy};
pub(crate) use stack::secret_and_seed;
pub use stack::{Stack, StackError, StackOptions};
pub use stream::Stream;
