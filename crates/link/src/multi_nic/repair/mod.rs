//! Retransmits frames that a path has lost, before TCP notices.
//!
//! A receiver that puts segments in order detects a hole when every path has delivered a segment behind it.
//! It sends a repair request. The sender has a cache of recent frames, and retransmits the missing ones, on
//! another path if there is one. TCP sees a short delay instead of a loss, and does not treat random loss
//! on one path as congestion on all.
//!
//! Congestion is still signalled: probes measure the rate of each path, the queue is in the sending host,
//! and what is dropped there was never sent, so it is not in the cache.
//!
//! | concept | file |
//! |---|---|
//! | format of requests and refusals | `message` |
//! | recently sent frames | `retransmit_cache` |
//!
//! The [`Resequencer`](super::Resequencer) detects holes.

mod message;
mod retransmit_cache;

pub use message::{MAX_HOLES, MissingRange, RepairMessage, RepairMessageError};
pub use retransmit_cache::{CachedFrame, RetransmitCache};
