//! Round-trip estimation and the retransmission timeout: how long to wait before a segment counts as lost.

mod cdl;
mod clock;
mod linux26;
mod min_rtt;
mod net2;
mod rfc6298;
mod timed;

pub use cdl::Cdl;
pub use clock::TcpClock;
pub use linux26::Linux26Rto;
pub use min_rtt::{MinRtt, PathMove};
pub use net2::Net2;
pub use rfc6298::Rfc6298;
pub use timed::Timed;

use crate::config;
use farpace_units::{Instant, Seq, Span};

/// One measured round trip, and the ACK that ended it. The times are exact, or told by a timestamp: the
/// estimator reads them off its clock.
#[derive(Clone, Copy, Debug)]
pub struct RttSample {
    /// When the ACK arrived.
    pub now: Instant,
    /// From the sending of the first segment that it acknowledges, or told by a timestamp: what RFC 6298
    /// takes.
    pub rtt: Span,
    /// From the sending of a segment that had asked for an ACK at once and got it; none if none did.
    pub undelayed: Option<Span>,
    /// SND.UNA.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
}

/// Which of the round trips that an ACK tells an estimator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSource {
    /// Of the first segment that it acknowledges; by timestamp where that was sent twice.
    Segment,
    /// By timestamp wherever there are any, else of the segment.
    Timestamp,
    /// By timestamp, else only of the one segment that was being timed.
    Timed,
}

/// The estimators behind one front, with the clock that they read. Back-off (RFC 6298 §5.5) is kept here,
/// because all have it: it doubles at each expiry and ends with the next valid sample (Karn).
#[derive(Clone, Debug)]
pub struct RtoEstimator {
    kind: SampleKind,
    backoff: u32,
    clock: TcpClock,
    /// The timeout in force: every segment asks for it, and few things change it.
    rto: Span,
}

#[derive(Clone, Debug)]
enum SampleKind {
    Rfc6298(Rfc6298),
    Linux26(Linux26Rto),
    Linux(Linux26Rto),
    Net2(Net2),
    Cdl(Box<Cdl>),
}

/// Ticks in which Linux counts its timers (HZ = 250).
const LINUX_TICK: Span = Span::from_millis(4);
/// Longest retransmission timeout (RFC 6298 §2.5 asks for 60 s at least; Linux has 120 s).
pub const MAX_RTO: Span = Span::from_secs(120);

impl RtoEstimator {
    /// An estimator without a sample.
    pub fn new(kind: config::Rto, min_rto: Span, clock: TcpClock) -> Self {
        let tick = clock.tick();
        let kind = match kind {
            config::Rto::Rfc6298 => SampleKind::Rfc6298(Rfc6298::new(min_rto, tick)),
            config::Rto::Linux26 => SampleKind::Linux26(Linux26Rto::default()),
            config::Rto::Linux => SampleKind::Linux(Linux26Rto::of_today(min_rto)),
            config::Rto::Net2 => SampleKind::Net2(Net2::new(tick)),
            config::Rto::Cdl => SampleKind::Cdl(Box::new(Cdl::new(min_rto, tick))),
        };
        let mut estimator = RtoEstimator { kind, backoff: 0, clock, rto: Span::ZERO };
        estimator.settle();
        estimator
    }

    /// The clock in use.
    pub fn clock(&self) -> TcpClock {
        self.clock
    }

    /// A valid sample: of a segment sent once, or told by a timestamp.
    pub fn sample(&mut self, s: &RttSample) {
        self.backoff = 0;
        let shown = |span| self.clock.measure(s.now, span);
        let s = RttSample { rtt: shown(s.rtt), undelayed: s.undelayed.map(shown), ..*s };
        match &mut self.kind {
            SampleKind::Rfc6298(e) => e.sample(s.rtt),
            SampleKind::Linux26(e) | SampleKind::Linux(e) => e.sample(s.rtt, s.snd_una, s.snd_nxt),
            SampleKind::Net2(e) => e.sample(s.rtt),
            SampleKind::Cdl(e) => e.sample(&s),
        }
        self.settle();
    }

    /// The least that the timeout is above the round trip, from the next sample on (Linux: TCP_RTO_MIN_US).
    pub fn set_least(&mut self, least: Span) {
        if let SampleKind::Linux(e) = &mut self.kind {
            e.set_floor(least);
        }
    }

    /// Which samples it wants.
    pub fn source(&self) -> RttSource {
        match self.kind {
            SampleKind::Rfc6298(_) | SampleKind::Cdl(_) | SampleKind::Linux(_) => RttSource::Segment,
            SampleKind::Linux26(_) => RttSource::Timestamp,
            SampleKind::Net2(_) => RttSource::Timed,
        }
    }

    /// True: every segment that the timer guards has asked for an ACK at once, so the receiver holds none
    /// back. Say so before the timer is set; only `cdl` heeds it.
    pub fn set_guarded_asked(&mut self, asked: bool) {
        if let SampleKind::Cdl(e) = &mut self.kind {
            e.set_guarded_asked(asked);
            self.settle();
        }
    }

    /// Times in a row that the timeout was doubled.
    pub fn doublings(&self) -> u32 {
        self.backoff
    }

    /// The timer fired: wait twice as long next time.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
        if let SampleKind::Net2(e) = &mut self.kind {
            e.on_timeout(self.backoff);
        }
        self.settle();
    }

    /// The SYN had to be repeated, so nothing was measured: data begins with 3 s (RFC 6298 §5.7). BSD's timer
    /// stays where the SYN has left it, until something was measured.
    pub fn restart_after_syn_timeout(&mut self) {
        match &mut self.kind {
            SampleKind::Rfc6298(e) => e.restart_after_syn_timeout(),
            SampleKind::Cdl(e) => e.restart_after_syn_timeout(),
            SampleKind::Linux26(_) => {}
            SampleKind::Linux(e) => e.restart_after_syn_timeout(),
            SampleKind::Net2(_) => return,
        }
        self.backoff = 0;
        self.settle();
    }

    /// The timeout in force, back-off included.
    pub fn rto(&self) -> Span {
        self.rto
    }

    fn settle(&mut self) {
        let base = match &self.kind {
            SampleKind::Rfc6298(e) => e.rto(),
            SampleKind::Linux26(e) | SampleKind::Linux(e) => e.rto(),
            SampleKind::Net2(e) => {
                self.rto = e.rto(self.backoff);
                return;
            }
            SampleKind::Cdl(e) => e.rto(),
        };
        // Linux doubles whole ticks of its timers.
        let base = if self.backoff > 0 { self.whole(base) } else { base };
        self.rto = (base * (1u64 << self.backoff)).min(MAX_RTO);
    }

    /// When a timer that is set now fires: at a tick, and not before the timeout is over. BSD counts the
    /// ticks that come, so its timer may fire up to a tick earlier.
    pub fn deadline(&self, now: Instant) -> Instant {
        if let SampleKind::Net2(_) = self.kind {
            let tick = self.clock.tick();
            return Instant::ZERO + tick * self.clock.ticks(now) + self.rto();
        }
        self.clock.tick_from(now + self.rto())
    }

    /// The timeout, doubled so often again.
    pub fn doubled(&self, times: u32) -> Span {
        let base = if times > 0 { self.whole(self.rto) } else { self.rto };
        (base * (1u64 << times.min(16))).min(MAX_RTO)
    }

    fn whole(&self, span: Span) -> Span {
        let tick = LINUX_TICK.as_nanos();
        if matches!(self.kind, SampleKind::Linux(_)) {
            Span::from_nanos(span.as_nanos().div_ceil(tick).saturating_mul(tick))
        } else {
            span
        }
    }

    /// The least that the timeout is above zero, or above the round trip.
    pub fn least(&self) -> Span {
        match &self.kind {
            SampleKind::Rfc6298(e) => e.min(),
            SampleKind::Linux26(e) | SampleKind::Linux(e) => e.floor(),
            SampleKind::Net2(_) | SampleKind::Cdl(_) => Span::ZERO,
        }
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Span {
        match &self.kind {
            SampleKind::Rfc6298(e) => e.srtt(),
            SampleKind::Linux26(e) | SampleKind::Linux(e) => e.srtt(),
            SampleKind::Net2(e) => e.srtt(),
            SampleKind::Cdl(e) => e.srtt(),
        }
    }

    /// Its variation (for Linux 2.6: the part that is added to srtt, i.e. four deviations or the floor).
    pub fn rttvar(&self) -> Span {
        match &self.kind {
            SampleKind::Rfc6298(e) => e.rttvar(),
            SampleKind::Linux26(e) => e.rttvar(),
            SampleKind::Linux(e) => e.deviation(),
            SampleKind::Net2(e) => e.rttvar(),
            SampleKind::Cdl(e) => e.rttvar(),
        }
    }

    /// Smoothed round-trip time of ACKs that were not held back, if the estimator keeps them apart and had
    /// any.
    pub fn undelayed_srtt(&self) -> Option<Span> {
        match &self.kind {
            SampleKind::Cdl(e) => e.undelayed_srtt(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Rto;

    /// Breaks: when the timer of a coarse clock fires: BSD's after whole ticks that may have begun long ago,
    /// the others' never before the timeout is over.
    #[test]
    fn deadlines() {
        let (ms, tick) = (Span::from_millis, TcpClock::new(Some(Span::from_millis(500))));
        let at = |now| Instant::ZERO + ms(now);
        let table = [
            (Rto::Net2, tick, 0, 6_000),
            (Rto::Net2, tick, 499, 6_000),
            (Rto::Net2, tick, 500, 6_500),
            (Rto::Rfc6298, tick, 0, 1_000),
            (Rto::Rfc6298, tick, 1, 1_500),
            (Rto::Cdl, TcpClock::default(), 1, 1_001),
        ];
        for (kind, clock, now, fires) in table {
            let e = RtoEstimator::new(kind, ms(200), clock);
            assert_eq!(e.deadline(at(now)), at(fires), "{kind:?} at {now} ms");
        }
    }

    /// Breaks: estimators that count ticks get them, and not the exact time: 499 ms across no tick are none.
    #[test]
    fn samples_are_read_off_the_clock() {
        let mut e = RtoEstimator::new(Rto::Net2, Span::ZERO, TcpClock::new(Some(Span::from_millis(500))));
        let (now, una) = (Instant::ZERO + Span::from_millis(499), Seq::new(0));
        let rtt = Span::from_millis(499);
        let sample = RttSample { now, rtt, undelayed: None, snd_una: una, snd_nxt: una };
        e.sample(&sample);
        assert_eq!((e.srtt(), e.rto()), (Span::from_millis(500), Span::from_millis(1_500)));
        e.back_off();
        e.restart_after_syn_timeout();
        assert_eq!(e.rto(), Span::from_secs(3), "the back-off stays until the next sample");
    }
}
