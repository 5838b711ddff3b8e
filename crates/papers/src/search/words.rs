//! A found path in words.

use super::objective::{Objective, PathNumbers, PathScore};
use super::space::{Gene, PathPoint};
use crate::statistics::jain;
use farpace_units::number;

impl PathPoint {
    /// What the path is, without a full stop.
    pub fn words(&self) -> String {
        let rate = number(self.of(Gene::Rate));
        let (rtt, queue) = (number(self.of(Gene::Rtt)), number(self.of(Gene::Queue)));
        let discipline = self.word(Gene::Discipline).map_or(String::new(), |word| format!(" under {word}"));
        let mut text = if self.get(Gene::Policer).is_some() {
            format!("{} Mbit/s with a round trip of {rtt} ms", number(self.of(Gene::Rate) * 4.0))
        } else {
            format!("{rate} Mbit/s with a round trip of {rtt} ms and a queue of {queue} BDP{discipline}")
        };
        for gene in self.impairments() {
            if let Some(clause) = self.clause(gene) {
                text.push_str(", ");
                text.push_str(&clause);
            }
        }
        text
    }

    fn clause(&self, gene: Gene) -> Option<String> {
        let value = self.of(gene);
        let plain = number(value);
        let ms = |part: f64| number(self.of(Gene::Rtt) * part);
        Some(match gene {
            Gene::Loss => format!("{plain} % of random loss"),
            Gene::BurstLoss => format!("{plain} % of loss in bursts of ten packets"),
            Gene::BitErrors => format!("bit errors of {value:e}"),
            Gene::Jitter => format!("up to {} ms of jitter", ms(value)),
            Gene::Reorder => format!("{plain} % of the packets late by {} ms", ms(0.25)),
            Gene::RateStep => {
                format!(
                    "the rate falls to {} % and comes back, each for {} s",
                    number(value * 100.0),
                    self.step()
                )
            }
            Gene::DelayStep => {
                format!("the delay grows by {} ms and falls back, each for {} s", ms(value), self.step())
            }
            Gene::Outage => format!("outages of {plain} ms"),
            Gene::Policer => {
                format!("policed to {} Mbit/s after {plain} ms at that rate", number(self.of(Gene::Rate)))
            }
            Gene::Back => format!(
                "a way back of {} Mbit/s with {} packets of queue",
                number(self.of(Gene::Rate) / value),
                number(self.of(Gene::BackQueue))
            ),
            Gene::Thinning => format!("of {plain} ACKs one goes on"),
            Gene::Stretch => format!("the receiver acknowledges every {plain} segments"),
            Gene::AckDelay => format!("the receiver holds an ACK back for up to {plain} ms"),
            Gene::Load => format!(
                "datagrams of {} Mbit/s from {} s on",
                number(self.of(Gene::Rate) * value),
                number(self.of(Gene::NeighbourStart))
            ),
            Gene::Neighbour => format!(
                "beside {} that begins after {} s{}",
                self.word(gene).unwrap_or_default(),
                number(self.of(Gene::NeighbourStart)),
                match self.of(Gene::NeighbourRtt) {
                    1.0 => String::new(),
                    ratio => format!(" with {} times the round trip", number(ratio)),
                }
            ),
            _ => return None,
        })
    }

    fn step(&self) -> String {
        number(self.of(Gene::StepTime))
    }
}

/// What goes wrong, in a sentence.
pub(super) fn sentence(point: &PathPoint, objective: Objective, score: &PathScore) -> String {
    let PathScore { own, other, .. } = score;
    let (name, best) = (&own.control, &other.control);
    let mbit = |value: f64| format!("{} Mbit/s", number(value));
    let late = |numbers: &PathNumbers, n: usize| mbit(numbers.late_mbit_s.get(n).copied().unwrap_or(0.0));
    let what = match objective {
        Objective::Goodput => {
            format!("{name} brings {}, {best} {}", mbit(own.goodput_mbit_s), mbit(other.goodput_mbit_s))
        }
        Objective::Recovery => format!(
            "after the change in the middle of the run {name} brings {}, {best} {}",
            mbit(own.after_mbit_s),
            mbit(other.after_mbit_s)
        ),
        Objective::Delay => format!(
            "data of {name} waits {} ms in the mean, that of {best} {} ms",
            number(own.delay_mean_ms),
            number(other.delay_mean_ms)
        ),
        Objective::Fairness => format!(
            "two flows of {name} have {} and {} in the second half (Jain {:.2}), two of {best} {:.2}",
            late(own, 0),
            late(own, 1),
            jain(&own.late_mbit_s),
            jain(&other.late_mbit_s)
        ),
        Objective::Starvation => format!(
            "{name} has {} and its neighbour {} in the second half; with {best} in its place they have {} \
             and {}",
            late(own, 0),
            late(own, 1),
            late(other, 0),
            late(other, 1)
        ),
    };
    format!("Over {}: {what}; {}.", point.words(), evidence(own, other))
}

/// What else differs.
fn evidence(own: &PathNumbers, other: &PathNumbers) -> String {
    let mut parts = Vec::new();
    if own.timeouts > other.timeouts + 2 {
        parts.push(format!("it has {} timeouts, not {}", own.timeouts, other.timeouts));
    }
    let (lost, usual) = (own.retransmitted_percent, other.retransmitted_percent);
    if (lost - usual).abs() > 1.0 {
        parts.push(format!("it retransmits {lost:.1} %, not {usual:.1} %"));
    }
    parts.push(format!(
        "its data waits {} ms in queues, not {} ms",
        number(own.delay_mean_ms),
        number(other.delay_mean_ms)
    ));
    parts.join(", ")
}
