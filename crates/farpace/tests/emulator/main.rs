//! `farpace emulate`, `farpace lab`, `farpace nics up` and `farpace pacing up` between network namespaces,
//! with the kernel's TCP at both ends.
//!
//! Needs root and iproute2. Elsewhere these tests pass with a line on stderr that says what is missing, and
//! fail where `CI` is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

mod af_xdp;
mod below;
mod harness;
mod lab_compare;
mod lab_grid;
mod labs;
mod line;
#[path = "../common/rights.rs"]
mod rights;
