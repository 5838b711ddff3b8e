//! Files to another host: `farpace send`, `recv` and `copy`. The transports are those of
//! [`farpace_tunnel`], or, where it is asked for by `--insecure`, connections in the clear
//! (`clear`).

mod by_scp;
mod clear;
mod control;
pub mod copy;
mod options;
mod outcome;
mod progress;
pub mod recv;
pub mod send;

pub use control::greet;
pub use options::{SendingOptions, bytes, rate, seconds};
