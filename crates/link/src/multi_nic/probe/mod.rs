//! Measures the paths between two hosts with periodic probes: whether a path works, its delay, its late
//! frames and its rate.
//!
//! Data frames are not modified. All knowledge comes from probes, from counters at both ends, and from the
//! order in which TCP segments arrive.
//!
//! | concept | file |
//! |---|---|
//! | format of probes and replies | `message` |
//! | scheduling of probes; validation of replies | `prober` |
//! | one path: outstanding probes, liveness | `probed_path` |
//! | one-way delay and its variation | `delays` |
//! | rate of a path | `capacity`; before it is used, `train` |
//! | all estimates of a path | `estimator` |
//! | the other end: counters, replies | `responder` |

mod capacity;
mod delays;
mod estimator;
mod message;
mod probed_path;
mod prober;
mod responder;
mod train;

#[cfg(test)]
mod tests;

pub use estimator::PathEstimate;

pub use message::{MessageError, PathProbe, ProbeMessage, ProbeTraffic, ReorderCounts, Reply};
pub use prober::{IDLE_INTERVAL, MAX_PROBED, NotProbed, PathTo, Prober, Probing};
pub use responder::{InboundPathId, MAX_PATHS, Responder};
