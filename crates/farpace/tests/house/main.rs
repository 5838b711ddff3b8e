//! The laws of the workspace that no compiler checks. A file each: which crate may depend on which, where
//! unsafe code and clocks may be, how files look, how large the command is, which words and type names are
//! used, and that modules form no cycles.
//!
//! Some files hold a list of exceptions. A list only gets shorter: a check fails when an exception is no
//! longer needed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod cycles;
mod dependencies;
mod exceptions;
mod files;
mod names;
mod protection;
mod real_time;
mod size;
mod syntax;
mod unsafety;
mod words;
mod workspace;
