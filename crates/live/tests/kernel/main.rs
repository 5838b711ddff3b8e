//! The engine on a TUN device with the kernel of this machine as peer.
//!
//! Requires root and a TUN device. Elsewhere these tests pass with a message on stderr about what is missing,
//! and fail if `CI` is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod bulk;
mod endings;
mod floods;
mod impairments;
mod many;
mod netns;
mod options;
mod peer_host;
mod programs;
mod stream;
