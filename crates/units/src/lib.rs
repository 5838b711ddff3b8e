//! The quantities farpace computes with, each its own type: instants and spans of time, rates, byte and
//! packet counts, TCP sequence numbers, and named random streams.
//!
//! Nothing here reads a clock. Arithmetic never panics: counts and times saturate, sequence numbers wrap
//! (RFC 9293 §3.4), so no peer and no scenario can crash a computation. Every quantity is written and read
//! with its unit (`"500 Mbit/s"`, `"16 MB"`, `"10 ms"`).
//!
//! Start reading at [`Instant`].

#![forbid(unsafe_code)]

mod amount;
mod count;
mod parse;
mod random;
mod rate;
mod seq;
mod time;

pub use amount::Amount;
pub use count::{ByteCount, Packets};
pub use parse::UnitError;
pub use random::RandomStream;
pub use rate::{Rate, Serialiser};
pub use seq::Seq;
pub use time::{Instant, Span};
