//! A token bucket that others share whom the capture does not have. What it holds cannot be computed then.
//! But it drops what is sent after other data sooner than what comes alone, and delays nothing.

use crate::flow::FlowLoss;
use crate::statistics::{above, at_least};
use crate::view::{Episode, View};

/// Runs of losses that are needed.
const MIN_RUNS: usize = 12;
/// How likely chance may put them so: as far back in bursts alone, and also as close together. Losses that
/// lie close together for another reason, as where a path is worse for a time, do not depend on what was
/// sent.
const MAX_BEHIND: f64 = 0.01;
const MAX_CHANCE: f64 = 1e-4;
/// Losses of segments that came alone: others had used the bucket up. A queue that overflows by this
/// connection's own bursts drops none of these.
const MIN_ALONE: f64 = 0.1;
/// Segments between two runs of losses that lie close together.
const CLOSE: f64 = 4.0;

/// A run of losses.
struct LossRun {
    /// Packets back to back before it.
    burst: u8,
    /// Data that had passed before it.
    passed: u64,
}

/// Losses that no queue explains depend on what was sent before: later segments of bursts are lost more often
/// than others, by more than chance, and losses lie close together.
pub(crate) fn is_shared_bucket(view: &View<'_>, unqueued: &[&Episode]) -> bool {
    let runs = runs(view, unqueued);
    let alone = runs.iter().filter(|run| run.burst == 0).count() as f64;
    if runs.len() < MIN_RUNS || alone < MIN_ALONE * runs.len() as f64 {
        return false;
    }
    let behind = behind_by_chance(view, &runs);
    behind < MAX_BEHIND && behind * close_by_chance(view, &runs) < MAX_CHANCE
}

/// The runs of losses at this side of which it is known what was sent before, without those of queues.
fn runs(view: &View<'_>, unqueued: &[&Episode]) -> Vec<LossRun> {
    let mut losses: Vec<&FlowLoss> = view.losses().filter(|l| !l.upstream && !l.copy).collect();
    losses.sort_by_key(|l| (l.sent, l.offset));
    let mut runs = Vec::new();
    let mut last: Option<u64> = None;
    for loss in losses {
        let begins = last.is_none_or(|last| loss.passed > last + u64::from(loss.len));
        last = Some(loss.passed);
        let at = unqueued.partition_point(|e| e.end < loss.sent);
        if begins && unqueued.get(at).is_some_and(|e| e.start <= loss.sent) {
            runs.push(LossRun { burst: loss.burst, passed: loss.passed });
        }
    }
    runs
}

/// How likely chance would put the runs as far back in bursts: by the mean of their ranks among all segments.
fn behind_by_chance(view: &View<'_>, runs: &[LossRun]) -> f64 {
    // Of super-segments each part may be lost.
    let mut by_place = [0.0f64; 256];
    for pass in view.half.passes.kept() {
        by_place[usize::from(pass.burst)] += f64::from(pass.len.div_ceil(view.mss.max(1)));
    }
    let all: f64 = by_place.iter().sum::<f64>().max(1.0);
    let mut ranks = [0.0f64; 256];
    let (mut before, mut variance) = (0.0, 0.0);
    for (rank, here) in ranks.iter_mut().zip(by_place) {
        *rank = (before + here / 2.0) / all;
        variance += here / all * (*rank - 0.5) * (*rank - 0.5);
        before += here;
    }
    let mean = runs.iter().map(|run| ranks[usize::from(run.burst)]).sum::<f64>() / runs.len() as f64;
    above((mean - 0.5) / libm::sqrt(variance.max(1e-4) / runs.len() as f64))
}

/// How likely chance would put as many runs as close behind the one before.
fn close_by_chance(view: &View<'_>, runs: &[LossRun]) -> f64 {
    let segment = f64::from(view.mss.max(1));
    let gaps = runs.windows(2).map(|pair| pair[1].passed.saturating_sub(pair[0].passed) as f64 / segment);
    let close = gaps.filter(|gap| *gap < CLOSE + 1.5).count();
    let rate = (runs.len() as f64 / view.segments()).min(1.0);
    at_least(close, runs.len() - 1, 1.0 - libm::pow(1.0 - rate, CLOSE))
}
