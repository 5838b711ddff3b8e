//! Sockets: two stacks connected in memory, and the kernel of this machine as peer on a TUN device.
//!
//! Elsewhere, tests that require root pass with a message on stderr about what is missing, and fail if `CI`
//! is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod acks;
#[cfg(feature = "tokio")]
mod asynchronous;
mod crowd;
mod datagrams;
mod ends;
mod hostile;
mod kernel;
mod lasting;
#[path = "../kernel/netns.rs"]
mod netns;
mod pair;
mod streams;
mod virtual_time;
mod waits;
