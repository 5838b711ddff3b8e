//! `farpace kernel` in the kernel of this machine.
//!
//! Needs the feature `kernel`, root, and a kernel with BTF. Elsewhere these tests pass with a line on stderr
//! that says what is missing, and fail where `CI` is set. Only connections of this process are under the
//! controls: it moves to a control group of its own.

#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

mod classes;
mod connections;
mod ends;
mod harness;
mod paths;
