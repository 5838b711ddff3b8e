//! Paths with names that are difficult for congestion controls, measured always in the same way.

use super::objective::{self, PathNumbers};
use super::scenario::PathSenders;
use super::space::{Gene, PathPoint, SearchSpace};
use crate::experiment::{MeasureError, StopRequest};
use farpace_tcp::config::Congestion;
use farpace_units::RandomStream;

/// Paths at random on which a control is alone, with any impairments.
pub const ALONE: &str = "random, alone";
/// Paths at random that it shares with its own kind: the queue is first in, first out, or under CoDel.
pub const ITSELF: &str = "random, two of a kind";
/// Paths at random that it shares with CUBIC: first in, first out, CoDel, or a policer.
pub const BESIDE_CUBIC: &str = "random, beside cubic";

/// A path with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedPath {
    /// What it is about.
    pub group: &'static str,
    /// The path.
    pub point: PathPoint,
}

impl ListedPath {
    /// All of them, in groups.
    pub fn all() -> Vec<ListedPath> {
        let path = |rate: f64, rtt: f64, queue: f64| {
            PathPoint::default().with(Gene::Rate, rate).with(Gene::Rtt, rtt).with(Gene::Queue, queue)
        };
        let mut all = Vec::new();
        let mut add = |group, point| all.push(ListedPath { group, point });
        for jitter in [1.0, 3.0, 6.0, 12.0, 25.0] {
            add("jitter", path(100.0, 60.0, 1.0).with(Gene::Jitter, jitter / 60.0));
        }
        for (slower, queue) in
            [(135.0, 100.0), (135.0, 1000.0), (85.0, 100.0), (200.0, 50.0), (200.0, 1000.0)]
        {
            // 13.5 and 42 Mbit/s are what other controls make of 100 and 500 kbit/s.
            let rate = if slower == 85.0 { 42.5 } else { 20.0 };
            add("way back", path(rate, 60.0, 1.0).with(Gene::Back, slower).with(Gene::BackQueue, queue));
        }
        for rate in [20.0, 100.0] {
            for queue in [0.25, 1.0, 2.0, 4.0] {
                add("beside cubic", path(rate, 40.0, queue).with(Gene::Neighbour, 2.0));
            }
            add("beside cubic", path(rate, 40.0, 2.0).with(Gene::Neighbour, 2.0).with(Gene::Discipline, 1.0));
            add("beside cubic", path(rate, 40.0, 1.0).with(Gene::Neighbour, 2.0).with(Gene::Policer, 40.0));
        }
        for neighbour in [3.0, 4.0] {
            add("beside others", path(50.0, 40.0, 1.0).with(Gene::Neighbour, neighbour));
        }
        for (delay, rate) in [(0.3, None), (0.3, Some(0.5)), (0.1, Some(0.4)), (0.6, None)] {
            let point = path(100.0, 50.0, 1.0).with(Gene::DelayStep, delay).with(Gene::RateStep, rate);
            add("hand-over", point.with(Gene::StepTime, 15.0).with(Gene::NeighbourStart, 1.0));
        }
        for ratio in [1.0, 2.0, 4.0] {
            for queue in [0.5, 2.0] {
                let point =
                    path(50.0, 30.0, queue).with(Gene::Neighbour, 1.0).with(Gene::NeighbourRtt, ratio);
                add("itself", point.with(Gene::NeighbourStart, 5.0));
            }
        }
        add("acks", path(50.0, 50.0, 1.0).with(Gene::Thinning, 16.0));
        add("acks", path(50.0, 50.0, 1.0).with(Gene::Stretch, 16.0));
        add("acks", path(50.0, 50.0, 1.0).with(Gene::AckDelay, 200.0));
        add("acks", path(50.0, 50.0, 1.0).with(Gene::Stretch, 16.0).with(Gene::AckDelay, 200.0));
        add("acks", path(5.0, 20.0, 1.0).with(Gene::Stretch, 16.0).with(Gene::AckDelay, 200.0));
        for (rate, rtt) in [(2.0, 100.0), (20.0, 20.0), (100.0, 60.0), (200.0, 150.0), (10.0, 500.0)] {
            for queue in [0.2, 1.0] {
                add("plain", path(rate, rtt, queue));
            }
        }
        for (loss, errors) in [(Some(0.1), None), (Some(1.0), None), (None, Some(1e-7))] {
            add("loss", path(50.0, 80.0, 1.0).with(Gene::Loss, loss).with(Gene::BitErrors, errors));
        }
        all
    }

    /// Paths at random, the same for the same seed: `count` of [`ALONE`], and a third as many of [`ITSELF`]
    /// and of [`BESIDE_CUBIC`].
    pub fn random(count: usize, seed: u64) -> Vec<ListedPath> {
        let space = SearchSpace::default();
        let mut all = Vec::new();
        let mut random = RandomStream::new(seed, "random paths");
        for _ in 0..count {
            let point = space.random(&mut random).with(Gene::Neighbour, None);
            all.push(ListedPath { group: ALONE, point });
        }
        for (group, neighbour) in [(ITSELF, 1.0), (BESIDE_CUBIC, 2.0)] {
            for _ in 0..count.div_ceil(3) {
                let drawn = space.random(&mut random);
                let of = |gene| drawn.of(gene);
                let mut point = PathPoint::default().with(Gene::Neighbour, neighbour);
                // Bounds of the logarithm: runs last for a minute.
                point = point.with(Gene::Rate, of(Gene::Rate).clamp(2.0, 100.0));
                point = point.with(Gene::Rtt, of(Gene::Rtt).clamp(10.0, 150.0));
                point = point.with(Gene::Queue, of(Gene::Queue).max(0.25));
                point = point.with(Gene::NeighbourStart, of(Gene::NeighbourStart));
                point = match random.below(4) {
                    0 => point.with(Gene::Discipline, 1.0),
                    1 if group == BESIDE_CUBIC => point.with(Gene::Policer, 20.0 + random.unit() * 80.0),
                    _ => point,
                };
                if group == ITSELF {
                    point = point.with(Gene::NeighbourRtt, of(Gene::NeighbourRtt));
                }
                all.push(ListedPath { group, point });
            }
        }
        all
    }

    /// A run with `control` as the first flow, and as the neighbour where that is `itself`.
    ///
    /// # Errors
    /// See [`MeasureError`].
    pub fn measure(&self, control: Congestion, stop: &StopRequest<'_>) -> Result<PathNumbers, MeasureError> {
        let senders = PathSenders { first: control, itself: control };
        objective::run(&self.point, senders, false, 1, stop).map(|(numbers, _)| numbers)
    }
}
