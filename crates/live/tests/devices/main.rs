//! Devices other than TUN, with the kernel of this machine behind them, and the setup around them.
//!
//! Requires root. Elsewhere these tests pass with a message on stderr about what is missing, and fail if `CI`
//! is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod bytes_both_ways;
mod late_timers;
mod memory_link;
#[path = "../kernel/netns.rs"]
mod netns;
mod packet_socket;
mod queues;
mod same_round;
mod setup;
mod stalls;
mod xdp;
