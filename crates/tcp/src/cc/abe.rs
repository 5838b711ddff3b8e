//! Available bandwidth estimation (TCP-J, TCP-STAR §2): what the ACKs say of the rate at which data arrives.
//!
//! ```text
//! BW_sample = d / ack_interval                 (2)    ack_interval = t_k - t_(k-1), d: data that ACK k acknowledges
//! cwnd_abe  = BW · RTTmin / MSS                (1)
//! ```
//!
//! Neither paper prints how BW follows from BW_sample, so that is a choice ([`AbeFilter`]), and so is the
//! interval of the first ACK, which has no predecessor. TCP-J takes 1 us and TCP-STAR 1 ms; with segments of
//! 1448 bytes the latter says 11.6 Mbit/s before anything was measured, which happens to suit a link of 10
//! Mbit/s.

use super::AckSample;
use super::filters::{Tustin, TwoStages};
use crate::config::{AbeConfig as Settings, AbeFilter};
use crate::window::Window;
use farpace_units::{Instant, Packets, Rate, Span};

/// ACKs closer together than this are one sample in the careful form: aggregation says nothing of the path.
const MERGE: Span = Span::from_millis(1);
/// Westwood+ measures over a round trip, but at least over this (as in Linux).
const WESTWOOD_WINDOW: Span = Span::from_millis(50);
/// Round trips over which the highest delivery rate counts; half of them are kept apart, so that it ages.
const HALF_OF_ROUNDS: u64 = 5;

/// The estimator.
#[derive(Clone, Debug)]
pub struct Abe {
    settings: Settings,
    /// SACKed data counts too, ACKs that come bunched count as one, and a sender without data does not lower
    /// it.
    careful: bool,
    /// BW, bytes a second; none before the first sample.
    bw: Option<f64>,
    /// t_(k-1).
    last: Option<Instant>,
    /// Segments acknowledged since.
    pending: f64,
    handshake: Span,
    rtt_min: Option<Span>,
    memory: AbeMemory,
}

/// What some filters keep besides BW.
#[derive(Clone, Copy, Debug, Default)]
struct AbeMemory {
    tustin: Tustin,
    two_stages: TwoStages,
    /// Westwood+: bytes in this window, and when it began.
    bytes: f64,
    began: Option<Instant>,
    /// Delivery rate: the maximum of the rounds before and of these, and when these end.
    before: f64,
    current: f64,
    until: Option<Instant>,
}

impl Abe {
    /// Nothing measured yet.
    pub fn new(settings: Settings, careful: bool) -> Self {
        Abe {
            settings,
            careful,
            bw: None,
            last: None,
            pending: 0.0,
            handshake: Span::ZERO,
            rtt_min: None,
            memory: AbeMemory::default(),
        }
    }

    /// The handshake took `rtt`: the first sample of RTTmin.
    pub fn on_established(&mut self, rtt: Span) {
        self.handshake = rtt;
        self.note_rtt(Some(rtt));
    }

    fn note_rtt(&mut self, rtt: Option<Span>) {
        if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
    }

    /// Something was acknowledged.
    pub fn on_acked(&mut self, ack: &AckSample) {
        self.note_rtt(ack.rtt.or(ack.min_rtt));
        let segments = if self.careful { ack.delivered } else { ack.acked };
        if segments.is_zero() {
            return;
        }
        self.pending += f64::from(segments.get());
        let interval = match self.last {
            Some(last) => ack.now.since(last),
            None if !self.settings.first_interval.is_zero() => self.settings.first_interval,
            None => self.handshake.max(ack.rtt.unwrap_or_default()),
        };
        let least = self.least_interval(ack.mss);
        if interval < least || interval.is_zero() {
            return; // together with the next
        }
        let bytes = std::mem::take(&mut self.pending) * f64::from(ack.mss);
        let sample = bytes / interval.as_secs_f64();
        self.last = Some(ack.now);
        // A sender without data measures itself.
        if self.careful && !ack.cwnd_limited && self.bw.is_some_and(|bw| sample < bw) {
            return;
        }
        self.filter(ack, sample, bytes, interval);
    }

    /// Intervals below which a sample waits for the next ACK.
    fn least_interval(&self, mss: u32) -> Span {
        match self.bw {
            Some(bw) if self.careful => MERGE.max(span(f64::from(mss) / (4.0 * bw.max(1.0)))),
            _ => Span::ZERO,
        }
    }

    fn filter(&mut self, ack: &AckSample, sample: f64, bytes: f64, interval: Span) {
        let m = &mut self.memory;
        let Some(bw) = self.bw else {
            // The first sample is taken as it is, and seeds whatever filters the others.
            m.tustin.take(sample);
            m.two_stages.take(sample);
            (m.current, m.began) = (sample, Some(ack.now));
            self.bw = Some(sample);
            return;
        };
        self.bw = Some(match self.settings.filter {
            AbeFilter::None => sample,
            AbeFilter::EwmaAck => bw + (sample - bw) / 8.0,
            AbeFilter::Tustin => m.tustin.take(sample),
            AbeFilter::WestwoodPlus => {
                m.bytes += bytes;
                let window = ack.now.since(*m.began.get_or_insert(ack.now));
                if window < ack.srtt.max(WESTWOOD_WINDOW) {
                    bw
                } else {
                    m.began = Some(ack.now);
                    m.two_stages.take(std::mem::take(&mut m.bytes) / window.as_secs_f64())
                }
            }
            // R = (RTT · R + L) / (interval + RTT), the time-sliding window of TCP-Jersey.
            AbeFilter::Tsw => {
                let rtt = ack.srtt.as_secs_f64();
                (rtt * bw + bytes) / (interval.as_secs_f64() + rtt)
            }
            AbeFilter::DeliveryRate => {
                if m.until.is_none_or(|until| ack.now >= until) {
                    (m.before, m.current) = (m.current, 0.0);
                    m.until = Some(ack.now + ack.srtt * HALF_OF_ROUNDS);
                }
                let measured = ack.rate.and_then(|r| r.rate).map(Rate::as_bytes_per_sec_f64);
                m.current = m.current.max(measured.unwrap_or(0.0));
                let highest = m.before.max(m.current);
                if highest > 0.0 { highest } else { bw }
            }
        });
    }

    /// BW · RTTmin / MSS (1), in segments; zero before the first sample.
    pub fn cwnd(&self, mss: u32) -> f64 {
        match (self.bw, self.rtt_min) {
            (Some(bw), Some(rtt)) => bw * rtt.as_secs_f64() / f64::from(mss.max(1)),
            _ => 0.0,
        }
    }

    /// BW, for the trace.
    pub fn bandwidth(&self) -> Option<Rate> {
        self.bw.map(Rate::from_bytes_per_sec_f64)
    }

    /// It lives on delivery rates.
    pub fn wants_rates(&self) -> bool {
        self.settings.filter == AbeFilter::DeliveryRate
    }

    /// Congestion window setting (STAR's CWS, Fig. 2), after a loss: the threshold, and the window.
    /// `cwnd_abe` becomes the threshold, at least 2; a window that is still below its threshold stays, even
    /// if it is larger than what was measured.
    pub fn set_windows(&self, window: &Window) -> (Packets, Packets) {
        let measured = Packets::new((self.cwnd(window.mss()) as u32).max(2));
        let keeps = window.cwnd() < window.ssthresh();
        (measured, if keeps { window.cwnd() } else { measured })
    }
}

fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{MSS, window};

    fn abe(filter: AbeFilter, first_interval: Span, careful: bool) -> Abe {
        let mut abe = Abe::new(Settings { filter, first_interval, cap: None, reset: false }, careful);
        abe.on_established(Span::from_millis(500));
        abe
    }

    /// ACKs `(ms since the start, segments)`; Mbit/s after each.
    fn estimates(abe: &mut Abe, acks: &[(u64, u32)]) -> Vec<f64> {
        let mut of = |&(ms, segments): &(u64, u32)| {
            let now = Instant::ZERO + Span::from_secs(1) + Span::from_millis(ms);
            let ack =
                AckSample { srtt: Span::from_millis(500), ..AckSample::of(now, Packets::new(segments)) };
            abe.on_acked(&ack);
            (abe.bandwidth().unwrap_or_default().as_mbit_f64() * 1000.0).round() / 1000.0
        };
        acks.iter().map(&mut of).collect()
    }

    /// Breaks: equations (1) and (2), and the paper's first interval: 1448 bytes in 1 ms are 11.584 Mbit/s,
    /// and with 500 ms that is 500 segments, 1.16 times what the link holds; 1 us makes 500,000.
    #[test]
    fn the_paper() {
        let mut a = abe(AbeFilter::None, Span::from_millis(1), false);
        // 2896 bytes in 10 ms: 2.3168 Mbit/s.
        assert_eq!(estimates(&mut a, &[(0, 1), (10, 2), (11, 1)]), [11.584, 2.317, 11.584]);
        assert_eq!(a.cwnd(MSS).round(), 500.0);
        let mut j = abe(AbeFilter::None, Span::from_micros(1), false);
        estimates(&mut j, &[(0, 1)]);
        assert_eq!(j.cwnd(MSS).round(), 500_000.0);
    }

    /// Breaks: each filter's arithmetic, at samples of 11.584 and then 1.1584 Mbit/s.
    #[test]
    fn filters() {
        let after = |filter| {
            let mut a = abe(filter, Span::from_millis(1), false);
            estimates(&mut a, &[(0, 1), (10, 1), (20, 1)])
        };
        assert_eq!(after(AbeFilter::EwmaAck), [11.584, 10.281, 9.141]);
        // 0.9 · 11.584 + 0.1 · (1.1584 + 11.584)/2 = 11.063; 0.9 · 11.063 + 0.1 · 1.1584 = 10.072
        assert_eq!(after(AbeFilter::Tustin), [11.584, 11.063, 10.072]);
        // (0.5 · 11.584 Mbit + 11584 bit) / 0.51 s = 11.380
        assert_eq!(after(AbeFilter::Tsw), [11.584, 11.38, 11.179]);
        let mut w = abe(AbeFilter::WestwoodPlus, Span::from_millis(1), false);
        // 50 segments, 579.2 kbit, in 500 ms: stage (7 · 11.584 + 1.1584)/8 = 10.281, BW (7 · 11.584 +
        // 10.281)/8 = 11.421
        assert_eq!(estimates(&mut w, &[(0, 1), (250, 25), (500, 25)]), [11.584, 11.584, 11.421]);
    }

    /// Breaks: the careful form: bunched ACKs are one sample, and a sender without data lowers nothing.
    #[test]
    fn careful() {
        let mut a = abe(AbeFilter::None, Span::ZERO, true);
        // The first interval is the handshake's 500 ms: 0.023 Mbit/s. Then 0.5 ms is less than a quarter of
        // the time that a segment takes at that rate: it waits for the ACK at 200 ms.
        let now = |ms| Instant::ZERO + Span::from_secs(1) + Span::from_micros(ms);
        for (at, want) in [(0, 23), (500, 23), (200_000, 115)] {
            a.on_acked(&AckSample::of(now(at), Packets::new(1)));
            assert_eq!(a.bandwidth().unwrap().bits_per_sec() / 1000, want, "at {at} us");
        }
        let idle = AckSample { cwnd_limited: false, ..AckSample::of(now(9_000_000), Packets::new(1)) };
        a.on_acked(&idle);
        assert_eq!(a.bandwidth().unwrap().bits_per_sec() / 1000, 115);
    }

    /// Breaks: the highest delivery rate counts, and is forgotten after ten round trips.
    #[test]
    fn delivery_rate_ages() {
        let mut a = abe(AbeFilter::DeliveryRate, Span::from_millis(1), true);
        let rate =
            |mbit| crate::segments::RateSample { rate: Some(Rate::from_mbit(mbit)), ..Default::default() };
        let mut at = |ms: u64, mbit| {
            let now = Instant::ZERO + Span::from_millis(1_000 + ms);
            let ack = AckSample {
                srtt: Span::from_millis(500),
                rate: Some(rate(mbit)),
                ..AckSample::of(now, Packets::new(1))
            };
            a.on_acked(&ack);
            a.bandwidth().unwrap().bits_per_sec() / 1_000_000
        };
        at(0, 8);
        assert_eq!([at(500, 20), at(1_000, 5), at(3_100, 5), at(5_700, 5)], [20, 20, 20, 5]);
    }

    /// Breaks: the paper's Fig. 2: which windows a loss leaves.
    #[test]
    fn congestion_window_setting() {
        let mut a = abe(AbeFilter::None, Span::from_millis(1), false);
        let set = |a: &Abe, w| {
            let (ssthresh, cwnd) = a.set_windows(&w);
            (ssthresh.get(), cwnd.get())
        };
        assert_eq!(set(&a, window(100, 50)), (2, 2));
        estimates(&mut a, &[(0, 1)]);
        assert_eq!(set(&a, window(600, 400)), (500, 500));
        assert_eq!(set(&a, window(600, 700)), (500, 600), "kept, though larger than what was measured");
        assert_eq!(set(&a, window(20, 700)), (500, 20));
    }
}
