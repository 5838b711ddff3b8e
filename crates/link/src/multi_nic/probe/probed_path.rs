//! One probed path: outstanding probes, and whether it works.

use super::delays::LONG;
use super::estimator::{Estimator, Outstanding, PathEstimate};
use super::message::{PathProbe, ProbeTraffic, Reply};
use super::train::ProbeTrain;
use crate::multi_nic::{NicId, PerByte};
use crate::pacing::on_the_line;
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::VecDeque;

/// Maximum number of outstanding probes: those of a second and a half at the shortest interval.
const MAX_OUTSTANDING: usize = 256;
/// Number of consecutive replies that show that a path works again.
const ENOUGH_REPLIES: u32 = 2;
/// Probes follow each other faster by this as long as it is in doubt whether the way works: then a few that are lost by chance are
/// not taken for a failure.
const HASTE: u64 = 4;
/// Of so many probes one is long.
const LONG_EVERY: u64 = 4;
/// Long probes take at most this part of a lane.
const LONG_SHARE: u64 = 100;
/// A way that loses probes by chance is given so many more, for each fortieth part that it loses one.
const MAX_LOSS_ALLOWANCE: f64 = 6.0;
/// Assumed round trip time before the first reply.
const UNKNOWN_RTT: Span = Span::from_millis(500);

/// A probed path from an own NIC to one of a neighbour.
#[derive(Clone, Debug)]
pub(super) struct ProbedPath {
    pub from: MacAddr,
    pub to: MacAddr,
    pub nominal: Rate,
    pub up: bool,
    pub sent: ProbeTraffic,
    pub estimator: Estimator,
    /// The last estimate that was published.
    pub told: Option<PathEstimate>,
    /// A probe is to be sent as soon as the card is free.
    pub waiting: bool,
    /// Time of the next event, as in the agenda of the prober.
    pub at: Instant,
    next_seq: u32,
    probes: u64,
    last_probe: Option<Instant>,
    last_long: Option<Instant>,
    outstanding: VecDeque<Outstanding>,
    /// None: no train has been sent yet.
    train: Option<ProbeTrain>,
    in_a_row: u32,
    /// Share of probes that are not answered.
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
            estimator: Estimator::new(nominal, PerByte::of(nominal).times(hops.into())),
            told: None,
            waiting: false,
            at: Instant::ZERO,
            next_seq: 0,
            probes: 0,
            last_probe: None,
            last_long: None,
            outstanding: VecDeque::new(),
            train: None,
            in_a_row: 0,
            unanswered: 0.0,
            answered: None,
        }
    }
    /// Creates the next probe, which leaves now, `behind` a frame that the NIC has just sent.
    pub(super) fn probe(&mut self, now: Instant, lane: NicId, behind: ByteCount) -> Packet {
        self.waiting = false;
        self.last_probe = Some(now);
        self.probes += 1;
        let rested = |last: Instant| now.since(last) >= self.nominal.time_for(LONG) * LONG_SHARE;
        // The first of all finds the way empty.
        let train = self.train.as_mut().filter(|train| train.wants() && self.probes > 1);
        let is_train = train.map(ProbeTrain::on_sent).is_some();
        let due = self.probes.is_multiple_of(LONG_EVERY) && self.last_long.is_none_or(rested);
        let long = is_train || due;
        let seq = self.next_seq;
        self.next_seq = self.next_seq.wrapping_add(1);
        let of =
            |sent| PathProbe { lane, seq, sent_at: now, sent, rtt: self.estimator.rtt().unwrap_or_default() };
        let len = if long { ByteCount::new(1_514) } else { ByteCount::new(60) };
        self.sent.add(on_the_line(len));
        let probe = of(self.sent);
        if self.outstanding.len() >= MAX_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Outstanding {
            seq,
            sent_at: now,
            sent: self.sent,
            long,
            train: is_train,
            behind,
        });
        if long {
            self.last_long = Some(now);
            probe.long_frame(self.from, self.to)
        } else {
            probe.frame(self.from, self.to)
        }
    }
    /// Handles a reply. False if it matches no outstanding probe.
    pub(super) fn on_reply(&mut self, now: Instant, reply: &Reply, interval: Span) -> bool {
        let asked =
            |probe: &Outstanding| probe.seq == reply.probe.seq && probe.sent_at == reply.probe.sent_at;
        let Some(at) = self.outstanding.iter().position(asked) else { return false };
        // Frames of one lane do not overtake each other: what is before this one does not come.
        self.in_a_row = if at == 0 { self.in_a_row.saturating_add(1) } else { 1 };
        self.unanswered += (at as f64 / (at + 1) as f64 - self.unanswered) / 32.0;
        let Some(probe) = self.outstanding.drain(..=at).next_back() else { return false };
        self.answered = Some(probe.sent_at);
        let first = self.estimator.rtt().is_none();
        if probe.train {
            if let Some(train) = &mut self.train {
                train.on_reply(reply.arrived_at, reply.received);
            }
        } else {
            self.estimator.add(now, &probe, reply, interval);
        }
        self.conclude(now);
        if first || self.in_a_row >= ENOUGH_REPLIES {
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
        if self.up && self.lost_at(interval).is_some_and(|at| at <= now) {
            self.up = false;
            self.in_a_row = 0;
            self.estimator.interrupt(now);
        }
    }
    /// When the next probe is due.
    pub(super) fn probe_at(&self, now: Instant, interval: Span, idle: Span, used: bool) -> Instant {
        let Some(last) = self.last_probe else { return now };
        let returns = !self.up && self.in_a_row > 0;
        match self.doubted_at() {
            _ if returns => last + interval / HASTE,
            Some(at) if self.up && at <= now => last + interval / HASTE,
            Some(at) if self.up => {
                at.max(last + interval / HASTE).min(last + if used { interval } else { idle })
            }
            _ => last + if used { interval } else { idle },
        }
    }
    /// When the path is taken down unless a reply arrives before; none: no reply is outstanding.
    pub(super) fn lost_at(&self, interval: Span) -> Option<Instant> {
        // The probe itself, and two more that would have been answered; more where many are not.
        let more = (self.unanswered * 40.0).min(MAX_LOSS_ALLOWANCE) as u64;
        self.doubted_at().filter(|_| self.up).map(|at| at + interval * (2 + more))
    }

    /// When the reply to the oldest probe is overdue.
    fn doubted_at(&self) -> Option<Instant> {
        let patience = self.estimator.patience().unwrap_or(UNKNOWN_RTT);
        self.outstanding.front().map(|probe| probe.sent_at + patience)
    }
}
