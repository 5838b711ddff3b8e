//! What is kept of a run.

use crate::compare::{Backend, BackendRun};
use farpace_lab::scenario::PeriodSpec;
use farpace_units::Span;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A run of a point by one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridRun {
    /// The point, by its key.
    pub point: String,
    /// The way.
    pub way: Backend,
    /// The seed. A run in real time is held against that of the lab with the same seed and its stalls.
    pub seed: u64,
    /// In the lab: its hosts stood still as the network did in the run of this way with the same seed. None:
    /// they did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Backend>,
    /// Payload that reached the receiving program over time, in Mbit/s.
    pub goodput_mbit_s: f64,
    /// Data segments sent.
    pub sent: u64,
    /// Of these, sent again.
    pub sent_again: u64,
    /// Packets that the network dropped.
    pub dropped: u64,
    /// Mean of the smoothed round trip, in milliseconds.
    pub srtt_ms: f64,
    /// Mean congestion window, in segments.
    pub cwnd: f64,
    /// By how much one in a thousand packets left the emulator too late, in microseconds; 0 in the lab.
    pub late_p999_us: f64,
    /// The same of the latest packet.
    pub latest_us: f64,
    /// Packets that interfaces did not take.
    pub lost_by_devices: u64,
    /// The machine's load when the run ended, as `/proc/loadavg` has it; 0 if it is not known.
    pub load: f64,
    /// In real time: when the network stood still because the machine did not run it, in microseconds: since
    /// the end of the time before (or the start), and for how long. None in the lab, or if these times were
    /// too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls_us: Option<Vec<[u64; 2]>>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl GridRun {
    /// Of a run that was made.
    pub fn of(point: String, run: &BackendRun, load: f64) -> Self {
        let late = run.accuracy.as_ref();
        GridRun {
            point,
            way: run.way,
            seed: run.seed,
            beside: None,
            goodput_mbit_s: run.goodput_mbit_s,
            sent: run.sent,
            sent_again: run.sent_again,
            dropped: run.drops.iter().map(|drop| drop.packets).sum(),
            srtt_ms: run.srtt_ms,
            cwnd: run.cwnd,
            late_p999_us: late.map_or(0.0, |late| late.p999_us),
            latest_us: late.map_or(0.0, |late| late.most_us),
            lost_by_devices: late.map_or(0, |late| late.lost_by_devices),
            load,
            stalls_us: run.stalls.as_deref().map(in_turn),
            error: None,
        }
    }
    /// When the network stood still, for a scenario. None if it is not known.
    pub fn stalls(&self) -> Option<Vec<PeriodSpec>> {
        let mut end = Span::ZERO;
        let period = |[since, lasts]: &[u64; 2]| {
            let (at, lasts) = (end + Span::from_micros(*since), Span::from_micros(*lasts));
            end = at + lasts;
            PeriodSpec { at, lasts }
        };
        Some(self.stalls_us.as_ref()?.iter().map(period).collect())
    }
    /// The share of `lasts` in which the network stood still, 0 to 1.
    pub fn stalled_share(&self, lasts: Span) -> f64 {
        let still = self.stalls_us.iter().flatten().map(|[_, lasts]| *lasts).sum::<u64>();
        Span::from_micros(still).as_secs_f64() / lasts.as_secs_f64()
    }
    /// Of one that has failed.
    pub fn failed(point: String, way: Backend, seed: u64, error: &anyhow::Error) -> Self {
        GridRun {
            error: Some(format!("{error:#}")),
            seed,
            ..GridRun::of(point, &BackendRun::of(way, Vec::new(), 0), 0.0)
        }
    }
}

/// Stalls as a journal has them.
fn in_turn(stalls: &[Range<Span>]) -> Vec<[u64; 2]> {
    let (mut pairs, mut end) = (Vec::new(), 0);
    for stall in stalls {
        let (from, to) = (stall.start.as_micros(), stall.end.as_micros());
        if from >= end && to > from {
            pairs.push([from - end, to - from]);
            end = to;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a run of the lab stands still at other times than the network did.
    #[test]
    fn stalls_outlive_the_journal() {
        let us = Span::from_micros;
        let stalls = [us(0)..us(70), us(100)..us(160), us(1_000)..us(2_000_000)];
        let run = BackendRun { stalls: Some(stalls.to_vec()), ..BackendRun::of(Backend::Kernel, vec![], 0) };
        let run = GridRun::of("here".to_owned(), &run, 0.0);
        assert_eq!(run.stalls_us.as_deref(), Some(&[[0, 70], [30, 60], [840, 1_999_000]][..]));
        let read: GridRun = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
        let ranges: Vec<_> =
            read.stalls().unwrap().iter().map(|stall| stall.at..stall.at + stall.lasts).collect();
        assert_eq!(ranges, stalls);
        assert!((read.stalled_share(Span::from_secs(4)) - 0.499_782_5).abs() < 1e-9);
        assert_eq!(GridRun { stalls_us: None, ..run }.stalls(), None);
    }
}
