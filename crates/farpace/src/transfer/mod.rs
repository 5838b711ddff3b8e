//! Files from here to there: `farpace send`, `recv` and `copy`.

mod by_scp;
mod control;
pub mod copy;
mod explain;
mod options;
mod outcome;
mod progress;
pub mod recv;
pub mod send;
mod stack;
mod target;

pub use options::Sending;
