//! `farpace gateway` between network namespaces, with the kernel's TCP at both ends.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

mod captures;
mod changes;
#[path = "../common/mod.rs"]
mod common;
mod dashboard;
mod endings;
mod firewalls;
mod gain;
mod harness;
mod in_the_clear;
mod lives;
mod network;
mod own_traffic;
mod pair;
mod process;
mod records;
#[path = "../common/rights.rs"]
mod rights;
mod sites;
mod threads;
mod tools;
