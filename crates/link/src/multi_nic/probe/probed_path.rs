//! One probed path: outstanding probes, and whether it works.

use super::delays::LONG;
use super::estimator::{Estimator, OutstandingProbe, PathEstimate};
use super::message::{PathProbe, ProbeTraffic, Reply};
use super::train::ProbeTrain;
use crate::multi_nic::{NicId, PerByte};
use crate::pacing::wire_len;
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::VecDeque;

/// Maximum number of outstanding probes: those of a second and a half at the shortest interval.
const MAX_OUTSTANDING: usize = 256;
/// Number of consecutive replies that show that a path works again.
const MIN_REPLIES: u32 = 2;
/// While a reply is overdue, probes are sent faster by this factor, so that a few random losses are not
/// treated as a failure.
const DOUBT_SPEEDUP: u64 = 4;
/// One probe in this number is long.
const LONG_PROBE_PERIOD: u64 = 4;
/// Inverse of the maximum share of a path that long probes may use.
const LONG_SHARE_DIVISOR: u64 = 100;
/// Maximum number of additional losses before a lossy path is taken down: one for each fortieth of its loss
/// rate.
const MAX_LOSS_ALLOWANCE: f64 = 6.0;
/// Few data need no exact delay of long frames: between two long probes of a path, the neighbour was sent so
/// many bytes for each of theirs, ...
const DATA_FOR_LONG: u64 = 64;
/// ... or this time. Delays are known from a long probe for longer.
const LONG_INTERVAL: Span = Span::from_secs(4);
/// Assumed round trip time before the first reply.
const UNKNOWN_RTT: Span = Span::from_millis(500);

/// How often a path is probed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbePace {
    /// The interval while data are sent.
    pub interval: Span,
    /// The longest interval.
    pub most: Span,
    /// When data were sent last, by any path to the neighbour.
    pub neighbour_used_at: Option<Instant>,
    /// So much is sent that probes at the interval cost little, and any path may be needed.
    pub busy: bool,
}

/// A probed path from an own NIC to one of a neighbour.
#[derive(Clone, Debug)]
pub(super) struct ProbedPath {
    pub from: MacAddr,
    pub to: MacAddr,
    pub nominal: Rate,
    pub up: bool,
    pub sent: ProbeTraffic,
    /// When a data frame was sent last.
    pub used_at: Option<Instant>,
    pub estimator: Estimator,
    /// The last estimate that was published.
    pub published: Option<PathEstimate>,
    /// A probe is to be sent as soon as the NIC is idle.
    pub waiting: bool,
    /// Time of the next event, as in the agenda of the prober.
    pub at: Instant,
    next_seq: u32,
    probes: u64,
    last_probe: Option<Instant>,
    /// When the last long probe was sent, and what the neighbour had been sent by then.
    last_long: Option<(Instant, ByteCount)>,
    outstanding: VecDeque<OutstandingProbe>,
    /// When the oldest probe was sent to which, and to all later ones, there is no reply. It may not be
    /// outstanding any more.
    unanswered_since: Option<Instant>,
    /// None: no train has been sent yet.
    train: Option<ProbeTrain>,
    consecutive_replies: u32,
    /// Fraction of probes without a reply.
    unanswered: f64,
    /// Sending time of the latest probe with a reply.
    pub answered: Option<Instant>,
}

impl ProbedPath {
    pub(super) fn new(from: MacAddr, to: MacAddr, nominal: Rate, hops: u8, up: bool) -> ProbedPath {
        ProbedPath {
            from,
            to,
            nominal,
            up,
            sent: ProbeTraffic::default(),
            used_at: None,
            estimator: Estimator::new(nominal, PerByte::of(nominal).times(hops.into())),
            published: None,
            waiting: false,
            at: Instant::ZERO,
            next_seq: 0,
            probes: 0,
            last_probe: None,
            last_long: None,
            outstanding: VecDeque::new(),
            unanswered_since: None,
            train: None,
            consecutive_replies: 0,
            unanswered: 0.0,
            answered: None,
        }
    }
    /// Creates the next probe, which leaves now, `behind` a frame that the NIC has just sent. `data`: what
    /// the neighbour was sent so far, on all paths.
    pub(super) fn probe(&mut self, now: Instant, nic: NicId, behind: ByteCount, data: ByteCount) -> Packet {
        self.waiting = false;
        self.last_probe = Some(now);
        self.probes += 1;
        // A NIC of a tunnel is faster than its path.
        let rate = self.published.map_or(self.nominal, |path| path.rate);
        let rested = |(last, bytes): (Instant, ByteCount)| {
            let since = now.since(last);
            since >= rate.time_for(LONG) * LONG_SHARE_DIVISOR
                && ((data - bytes).get() >= LONG.get() * DATA_FOR_LONG || since >= LONG_INTERVAL)
        };
        // The first probe measures the empty path.
        let train = self.train.as_mut().filter(|train| train.wants() && self.probes > 1);
        let is_train = train.map(ProbeTrain::on_sent).is_some();
        let due = self.probes.is_multiple_of(LONG_PROBE_PERIOD) && self.last_long.is_none_or(rested);
        let long = is_train || due;
        let seq = self.next_seq;
        self.next_seq = self.next_seq.wrapping_add(1);
        let of =
            |sent| PathProbe { nic, seq, sent_at: now, sent, rtt: self.estimator.rtt().unwrap_or_default() };
        let len = if long { ByteCount::new(1_514) } else { ByteCount::new(60) };
        self.sent.add(wire_len(len));
        let probe = of(self.sent);
        self.unanswered_since.get_or_insert(now);
        if self.outstanding.len() >= MAX_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(OutstandingProbe {
            seq,
            sent_at: now,
            sent: self.sent,
            long,
            train: is_train,
            behind,
        });
        if long {
            self.last_long = Some((now, data));
            probe.long_frame(self.from, self.to)
        } else {
            probe.frame(self.from, self.to)
        }
    }
    /// Handles a reply. False if it matches no outstanding probe.
    pub(super) fn on_reply(&mut self, now: Instant, reply: &Reply, interval: Span) -> bool {
        let matches_probe =
            |probe: &OutstandingProbe| probe.seq == reply.probe.seq && probe.sent_at == reply.probe.sent_at;
        let Some(at) = self.outstanding.iter().position(matches_probe) else { return false };
        // A path keeps frames in order: earlier probes are lost.
        self.consecutive_replies = if at == 0 { self.consecutive_replies.saturating_add(1) } else { 1 };
        self.unanswered += (at as f64 / (at + 1) as f64 - self.unanswered) / 32.0;
        let Some(probe) = self.outstanding.drain(..=at).next_back() else { return false };
        self.answered = Some(probe.sent_at);
        self.unanswered_since = self.outstanding.front().map(|next| next.sent_at);
        let first = self.estimator.rtt().is_none();
        if probe.train {
            if let Some(train) = &mut self.train {
                train.on_reply(probe.sent_at, reply.arrived_at, reply.received);
            }
        } else {
            self.estimator.add(now, &probe, reply, interval);
        }
        self.conclude(now);
        if first || self.consecutive_replies >= MIN_REPLIES {
            self.up = true;
        }
        true
    }
    /// The path is about to be used, so its rate must be measured. True if a train is to be sent now.
    pub(super) fn begin_train(&mut self) -> bool {
        let begins = self.train.is_none();
        if begins {
            self.train = Some(ProbeTrain::new(self.nominal));
        }
        begins
    }
    /// Begins another train if the rate of the path has to be measured again. True if it is to be sent now.
    pub(super) fn retest(&mut self, now: Instant) -> bool {
        let is_over = self.train.is_some() && !self.wants_more();
        let begins = self.up && is_over && self.estimator.take_retest(now);
        if begins {
            self.train = Some(ProbeTrain::new(self.nominal));
        }
        begins
    }
    /// True if more probes of the train are to be sent.
    pub(super) fn wants_more(&self) -> bool {
        self.train.as_ref().is_some_and(ProbeTrain::wants)
    }
    /// Evaluates the train when all of its probes are answered or lost.
    fn conclude(&mut self, now: Instant) {
        let done = !self.wants_more() && !self.outstanding.iter().any(|probe| probe.train);
        if let Some(rate) = self.train.as_mut().filter(|_| done).and_then(ProbeTrain::take_rate) {
            self.estimator.found(now, rate);
        }
    }
    /// Handles the deadline: takes the path down if replies are overdue for too long.
    pub(super) fn check(&mut self, now: Instant, interval: Span) {
        if self.up && self.fails_at(interval).is_some_and(|at| at <= now) {
            self.up = false;
            self.consecutive_replies = 0;
            self.estimator.interrupt(now);
        }
    }
    /// When the next probe is due.
    ///
    /// Where few data are sent, the longer nothing was sent, the rarer probes are: the interval doubles from
    /// that of `pace` on. What was sent last is followed by a probe within that interval, and whether its
    /// reply is overdue does not depend on what is sent. So a failure is found as fast as on a path in
    /// constant use, if anything was sent that it could have cost.
    pub(super) fn probe_at(&self, now: Instant, pace: ProbePace) -> Instant {
        let Some(last) = self.last_probe else { return now };
        let ProbePace { interval, most, neighbour_used_at, busy } = pace;
        // No data goes by a path that is down, and it is wanted back while there are data.
        let used_at = if self.up { self.used_at } else { neighbour_used_at };
        let rare = used_at.map_or(most, |at| last.since(at).max(interval).min(most));
        let regular = last + if busy { interval } else { rare };
        let soon = last + interval / DOUBT_SPEEDUP;
        let returns = !self.up && self.consecutive_replies > 0;
        match self.overdue_at() {
            _ if returns => soon,
            Some(at) if self.up && at <= now => soon,
            Some(at) if self.up => at.max(soon).min(regular),
            _ => regular,
        }
    }
    /// When the path is taken down unless a reply arrives before; none: no reply is outstanding.
    pub(super) fn fails_at(&self, interval: Span) -> Option<Instant> {
        // One probe and two more that should have been answered, plus an allowance for lossy paths.
        let more = (self.unanswered * 40.0).min(MAX_LOSS_ALLOWANCE) as u64;
        self.overdue_at().filter(|_| self.up).map(|at| at + interval * (2 + more))
    }

    /// When the reply to the oldest probe is overdue.
    fn overdue_at(&self) -> Option<Instant> {
        let timeout = self.estimator.reply_timeout().unwrap_or(UNKNOWN_RTT);
        self.unanswered_since.map(|since| since + timeout)
    }
}
