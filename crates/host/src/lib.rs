//! One machine: listeners and connections, their applications, and IP under them. To the network it is an
//! element like a link or a policer.
//!
//! A host never reads a clock or opens a socket. The lab runs it in virtual time, stations of `farpace-live`
//! in real time.
//!
//! Start reading at [`Host`], the methods of which stand in `host/` by what they are about; then `arrival.rs`
//! (what becomes of a segment) and `listener.rs` (who gets in). The parts that a host consists of do not know
//! it.

#![forbid(unsafe_code)]

mod application;
mod arrival;
mod binds;
mod connection_id;
mod connections;
mod cookies;
mod datagrams;
mod host;
mod index;
mod internet;
pub mod ip;
mod isn;
mod limiter;
mod list;
mod listener;
mod memory;
mod orphans;
mod ports;
mod secret;
pub mod services;
mod time_wait;
mod timers;

pub use application::{Application, SocketEnds};
pub use arrival::MAX_RESETS_PER_SECOND;
pub use binds::{Bind, BindId, MAX_BOUND, PortError};
pub use connection_id::ConnectionId;
pub use connections::{DEFAULT_CLOSED_KEPT, MAX_CONNECTIONS};
pub use cookies::{COOKIE_LIFETIME, COOKIE_PERIOD};
pub use datagrams::{DatagramProgram, UdpSocket};
pub use host::{ConnectError, Host, LocalAddress};
pub use internet::{LocalLink, is_host as is_host_address};
pub use list::Listed;
pub use listener::{DEFAULT_ACCEPTED, DEFAULT_BACKLOG, ListenError, ListenSettings};
pub use memory::{DEFAULT_MEMORY, MIN_MEMORY, MemoryLevel, MemoryUse};
pub use orphans::MAX_ORPHANS;
pub use ports::FIRST_EPHEMERAL;
pub use secret::Secret;
pub use time_wait::MAX_TIME_WAIT;
