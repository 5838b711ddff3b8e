//! Programs that others wrote, as they are: curl, web servers, iperf3, tshark, with farpace at one end or
//! between.
//!
//! Needs root. Elsewhere these tests pass with a line on stderr that says what is missing, and fail where
//! `CI` is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod as_kernel;
mod between;
mod captures;
mod forks;
mod harness;
mod limits;
mod list;
mod lives;
mod measured;
mod tunnel;
mod web;
