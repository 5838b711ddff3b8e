//! What the tests of several algorithms need: windows, a path without losses, and a bottleneck.

use super::{AckSample, CongestionControl, CongestionEvent, Cut, SentSample};
use crate::config::Abc;
use crate::segments::{Segments, Tags};
use crate::window::Window;
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Serialiser, Span};
use std::collections::BTreeMap;

/// Bytes of a full segment.
pub const MSS: u32 = 1448;

/// A window of `cwnd` segments with this threshold.
pub fn window(cwnd: u32, ssthresh: u32) -> Window {
    Window::new(Packets::new(cwnd), Some(Packets::new(ssthresh)), Packets::MAX, Abc::Off, MSS)
}

/// A path with one round-trip time whose receiver acknowledges every so many segments; a sender that always
/// has something to send.
pub struct TestLink {
    pub ratio: u32,
    pub rtt: Span,
    pub now: Instant,
    pub una: Seq,
}

impl TestLink {
    /// A round trip of 100 ms, and `ratio` segments an ACK.
    pub fn new(ratio: u32) -> Self {
        TestLink { ratio, rtt: Span::from_millis(100), now: Instant::from_nanos(1), una: Seq::new(1) }
    }

    /// The next ACK.
    pub fn ack(&mut self, cc: &mut dyn CongestionControl, window: &mut Window) {
        let cwnd = window.cwnd().get();
        let acked = self.ratio.min(cwnd);
        self.now += Span::from_nanos(self.rtt.as_nanos() * u64::from(acked) / u64::from(cwnd));
        self.una += acked;
        let ack = AckSample {
            snd_una: self.una,
            snd_nxt: self.una + (cwnd - acked),
            in_flight_before: Packets::new(cwnd),
            in_flight: Packets::new(cwnd - acked),
            rtt: Some(self.rtt),
            min_rtt: Some(self.rtt),
            srtt: self.rtt,
            ..AckSample::of(self.now, Packets::new(acked))
        };
        cc.on_ack(window, &ack);
    }

    /// So many round trips.
    pub fn rounds(&mut self, cc: &mut dyn CongestionControl, window: &mut Window, n: u64) {
        let end = self.now + self.rtt * n;
        while self.now < end {
            self.ack(cc, window);
        }
    }
}

/// Something sent: which row of the queue, and when.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TestSegment {
    row: u64,
    at: Instant,
}

/// A paced sender with ideal recovery over a line with a drop-tail queue: what is dropped is known as soon as
/// something sent later has arrived.
pub struct TestBottleneck<C> {
    pub cc: C,
    pub window: Window,
    pub segments: Segments,
    pub now: Instant,
    pub rtt: Span,
    /// Queue in segments.
    pub buffer: u32,
    /// The application has no more than this in flight.
    pub quota: u32,
    /// Every so many-th segment is lost; zero: none.
    pub lose_every: u64,
    /// ACKs arrive at multiples of this time.
    pub bunch: Span,
    /// Segments dropped so far.
    pub drops: u64,
    /// A recovery is under way until this row is acknowledged.
    pub recovery: Option<u64>,
    line: Serialiser,
    arrivals: BTreeMap<(Instant, u64), TestSegment>,
    dropped: Vec<TestSegment>,
    next_send: Instant,
    next: Seq,
    sent: u64,
    limited_at: u64,
    /// Number of the row at the head of the queue.
    base: u64,
}

impl<C: CongestionControl> TestBottleneck<C> {
    /// A new connection over a path whose queue holds one bandwidth-delay product.
    pub fn new(cc: C, mbit: u64, rtt_ms: u64) -> Self {
        let (rate, rtt) = (Rate::from_mbit(mbit), Span::from_millis(rtt_ms));
        let mut segments = Segments::default();
        segments.measure_rates();
        let now = Instant::from_nanos(1_000_000_000);
        TestBottleneck {
            cc,
            window: window(10, u32::MAX),
            segments,
            now,
            rtt,
            buffer: (rate.bytes_in(rtt).get() / u64::from(MSS)).max(2) as u32,
            quota: u32::MAX,
            lose_every: 0,
            bunch: Span::ZERO,
            drops: 0,
            recovery: None,
            line: Serialiser::new(rate),
            arrivals: BTreeMap::new(),
            dropped: Vec::new(),
            next_send: now,
            next: Seq::new(1),
            sent: 0,
            limited_at: 0,
            base: 0,
        }
    }

    /// Segments that fill the path without a queue.
    pub fn bdp(&self) -> f64 {
        self.line.rate().as_bytes_per_sec_f64() * self.rtt.as_secs_f64() / f64::from(MSS)
    }

    pub fn set_rate(&mut self, mbit: u64) {
        self.line.set_rate(Rate::from_mbit(mbit));
    }

    /// Segments that wait at the bottleneck.
    pub fn queue(&self) -> f64 {
        let wait = self.line.busy_until().since(self.now).as_secs_f64();
        wait * self.line.rate().as_bytes_per_sec_f64() / f64::from(MSS)
    }

    /// Segments sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Runs until `done` holds, for at most `time`. True: it holds.
    pub fn run_until(&mut self, time: Span, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + time;
        while self.now < end {
            if done(self) {
                return true;
            }
            self.step(end);
        }
        false
    }

    pub fn run(&mut self, time: Span) {
        self.run_until(time, |_| false);
    }

    fn step(&mut self, end: Instant) {
        let in_flight = self.segments.in_flight();
        let waiting = self.segments.first_waiting().is_some();
        let open = in_flight < self.window.cwnd();
        if open && !waiting && in_flight.get() >= self.quota {
            self.segments.mark_app_limited();
        }
        let may = open && (waiting || in_flight.get() < self.quota);
        if !open {
            self.limited_at = self.base + self.segments.len() as u64;
        }
        let send = may.then(|| self.next_send.max(self.now));
        let arrival = self.arrivals.keys().next().map(|k| k.0);
        match (send, arrival) {
            (Some(at), None) if at < end => self.send(at),
            (Some(at), Some(other)) if at <= other && at < end => self.send(at),
            (_, Some(at)) if at < end => self.arrive(at),
            _ if arrival.is_none() && send.is_none() && !in_flight.is_zero() => self.time_out(end),
            _ => self.now = end,
        }
    }

    fn send(&mut self, at: Instant) {
        self.now = at;
        let index = if let Some(index) = self.segments.first_waiting() {
            self.segments.mark_retransmitted(index, at, self.next);
            index
        } else {
            if self.segments.is_empty() {
                self.cc.on_event(at, &mut self.window, CongestionEvent::Restart(at.since(self.next_send)));
            }
            self.segments.push(self.next, MSS, at);
            self.next += MSS;
            self.segments.len() - 1
        };
        let in_flight = self.segments.in_flight();
        let sample = SentSample { now: at, in_flight, retransmission: false, srtt: self.rtt };
        self.cc.on_sent(&mut self.window, &sample);
        let len = ByteCount::new(u64::from(MSS));
        if let Some(rate) = self.cc.pacing() {
            self.next_send = at + rate.time_for(len);
        }
        self.sent += 1;
        let sent = TestSegment { row: self.base + index as u64, at };
        let chance = self.lose_every > 0 && self.sent.is_multiple_of(self.lose_every);
        if chance || self.queue() > f64::from(self.buffer) {
            self.drops += 1;
            self.dropped.push(sent);
            return;
        }
        let mut arrival = self.line.send(at, len) + self.rtt;
        if !self.bunch.is_zero() {
            arrival = Instant::from_nanos(arrival.as_nanos().next_multiple_of(self.bunch.as_nanos()));
        }
        self.arrivals.insert((arrival, self.sent), sent);
    }

    fn index(&self, row: u64) -> Option<usize> {
        row.checked_sub(self.base).map(|i| i as usize)
    }

    fn arrive(&mut self, at: Instant) {
        self.now = at;
        let before = self.segments.in_flight();
        let (mut newest, mut delivered) = (Instant::ZERO, 0);
        while let Some(entry) = self.arrivals.first_entry().filter(|e| e.key().0 == at) {
            let sent = entry.remove();
            newest = newest.max(sent.at);
            if let Some(index) = self.index(sent.row)
                && !self.segments.tags(index).any(Tags::SACKED)
            {
                self.segments.sack(index);
                delivered += 1;
            }
        }
        let mut lost = 0;
        for sent in std::mem::take(&mut self.dropped) {
            match self.index(sent.row) {
                Some(_) if sent.at >= newest => self.dropped.push(sent),
                Some(index) if self.segments.tags(index).any(Tags::RETRANSMITTED) => {
                    self.segments.mark_retransmission_lost(index);
                    lost += 1;
                }
                Some(index) => {
                    self.segments.mark_lost(index);
                    lost += 1;
                }
                None => {}
            }
        }
        while self.segments.tags(0).any(Tags::SACKED) {
            let end = self.segments.row(0).unwrap().end();
            self.base += u64::from(self.segments.acknowledge(end).packets.get());
        }
        if lost > 0 && self.recovery.is_none() {
            self.recovery = Some(self.base + self.segments.len() as u64);
            self.cc.on_event(at, &mut self.window, CongestionEvent::EnterRecovery);
        }
        if self.recovery.is_some_and(|point| self.base >= point) {
            self.recovery = None;
            self.cc.on_event(at, &mut self.window, CongestionEvent::ExitRecovery);
        }
        self.tell(before, delivered, lost);
    }

    fn tell(&mut self, before: Packets, delivered: u32, lost: u32) {
        let TestBottleneck { cc, window, segments, .. } = self;
        segments.take_losses(|l| cc.on_lost(self.now, window, &l));
        let ack = AckSample {
            snd_una: segments.row(0).map_or(self.next, |r| r.seq),
            snd_nxt: self.next,
            lost: Packets::new(lost),
            in_flight_before: before,
            in_flight: segments.in_flight(),
            min_rtt: Some(self.rtt),
            srtt: self.rtt,
            cwnd_limited: self.limited_at >= self.base,
            rate: segments.take_rate_sample(self.now, Some(self.rtt)),
            ..AckSample::of(self.now, Packets::new(delivered))
        };
        cc.on_ack(window, &ack);
        if cc.hides_rate() {
            segments.mark_app_limited();
        }
    }

    /// Nothing is under way any more: a second later all of it is lost.
    fn time_out(&mut self, end: Instant) {
        self.now = (self.now + Span::from_secs(1)).min(end);
        self.dropped.clear();
        self.segments.lose_all(false);
        let flight = self.segments.packets_out();
        self.cc.ssthresh(self.now, &self.window, flight, Cut::Timeout);
        self.cc.on_event(self.now, &mut self.window, CongestionEvent::EnterLoss { total_lost: 0 });
        self.recovery = Some(self.base + self.segments.len() as u64);
    }
}
