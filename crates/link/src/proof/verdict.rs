//! The conclusion about a flow.

use super::{MIN_PACKETS, PRECISE_FRAMES};
use farpace_units::{ByteCount, Span};
use std::fmt;

/// Whether a flow is paced precisely: its queue at a bottleneck of its rate never exceeds two full frames
/// (paper §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofVerdict {
    /// It is paced precisely.
    Precise,
    /// It is not.
    NotPrecise,
    /// The capture allows no conclusion.
    CannotTell(Doubt),
}

/// Why a capture allows no conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Fewer than [`MIN_PACKETS`] packets.
    FewPackets(u64),
    /// All packets have the same time.
    NoDuration,
    /// The flow sends more than a full frame in a tick of the clock.
    CoarseClock {
        /// The tick.
        tick: Span,
        /// Bytes that the flow sends per tick.
        bytes: ByteCount,
    },
    /// The queue exceeds two frames by less than the clock's error.
    WithinClockError,
    /// Frames exceed the MTU of the link: they were captured before segmentation or after receive offload.
    SuperSegments {
        /// Length of the longest frame in memory.
        longest: ByteCount,
        /// Maximum length on the link.
        limit: ByteCount,
    },
    /// Frames exceed the standard length, and the MTU of the link is unknown.
    LongFrames(ByteCount),
}

impl Doubt {
    /// The name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Doubt::FewPackets(_) => "few_packets",
            Doubt::NoDuration => "no_duration",
            Doubt::CoarseClock { .. } => "coarse_clock",
            Doubt::WithinClockError => "within_clock_error",
            Doubt::SuperSegments { .. } => "super_segments",
            Doubt::LongFrames(_) => "long_frames",
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::FewPackets(1) => write!(f, "only 1 packet, at least {MIN_PACKETS} are needed"),
            Doubt::FewPackets(n) => write!(f, "only {n} packets, at least {MIN_PACKETS} are needed"),
            Doubt::NoDuration => f.write_str("all packets have the same time"),
            Doubt::CoarseClock { tick, bytes } => {
                write!(f, "the clock is too coarse: the flow sends {bytes} in one tick of {tick}")
            }
            Doubt::WithinClockError => {
                write!(f, "the queue exceeds {PRECISE_FRAMES} frames by less than the clock's error")
            }
            Doubt::SuperSegments { longest, limit } => write!(
                f,
                "frames of up to {longest}, but the link takes {limit}: captured above segmentation offload \
                 (or after the receiver joined frames), so the wire was not seen"
            ),
            Doubt::LongFrames(longest) => write!(
                f,
                "frames of up to {longest}: jumbo frames, or captured above segmentation offload; --mtu \
                 selects one"
            ),
        }
    }
}

impl ProofVerdict {
    /// The name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            ProofVerdict::Precise => "precise",
            ProofVerdict::NotPrecise => "not_precise",
            ProofVerdict::CannotTell(_) => "cannot_tell",
        }
    }
    /// The verdict for a maximum `queue` and full frames of `full` bytes, with a measurement error of
    /// `error`.
    pub(super) fn of(queue: ByteCount, full: ByteCount, error: ByteCount) -> Self {
        let allowed = ByteCount::new(full.get().saturating_mul(PRECISE_FRAMES));
        match () {
            () if queue <= allowed => ProofVerdict::Precise,
            () if queue <= allowed + error => ProofVerdict::CannotTell(Doubt::WithinClockError),
            () => ProofVerdict::NotPrecise,
        }
    }
}

impl fmt::Display for ProofVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProofVerdict::Precise => f.write_str("precise"),
            ProofVerdict::NotPrecise => f.write_str("not precise"),
            ProofVerdict::CannotTell(why) => write!(f, "cannot tell: {why}"),
        }
    }
}
