//! Frames that were lost on one of the ways, sent again before TCP knows.
//!
//! A receiver that puts segments in order sees a hole when every way has brought something from behind it. It asks for what is
//! missing; the sender has kept copies of what it sent lately, and sends them again, by another way if there is one. TCP sees a
//! short delay in place of a loss, and does not take noise on one way for congestion on all of them.
//!
//! Congestion is still told: what a way carries is found by probes, the queue stands in the sender's own machine, and what is
//! dropped there was never sent, so that nobody has a copy of it.
//!
//! | concept | file |
//! |---|---|
//! | questions and refusals as bytes | `message` |
//! | what was sent lately | `copies` |
//!
//! Holes are seen by the [`Resequencer`](super::Resequencer).

mod message;
mod retransmit_cache;

pub use message::{MAX_HOLES, Missing, MissingError, MissingRange};
pub use retransmit_cache::{CachedFrame, RetransmitCache};
