//! When the receiver acknowledges: at once, or after a while.

mod linux26;

use crate::config::DelayedAck;
use farpace_trace::Cause;
use farpace_units::{Instant, Span};

/// Longest wait of the RFC 5681 form; the RFC allows 500 ms, today's stacks take 40.
const RFC5681_DELAY: Span = Span::from_millis(40);

/// A decision about one arrival of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Acknowledge now.
    Now(Cause),
    /// Not later than this.
    Hold(Instant),
}

/// What an arrival of data looked like to the receiver.
#[derive(Clone, Copy, Debug)]
pub struct DataArrival {
    /// When.
    pub now: Instant,
    /// Payload bytes.
    pub len: u32,
    /// It was out of order, or filled a hole, or there are holes left.
    pub disorder: bool,
    /// It was all there already.
    pub duplicate: bool,
    /// Bytes received and not acknowledged, this segment included.
    pub unacknowledged: u32,
    /// Receive window in bytes.
    pub window: u32,
    /// Our own retransmission timeout and smoothed round trip.
    pub rto: Span,
    /// Smoothed round-trip time; zero if unknown.
    pub srtt: Span,
}

/// The receiver's acknowledgment policy.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    kind: DelayedAck,
    linux26: linux26::QuickAck,
    /// Largest payload seen: what "a full-size segment" means (RFC 5681 §4.2).
    full_size: u32,
    /// Segments for each ACK that the peer asks for.
    rate: Option<u32>,
}

impl AckPolicy {
    /// The policy that was chosen.
    pub fn new(kind: DelayedAck) -> Self {
        AckPolicy { kind, linux26: linux26::QuickAck::default(), full_size: 0, rate: None }
    }

    /// Data has arrived: when is it acknowledged?
    pub fn on_data(&mut self, a: &DataArrival) -> Decision {
        self.full_size = self.full_size.max(a.len);
        let quick = match self.kind {
            DelayedAck::Linux26 => self.linux26.on_data(a, self.full_size),
            DelayedAck::Rfc5681 | DelayedAck::Linux | DelayedAck::Bsd | DelayedAck::Stretch => false,
            DelayedAck::None => true,
        };
        if a.disorder || a.duplicate {
            return Decision::Now(Cause::AckOutOfOrder);
        }
        // RFC 5681 §4.2: for every second full-size segment; Linux 2.6: for more than one.
        let due = match self.kind {
            DelayedAck::Linux26 => a.unacknowledged > self.full_size,
            _ => a.unacknowledged >= 2 * self.full_size,
        };
        if quick || due {
            return Decision::Now(Cause::AckNow);
        }
        let delay = match self.kind {
            DelayedAck::Linux26 => self.linux26.delay(a.srtt),
            _ => RFC5681_DELAY,
        };
        Decision::Hold(a.now + delay)
    }

    /// The peer asks for one ACK for so many segments (TARR).
    pub fn set_rate(&mut self, segments: u32) {
        self.rate = Some(segments.max(1));
    }

    /// Largest payload of a segment so far, in bytes.
    pub fn full_size(&self) -> u32 {
        self.full_size
    }

    /// An acknowledgment went out, alone or with data.
    pub fn on_ack_sent(&mut self) {
        self.linux26.on_ack_sent();
    }
}
