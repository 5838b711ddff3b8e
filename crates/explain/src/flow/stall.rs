//! Stalls: stretches in which the sender sent nothing for longer than two round trips.

use super::timeline::Wait;
use farpace_units::{Instant, Span};

/// Stalls of one direction that are kept: the longest.
pub const MAX_STALLS: usize = 256;

/// A stretch without data.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// The last segment before it.
    pub start: Instant,
    /// The first after it.
    pub end: Instant,
    /// Frame of the last segment before it.
    pub first_frame: u64,
    /// Frame of the first after it.
    pub last_frame: u64,
    /// What the sender waited for during most of it.
    pub wait: Wait,
    /// Bytes outstanding meanwhile.
    pub outstanding: u64,
    /// The round trip as it was.
    pub round: Span,
    /// Of these, SACKed.
    pub sacked: u64,
    /// Ranges outstanding: segments, or super-segments.
    pub segments: u32,
    /// How often the oldest outstanding segment had been sent before.
    pub head_sent: u32,
    /// The segment that ended it was sent again needlessly.
    pub spurious: bool,
    /// An ACK or data of the other side passed during the stall.
    pub heard: bool,
    /// Data sent after the last transmission of the oldest segment had been SACKed: its loss could have
    /// been known.
    pub overlooked: bool,
    /// Number of the loss that ended it; 0 if none did.
    pub(super) loss: u64,
    /// The segment that ended it was the last of what had been sent.
    pub tail: bool,
    /// Packets that were sent in it and lost before the capture point, where nothing was outstanding.
    pub unseen: u16,
    /// First byte of the segment that ended it.
    pub offset: u64,
    /// ACKs of nothing but data that was sent before it, and not again, that came after it.
    pub late_acks: u32,
    /// Length of the segment that ended it.
    pub len: u32,
    /// The retransmission that ended it filled a hole that lay before the capture point.
    pub upstream: bool,
}

impl Stall {
    /// How long it lasted.
    pub fn duration(&self) -> Span {
        self.end.since(self.start)
    }
}

/// The longest stalls of a direction.
#[derive(Debug, Default)]
pub struct Stalls {
    kept: Vec<Stall>,
    /// All stalls.
    pub count: u64,
}

impl Stalls {
    /// Memory on the heap, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.kept.capacity() * size_of::<Stall>()
    }

    /// Nothing follows: room for more goes.
    pub(super) fn shrink(&mut self) {
        self.kept.shrink_to_fit();
    }

    /// Those kept, in order of time.
    pub fn kept(&self) -> &[Stall] {
        &self.kept
    }

    pub(super) fn add(&mut self, stall: Stall) {
        self.count += 1;
        if self.kept.len() >= MAX_STALLS {
            let shortest = self.kept.iter().enumerate().min_by_key(|(_, s)| s.duration());
            let Some((at, least)) = shortest.map(|(at, s)| (at, s.duration())) else { return };
            if least >= stall.duration() {
                return;
            }
            self.kept.remove(at);
        }
        self.kept.push(stall);
    }

    /// The stall that ended with `frame` was ended by a retransmission.
    pub(super) fn end_by(&mut self, frame: u64, loss: u64) {
        if let Some(stall) = self.kept.iter_mut().rev().find(|s| s.last_frame == frame) {
            stall.loss = loss;
        }
    }

    /// An ACK came that acknowledges nothing but data sent at `sent` and before; `timer` is when a timer last
    /// fired.
    pub(super) fn late_ack(&mut self, timer: Instant, sent: Instant) {
        if let Some(stall) = self.kept.iter_mut().rev().find(|s| s.end <= timer)
            && stall.end == timer
            && sent <= stall.start
        {
            stall.late_acks += 1;
        }
    }

    /// Data from `offset` on, which had passed after a pause, was sent again although it had arrived: a timer
    /// fired in the pause. `within` is how long ago that may be.
    pub(super) fn needless_after(&mut self, offset: u64, now: Instant, within: Span) {
        if let Some(stall) = self.kept.last_mut()
            && now.since(stall.end) <= within
            && (stall.offset..stall.offset + u64::from(stall.len)).contains(&offset)
        {
            stall.spurious = true;
        }
    }

    pub(super) fn set_spurious(&mut self, loss: u64) {
        if let Some(stall) = self.kept.iter_mut().rev().find(|s| s.loss == loss) {
            stall.spurious = true;
        }
    }
}

#[cfg(test)]
impl Stall {
    /// One that a timer ended, from 1 to 9 microseconds, for tests.
    pub(crate) fn example() -> Self {
        Stall {
            start: Instant::from_nanos(1_000),
            end: Instant::from_nanos(9_000),
            first_frame: 1,
            last_frame: 2,
            wait: Wait::Timer,
            outstanding: 10_000,
            round: Span::from_nanos(500),
            sacked: 0,
            segments: 7,
            head_sent: 1,
            spurious: false,
            heard: false,
            overlooked: false,
            loss: 0,
            tail: false,
            unseen: 0,
            offset: 5_000,
            late_acks: 0,
            len: 1_000,
            upstream: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a path that paused is told from one that lost everything, by ACKs of what was sent before.
    #[test]
    fn acks_of_what_was_sent_before_the_pause_count() {
        let mut stalls = Stalls::default();
        stalls.add(Stall::example());
        stalls.late_ack(Instant::from_nanos(9_000), Instant::from_nanos(800));
        assert_eq!(stalls.kept()[0].late_acks, 1);
        // Sent in the pause, or another timer.
        stalls.late_ack(Instant::from_nanos(9_000), Instant::from_nanos(2_000));
        stalls.late_ack(Instant::from_nanos(9_500), Instant::from_nanos(800));
        assert_eq!(stalls.kept()[0].late_acks, 1);
    }

    /// Breaks: behind a path that paused, the pause is not the program's.
    #[test]
    fn a_needless_copy_of_what_ended_a_pause_tells_of_a_timer() {
        let within = Span::from_nanos(1_000);
        let mut stalls = Stalls::default();
        stalls.add(Stall::example());
        stalls.needless_after(6_000, Instant::from_nanos(9_500), within);
        stalls.needless_after(5_000, Instant::from_nanos(20_000), within);
        assert!(!stalls.kept()[0].spurious);
        stalls.needless_after(5_000, Instant::from_nanos(9_500), within);
        assert!(stalls.kept()[0].spurious);
    }
}
