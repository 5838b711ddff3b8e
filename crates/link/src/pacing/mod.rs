//! Precise pacing: each class of packets leaves at its own rate, evenly, to the byte.
//!
//! A line that is never idle is a clock: a frame of n bytes takes exactly n bytes of time. A [`Scheduler`] therefore
//! counts time in bytes of the line, and fills what must stay empty with *gap frames* that the next machine throws away
//! (Takano et al., PSPacer). Where nobody may see gap frames, it asks to be called again by a timer instead.
//!
//! | concept | file |
//! |---|---|
//! | what every scheduler promises | this one |
//! | the time between two frames of a class, without drift | `interval` |
//! | bytes of the line as time | `line_clock` |
//! | classes: queues, limits, counters, admission | `classes`, `admission` |
//! | the schedulers | `edf`, `psp`, `token_bucket`, `fq`, `fifo` |
//! | which packet belongs to which class | `classifier` |
//! | frames that keep the line busy | `gap_frame` |
//! | what people write | `config`, `protocol`, `file` |
//! | what it means, worked out | `plan` |
//! | the same in the words of `tc` | [`tc`] |
//! | classes of single connections | `flows` |
//! | all of it on one device | `pacer` |
//! | how bursty a flow is | `burstiness` |
//! | a scheduler whose classes always have packets | `saturate` |
//! | random classes to try that with | `class_sets` |
//! | what all schedulers are tried with | `laws` |

mod admission;
mod burstiness;
mod class_sets;
mod classes;
mod classifier;
mod config;
mod edf;
mod fifo;
mod file;
mod flows;
mod fq;
mod gap_frame;
mod interval;
#[cfg(test)]
mod laws;
mod line_clock;
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
pub use classifier::{Classifier, MAX_FILTERS, MAX_SHAPES};
pub use config::{ClassConfig, ClassFilter, ClassRate, ConfigError, Gaps, PacingConfig, SchedulerKind};
pub use edf::Edf;
pub use fifo::FifoScheduler;
pub use file::{MAX_TEXT, has_comments};
pub use flows::MAX_FLOWS;
pub use fq::Fq;
pub use gap_frame::{GapFrameKind, GapFrames};
pub use interval::PacingInterval;
pub use line_clock::LineClock;
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

/// The frame check sequence, which no frame in memory has.
pub const FCS: ByteCount = ByteCount::new(4);
/// Preamble with start delimiter, and the gap between frames: what a frame takes on the line beyond layer 2
/// (IEEE 802.3 §3.1.1, §4.4.2).
pub const PREAMBLE_AND_GAP: ByteCount = ByteCount::new(20);
/// The shortest frame, with its check sequence.
pub const SHORTEST_FRAME: ByteCount = ByteCount::new(64);
/// The shortest gap that a gap frame makes: a shortest frame and what surrounds it.
pub const SHORTEST_GAP: ByteCount = ByteCount::new(84);

/// Bytes of layer 2 of a frame that has `len` bytes in memory: padded, and with its check sequence. Rates count these.
pub fn layer_2(len: ByteCount) -> ByteCount {
    (len + FCS).max(SHORTEST_FRAME)
}

/// Bytes of the line that a frame of `len` bytes in memory takes.
pub fn on_the_line(len: ByteCount) -> ByteCount {
    layer_2(len) + PREAMBLE_AND_GAP
}

/// Something that can be paced.
pub trait PacedFrame {
    /// Bytes in memory: the frame without its check sequence.
    fn len(&self) -> ByteCount;
    /// Never: a frame has at least a header.
    fn is_empty(&self) -> bool {
        false
    }
    /// The rate at which its connection would like to send, of layer 2; for classes that [follow](ClassKind::Follows).
    fn rate_hint(&self) -> Option<Rate> {
        None
    }
}

impl PacedFrame for Packet {
    fn len(&self) -> ByteCount {
        Packet::len(self)
    }
    fn rate_hint(&self) -> Option<Rate> {
        self.wanted_rate()
    }
}

/// What a [`Scheduler`] wants done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<P> {
    /// Send this.
    Packet {
        /// Whose it is.
        class: ClassId,
        /// The frame.
        packet: P,
    },
    /// Keep the line busy for so many bytes with one gap frame, preamble, check sequence and inter-frame gap included:
    /// at least [`SHORTEST_GAP`], at most what a frame of the MTU takes.
    Gap(ByteCount),
    /// Nothing until then; packets are waiting.
    Wait(Instant),
    /// Nothing is queued.
    Empty,
}

/// Decides which frame leaves next, and when.
///
/// The contract:
/// * [`dequeue`](Scheduler::dequeue) is called whenever the line is free: after the frame that it gave last, packet or
///   gap, has left; after [`Next::Wait`] at the time it names, or earlier if a packet has come; after [`Next::Empty`]
///   when a packet has come. `now` never goes back. What it says to send is sent at once.
/// * Every packet that was accepted is given back once: by `dequeue` or by [`remove_class`](Scheduler::remove_class).
/// * It is [`Next::Empty`] if and only if nothing is queued: an idle line carries no gap frames.
/// * Packets of one class keep their order.
pub trait Scheduler<P: PacedFrame> {
    /// One more class.
    ///
    /// # Errors
    /// A rate of zero, more than the line carries, or too many classes.
    fn add_class(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError>;
    /// A paced class gets another rate, from its next frame on; if it is waiting, it waits for the part of its interval
    /// that is left, scaled.
    ///
    /// # Errors
    /// No such class, not a paced one, a rate of zero, or more than the line carries: nothing has changed then.
    fn set_rate(&mut self, class: ClassId, rate: Rate) -> Result<(), PacingError>;
    /// Ends a class. What it had queued comes back, in order.
    ///
    /// # Errors
    /// No such class.
    fn remove_class(&mut self, class: ClassId) -> Result<Vec<P>, PacingError>;
    /// Queues a packet.
    ///
    /// # Errors
    /// The packet, with what was wrong.
    fn enqueue(&mut self, now: Instant, class: ClassId, packet: P) -> Result<(), Refused<P>>;
    /// What to do with the line, which is free now.
    fn dequeue(&mut self, now: Instant) -> Next<P>;
    /// What waits.
    fn backlog(&self) -> Backlog;
    /// Counters of a class; none if there is no such class.
    fn stats(&self, class: ClassId) -> Option<ClassStats>;
}

/// A packet that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<P> {
    /// It.
    pub packet: P,
    /// Why.
    pub why: EnqueueRefusal,
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueRefusal {
    /// The queue of its class is full.
    Full,
    /// There is no such class.
    UnknownClass,
    /// It is longer than the MTU allows.
    TooLong,
}

/// Why a device cannot be paced like that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacingError {
    /// Nothing would ever leave.
    #[error("the rate of a class must be above 0 bit/s")]
    ZeroRate,
    /// Nothing would ever leave.
    #[error("the rate of the line must be above 0 bit/s and at most {}", LineClock::FASTEST)]
    Line,
    /// No frame fits.
    #[error("the MTU must be 68 to 65535 B, not {0}")]
    Mtu(ByteCount),
    /// More than the line carries, with what surrounds frames.
    #[error(
        "the classes would take {wanted} of a line of {line}: full frames of all rates together, with the 20 B of the \
         line that each frame takes beyond layer 2"
    )]
    AboveLine {
        /// All rates together, as bits of the line.
        wanted: Rate,
        /// The line.
        line: Rate,
    },
    /// More than the line carries, even without what surrounds frames, which [`Psp`] does not count.
    #[error("the rates of the classes are {wanted} together, on a line of {line}")]
    RatesAboveLine {
        /// All rates together.
        wanted: Rate,
        /// The line.
        line: Rate,
    },
    /// No such class.
    #[error("there is no class {}", .0.index())]
    UnknownClass(ClassId),
    /// The class has no rate of its own.
    #[error("class {} has no rate of its own", .0.index())]
    NotPaced(ClassId),
    /// A queue that holds nothing.
    #[error("the queue of a class must hold at least one packet")]
    ZeroLimit,
    /// More than [`MAX_CLASSES`].
    #[error("a device has at most {MAX_CLASSES} classes")]
    TooManyClasses,
    /// A constant of the scheduler that makes no sense.
    #[error("{0}")]
    Parameter(&'static str),
}
