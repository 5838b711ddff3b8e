//! One machine: listeners and connections, their applications, and IP under them. To the network it is an
//! element like a link or a policer.
//!
//! A host never reads a clock or opens a socket. The lab runs it in virtual time.
//!
//! Start reading at [`Host`].

#![forbid(unsafe_code)]

mod application;
mod host;
mod timers;

pub use application::Application;
pub use host::{ConnectionId, Host, ListenError, MAX_CLOSED_KEPT, MAX_CONNECTIONS};
