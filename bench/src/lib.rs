//! What the benchmarks measure: a transfer through the lab, and loss recovery with a fixed flight.
//!
//! `cargo bench -p farpace-bench` runs them; `bench/instructions` counts instructions with callgrind.

#![forbid(unsafe_code)]

mod flight;
mod transfer;

pub use flight::Flight;
pub use transfer::{Recording, Transfer, transfer};
