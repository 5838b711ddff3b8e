//! Losses: segments that had to be sent again.

use farpace_units::{Instant, Span};

/// Losses of one direction that are kept. Beyond them every second one goes, again and again.
pub const MAX_LOSSES: usize = 4_096;

/// How a segment came to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// By duplicate ACKs, SACK or RACK.
    Fast,
    /// By the retransmission timer, or after it.
    Timeout,
    /// By a tail loss probe.
    Probe,
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug)]
pub struct FlowLoss {
    pub(super) id: u64,
    /// When it was sent first; if it was lost before the capture point, when the hole was seen.
    pub sent: Instant,
    /// If it was lost before the capture point, when the data before the hole passed; else as `sent`.
    pub before: Instant,
    /// The frame of the first transmission; if it was lost before the capture point, that which showed the
    /// hole.
    pub frame: u64,
    /// When it was sent again.
    pub resent: Instant,
    /// The frame in which it was sent again.
    pub resent_frame: u64,
    /// Its first byte, counted from the start of the stream.
    pub offset: u64,
    /// Its length.
    pub len: u32,
    /// It was lost before the capture point.
    pub upstream: bool,
    /// How it came to be sent again.
    pub trigger: Trigger,
    /// It had arrived: it was sent again needlessly.
    pub spurious: bool,
    /// Transmissions that were lost, seen so far.
    pub times: u32,
    /// Delay in queues when it was sent, as packets around it had it.
    pub queued: Span,
    /// The lesser of the two newest round trips behind the capture point of what was sent before it; none if
    /// it was lost before that point, or if too few are known.
    pub far: Option<Span>,
    /// Packets sent back to back before it; 255 for more.
    pub burst: u8,
    /// Bytes in flight when it was sent.
    pub flight: u32,
    /// Data that had passed the capture point before it.
    pub passed: u64,
    /// Time since the sender had last sent before it sent this again.
    pub silence: Span,
    /// Data above it had been SACKed.
    pub sacked_above: bool,
    /// It was the last of what had been sent.
    pub tail: bool,
    /// Its retransmission was lost although data sent after it was SACKed before the timer fired.
    pub overlooked: bool,
    /// It was a retransmission itself.
    pub copy: bool,
}

/// All losses of a direction.
#[derive(Debug, Default)]
pub struct Losses {
    kept: Vec<FlowLoss>,
    next: u64,
    stride: u64,
}

impl Losses {
    /// Memory on the heap, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.kept.capacity() * size_of::<FlowLoss>()
    }

    /// Nothing follows: room for more goes.
    pub(super) fn shrink(&mut self) {
        self.kept.shrink_to_fit();
    }

    /// Those that are kept, in the order of their retransmissions.
    pub fn kept(&self) -> &[FlowLoss] {
        &self.kept
    }

    /// How many losses each kept one stands for.
    pub fn stride(&self) -> u64 {
        self.stride.max(1)
    }

    /// Adds one; its number.
    pub(super) fn add(&mut self, mut loss: FlowLoss) -> u64 {
        self.next += 1;
        loss.id = self.next;
        if !self.next.is_multiple_of(self.stride()) {
            return self.next;
        }
        if self.kept.len() >= MAX_LOSSES {
            self.stride = self.stride() * 2;
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
        }
        self.kept.push(loss);
        self.next
    }

    /// The loss with a number, if it is kept.
    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut FlowLoss> {
        let at = self.kept.binary_search_by_key(&id, |loss| loss.id).ok()?;
        self.kept.get_mut(at)
    }
}

/// Points of a transfer: data that passed, and when.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// When.
    pub time: Instant,
    /// Its frame.
    pub frame: u64,
    /// Data that had passed the capture point before.
    pub passed: u64,
    /// Packets sent back to back before.
    pub burst: u8,
    /// Delay in queues.
    pub queued: Span,
    /// Payload.
    pub len: u32,
    /// Its TSval (RFC 7323).
    pub tsval: Option<u32>,
}

/// Points kept.
pub const MAX_PASSES: usize = 2_048;

/// A thinned-out list of points.
#[derive(Debug, Default)]
pub struct Passes {
    kept: Vec<Pass>,
    seen: u64,
    stride: u64,
}

impl Passes {
    /// Memory on the heap, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.kept.capacity() * size_of::<Pass>()
    }

    /// Nothing follows: room for more goes.
    pub(super) fn shrink(&mut self) {
        self.kept.shrink_to_fit();
    }

    /// Those kept, in order of time.
    pub fn kept(&self) -> &[Pass] {
        &self.kept
    }

    pub(super) fn add(&mut self, pass: Pass) {
        let stride = self.stride.max(1);
        self.seen += 1;
        if !self.seen.is_multiple_of(stride) {
            return;
        }
        if self.kept.len() >= MAX_PASSES {
            self.stride = stride * 2;
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
        }
        self.kept.push(pass);
    }
}
