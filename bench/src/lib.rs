//! What the benchmarks measure: a transfer through the lab, two connections back to back, and loss recovery with
//! a fixed flight.
//!
//! `cargo bench -p farpace-bench` runs them; `bench/instructions` counts instructions with callgrind.

#![forbid(unsafe_code)]

mod flight;
mod pair;
mod server;
mod transfer;

pub use flight::Flight;
pub use pair::Pair;
pub use server::Server;
pub use transfer::{Recording, Transfer, transfer};
