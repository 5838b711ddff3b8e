//! Devices other than TUN, with the kernel of this machine behind them, and what is set up around them.
//!
//! Needs root. Elsewhere these tests pass with a line on stderr that says what is missing, and fail where `CI` is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod bytes_both_ways;
#[path = "../kernel/netns.rs"]
mod netns;
mod packet_socket;
mod queues;
mod setup;
mod stalls;
mod xdp;
