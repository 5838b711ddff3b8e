//! `farpace gateway` between network namespaces, with the kernel's TCP at both ends.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod dashboard;
mod endings;
mod harness;
mod lives;
mod network;
mod pair;
#[path = "../common/rights.rs"]
mod rights;
mod sites;
mod tools;
