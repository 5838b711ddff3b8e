//! Sockets for programs: streams, listeners and datagrams of the host of a station, as other threads use them.
//!
//! Start reading at [`Stack`], then [`Stream`]. How data crosses between a program's thread and the station's:
//! `duplex.rs` (what both see, and its limits), `bridge.rs` (the station's side), `shared.rs` (how one waits for the
//! other). Nothing is woken for a single segment: a program that is behind finds more the next time it looks, and a station
//! that was told of work is not told again before it has done it.

#[cfg(feature = "tokio")]
mod asynchronous;
mod bound;
mod bridge;
mod datagram;
mod datagram_bridge;
mod duplex;
mod engine;
mod linger;
mod list;
mod listener;
mod options;
mod pipe;
pub mod posix;
mod registry;
mod settings;
mod shared;
mod snapshot;
mod stack;
mod stream;

pub use bound::BoundSocket;
pub use datagram::{LiveUdpSocket, OutgoingDatagram};
pub use engine::Engine;
pub use list::{Acks, ListedProtocol, Listing, MAX_ROWS, SocketRow};
pub use listener::{IncomingConnections, Listening, LiveListener};
pub use options::{DEFAULT_BACKLOG, OptionsError, SocketOptions};
pub use registry::Interrupted;
pub use shared::{Readiness, ReadinessWatch};
pub use snapshot::{ConnectionSnapshot, LimitedBy};
pub(crate) use stack::secret_and_seed;
pub use stack::{Besides, Stack, StackError};
pub use stream::Stream;
