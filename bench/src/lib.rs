//! What the benchmarks measure: a transfer through the lab, two connections back to back, loss recovery with
//! a fixed flight, and pacing of many classes.
//!
//! `cargo bench -p farpace-bench` runs them; `bench/instructions` counts instructions with callgrind.

#![forbid(unsafe_code)]

mod flight;
mod pacing;
mod pair;
mod server;
mod transfer;

pub use flight::Flight;
pub use pacing::{LINE, MTU, PacingLoad};
pub use pair::Pair;
pub use server::Server;
pub use transfer::{Recording, Transfer, transfer};
