//! Delivery-rate samples (draft-ietf-ccwg-bbr §4.1): how fast did the path carry what has just arrived?
//!
//! A column beside the rows of [`Segments`](super::Segments). Each segment sent takes a snapshot of what was
//! delivered until then; when it arrives, the difference over the time is a sample of the rate. Volumes are
//! counted in segments, as the congestion window is; the rate is taken from bytes.

use super::SegmentRow;
use crate::trim::trim;
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use std::collections::VecDeque;

/// What was known when a segment was last sent (P.* of the draft).
#[derive(Clone, Copy, Debug, Default)]
struct RateSnapshot {
    delivered: u64,
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    in_flight: Packets,
    app_limited: bool,
    /// It has arrived.
    done: bool,
}

/// The newest segment that arrived since the last sample.
#[derive(Clone, Copy, Debug)]
struct Newest {
    snapshot: RateSnapshot,
    sent_at: Instant,
    end: Seq,
    /// It was sent only once: its round trip is known.
    unambiguous: bool,
}

/// A sample of the rate at which the path delivers (RS of the draft).
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Segments that this ACK newly shows to have arrived.
    pub newly_delivered: Packets,
    /// Segments delivered from the sending of the newest of them until now.
    pub delivered: Packets,
    /// Segments delivered over the whole connection when the newest of them was sent.
    pub prior_delivered: u64,
    /// Segments delivered over the whole connection.
    pub total_delivered: u64,
    /// The time in which `delivered` were sent or acknowledged, whichever was longer.
    pub interval: Span,
    /// The rate over it; none if it is too short to be believed.
    pub rate: Option<Rate>,
    /// The application held data back, so that the path may be faster than this.
    pub app_limited: bool,
    /// Segments in flight when the newest was sent, itself included.
    pub in_flight_at_send: Packets,
    /// Segments found lost since the newest was sent.
    pub lost: Packets,
    /// Segments found lost over the whole connection.
    pub total_lost: u64,
    /// Round trip of the newest, if it was sent only once.
    pub rtt: Option<Span>,
}

/// A segment that was found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// First sequence number.
    pub seq: Seq,
    /// First sequence number after it.
    pub end: Seq,
    /// Segments in flight when it was sent, itself included.
    pub in_flight_at_send: Packets,
    /// Segments found lost since it was sent, itself included.
    pub lost: Packets,
    /// It was sent while the application held data back.
    pub app_limited: bool,
    /// Segments delivered over the whole connection.
    pub total_delivered: u64,
}

/// The column, and the counters of the connection (C.* of the draft).
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRates {
    snapshots: VecDeque<RateSnapshot>,
    delivered: u64,
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// `delivered` at which the gap that the application has left is through the network.
    app_limited: Option<u64>,
    newest: Option<Newest>,
    newly_delivered: u32,
    losses: Vec<LostSegment>,
}

impl DeliveryRates {
    /// A column for `rows` segments that were sent before it existed; they give no samples.
    pub fn new(rows: usize) -> Self {
        let unknown = RateSnapshot { done: true, ..RateSnapshot::default() };
        DeliveryRates { snapshots: std::iter::repeat_n(unknown, rows).collect(), ..DeliveryRates::default() }
    }

    pub fn len(&self) -> usize {
        self.snapshots.len()
    }

    pub fn push(&mut self, now: Instant, in_flight: Packets) {
        let snapshot = self.snapshot(now, in_flight);
        self.snapshots.push_back(snapshot);
    }

    pub fn pop(&mut self) {
        self.snapshots.pop_front();
    }

    /// Nothing is outstanding: the memory goes back.
    pub fn trim(&mut self) {
        trim(&mut self.snapshots);
    }

    /// The segment at `index` was cut in two: each has its snapshot.
    pub fn split(&mut self, index: usize) {
        if let Some(s) = self.snapshots.get(index).copied() {
            self.snapshots.insert(index, s);
        }
    }

    /// The segments were cut into so many parts each.
    pub fn split_each(&mut self, parts: &[usize]) {
        let old = std::mem::take(&mut self.snapshots);
        self.snapshots = old.into_iter().zip(parts).flat_map(|(s, n)| std::iter::repeat_n(s, *n)).collect();
    }

    /// A segment is sent again; `in_flight` includes it.
    pub fn on_sent(&mut self, index: usize, now: Instant, in_flight: Packets) {
        let snapshot = self.snapshot(now, in_flight);
        if let Some(s) = self.snapshots.get_mut(index) {
            *s = snapshot;
        }
    }

    /// Draft §4.1.2.2: OnPacketSent.
    fn snapshot(&mut self, now: Instant, in_flight: Packets) -> RateSnapshot {
        if in_flight.get() <= 1 {
            // Nothing was on the way: the interval begins here.
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        RateSnapshot {
            delivered: self.delivered,
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight,
            app_limited: self.app_limited.is_some(),
            done: false,
        }
    }

    /// Draft §4.1.2.3: UpdateRateSample. `once`: it was never retransmitted.
    pub fn on_delivered(&mut self, index: usize, row: &SegmentRow, once: bool) {
        let Some(snapshot) = self.snapshots.get_mut(index) else { return };
        if std::mem::replace(&mut snapshot.done, true) {
            return;
        }
        self.delivered += 1;
        self.delivered_bytes += u64::from(row.len);
        self.newly_delivered = self.newly_delivered.saturating_add(1);
        let newer = self.newest.is_none_or(|n| {
            row.sent_at > self.first_sent_at || (row.sent_at == self.first_sent_at && row.end().after(n.end))
        });
        if newer {
            self.newest =
                Some(Newest { snapshot: *snapshot, sent_at: row.sent_at, end: row.end(), unambiguous: once });
            self.first_sent_at = row.sent_at;
        }
    }

    pub fn on_lost(&mut self, index: usize, row: &SegmentRow) {
        let Some(snapshot) = self.snapshots.get(index) else { return };
        self.lost += 1;
        self.losses.push(LostSegment {
            seq: row.seq,
            end: row.end(),
            in_flight_at_send: snapshot.in_flight,
            lost: packets(self.lost - snapshot.lost),
            app_limited: snapshot.app_limited,
            total_delivered: self.delivered,
        });
    }

    /// Draft §4.1.2.3: GenerateRateSample.
    pub fn take_sample(&mut self, now: Instant, min_rtt: Option<Span>) -> Option<RateSample> {
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        let newly_delivered = Packets::new(std::mem::take(&mut self.newly_delivered));
        let Newest { snapshot, sent_at, unambiguous, .. } = self.newest.take()?;
        self.delivered_at = now;
        let interval = sent_at.since(snapshot.first_sent_at).max(now.since(snapshot.delivered_at));
        let rtt = unambiguous.then(|| now.since(sent_at));
        // Where ACKs tell of several segments, the least round trip is one of first segments. That of the
        // newest one may be shorter.
        let least = min_rtt.map(|min| rtt.map_or(min, |rtt| rtt.min(min)));
        let believable = !interval.is_zero() && least.is_none_or(|least| interval >= least);
        let bytes = ByteCount::new(self.delivered_bytes - snapshot.delivered_bytes);
        Some(RateSample {
            newly_delivered,
            delivered: packets(self.delivered - snapshot.delivered),
            prior_delivered: snapshot.delivered,
            total_delivered: self.delivered,
            interval,
            rate: believable.then(|| Rate::of(bytes, interval)),
            app_limited: snapshot.app_limited,
            in_flight_at_send: snapshot.in_flight,
            lost: packets(self.lost - snapshot.lost),
            total_lost: self.lost,
            rtt,
        })
    }

    /// Segments found lost over the whole connection.
    pub const fn total_lost(&self) -> u64 {
        self.lost
    }

    pub fn take_losses(&mut self, take: impl FnMut(LostSegment)) {
        self.losses.drain(..).for_each(take);
    }

    /// Draft §4.1.2.4: MarkConnectionAppLimited.
    pub fn mark_app_limited(&mut self, in_flight: Packets) {
        self.app_limited = Some((self.delivered + u64::from(in_flight.get())).max(1));
    }
}

fn packets(n: u64) -> Packets {
    Packets::new(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::Segments;
    use super::*;

    const MSS: u32 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// A queue of `n` segments, one sent each millisecond from 100 ms on.
    fn sent(n: u32) -> Segments {
        let mut segments = Segments::default();
        segments.measure_rates();
        for i in 0..n {
            segments.push(Seq::new(i * MSS), MSS, at(100 + u64::from(i)));
        }
        segments
    }

    /// Breaks: the rate that model-based congestion control believes in: what arrived while the segment was
    /// on its way, over the longer of the sending and the acknowledging time.
    #[test]
    fn rate_of_a_steady_flight() {
        let mut segments = sent(10);
        segments.acknowledge(Seq::new(2 * MSS));
        let first = segments.take_rate_sample(at(150), Some(Span::from_millis(50))).unwrap();
        // The second segment: sent 1 ms after the first, acknowledged 50 ms after the begin.
        assert_eq!((first.delivered.get(), first.interval), (2, Span::from_millis(50)));
        assert_eq!(first.rtt, Some(Span::from_millis(49)));
        assert_eq!(first.in_flight_at_send.get(), 2);
        segments.push(Seq::new(10 * MSS), MSS, at(150));
        segments.acknowledge(Seq::new(11 * MSS));
        let second = segments.take_rate_sample(at(200), None).unwrap();
        assert_eq!((second.newly_delivered.get(), second.delivered.get()), (9, 9));
        assert_eq!(second.interval, Span::from_millis(50));
        assert_eq!(second.rate, Some(Rate::of(ByteCount::new(9000), Span::from_millis(50))));
        assert_eq!((second.prior_delivered, second.total_delivered), (2, 11));
        assert_eq!(segments.take_rate_sample(at(201), None), None);
    }

    /// Breaks: ACKs that come in a bunch must not look like a fast path: the sending time bounds the rate.
    #[test]
    fn compressed_acks_do_not_count() {
        let mut segments = sent(2);
        segments.acknowledge(Seq::new(MSS));
        segments.take_rate_sample(at(150), None);
        for i in 2..60 {
            segments.push(Seq::new(i * MSS), MSS, at(150 + u64::from(i)));
        }
        segments.acknowledge(Seq::new(2 * MSS));
        segments.take_rate_sample(at(209), None);
        segments.push(Seq::new(60 * MSS), MSS, at(209));
        segments.acknowledge(Seq::new(61 * MSS));
        // 59 segments arrive within 1 ms of the last ACK; it took 108 ms to send them.
        let sample = segments.take_rate_sample(at(210), None).unwrap();
        assert_eq!((sample.delivered.get(), sample.interval), (59, Span::from_millis(108)));
    }

    /// Breaks: an ACK of what was sent first passes for one of its retransmission, over an interval in which
    /// no ACK can come; or paced senders have no rate where ACKs tell of several segments, because the least
    /// round trip is that of a first one and the interval that of the last.
    #[test]
    fn intervals_below_the_least_round_trip_need_a_round_trip_of_their_own() {
        let least = Some(Span::from_millis(31));
        for retransmitted in [false, true] {
            let mut segments = sent(30);
            if retransmitted {
                segments.mark_lost(29);
                segments.mark_retransmitted(29, at(129), Seq::new(30 * MSS));
            }
            segments.acknowledge(Seq::new(30 * MSS));
            let sample = segments.take_rate_sample(at(130), least).unwrap();
            assert_eq!((sample.interval, sample.rate.is_none()), (Span::from_millis(30), retransmitted));
        }
    }

    /// Breaks: counting twice what a SACK and an ACK both tell, or what is lost twice.
    #[test]
    fn arrivals_and_losses_count_once() {
        let mut segments = sent(6);
        segments.sack(4);
        segments.sack(5);
        segments.mark_lost(0);
        segments.mark_lost(0);
        segments.mark_lost(1);
        let sample = segments.take_rate_sample(at(150), None).unwrap();
        assert_eq!((sample.newly_delivered.get(), sample.lost.get()), (2, 2));
        assert_eq!(sample.rtt, Some(Span::from_millis(45)));
        let mut lost = Vec::new();
        segments.take_losses(|l| lost.push((l.seq.get(), l.lost.get(), l.in_flight_at_send.get())));
        assert_eq!(lost, [(0, 1, 1), (MSS, 2, 2)]);
        segments.mark_retransmitted(0, at(151), Seq::new(6 * MSS));
        segments.mark_retransmission_lost(0);
        segments.mark_retransmitted(0, at(152), Seq::new(6 * MSS));
        segments.acknowledge(Seq::new(6 * MSS));
        let sample = segments.take_rate_sample(at(200), None).unwrap();
        assert_eq!((sample.newly_delivered.get(), sample.total_delivered), (4, 6));
        assert_eq!((sample.lost.get(), sample.rtt), (0, None), "the newest is a retransmission");
        let mut again = 0;
        segments.take_losses(|_| again += 1);
        assert_eq!(again, 1);
        assert_eq!(segments.check(), Ok(()));
    }

    /// Breaks: samples of a sender that had nothing to send must be known as such, for one round trip.
    #[test]
    fn application_limits_are_remembered_for_a_flight() {
        let mut segments = sent(2);
        segments.mark_app_limited();
        segments.push(Seq::new(2 * MSS), MSS, at(110));
        segments.acknowledge(Seq::new(3 * MSS));
        assert!(segments.take_rate_sample(at(150), None).unwrap().app_limited);
        segments.push(Seq::new(3 * MSS), MSS, at(151));
        segments.acknowledge(Seq::new(4 * MSS));
        assert!(!segments.take_rate_sample(at(200), None).unwrap().app_limited);
    }

    /// Breaks: a timeout counts what was still believed in flight as lost, once.
    #[test]
    fn a_timeout_loses_what_was_in_flight() {
        let mut segments = sent(5);
        segments.sack(4);
        segments.mark_lost(0);
        segments.lose_all(false);
        let mut lost = 0;
        segments.take_losses(|_| lost += 1);
        assert_eq!(lost, 4);
        segments.lose_all(false);
        segments.take_losses(|_| lost += 1);
        assert_eq!(lost, 4);
    }
}
