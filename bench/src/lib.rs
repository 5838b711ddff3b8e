//! What the benchmarks measure: a transfer through the lab, two connections back to back, loss recovery with
//! a fixed flight, pacing of many classes, and sending by several NICs.
//!
//! Start reading at [`Transfer`] (what a run of the lab costs) or [`Pair`] (the engine alone); `benches/` has
//! one file for each. It never measures what nobody else can: every benchmark drives public parts, as a
//! program would.
//!
//! `cargo bench -p farpace-bench` runs them; `bench/check.py` counts their instructions with callgrind.

#![forbid(unsafe_code)]

mod flight;
mod nics;
mod pacing;
mod pair;
mod server;
mod smol;
mod supers;
mod transfer;

pub use flight::Flight;
pub use nics::NicsLoad;
pub use pacing::{LINE, MTU, PacingLoad};
pub use pair::Pair;
pub use server::Server;
pub use smol::{SMOL_SEGMENT, Smol};
pub use supers::Supers;
pub use transfer::{Recording, Transfer, transfer};
