//! Files from here to there: `farpace send`, `recv` and `copy`.

mod by_scp;
mod control;
pub mod copy;
mod explain;
mod identity;
mod options;
mod outcome;
mod progress;
pub mod recv;
pub mod send;
mod server;
mod stack;
mod target;

pub use options::{SendingOptions, bytes};
