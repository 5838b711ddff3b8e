//! What the sender knew when it sent: ACKs that had reached it, by when they passed the capture point.

use super::owd::OneWay;
use farpace_units::{Instant, Span};
use std::collections::VecDeque;

/// ACKs under way from the capture point to the sender that are remembered.
pub const MAX_ACKS: usize = 8_192;
/// Timestamps of ACKs that are remembered until they are echoed.
pub const MAX_ECHOES: usize = 1_024;
/// Two ticks of the clock of most timestamps.
pub(super) const TICKS: Span = Span::from_millis(2);
/// A capture point that is nearer to the sender than this is taken for the sender itself.
pub const AT_SENDER: Span = Span::from_millis(1);
/// Echoes over which the delay between capture point and sender is the least.
const WINDOW: u32 = 8;
/// A program that an ACK wakes writes within this time; on a busy host it is woken later, and a sender that
/// paces sends later.
pub(super) const AT_ONCE: [Span; 2] = [Span::from_micros(200), Span::from_micros(600)];

/// What an ACK says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ack {
    pub time: Instant,
    /// SND.UNA of the stream, as offset.
    pub una: u64,
    /// Right edge of the receive window, as offset.
    pub edge: u64,
    /// The window, not scaled.
    pub window: u64,
    /// Bytes SACKed above `una`.
    pub sacked: u64,
}

/// The ACKs between the capture point and the sender.
#[derive(Debug, Default)]
pub(super) struct AckLog {
    coming: VecDeque<Ack>,
    /// The newest ACK that has reached the sender.
    pub known: Ack,
    /// When the first ACK of new data since the last segment reached the sender; none if none has.
    pub released: Option<Instant>,
    /// Of the time since the last segment, how much lies within each of [`AT_ONCE`] behind an ACK.
    pub behind_acks: [Span; AT_ONCE.len()],
    /// When the last segment left.
    segment_left: Instant,
    /// The window was shut when the last segment had been sent.
    pub shut: Option<Shut>,
    /// When the newest ACK of new data that has reached the sender passed the capture point.
    pub advanced: Instant,
    echoes: VecDeque<(u32, Instant)>,
    last_echo: Option<u32>,
    /// From the capture point to the sender and back, without waiting: the least there was.
    pub base: Option<Span>,
    window: [Option<Span>; 2],
    samples: u32,
    pub one_way: OneWay,
}

impl AckLog {
    /// Memory on the heap, in bytes.
    pub fn memory(&self) -> usize {
        self.coming.capacity() * size_of::<Ack>() + self.echoes.capacity() * size_of::<(u32, Instant)>()
    }

    /// Gives the memory back.
    pub fn forget(&mut self) {
        (self.coming, self.echoes) = (VecDeque::new(), VecDeque::new());
    }

    pub fn push(&mut self, ack: Ack, tsval: Option<u32>) {
        if self.coming.len() >= MAX_ACKS {
            self.coming.pop_front();
        }
        self.coming.push_back(ack);
        if let Some(value) = tsval
            && self.echoes.back().is_none_or(|(last, _)| value.wrapping_sub(*last) as i32 > 0)
        {
            if self.echoes.len() >= MAX_ECHOES {
                self.echoes.pop_front();
            }
            self.echoes.push_back((value, ack.time));
        }
    }

    /// The windows seen so far have this scale.
    pub fn rescale(&mut self, scale: u8) {
        for ack in self.coming.iter_mut().chain([&mut self.known]).filter(|ack| ack.edge > 0) {
            ack.edge = ack.una + (ack.window << scale);
        }
    }

    /// The handshake tells how far the sender is away.
    pub fn handshake(&mut self, there_and_back: Span) {
        self.base = Some(self.base.map_or(there_and_back, |b| b.min(there_and_back)));
    }

    /// A segment of the sender has passed: its echo says how long ago the newest ACK it had seen passed.
    /// Returns that time if it is a new sample.
    pub fn echoed(&mut self, now: Instant, timestamps: Option<(u32, u32)>) -> Option<Span> {
        let (value, echo) = timestamps?;
        self.one_way.see(now, value);
        if self.last_echo.is_some_and(|last| echo.wrapping_sub(last) as i32 <= 0) {
            return None;
        }
        self.last_echo = Some(echo);
        let mut sample = None;
        while let Some((value, time)) = self.echoes.front() {
            let behind = echo.wrapping_sub(*value) as i32;
            if behind < 0 {
                break;
            }
            if behind == 0 {
                sample = Some(now.since(*time));
            }
            self.echoes.pop_front();
        }
        let mut sample = sample?;
        // What the sender waited before it sent is no distance: the segment's own timestamp tells when it
        // was made.
        if let (Some(least), Some(excess)) = (self.base, self.one_way.excess()) {
            sample = sample.min(least + excess);
        }
        self.base = Some(self.base.map_or(sample, |b| b.min(sample)));
        let [current, last] = &mut self.window;
        *current = Some(current.map_or(sample, |c| c.min(sample)));
        self.samples += 1;
        if self.samples >= WINDOW {
            self.samples = 0;
            *last = current.take();
        }
        Some(sample)
    }

    /// A segment of the sender has passed, and no timestamps tell of the distance. Near the sender, what
    /// leaves within it after an ACK was released by that ACK: the handshake's answer had waited for its
    /// host.
    pub fn answered(&mut self, now: Instant) {
        let heard = self.coming.back().map_or(self.known.time, |ack| ack.time);
        let within = now.since(heard);
        for known in
            [&mut self.base].into_iter().chain(&mut self.window).flatten().filter(|k| **k < AT_SENDER)
        {
            *known = (*known).min(within);
        }
    }

    /// From the capture point to the sender and back, as it is now: more than the base where a queue lies
    /// between.
    pub fn distance(&self) -> Span {
        let base = self.base.unwrap_or_default();
        let recent = self.window.iter().flatten().min().copied().unwrap_or(base);
        match self.one_way.excess() {
            // The clock of the timestamps does not show so short a time. What the sender waits is no queue.
            Some(excess) if excess < TICKS => base,
            None if recent < base + TICKS => base,
            Some(excess) => recent.min(base + excess).max(base),
            None => recent.max(base),
        }
    }

    /// How long after `now` the next ACK that has passed will reach the sender.
    pub fn next_after(&self, now: Instant) -> Option<Span> {
        self.coming.front().map(|ack| (ack.time + self.distance()).since(now))
    }

    /// Moves on to what the sender knows at `now`. It has sent up to `nxt`, and would send `len` bytes; a
    /// full segment has `full`.
    pub fn advance(&mut self, now: Instant, nxt: u64, len: u64, full: u64) {
        let distance = self.distance();
        // What fills the window to the byte would have been longer in a larger one.
        let room = |ack: &Ack| ack.edge >= nxt + if ack.edge == nxt + len { full } else { len };
        self.shut = (self.known.edge > 0 && !room(&self.known))
            .then_some(Shut { until: None, zero: self.known.edge <= self.known.una });
        self.released = None;
        self.behind_acks = AT_ONCE.map(|_| Span::ZERO);
        let mut from = std::mem::replace(&mut self.segment_left, now);
        while let Some(ack) = self.coming.front().copied().filter(|ack| ack.time + distance <= now) {
            if ack.una > self.known.una {
                self.advanced = ack.time;
                self.released.get_or_insert(ack.time + distance);
            }
            let arrived = ack.time + distance;
            self.count_behind(self.known.time + distance, from, arrived);
            from = from.max(arrived);
            self.known = ack;
            if let Some(shut) = &mut self.shut {
                shut.zero |= ack.edge <= ack.una;
                if shut.until.is_none() && room(&ack) {
                    shut.until = Some(ack.time + distance);
                }
            }
            self.coming.pop_front();
        }
        self.count_behind(self.known.time + distance, from, now);
    }

    /// From `from` to `to`, with the last ACK before at `ack`.
    fn count_behind(&mut self, ack: Instant, from: Instant, to: Instant) {
        for (sum, within) in self.behind_acks.iter_mut().zip(AT_ONCE) {
            *sum += to.min(ack + within).since(from.max(ack));
        }
    }
}

/// The receive window had no room for the next segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shut {
    /// Until then; none if it still has none.
    pub until: Option<Instant>,
    /// It was offered as zero meanwhile.
    pub zero: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(nanos: u64, una: u64, edge: u64) -> Ack {
        Ack { time: Instant::from_nanos(nanos), una, edge, window: edge - una, sacked: 0 }
    }

    /// Breaks: a request that repeats the number of the last ACK ends no pause of the program.
    #[test]
    fn only_new_data_moves_the_time_at_which_all_was_acknowledged() {
        let mut log = AckLog::default();
        log.push(ack(100, 1_000, 9_000), None);
        log.push(ack(5_000, 1_000, 9_000), None);
        log.advance(Instant::from_nanos(6_000), 1_000, 500, 500);
        assert_eq!((log.advanced, log.known.time), (Instant::from_nanos(100), Instant::from_nanos(5_000)));
    }

    /// Breaks: data of a program with a clock of its own counts as released by ACKs that come all the time.
    #[test]
    fn time_behind_acks_is_counted_once() {
        let us = |n: u64| 1_000 * n;
        let mut log = AckLog::default();
        log.advance(Instant::from_nanos(us(1_000)), 1_000, 500, 500);
        for at in [2_000, 2_050, 4_000] {
            log.push(ack(us(at), at, 9_000), None);
        }
        log.advance(Instant::from_nanos(us(4_100)), 1_000, 500, 500);
        assert_eq!(log.behind_acks.map(|time| time.as_nanos()), [us(50 + 200 + 100), us(50 + 600 + 100)]);
        log.advance(Instant::from_nanos(us(4_700)), 1_000, 500, 500);
        assert_eq!(log.behind_acks.map(|time| time.as_nanos()), [us(100), us(500)]);
    }

    /// Breaks: a segment that was cut to fit the window waited for the window.
    #[test]
    fn a_segment_that_fills_the_window_to_the_byte_had_no_room() {
        let mut log = AckLog::default();
        log.push(ack(100, 1_000, 1_300), None);
        log.advance(Instant::from_nanos(200), 1_000, 300, 500);
        log.advance(Instant::from_nanos(300), 1_000, 300, 500);
        assert!(log.shut.is_some());
        log.push(ack(400, 1_000, 2_000), None);
        log.advance(Instant::from_nanos(500), 1_000, 300, 500);
        log.advance(Instant::from_nanos(600), 1_000, 300, 500);
        assert!(log.shut.is_none(), "a short segment in a large window");
    }
}
