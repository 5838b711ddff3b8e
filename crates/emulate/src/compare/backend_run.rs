//! What came of one run.

use super::plan::Backend;
use crate::{Accuracy, Drops};
use farpace_units::Span;
use serde::Serialize;
use std::ops::Range;

/// A connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareSample {
    /// Since the first SYN was sent, in seconds.
    pub at: f64,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow-start threshold, in segments; none while there is none.
    pub ssthresh: Option<u32>,
    /// Smoothed round trip, in milliseconds.
    pub srtt: f64,
    /// Payload that has reached the receiving program, in bytes.
    pub delivered: u64,
    /// Segments sent again.
    pub again: u64,
}

/// What came of one run.
#[derive(Clone, Debug, Serialize)]
pub struct BackendRun {
    /// The way.
    pub way: Backend,
    /// The dice.
    pub seed: u64,
    /// How long it lasted, in seconds.
    pub seconds: f64,
    /// Payload that reached the receiving program.
    pub bytes: u64,
    /// Payload over time, in Mbit/s.
    pub goodput_mbit_s: f64,
    /// Data segments sent.
    pub sent: u64,
    /// Of these, sent again.
    pub sent_again: u64,
    /// Mean of the smoothed round trip, in milliseconds.
    pub srtt_ms: f64,
    /// Mean congestion window, in segments.
    pub cwnd: f64,
    /// What the network dropped.
    pub drops: Vec<Drops>,
    /// In real time: how late packets left.
    pub accuracy: Option<Accuracy>,
    /// In real time: when the network stood still because the machine did not run it, since the start. None
    /// in the lab, or if these times were too many to be kept.
    #[serde(skip)]
    pub stalls: Option<Vec<Range<Span>>>,
    /// The course of it.
    #[serde(skip)]
    pub samples: Vec<CompareSample>,
}

impl BackendRun {
    /// Of the samples of a run.
    pub fn of(way: Backend, samples: Vec<CompareSample>, sent: u64) -> Self {
        let last = samples.last().copied();
        let (seconds, bytes) = last.map_or((0.0, 0), |sample| (sample.at, sample.delivered));
        let mean = |of: fn(&CompareSample) -> f64| {
            // Before the handshake there is neither a window nor a round trip.
            let of: Vec<f64> = samples.iter().filter(|sample| sample.srtt > 0.0).map(of).collect();
            of.iter().sum::<f64>() / of.len().max(1) as f64
        };
        BackendRun {
            way,
            seed: 0,
            seconds,
            bytes,
            goodput_mbit_s: bytes as f64 * 8e-6 / seconds.max(1e-9),
            sent,
            sent_again: last.map_or(0, |sample| sample.again),
            srtt_ms: mean(|sample| sample.srtt),
            cwnd: mean(|sample| f64::from(sample.cwnd)),
            drops: Vec::new(),
            accuracy: None,
            stalls: None,
            samples,
        }
    }
}
