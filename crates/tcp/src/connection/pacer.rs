//! Pacing: segments leave at a rate, a small quantum at a time, instead of as a burst when the window opens.
//! And, because it is about the same empty line: when a sender has run out of data.

use super::linux_pacing::LinuxPacing;
use super::{Blocked, Connection, Transmit};
use crate::cc::{CongestionControl, SHORT_RTT, StartPace};
use crate::config::Pacing;
use crate::segments::Segments;
use farpace_events::RecoveryState;
use farpace_units::{ByteCount, Instant, Packets, Rate, Serialiser, Span};

/// A quantum is what leaves in this time (draft-ietf-ccwg-bbr §5.6.3) ...
const QUANTUM_TIME: Span = Span::from_millis(1);
/// ... but not more than this ...
const MAX_QUANTUM: ByteCount = ByteCount::new(64_000);
/// ... and not less than so many full segments, because receivers acknowledge every second one.
const MIN_QUANTUM_SEGMENTS: u64 = 2;
/// No rate is slower than a full segment in this time, the usual least timeout. A round trip that is in the
/// denominator of a rate has the wait in it that the rate causes; slower rates, made by an outage or by a
/// peer that lies about timestamps, would feed on themselves. What is too fast for the path is still bounded
/// by the window.
const SLOWEST_SEGMENT: Span = Span::from_millis(200);

/// The slowest rate of pacing with segments of `mss` bytes: one in 200 ms. Slower ones are raised to it.
pub fn slowest_pacing_rate(mss: u32) -> Rate {
    Rate::of(ByteCount::new(u64::from(mss.max(1))), SLOWEST_SEGMENT)
}

/// Windows up to this leave as they open where pacing follows growth: queues hold such bursts, and they show
/// what the path carries.
const UNPACED_WINDOW: Packets = Packets::new(32);

/// The line that segments leave on.
///
/// The first segment of a quantum waits until the line is free, the others follow at once. So the rate holds
/// over any time longer than two quanta; a line that stood still gains no credit.
#[derive(Debug)]
pub(super) struct ConnectionPacer {
    line: Option<Serialiser>,
    /// The user's own limit.
    cap: Option<Rate>,
    /// Bytes sent since the line was last free.
    burst: u32,
    /// Profile `linux` paces in its own way.
    linux: Option<Box<LinuxPacing>>,
    deadline: Option<Instant>,
    /// Congestion control wants to know when the sender has run out of data.
    rates: bool,
    /// Since when there was nothing to send, though the window would have allowed it.
    empty_since: Option<Instant>,
}

impl ConnectionPacer {
    pub fn new(cc: &dyn CongestionControl) -> Self {
        ConnectionPacer {
            line: None,
            cap: None,
            burst: 0,
            linux: None,
            deadline: None,
            rates: cc.wants_rates(),
            empty_since: None,
        }
    }

    /// Another congestion control has taken over.
    pub fn follow(&mut self, cc: &dyn CongestionControl) {
        self.rates = cc.wants_rates();
        self.empty_since = None;
    }

    /// When the line is free again, if a segment waits for that.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Nothing waits any more, or the line is free.
    pub fn release(&mut self) {
        self.deadline = None;
    }

    /// The connection is over.
    pub fn stop(&mut self) {
        self.release();
        self.empty_since = None;
    }

    /// Not faster than this; holds from the next [`set_rate`](Self::set_rate) on.
    pub fn set_cap(&mut self, cap: Option<Rate>) {
        self.cap = cap;
    }

    /// The program's own limit.
    pub fn cap(&self) -> Option<Rate> {
        self.cap
    }

    /// The rate in force.
    pub fn rate(&self) -> Option<Rate> {
        self.line.as_ref().map(Serialiser::rate)
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        let rate = rate.into_iter().chain(self.cap).min();
        // What Linux has found lost waits for this timer. Others look at all that may leave in each pass.
        if self.linux.is_none() || rate.is_none() {
            self.deadline = None;
        }
        match (&mut self.line, rate) {
            (Some(line), Some(rate)) => line.set_rate(rate),
            (line, rate) => *line = rate.map(Serialiser::new),
        }
    }

    /// Segments wait for each other.
    pub fn paces(&self) -> bool {
        self.line.is_some()
    }

    fn may_send(&mut self, now: Instant, len: u32, mss: u32) -> bool {
        let Some(line) = &self.line else { return true };
        if self.deadline.is_some() {
            return false;
        }
        if line.busy_until() <= now {
            self.burst = 0;
            return true;
        }
        let least = ByteCount::new(MIN_QUANTUM_SEGMENTS * u64::from(mss));
        let quantum = line.rate().bytes_in(QUANTUM_TIME).min(MAX_QUANTUM).max(least);
        let fits = ByteCount::new(u64::from(self.burst) + u64::from(len)) <= quantum;
        if !fits {
            self.deadline = Some(line.busy_until());
        }
        fits
    }

    /// As Linux: `len` bytes begin a burst, or belong to one of at most `most` bytes. The timer stays as it
    /// was set.
    fn may_send_in_burst(&mut self, now: Instant, len: u32, most: ByteCount) -> bool {
        let (Some(line), Some(linux)) = (&self.line, &mut self.linux) else { return true };
        let len = ByteCount::new(u64::from(len));
        let may = linux.begins(now, line) || (!len.is_zero() && linux.continues(now, len, most));
        if !may {
            self.deadline.get_or_insert(line.busy_until());
        }
        may
    }

    pub fn on_sent(&mut self, now: Instant, len: u32) {
        let len = ByteCount::new(u64::from(len));
        match (&mut self.line, &mut self.linux) {
            (Some(line), Some(linux)) => linux.on_sent(len, line),
            (Some(line), None) => {
                line.send(now, len);
                self.burst = self.burst.saturating_add(len.get() as u32);
            }
            (None, _) => {}
        }
    }

    fn free_at(&self, now: Instant) -> Instant {
        self.line.as_ref().map_or(now, |line| line.busy_until().max(now))
    }
}

/// The retransmission queue that an algorithm needs.
pub(super) fn queue_for(cc: &dyn CongestionControl) -> Segments {
    let mut segments = Segments::default();
    if cc.wants_rates() {
        segments.measure_rates();
    }
    segments
}

impl Connection {
    /// Takes the rate that is right now.
    pub(super) fn set_pace(&mut self) {
        let rate = match self.flight.cc.pacing() {
            None => match self.config.pacing {
                Pacing::Off => None,
                Pacing::Fixed => self.window_rate(self.flight.window.cwnd()),
                Pacing::Growth => self.growth_rate(),
            },
            rate => rate,
        };
        if rate.is_some() || self.pacer.line.is_some() || self.pacer.cap.is_some() {
            if self.config.is_linux() && self.pacer.linux.is_none() {
                self.pacer.linux = Some(Box::new(LinuxPacing::after(self.data_segments_sent())));
            }
            self.pacer.set_rate(rate.map(|r| r.max(self.slowest_rate())));
        }
    }

    fn slowest_rate(&self) -> Rate {
        slowest_pacing_rate(self.snd.mss)
    }

    /// The rate at which this connection would like to send, in bytes of payload: that of its congestion
    /// control, or what its window makes of a round trip. For a NIC that paces; none before there is a round
    /// trip.
    pub fn wanted_rate(&self) -> Option<Rate> {
        // What left when the window was larger, and may wait for the NIC yet, counts as window (as in Linux).
        let window = self.flight.window.cwnd().max(self.flight.segments.packets_out());
        Some(self.flight.cc.pacing().or_else(|| self.window_rate(window))?.max(self.slowest_rate()))
    }

    /// The rate for a window-based algorithm (as in Linux): twice the window a round trip in slow start, so
    /// that it can double; a fifth more than the window later, so that pacing does not hold back what the
    /// window allows.
    fn window_rate(&self, window: Packets) -> Option<Rate> {
        let srtt = self.flight.rto.srtt();
        if srtt.is_zero() {
            return None;
        }
        let bytes = u64::from(window.get()) * u64::from(self.snd.mss);
        let opening = self.flight.window.cwnd() < self.flight.window.ssthresh();
        let paced = if opening { bytes.saturating_mul(2) } else { bytes.saturating_add(bytes / 5) };
        Some(Rate::of(ByteCount::new(paced), srtt))
    }

    /// The rate for a window that grows by a factor k in a round trip, so that it does so evenly: ln k / (1 -
    /// 1/k) windows a round trip, and a little more, so that pacing does not hold back what the window allows
    /// ([`Pace`]). In recovery the window does not grow, whatever the threshold says; a second loss would
    /// follow. On short round trips nothing is paced: a timer that is late by its usual 50 us would cost a
    /// part of the rate, and a window is a short burst.
    fn growth_rate(&self) -> Option<Rate> {
        let (srtt, cwnd) = (self.flight.rto.srtt(), self.flight.window.cwnd());
        if srtt < SHORT_RTT || cwnd <= UNPACED_WINDOW {
            return None;
        }
        let recovers = self.flight.recovery.state() == RecoveryState::Recovery;
        let StartPace { percent, most } =
            if recovers { StartPace::STEADY } else { self.flight.cc.pace(&self.flight.window) };
        let bytes = u64::from(cwnd.get()) * u64::from(self.snd.mss);
        let rate = Rate::of(ByteCount::new(bytes.saturating_mul(percent) / 100), srtt);
        Some(most.map_or(rate, |most| rate.min(most)))
    }

    /// A segment of this length may leave now; if not, the deadline is set.
    pub(super) fn may_leave(&mut self, now: Instant, len: u32) -> bool {
        match self.config.is_linux() {
            true => self.pacer.may_send_in_burst(now, len, self.linux_quantum()),
            false => self.pacer.may_send(now, len, self.snd.mss),
        }
    }
    /// In profile `linux`: a burst may leave now; if not, the deadline is set.
    pub(super) fn burst_may_leave(&mut self, now: Instant) -> bool {
        self.pacer.may_send_in_burst(now, 0, ByteCount::ZERO)
    }

    /// Everything that may leave has left. If data was what ended first, remember since when.
    pub(super) fn note_empty_line(&mut self, now: Instant, result: Transmit) {
        if !self.pacer.rates {
            return;
        }
        let open = self.flight.recovery.may_send_new(&self.flight.segments, self.flight.window.cwnd());
        // Less than a segment that waits for more is nothing to send either.
        let ended = matches!(result, Transmit::Idle | Transmit::Blocked(Blocked::Nagle));
        let empty = ended && open && self.flight.segments.first_waiting().is_none();
        self.pacer.empty_since = empty.then(|| self.pacer.free_at(now));
    }

    /// Some time has passed since then: what is sent from here on comes after a gap that the path did not
    /// make (draft-ietf-ccwg-bbr §4.1.2.4). No time: the application has filled up at once.
    pub(super) fn notice_empty_line(&mut self, now: Instant) {
        if self.pacer.empty_since.is_some_and(|at| now > at) {
            self.flight.segments.mark_app_limited();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(mbit: u64) -> ConnectionPacer {
        let mut pacer = ConnectionPacer::new(&crate::cc::PerAckReno);
        pacer.set_rate(Some(Rate::from_mbit(mbit)));
        pacer
    }

    /// Sends full segments as fast as it may for this long; returns how many, and the largest burst.
    fn run(pacer: &mut ConnectionPacer, mbit: u64, time: Span) -> (u64, u64) {
        let (mut now, mut sent, mut largest) = (Instant::from_nanos(5), 0, 0);
        let end = now + time;
        while now < end {
            pacer.set_rate(Some(Rate::from_mbit(mbit)));
            let mut burst = 0;
            while pacer.may_send(now, 1000, 1000) {
                pacer.on_sent(now, 1000);
                burst += 1;
            }
            sent += burst;
            largest = largest.max(burst);
            let next = pacer.deadline().unwrap();
            assert!(next > now, "the deadline law");
            now = next;
        }
        (sent, largest)
    }

    /// Breaks: the pacing rate over time, and the size of the bursts that leave together.
    #[test]
    fn rate_and_quantum() {
        // 1 s at 8 Mbit/s: 1 MB; a quantum is 1 ms, but at least two segments.
        assert_eq!(run(&mut pacer(8), 8, Span::from_secs(1)), (1000, 2));
        assert_eq!(run(&mut pacer(80), 80, Span::from_secs(1)), (10_000, 10));
        assert_eq!(run(&mut pacer(8_000), 8_000, Span::from_millis(64)), (64_000, 64));
    }

    /// Breaks: time in which nothing was sent must not become a burst.
    #[test]
    fn no_credit_for_silence() {
        let mut pacer = pacer(8);
        run(&mut pacer, 8, Span::from_millis(10));
        let later = Instant::ZERO + Span::from_secs(100);
        pacer.release();
        let mut burst = 0;
        while pacer.may_send(later, 1000, 1000) {
            pacer.on_sent(later, 1000);
            burst += 1;
        }
        assert_eq!(burst, 2);
        assert_eq!(pacer.deadline(), Some(later + Span::from_millis(2)));
    }
}
