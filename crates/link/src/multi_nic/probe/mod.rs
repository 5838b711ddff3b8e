//! What the ways between two machines are worth: each is asked again and again, and the answers tell whether it works, how
//! long frames are under way, how much of it comes too late, and what it carries.
//!
//! The frames of data say nothing of themselves: they are left as the stack made them. So everything is known from probes,
//! from what both ends count, and from the order in which segments of TCP come in.
//!
//! | concept | file |
//! |---|---|
//! | probe and reply as bytes | `message` |
//! | whose turn it is; replies that are none | `prober` |
//! | one way: what is outstanding, whether it works | `way` |
//! | how long frames are under way, and how sure that is | `delays` |
//! | what the way carries | `capacity`; before it is used, `train` |
//! | all that is said of a way | `estimator` |
//! | the other end: counting, answering | `responder` |

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

pub use message::{MessageError, PathProbe, Places, ProbeMessage, ProbeTraffic, Reply};
pub use prober::{IDLE, MAX_PROBED, NotProbed, PathTo, Prober, Probing};
pub use responder::{InboundPathId, MAX_PATHS, Responder};
