//! The kernel of this machine at the other end of a connection: what the engine says on a TUN device, and what it makes of
//! what it hears there.
//!
//! Needs root and a TUN device. Elsewhere these tests pass with a line on stderr that says what is missing, and fail where
//! `CI` is set.

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
