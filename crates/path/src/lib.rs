//! What is between hosts: links with queues, policers, delay, loss and other impairments, and the contract
//! ([`Element`]) that a link, a policer and a whole host share.
//!
//! Elements are sans-IO: packets and time come in, packets and a deadline come out. The lab and the live
//! driver run the same code. An element never has a connection (it may read and change headers, as
//! middleboxes do), never reads a clock, and never loses a packet without a count: the world checks the
//! account.
//!
//! Start reading at [`Element`]; then [`Link`] is the element that makes time pass. Elements with two ports
//! are a [`Duplex`] of one [`ElementDirection`] for each direction.

#![forbid(unsafe_code)]

mod ack_thinning;
mod bit_errors;
mod boundary_port;
mod burst_loss;
mod clock_jump;
mod corrupt;
mod delay;
mod delay_queue;
mod duplex;
mod duplicate;
mod element;
mod interrupts;
mod link;
mod loss;
mod managed_link;
mod meter;
mod middlebox;
mod mtu;
mod opportunities;
mod outage;
mod periods;
mod policer;
mod port_frames;
mod prefix;
mod processor;
mod queue;
mod queue_limit;
mod queue_peak;
mod reorder;
mod router;
mod schedule;
mod stall;
mod switch;
mod tcp_edit;
mod transmit_queue;
mod wait_meter;
pub mod world;

#[cfg(test)]
mod harness;
#[cfg(test)]
mod laws;

pub use ack_thinning::{AckThinning, AckThinningDirection};
pub use bit_errors::{BitErrors, BitErrorsDirection};
pub use boundary_port::BoundaryPort;
pub use burst_loss::{BurstLoss, BurstLossConfig, BurstLossDirection};
pub use clock_jump::{ClockField, ClockJump, ClockJumpDirection, Jump};
pub use corrupt::{Corrupt, CorruptDirection};
pub use delay::{Delay, DelayDirection, Jitter};
pub use duplex::{Duplex, ElementDirection};
pub use duplicate::{Duplicate, DuplicateDirection};
pub use element::{Cx, DropReason, Effects, Element, Inspection, Port};
pub use interrupts::{Interrupts, InterruptsConfig, InterruptsDirection};
pub use link::{Framing, Link, LinkConfig, LinkDirection, LinkError, LinkStats};
pub use loss::{Loss, LossDirection};
pub use managed_link::{ManagedLink, ManagedLinkDirection};
pub use meter::{Meter, MeterBin};
pub use middlebox::{Middlebox, MiddleboxConfig, MiddleboxDirection, StripOn};
pub use mtu::{Mtu, MtuChange, MtuDirection, MtuError};
pub use opportunities::{Opportunities, OpportunityError};
pub use outage::{Outage, OutageDirection};
pub use periods::{PeriodError, Periods};
pub use policer::{PolicedBytes, Policer, PolicerConfig, PolicerDirection, PolicerError, PolicerStats};
pub use port_frames::{PortFrames, ends_at_port};
pub use prefix::Prefix;
pub use processor::{Processor, ProcessorConfig, ProcessorWork};
pub use queue::{
    Backlog, CoDel, CoDelConfig, DropTail, FqCoDel, FqCoDelConfig, QueueDiscipline, QueueError, Red,
    RedConfig,
};
pub use queue_limit::QueueLimit;
pub use queue_peak::{QueuePeak, QueueReading};
pub use reorder::{Reorder, ReorderDirection};
pub use router::{Router, RouterError, Routes};
pub use schedule::{RateStep, Schedule, ScheduleError};
pub use stall::{MachineStall, MachineStallDirection};
pub use switch::{Hub, Switch};
pub use transmit_queue::TransmitQueue;
pub use wait_meter::WaitMeter;
