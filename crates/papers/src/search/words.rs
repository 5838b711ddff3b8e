//! A found path in words.

use super::objective::{Objective, PathNumbers, PathScore, allowed_delay};
use super::space::{Gene, PathPoint};
use crate::statistics::jain;
use farpace_units::number;

impl PathPoint {
    /// What the path is, without a full stop. `once`: as in
    /// [`scenario_text`](PathPoint::scenario_text).
    pub fn words(&self, once: bool) -> String {
        let rate = number(self.of(Gene::Rate));
        let (rtt, queue) = (number(self.of(Gene::Rtt)), number(self.of(Gene::Queue)));
        let discipline = self.word(Gene::Discipline).map_or(String::new(), |word| format!(" under {word}"));
        let mut text = if self.get(Gene::Policer).is_some() {
            format!("{} Mbit/s with a round trip of {rtt} ms", number(self.of(Gene::Rate) * 4.0))
        } else {
            format!("{rate} Mbit/s with a round trip of {rtt} ms and a queue of {queue} BDP{discipline}")
        };
        for gene in self.impairments() {
            if let Some(clause) = self.clause(gene, once) {
                text.push_str(", ");
                text.push_str(&clause);
            }
        }
        text
    }

    fn clause(&self, gene: Gene, once: bool) -> Option<String> {
        let value = self.of(gene);
        let plain = number(value);
        let ms = |part: f64| number(self.of(Gene::Rtt) * part);
        Some(match gene {
            Gene::Loss => format!("{plain} % of random loss"),
            Gene::BurstLoss => format!("{plain} % of loss in bursts of ten packets"),
            Gene::BitErrors => format!("bit errors of {value:e}"),
            Gene::Jitter => format!("up to {} ms of jitter", ms(value)),
            Gene::Reorder => format!("{plain} % of the packets late by {} ms", ms(0.25)),
            Gene::RateStep if once => {
                format!("the rate falls to {} % after {} s", number(value * 100.0), self.half())
            }
            Gene::DelayStep if once => format!("the delay grows by {} ms after {} s", ms(value), self.half()),
            Gene::Outage if once => format!("an outage of {plain} ms after {} s", self.half()),
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
            Gene::Outage => format!("two outages of {plain} ms"),
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

    fn half(&self) -> String {
        number(self.change().as_secs_f64())
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
            "data of {name} waits {} ms in the mean at {}, that of {best} {} ms at {}; {} ms would be \
             allowed",
            number(own.delay_mean_ms),
            mbit(own.goodput_mbit_s),
            number(other.delay_mean_ms),
            mbit(other.goodput_mbit_s),
            number(allowed_delay(point, own, other))
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
    let more = evidence(objective, own, other).into_iter().map(|part| format!("; {part}"));
    format!("Over {}: {what}{}.", point.words(objective.changes_once()), more.collect::<String>())
}

/// What else is worse.
fn evidence(objective: Objective, own: &PathNumbers, other: &PathNumbers) -> Vec<String> {
    let mut parts = Vec::new();
    if own.timeouts > other.timeouts + 2 {
        parts.push(format!("it has {} timeouts, not {}", own.timeouts, other.timeouts));
    }
    let (lost, usual) = (own.retransmitted_percent, other.retransmitted_percent);
    if lost > usual + 1.0 {
        parts.push(format!("it retransmits {lost:.1} %, not {usual:.1} %"));
    }
    let (waits, others) = (own.delay_mean_ms, other.delay_mean_ms);
    if objective != Objective::Delay && waits > others * 1.1 + 1.0 {
        parts.push(format!("its data waits {} ms in queues, not {} ms", number(waits), number(others)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the words describe changes that the scenario does not have.
    #[test]
    fn words_are_those_of_the_scenario() {
        let point = PathPoint::default().with(Gene::DelayStep, 0.5).with(Gene::RateStep, 0.25);
        let point = point.with(Gene::Outage, 300.0).with(Gene::StepTime, 2.0);
        let (again, once) = (point.words(false), point.words(true));
        assert!(again.contains("the delay grows by 25 ms and falls back, each for 2 s"), "{again}");
        assert!(again.contains("two outages of 300 ms"), "{again}");
        for part in
            ["falls to 25 % after 10 s", "grows by 25 ms after 10 s", "an outage of 300 ms after 10 s"]
        {
            assert!(once.contains(part), "{once}");
        }
        assert!(!once.contains("back") && !once.contains("each for") && !once.contains("2 s"), "{once}");
        assert!(point.to_string().contains("step_s=2") && !point.keys(true).contains("step_s"));
    }

    /// Breaks: what is better or equal is listed as what goes wrong, or a delay is told twice.
    #[test]
    fn only_what_is_worse_is_evidence() {
        let of = |delay: f64, lost: f64, timeouts: u64| PathNumbers {
            control: "bbr3".into(),
            goodput_mbit_s: 1.0,
            late_mbit_s: Vec::new(),
            after_mbit_s: 1.0,
            delay_mean_ms: delay,
            delay_95_ms: delay,
            delay_99_ms: delay,
            retransmitted_percent: lost,
            timeouts,
        };
        let (good, bad) = (of(10.0, 0.5, 0), of(20.0, 3.0, 9));
        assert_eq!(evidence(Objective::Goodput, &good, &bad), [""; 0]);
        assert_eq!(evidence(Objective::Goodput, &good, &good), [""; 0]);
        assert_eq!(evidence(Objective::Goodput, &bad, &good).len(), 3);
        assert_eq!(evidence(Objective::Delay, &bad, &good).len(), 2);
        let score = PathScore { gap: 0.0, own: good.clone(), other: good };
        let text = sentence(&PathPoint::default(), Objective::Goodput, &score);
        assert!(text.ends_with("bbr3 1 Mbit/s."), "{text}");
    }
}
