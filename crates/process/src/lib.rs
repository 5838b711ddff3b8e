//! The process of a command: signals that ask for its end, wall time, and the directory that it writes to.
//!
//! Start reading at [`interrupt`]; [`stopwatch`] is the only clock of the command, and [`outdir`] writes
//! complete files or none. [`exit_code`] says how another program ended. This crate never computes anything:
//! results do not depend on it.

#![forbid(unsafe_code)]

pub mod exit_code;
pub mod interrupt;
pub mod outdir;
pub mod stopwatch;
