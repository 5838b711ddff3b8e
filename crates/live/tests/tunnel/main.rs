//! Hosts inside encrypted tunnels over UDP: against each other, against a stock WireGuard, and against
//! whoever sends what he likes.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod hosts;
#[path = "../kernel/netns.rs"]
mod netns;
mod pair;
mod paths;
mod relay;
mod stock;
mod strangers;
