//! Sockets: two stacks of ours on a wire in memory, and the kernel of this machine at the other end of a TUN device.
//!
//! What needs root passes elsewhere with a line on stderr that says what is missing, and fails where `CI` is set.

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
