//! The start: a train, half of what it said, all of it. Where the train says nothing, slow start.

use super::path::Queue;
use super::train::{self, Train};
use super::{DRAIN, Farpace, Phase, Round};
use crate::cc::AckSample;

/// Trains that are sent again before slow start does the work.
const MAX_TRAINS: u32 = 2;

impl Farpace {
    /// The train has arrived, or what it says is no use.
    pub(super) fn on_train(&mut self, delivered: u64) {
        self.phase = match self.train.rate(self.mss) {
            Some(rate) => {
                // Not more than a train of this length can vouch for.
                self.w = self.holds(rate / 2.0).clamp(self.w, self.w * train::MAX_JUMP);
                Phase::Ramp { rate, half: self.w, clocked: false }
            }
            None if self.trains < MAX_TRAINS => {
                self.trains += 1;
                self.train = Train::after(delivered);
                return;
            }
            None => Phase::Double { judged: false },
        };
    }

    /// An ACK of the start.
    pub(super) fn open(&mut self, ack: &AckSample) {
        let delivered = f64::from(ack.delivered.get());
        let alpha = self.alpha();
        match self.phase {
            Phase::Ramp { clocked: false, .. } | Phase::Train | Phase::Steady => {}
            _ if ack.rtt.is_some_and(|rtt| self.path.is_filling(rtt, self.w, alpha)) => self.settle(),
            Phase::Ramp { rate, clocked: true, .. } => {
                self.w = (self.w + delivered).min(self.holds(rate).max(self.w));
            }
            Phase::Double { .. } if ack.cwnd_limited => self.w += delivered,
            Phase::Double { .. } => {}
        }
    }

    /// A round trip of the start is over.
    pub(super) fn start_round(&mut self, round: &Round, queue: Queue) {
        match self.phase {
            Phase::Train | Phase::Steady => {}
            Phase::Ramp { rate, half, clocked: false } => {
                self.phase = Phase::Ramp { rate, half, clocked: true };
            }
            Phase::Ramp { rate, clocked: true, .. } => {
                // What half the rate loses, without a queue, is what the path loses.
                let usual = queue == Queue::Empty && self.loss.learn(round.lost, round.delivered);
                if !usual || round.marked {
                    self.settle();
                } else if self.w >= self.holds(rate) {
                    self.phase = Phase::Steady;
                }
            }
            Phase::Double { judged: false } => self.phase = Phase::Double { judged: true },
            Phase::Double { judged: true } => {
                if self.loss.is_congestion(round.lost, round.delivered, queue == Queue::Empty) || round.marked
                {
                    self.settle();
                }
            }
        }
    }

    /// The start is over: the window is what was delivered.
    fn settle(&mut self) {
        self.bandwidth = self.bandwidth.max(self.round.bandwidth);
        self.cut_to_delivered();
        if let Phase::Ramp { half, .. } = self.phase {
            // Measured while it grew; at half the rate the path was not full.
            self.w = self.w.max(half * DRAIN);
            self.limit = 0.0;
        }
        self.phase = Phase::Steady;
    }
}
