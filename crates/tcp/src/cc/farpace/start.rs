//! The start: a train, longer trains at half of the rate that it said, half of it for a round trip, all of
//! it. Where the ACKs of the train came bunched, it may have said too little: the window then grows on by a
//! quarter a round trip until there is a queue, and doubles if it was far too little. Where the train says
//! nothing, slow start, with further trains meanwhile.

use super::path::QueueEstimate;
use super::train::{self, PacketTrain, TrainPace};
use super::{DRAIN, Farpace, FarpacePhase, MAX_ALPHA, MIN_CWND, Round, least_alpha};
use crate::cc::AckSample;

/// Trains that are sent again before slow start does the work: with an initial window of 10 the last has 160
/// segments, because fewer may come within one interrupt of a fast NIC.
const MAX_TRAINS: u32 = 4;
/// A train at half of the rate arrives at this part of the rate at least, or the rate was too high.
const MIN_ARRIVAL: f64 = 0.4;
/// The rate of a train and its round trip make this part of the window at least.
const MIN_WAITED: f64 = 0.45;
/// What is left after the longest jump is no reason for another train up to this factor: ACKs do that.
const MAX_ACK_GROWTH: f64 = 2.0;
/// A round trip to which the window goes on beyond an uncertain rate has so much more than the one before ...
const BEYOND: f64 = 1.25;
/// ... or this, where the receiver tells of many segments at once: then the rate is mostly too low.
const BEYOND_TOGETHER: f64 = 1.5;
/// From so many times the uncertain rate on it doubles: the rate was no use.
const MAX_BEYOND: f64 = 2.0;
/// Where more segments than this are told at once, the intervals of a train are those of the receiver, and
/// not of the line.
const MAX_TOGETHER: f64 = 4.0;
/// Round trips after a queue has ended the start whose rates may be higher than those before: they tell of
/// the largest window.
const SETTLING_ROUNDS: u32 = 2;
/// The path is not full while a round trip of slow start delivers so much faster than all before.
const MIN_RATE_GROWTH: f64 = 1.25;
/// The path is full where a larger part than this is lost, although the rate grows.
const MAX_GROWTH_LOSS: f64 = 0.1;

impl Farpace {
    /// The train has arrived, or what it says is no use.
    pub(super) fn on_train(&mut self, delivered: u64) {
        // In the median a flight has waited for half of itself. A rate at which it had waited longer than it
        // did is none: between its ACKs the line was idle.
        let rtt = self.path.latest().unwrap_or_default().as_secs_f64();
        let is_idle = |rate: &f64| rate * rtt < MIN_WAITED * self.w * self.mss;
        self.phase = match self.train.rate(self.mss).filter(|rate| !is_idle(rate)) {
            Some(rate) => self.jump(rate),
            // What programs say to each other before the data is no train.
            None if self.trains < MAX_TRAINS || !self.train.is_whole() => {
                self.trains += u32::from(self.train.is_whole());
                self.train = PacketTrain::after(delivered);
                return;
            }
            None => FarpacePhase::Double { judged: false },
        };
    }

    /// As much of half the rate as a train of the present length can vouch for.
    fn jump(&mut self, rate: f64) -> FarpacePhase {
        let half = self.holds(rate / 2.0);
        let most = self.w * train::MAX_JUMP;
        if half > most * MAX_ACK_GROWTH {
            self.w = most;
            return FarpacePhase::Trains { rate, train: None };
        }
        self.w = half.min(most).max(self.w);
        FarpacePhase::Ramp { rate, half: self.w, clocked: false }
    }

    /// An ACK of a train at half of the rate.
    fn on_paced(&mut self, ack: &AckSample) {
        let (FarpacePhase::Trains { rate, train: Some(train) }, Some(sample)) = (&mut self.phase, ack.rate)
        else {
            return;
        };
        let Some(arrived) = train.on_ack(ack, sample.total_delivered) else { return };
        let rate = *rate;
        self.on_arrival(rate, arrived * self.mss, sample.total_delivered);
    }

    /// A train that was sent on the word of `rate` has arrived at another, bytes a second.
    fn on_arrival(&mut self, rate: f64, arrived: f64, delivered: u64) {
        let rate = if arrived >= MIN_ARRIVAL * rate { rate } else { arrived };
        if rate > 0.0 && self.holds(rate) <= self.w {
            // The train itself was more than the path holds.
            self.round.bandwidth = rate;
            self.bandwidth = rate;
            self.settle();
        } else {
            self.phase = if rate > 0.0 { self.jump(rate) } else { FarpacePhase::Double { judged: true } };
        }
        self.rounds.restart(delivered);
    }

    /// A round trip has passed, and the window has not held back what is missing of the train. What the
    /// receiver's window has let through tells a rate as well. A program that sends little tells none: the
    /// next flight is a train again.
    fn on_short_train(&mut self, rate: f64, train: &TrainPace, ack: &AckSample, round: &Round) {
        let Some(sample) = ack.rate else { return };
        match train.so_far().filter(|_| !sample.app_limited) {
            Some(arrived) => self.on_arrival(rate, arrived * self.mss, sample.total_delivered),
            None => {
                self.w = self.w.min(round.delivered.max(self.flight)).max(MIN_CWND);
                self.train = PacketTrain::after(sample.total_delivered);
                self.phase = FarpacePhase::Train;
            }
        }
    }

    /// An ACK of the start.
    pub(super) fn open(&mut self, ack: &AckSample) {
        let delivered = f64::from(ack.delivered.get());
        let alpha = self.alpha();
        match self.phase {
            FarpacePhase::Ramp { clocked: false, .. }
            | FarpacePhase::Trains { train: None, .. }
            | FarpacePhase::Steady => {}
            FarpacePhase::Train if self.trains == 0 => {}
            // A train that leaves faster than the line makes a queue of its own. Its arrival tells more than
            // that queue.
            FarpacePhase::Trains { .. } => self.on_paced(ack),
            _ if self.rtt.is_some_and(|rtt| self.path.is_filling(ack.now, rtt, self.w, alpha)) => {
                self.settle_by_queue();
            }
            FarpacePhase::Ramp { rate, clocked: true, .. } => {
                self.w = (self.w + delivered).min(self.holds(rate).max(self.w));
            }
            FarpacePhase::Train | FarpacePhase::Double { .. } if ack.cwnd_limited => self.w += delivered,
            FarpacePhase::Beyond { .. } if ack.cwnd_limited => {
                let factor = if self.tells_together() { BEYOND_TOGETHER } else { BEYOND };
                self.w += delivered * (factor - 1.0);
            }
            FarpacePhase::Train | FarpacePhase::Beyond { .. } | FarpacePhase::Double { .. } => {}
        }
    }

    /// A round trip of the start is over; `before`: the highest rate of those before, bytes a second.
    pub(super) fn start_round(&mut self, ack: &AckSample, round: &Round, queue: QueueEstimate, before: f64) {
        match self.phase {
            FarpacePhase::Steady => {}
            FarpacePhase::Train if self.trains == 0 => {}
            FarpacePhase::Trains { .. } if round.marked => self.settle(),
            FarpacePhase::Trains { rate, train: None } => {
                let delivered = ack.rate.map_or(0, |r| r.total_delivered);
                self.phase =
                    FarpacePhase::Trains { rate, train: Some(TrainPace::begins(ack.now, delivered, self.w)) };
            }
            // Not all of the train has arrived, or has been sent.
            FarpacePhase::Trains { rate, train: Some(train) } => {
                if queue == QueueEstimate::Empty && self.loss.learn(round.lost, round.delivered) {
                    self.phase = FarpacePhase::Double { judged: true };
                } else if !round.limited && round.lost <= 0.0 {
                    self.on_short_train(rate, &train, ack, round);
                } else {
                    self.settle();
                }
            }
            FarpacePhase::Ramp { rate, half, clocked: false } => {
                self.phase = FarpacePhase::Ramp { rate, half, clocked: true };
            }
            FarpacePhase::Ramp { rate, clocked: true, .. } => {
                // What half the rate loses, without a queue, is what the path loses.
                if queue != QueueEstimate::Empty {
                    self.settle_by_queue();
                } else if !self.loss.learn(round.lost, round.delivered) || round.marked {
                    self.settle();
                } else if self.w >= self.holds(rate) && self.is_uncertain() {
                    self.phase = FarpacePhase::Beyond { most: self.w * MAX_BEYOND };
                } else if self.w >= self.holds(rate) {
                    if least_alpha(self.w) >= MAX_ALPHA {
                        // A short queue does not hold what haste would add in the round trip until it is
                        // seen.
                        self.limit = self.w;
                    }
                    self.phase = FarpacePhase::Steady;
                }
            }
            FarpacePhase::Double { judged: false } => self.phase = FarpacePhase::Double { judged: true },
            FarpacePhase::Beyond { .. }
                if queue != QueueEstimate::Empty && self.path.own() > self.alpha() =>
            {
                self.settle_by_queue();
            }
            FarpacePhase::Train | FarpacePhase::Beyond { .. } | FarpacePhase::Double { judged: true } => {
                // Where the rate grows with the window a few losses do not show that the path is full.
                let few = round.lost <= MAX_GROWTH_LOSS * (round.lost + round.delivered);
                let grows = few && round.bandwidth >= MIN_RATE_GROWTH * before;
                let sample = self.loss_sample(round, queue);
                if round.marked || !grows && self.loss.is_congestion(&sample) {
                    self.settle();
                } else if let FarpacePhase::Beyond { most } = self.phase
                    && self.w >= most
                {
                    self.phase = FarpacePhase::Double { judged: true };
                }
            }
        }
    }

    /// The rate of the train may be far from that of the line.
    fn is_uncertain(&self) -> bool {
        self.train.is_uneven() || self.tells_together()
    }

    fn tells_together(&self) -> bool {
        self.aggregation.together() > MAX_TOGETHER
    }

    /// All of the rate that the train said makes no queue: the path may hold many times as much. If a quarter
    /// more makes none either, it does.
    pub(super) fn start_again(&mut self) {
        self.phase = FarpacePhase::Beyond { most: self.w };
        self.calm = 0;
    }

    /// The start is over, because there is a queue.
    pub(super) fn settle_by_queue(&mut self) {
        self.settle();
        self.limit_by_queue = true;
        self.settling = SETTLING_ROUNDS;
    }

    /// When the queue was seen, the rate was that of a window a round trip ago. What the rest of that flight
    /// shows is the rate of the line.
    pub(super) fn settle_at(&mut self, bandwidth: f64) {
        if self.settling > 0 {
            self.limit = self.limit.max(self.window_for(bandwidth));
            self.w = self.w.max(self.limit * DRAIN);
        }
    }

    /// The start is over: the window is what was delivered.
    fn settle(&mut self) {
        self.bandwidth = self.bandwidth.max(self.round.bandwidth);
        self.cut_to_delivered(MIN_CWND);
        if let FarpacePhase::Ramp { half, .. } = self.phase {
            // Measured while it grew; at half the rate the path was not full.
            self.w = self.w.max(half * DRAIN);
            self.limit = 0.0;
        }
        self.phase = FarpacePhase::Steady;
    }
}
