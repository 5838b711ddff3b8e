//! Precise pacing: each class of packets leaves at its own rate, evenly spaced, exact to the byte.
//!
//! A link that is never idle is a clock: a frame of n bytes takes exactly the time of n bytes. A
//! [`Scheduler`] therefore counts time in bytes on the wire, and fills idle time with *gap frames* that the
//! next hop discards (Takano et al., PSPacer). Where gap frames are not possible, it asks to be called again
//! by a timer.
//!
//! | concept | file |
//! |---|---|
//! | the contract of schedulers | this one |
//! | the interval between two frames of a class, without drift | `interval` |
//! | a clock in bytes on the wire | `link_clock` |
//! | classes: queues, limits, counters, admission control | `classes`, `admission` |
//! | the schedulers | `edf`, `psp`, `token_bucket`, `fq`, `fifo` |
//! | the class of a packet | `classifier` |
//! | gap frames | `gap_frame` |
//! | the configuration, its errors, its files | `config`, `filter`, `protocol`, `config_error`, `file` |
//! | intervals and capacity that follow from it | `plan`, `max_rate` |
//! | the configuration as `tc` commands | [`tc`] |
//! | classes of single connections | `flows` |
//! | all of it on one device | `pacer` |
//! | burstiness of a flow | `burstiness` |
//! | a scheduler under full load | `saturate` |
//! | random sets of classes | `class_sets` |
//! | tests of the contract | `laws` |

mod admission;
mod burstiness;
mod class_sets;
mod classes;
mod classifier;
mod config;
mod config_error;
mod edf;
mod fifo;
mod file;
mod filter;
mod flows;
mod fq;
mod gap_frame;
mod interval;
#[cfg(test)]
mod laws;
mod link_clock;
mod max_rate;
mod pacer;
mod plan;
mod prefetch;
mod protocol;
mod psp;
mod saturate;
pub mod tc;
mod token_bucket;

pub use burstiness::Burstiness;
pub use class_sets::{Before, ClassSet, burstiness};
pub use classes::{ClassId, ClassKind, ClassSpec, ClassStats, MAX_CLASSES};
pub use classifier::{Classifier, ClassifierKey, MAX_FILTERS, MAX_SHAPES};
pub use config::{ClassConfig, ClassRate, Gaps, PacingConfig, SchedulerKind};
pub use config_error::ConfigError;
pub use edf::Edf;
pub use fifo::FifoScheduler;
pub use file::{MAX_TEXT, has_comments};
pub use filter::ClassFilter;
pub use flows::MAX_FLOWS;
pub use fq::Fq;
pub use gap_frame::{GapFrameKind, GapFrames};
pub use interval::PacingInterval;
pub use link_clock::LinkClock;
pub use pacer::{NamedStats, Pacer};
pub use plan::{ClassPlan, PacingPlan, PlannedRate};
pub use protocol::Protocol;
pub use psp::Psp;
pub use saturate::{SaturatingFrame, saturate, saturate_in_time};
pub use token_bucket::TokenBucket;

use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate};
use farpace_wire::Packet;
use thiserror::Error;

/// Length of the frame check sequence, which frames in memory do not have.
pub const FCS: ByteCount = ByteCount::new(4);
/// Preamble with start delimiter, and inter-frame gap: the overhead of a frame beyond layer 2 (IEEE 802.3
/// §3.1.1, §4.4.2).
pub const PREAMBLE_AND_GAP: ByteCount = ByteCount::new(20);
/// Minimum frame length, with check sequence.
pub const MIN_FRAME: ByteCount = ByteCount::new(64);
/// Minimum gap that a gap frame can fill: a minimum frame with preamble and inter-frame gap.
pub const MIN_GAP: ByteCount = ByteCount::new(84);

/// Layer 2 length of a frame of `len` bytes in memory: padded, with check sequence. Rates count these bytes.
pub fn layer_2(len: ByteCount) -> ByteCount {
    (len + FCS).max(MIN_FRAME)
}

/// Wire length of a frame of `len` bytes in memory: layer 2, preamble and inter-frame gap.
pub fn wire_len(len: ByteCount) -> ByteCount {
    layer_2(len) + PREAMBLE_AND_GAP
}

/// A frame that can be paced.
pub trait PacedFrame {
    /// Length in memory: the frame without its check sequence.
    fn len(&self) -> ByteCount;
    /// Always false: a frame has at least a header.
    fn is_empty(&self) -> bool {
        false
    }
    /// The layer 2 rate that its connection requests, for classes that [follow](ClassKind::Follows).
    fn rate_hint(&self) -> Option<Rate> {
        None
    }
}

impl PacedFrame for Packet {
    fn len(&self) -> ByteCount {
        Packet::len(self)
    }
    fn rate_hint(&self) -> Option<Rate> {
        self.pacing_rate()
    }
}

/// What the caller of a [`Scheduler`] has to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<P> {
    /// Send this packet.
    Packet {
        /// Its class.
        class: ClassId,
        /// The frame.
        packet: P,
    },
    /// Send one gap frame of this wire length, including preamble, check sequence and inter-frame gap: at
    /// least [`MIN_GAP`], at most the wire length of a frame of the MTU.
    Gap(ByteCount),
    /// Send nothing until then. Packets are queued.
    Wait(Instant),
    /// Nothing is queued.
    Empty,
}

/// Selects the next frame and its time.
///
/// The contract:
/// * [`dequeue`](Scheduler::dequeue) is called whenever the link is idle: after the previous frame, packet or
///   gap, has been sent; after [`Next::Wait`] at its time, or earlier if a packet has arrived; after
///   [`Next::Empty`] when a packet has arrived. `now` never decreases. The caller sends what it returns at
///   once.
/// * Every accepted packet is returned exactly once, by `dequeue` or by
///   [`remove_class`](Scheduler::remove_class).
/// * It returns [`Next::Empty`] if and only if nothing is queued: an idle link carries no gap frames.
/// * Packets of a class stay in order.
pub trait Scheduler<P: PacedFrame> {
    /// Adds a class.
    ///
    /// # Errors
    /// A rate of zero, rates that exceed the link, a zero queue limit, or too many classes.
    fn add_class(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError>;
    /// Sets the rate of a paced class, from its next frame on. If the class is waiting, the rest of the wait
    /// is scaled.
    ///
    /// # Errors
    /// # Errors
    /// The class does not exist or is not paced, the rate is zero, or rates exceed the link. Then nothing
    /// changes.
    fn set_rate(&mut self, class: ClassId, rate: Rate) -> Result<(), PacingError>;
    /// Removes a class. Returns its queued packets in order.
    ///
    /// # Errors
    /// The class does not exist.
    fn remove_class(&mut self, class: ClassId) -> Result<Vec<P>, PacingError>;
    /// Queues a packet.
    ///
    /// # Errors
    /// The packet and the reason for the refusal.
    fn enqueue(&mut self, now: Instant, class: ClassId, packet: P) -> Result<(), Refused<P>>;
    /// What to send now. The link must be idle.
    fn dequeue(&mut self, now: Instant) -> Next<P>;
    /// The queued packets.
    fn backlog(&self) -> Backlog;
    /// Counters of a class; none if it does not exist.
    fn stats(&self, class: ClassId) -> Option<ClassStats>;
}

/// A refused packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<P> {
    /// The packet.
    pub packet: P,
    /// The reason.
    pub why: EnqueueRefusal,
}

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueRefusal {
    /// The queue of its class is full.
    Full,
    /// The class does not exist.
    UnknownClass,
    /// The packet exceeds the MTU.
    TooLong,
}

/// Why a scheduler cannot be configured as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacingError {
    /// A rate of zero.
    #[error("the rate of a class must be above 0 bit/s")]
    ZeroRate,
    /// The rate of the link is out of range.
    #[error("the rate of the link must be above 0 bit/s and at most {}", LinkClock::MAX_RATE)]
    LinkRate,
    /// The MTU is out of range.
    #[error("the MTU must be 68 to 65535 B, not {0}")]
    Mtu(ByteCount),
    /// The classes need more than the link carries, with framing overhead.
    #[error(
        "the classes need {wanted} on a link of {link_rate}: the sum of rates for full frames, with 20 B of \
         overhead for each frame beyond layer 2"
    )]
    AboveLinkRate {
        /// The sum of rates on the wire.
        wanted: Rate,
        /// The rate of the link.
        link_rate: Rate,
    },
    /// The sum of rates exceeds the rate of the link, without framing overhead, which [`Psp`] does not count.
    #[error("the rates of the classes are {wanted} together, on a link of {link_rate}")]
    RatesAboveLinkRate {
        /// The sum of rates.
        wanted: Rate,
        /// The rate of the link.
        link_rate: Rate,
    },
    /// No such class.
    #[error("there is no class {}", .0.index())]
    UnknownClass(ClassId),
    /// The class is not paced.
    #[error("class {} has no rate of its own", .0.index())]
    NotPaced(ClassId),
    /// A queue limit of zero.
    #[error("the queue of a class must hold at least one packet")]
    ZeroLimit,
    /// More than [`MAX_CLASSES`].
    #[error("a device has at most {MAX_CLASSES} classes")]
    TooManyClasses,
    /// A parameter of the scheduler is out of range.
    #[error("{0}")]
    Parameter(&'static str),
}
