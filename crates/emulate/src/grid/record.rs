//! What is kept of a run.

use crate::compare::{Backend, BackendRun};
use serde::{Deserialize, Serialize};

/// A run of a point by one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridRun {
    /// The point, by its key.
    pub point: String,
    /// The way.
    pub way: Backend,
    /// The seed. A run in real time is held against that of the lab with the same seed.
    pub seed: u64,
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
            error: None,
        }
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
