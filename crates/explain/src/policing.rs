//! The detector of token buckets (after Flach et al., SIGCOMM 2016).

use crate::flow::FlowLoss;
use crate::view::{View, capacity_since};
use farpace_units::{Instant, Rate, Span};

/// Losses and segments that got through that are needed.
const MIN_LOSSES: usize = 10;
const MIN_PASSES: usize = 30;
/// What a bucket must explain: see [`Fit`].
const MIN_FULL: f64 = 0.45;
const MAX_OVER: f64 = 0.05;
const MIN_APART: f64 = 0.2;
const MIN_SURE: f64 = 0.9;
/// Rates that are tried, from this share of the best rate seen to the last.
const RATES: usize = 28;
const FIRST_RATE: f64 = 0.7;
const LAST_RATE: f64 = 1.25;

/// What a policer looks like from outside.
#[derive(Clone, Debug)]
pub struct Policing {
    /// Its rate, of payload.
    pub rate: Rate,
    /// What the bucket holds, in bytes.
    pub burst: u64,
    /// The first loss.
    pub since: Instant,
    /// 0 to 1.
    pub confidence: f64,
}

/// How well a bucket of some rate explains the losses.
#[derive(Clone, Copy, Debug)]
struct Fit {
    rate: f64,
    /// What is in the leaky bucket at losses, in bytes: its depth.
    depth: f64,
    /// Share of losses at which the bucket was full.
    full: f64,
    /// Share of segments that got through although it was more than full.
    over: f64,
    /// How far passes lie below losses, 0 to 1.
    apart: f64,
}

impl Fit {
    fn score(&self) -> f64 {
        self.full - 3.0 * self.over + 0.4 * self.apart
    }
}

/// A segment that passed the bucket, or was lost in it.
struct Point {
    time: f64,
    /// Data that had got through before.
    passed: f64,
    lost: bool,
}

/// Holds the losses against leaky buckets of many rates. A bucket fills with what gets through, and leaks
/// at its rate; if there is a policer, the bucket with its rate is full at every loss, and never fuller.
///
/// The detector of Flach et al. takes the rate from the data between the first and the last loss, which is
/// too low where the sender stays below it for long; trying rates does not need that.
pub fn policing(view: &View<'_>) -> Option<Policing> {
    let mut losses: Vec<_> = view.losses().collect();
    if losses.len() < MIN_LOSSES || view.capacity <= 0.0 {
        return None;
    }
    losses.sort_by_key(|l| l.sent);
    let first = *losses.first()?;
    if rounds(&losses, view.base) < 3 {
        return None;
    }
    let points = points(view, &losses);
    if points.iter().filter(|p| !p.lost).count() < MIN_PASSES {
        return None;
    }
    // Once the bucket is empty, its rate is the most that gets through.
    let usual_best = capacity_since(&view.stretches, view.base, first.resent);
    if usual_best <= 0.0 {
        return None;
    }
    let fits = (0..=RATES).filter_map(|n| {
        let share = FIRST_RATE + (LAST_RATE - FIRST_RATE) * n as f64 / RATES as f64;
        fit(&points, usual_best * share, f64::from(view.mss))
    });
    let best = fits.max_by(|a, b| a.score().total_cmp(&b.score()))?;
    // A bucket of the depth of a few segments is a queue, or nothing at all.
    let sure = best.full + 0.6 * best.apart - 3.0 * best.over;
    if best.full < MIN_FULL || best.over > MAX_OVER || best.apart < MIN_APART || sure < MIN_SURE {
        return None;
    }
    // A queue of that depth would have delayed what stood in it.
    let delay = best.depth / best.rate;
    let mut queued: Vec<f64> = losses.iter().map(|l| l.queued.as_secs_f64()).collect();
    queued.sort_by(f64::total_cmp);
    let usual = queued.get(queued.len() / 2).copied().unwrap_or_default();
    // Bursts that a bucket lets pass may queue behind it, too; but then it also drops while nothing is
    // queued.
    let real = view.episodes.iter().filter(|e| !e.spurious);
    let (deep, all) =
        real.fold((0, 0), |(deep, all), e| (deep + usize::from(e.queued * 2 > view.deep), all + 1));
    if usual > 0.6 * delay || usual > 0.12 * delay && deep * 10 > all * 6 {
        return None;
    }
    // A bucket lets some through between those it drops; a burst of losses does not.
    let runs = view.mean_run();
    if runs > 2.2 && best.apart < 0.6 {
        return None;
    }
    Some(Policing {
        rate: Rate::from_bytes_per_sec_f64(best.rate),
        burst: best.depth as u64,
        since: first.sent,
        confidence: (0.3 + 0.4 * best.full + 0.3 * best.apart).min(0.97),
    })
}

/// Round trips in which something was lost.
fn rounds(losses: &[&FlowLoss], base: Span) -> usize {
    let base = base.max(Span::from_micros(100));
    let mut rounds = 0;
    let mut until = Instant::ZERO;
    for loss in losses {
        if loss.sent >= until {
            rounds += 1;
            until = loss.sent + base;
        }
    }
    rounds
}

/// Losses and passes in order of time, with the data that had got through: all that was seen, less what was
/// lost behind the capture point.
fn points(view: &View<'_>, losses: &[&FlowLoss]) -> Vec<Point> {
    let stride = view.half.losses.stride();
    let lost_by_then: Vec<u64> = losses
        .iter()
        .scan(0, |sum, l| {
            let before = *sum;
            *sum += if l.upstream { 0 } else { u64::from(l.len) * stride };
            Some(before)
        })
        .collect();
    let all = losses.iter().filter(|l| !l.upstream).map(|l| u64::from(l.len) * stride).sum::<u64>();
    let through = |at: Instant, seen: u64| {
        let n = losses.partition_point(|l| l.sent < at);
        seen.saturating_sub(lost_by_then.get(n).copied().unwrap_or(all)) as f64
    };
    let lost: std::collections::BTreeSet<u64> = losses.iter().map(|l| l.frame).filter(|f| *f > 0).collect();
    let mut points: Vec<Point> = view
        .half
        .passes
        .kept()
        .iter()
        .filter(|p| !lost.contains(&p.frame))
        .map(|p| Point { time: p.time.as_secs_f64(), passed: through(p.time, p.passed), lost: false })
        .collect();
    points.extend(losses.iter().map(|l| Point {
        time: l.sent.as_secs_f64(),
        passed: through(l.sent, l.passed),
        lost: true,
    }));
    points.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.passed.total_cmp(&b.passed)));
    points
}

fn fit(points: &[Point], rate: f64, mss: f64) -> Option<Fit> {
    let (mut level, mut time, mut passed) = (0.0f64, points.first()?.time, points.first()?.passed);
    let (mut at_losses, mut at_passes) = (Vec::new(), Vec::new());
    for point in points {
        level = (level + (point.passed - passed).max(0.0) - (point.time - time) * rate).max(0.0);
        (time, passed) = (point.time, passed.max(point.passed));
        if point.lost { &mut at_losses } else { &mut at_passes }.push(level);
    }
    at_losses.sort_by(f64::total_cmp);
    at_passes.sort_by(f64::total_cmp);
    let depth = *at_losses.get(at_losses.len() / 2)?;
    if depth < 6.0 * mss {
        return None;
    }
    let slack = (4.0 * mss).max(0.2 * depth);
    let full =
        at_losses.iter().filter(|l| (**l - depth).abs() <= slack).count() as f64 / at_losses.len() as f64;
    let over = at_passes.len() - at_passes.partition_point(|l| *l <= depth + slack);
    Some(Fit {
        rate,
        depth,
        full,
        over: over as f64 / at_passes.len() as f64,
        apart: separation(&at_losses, &at_passes),
    })
}

/// How far passes lie below losses: 0 for not at all, 1 for all of them. Both are sorted.
fn separation(losses: &[f64], passes: &[f64]) -> f64 {
    let below: f64 =
        losses.iter().map(|l| passes.partition_point(|p| p < l) as f64 / passes.len() as f64).sum();
    (below / losses.len() as f64 - 0.5) * 2.0
}
