//! The quantities of farpace, each with its own type: instants and spans of time, rates, numbers of bytes and
//! packets, TCP sequence numbers, and named random streams.
//!
//! Nothing here reads a clock. Arithmetic never panics: counts and times saturate, and sequence numbers wrap
//! around (RFC 9293 §3.4). Every quantity is formatted and parsed with its unit (`"500 Mbit/s"`, `"16 MB"`,
//! `"10 ms"`).
//!
//! Start reading at [`Instant`].

#![forbid(unsafe_code)]

mod amount;
mod count;
mod format;
mod parse;
mod random;
mod rate;
mod seq;
mod time;

pub use amount::Amount;
pub use count::{ByteCount, Packets};
pub use format::{grouped, number};
pub use parse::{UnitError, exact_decimal};
pub use random::RandomStream;
pub use rate::{Rate, Serialiser};
pub use seq::Seq;
pub use time::{Instant, Span};
