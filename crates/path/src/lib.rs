//! What lies between machines: links with queues, policers, delay, loss and other troubles, and the
//! contract ([`Element`]) that a link, a policer and a whole host share.
//!
//! Elements are sans-IO: packets and time come in, packets and a deadline come out. The lab and the live
//! event loop drive the same code. An element never has a connection (it may read and change headers, as
//! middleboxes do), never reads a clock, and never lets a packet vanish: the world keeps the account.
//!
//! Start reading at [`Element`]; then [`Link`] is the element that makes time pass. Elements with two ports
//! are a [`TwoWay`] of one [`Way`] for each direction.

#![forbid(unsafe_code)]

mod ack_thinning;
mod bit_errors;
mod burst_loss;
mod clock_jump;
mod corrupt;
mod delay;
mod door;
mod duplicate;
mod element;
mod hold;
mod interrupts;
mod link;
mod loss;
mod managed_link;
mod meter;
mod middlebox;
mod mtu;
mod outage;
mod policer;
mod port_frames;
mod prefix;
mod processor;
mod queue;
mod queue_limit;
mod reorder;
mod router;
mod schedule;
mod switch;
mod tcp_edit;
mod two_way;
pub mod world;

#[cfg(test)]
mod bed;
#[cfg(test)]
mod laws;

pub use ack_thinning::{AckThinning, AckThinningWay};
pub use bit_errors::{BitErrors, BitErrorsWay};
pub use burst_loss::{BurstLoss, BurstLossConfig, BurstLossWay};
pub use clock_jump::{ClockField, ClockJump, ClockJumpWay, Jump};
pub use corrupt::{Corrupt, CorruptWay};
pub use delay::{Delay, DelayWay, Jitter};
pub use door::Door;
pub use duplicate::{Duplicate, DuplicateWay};
pub use element::{Cx, DropReason, Effects, Element, Inspection, Port};
pub use interrupts::{Interrupts, InterruptsConfig, InterruptsWay};
pub use link::{Framing, Link, LinkError, LinkStats, LinkWay, LinkWayConfig};
pub use loss::{Loss, LossWay};
pub use managed_link::{ManagedLink, ManagedLinkWay};
pub use meter::{Meter, MeterBin};
pub use middlebox::{Middlebox, MiddleboxConfig, MiddleboxWay, StripOn};
pub use mtu::{Mtu, MtuChange, MtuError, MtuWay};
pub use outage::{Outage, OutageError, OutageWay};
pub use policer::{Counted, Policer, PolicerConfig, PolicerError, PolicerStats, PolicerWay};
pub use port_frames::{PortFrames, ends_at_port};
pub use prefix::Prefix;
pub use processor::{Processor, ProcessorConfig};
pub use queue::{
    Backlog, CoDel, CoDelConfig, DropTail, FqCoDel, FqCoDelConfig, QueueDiscipline, QueueError, Red,
    RedConfig,
};
pub use queue_limit::QueueLimit;
pub use reorder::{Reorder, ReorderWay};
pub use router::{Router, RouterError, Routes};
pub use schedule::{Schedule, ScheduleError, Step};
pub use switch::{Hub, Switch};
pub use two_way::{TwoWay, Way};
