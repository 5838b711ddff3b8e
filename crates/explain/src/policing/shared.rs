//! A token bucket that several connections share. What one of them loses depends on what the others send:
//! only the sum of what gets through fills the bucket.

use super::{Fit, FlowLoss, MIN_DELAY, MIN_LOSSES, MIN_PASSES, PassTimes, Point, better, delays};
use super::{MIN_ROUNDS_OF_MANY, MIN_STANDING, fit_at, is_of_longest_queues, points, rounds};
use crate::bucket::Policing;
use crate::flow::{Flow, Side};
use crate::statistics::median;
use crate::view::View;
use farpace_units::{Instant, Rate, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Losses of a connection that ask for an explanation.
const MIN_OWN: usize = 3;
/// Connections that are looked at together: those with most data.
const MAX_TOGETHER: usize = 16;
/// Rates that are tried on each side of a candidate, the step between them, and how often the search is
/// repeated near the best, each time in steps that are finer by their number.
const RATES: i32 = 12;
const STEP: f64 = 0.012;
const FINER: i32 = 6;
const TIMES_FINER: i32 = 2;
/// What a bucket that is hardly ever empty must explain, see [`Fit`].
const MIN_FULL_OF_PRESSED: f64 = 0.94;
const MAX_OVER_OF_PRESSED: f64 = 0.01;
const MIN_APART_OF_PRESSED: f64 = 0.15;
/// The standard deviation of what chance makes losses lie above passes: so much over the root of their
/// number.
const CHANCE: f64 = 0.58;
const MANY_DEVIATIONS: f64 = 5.0;
/// What stands in queues, as a share of the bucket's time: at most losses, and at most at all. A queue that
/// is shared has all of it, and so has one behind the bucket where segments come out of it hardly faster than
/// the bucket leaks.
const MAX_QUEUED: f64 = 0.35;
const MAX_DEEP: f64 = 0.45;
const MAX_DEEP_OF_EVEN: f64 = 0.27;
const EVEN: f64 = 1.05;

/// What connections have in common: the end that sends, or the one that receives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum InCommon {
    Sender(IpAddr),
    Receiver(IpAddr),
}

/// Finds the buckets that connections of a capture share, and notes them in these.
pub(crate) fn mark(flows: &mut [Flow]) {
    let mut found = Vec::new();
    for members in groups(flows) {
        let views: Vec<View<'_>> =
            members.iter().filter_map(|(at, side)| Some(View::new(flows.get(*at)?, *side))).collect();
        for (member, policing) in members.iter().zip(together(&views)) {
            found.extend(policing.map(|policing| (*member, policing)));
        }
    }
    for ((at, side), policing) in found {
        let Some(flow) = flows.get_mut(at) else { continue };
        let slot = flow.shared_policing_mut(side);
        if slot.as_ref().is_none_or(|other| other.confidence < policing.confidence) {
            *slot = Some(policing);
        }
    }
}

/// Directions of connections with one end in common, of which some lose data.
fn groups(flows: &[Flow]) -> Vec<Vec<(usize, Side)>> {
    let sides = [Side::Client, Side::Server];
    let ends = |flow: &Flow, side: Side| {
        let (from, to) = (flow.address(side).ip(), flow.address(side.other()).ip());
        [InCommon::Sender(from), InCommon::Receiver(to)]
    };
    let losses =
        |flow: &Flow, side: Side| flow.half(side).losses.kept().iter().filter(|l| !l.spurious).count();
    let mut lossy: BTreeSet<InCommon> = BTreeSet::new();
    for flow in flows {
        for side in sides.into_iter().filter(|side| losses(flow, *side) >= MIN_OWN) {
            lossy.extend(ends(flow, side));
        }
    }
    if lossy.is_empty() {
        return Vec::new();
    }
    let mut groups: BTreeMap<InCommon, Vec<(usize, Side)>> = BTreeMap::new();
    for (at, flow) in flows.iter().enumerate() {
        for side in sides.into_iter().filter(|side| flow.half(*side).counts.data_segments > 0) {
            for end in ends(flow, side).into_iter().filter(|end| lossy.contains(end)) {
                groups.entry(end).or_default().push((at, side));
            }
        }
    }
    let mut all: Vec<Vec<(usize, Side)>> = groups
        .into_values()
        .filter(|members| members.len() > 1)
        .map(|mut members| {
            let bytes = |(at, side): &(usize, Side)| flows.get(*at).map_or(0, |f| f.half(*side).counts.bytes);
            members.sort_by_key(|member| std::cmp::Reverse(bytes(member)));
            members.truncate(MAX_TOGETHER);
            members.sort_unstable_by_key(|(at, _)| *at);
            members
        })
        .collect();
    all.dedup();
    all
}

/// The bucket that they share, for each that loses data in it.
fn together(views: &[View<'_>]) -> Vec<Option<Policing>> {
    let none = || vec![None; views.len()];
    let losses: Vec<Vec<&FlowLoss>> = views
        .iter()
        .map(|view| {
            let mut losses: Vec<&FlowLoss> = view.losses().collect();
            losses.sort_by_key(|l| l.sent);
            losses
        })
        .collect();
    let mut all: Vec<&FlowLoss> = losses.iter().flatten().copied().collect();
    all.sort_by_key(|l| l.sent);
    let losing = losses.iter().filter(|l| l.len() >= MIN_OWN).count();
    if all.len() < MIN_LOSSES || losing < 2 {
        return none();
    }
    let base = views.iter().map(|v| v.base).filter(|b| !b.is_zero()).min().unwrap_or(Span::from_millis(1));
    let rounds = rounds(&all, base);
    let runs: f64 = views.iter().zip(&losses).map(|(v, l)| l.len() as f64 / v.mean_run().max(1.0)).sum();
    let mss = views.iter().map(|v| v.mss).max().unwrap_or(1);
    let hidden = all.iter().any(|l| l.upstream);
    let merged = |by_sender: bool| {
        let of = |(view, losses): (&View<'_>, &Vec<&FlowLoss>)| {
            let delays = if by_sender { delays(view).unwrap_or_default() } else { Vec::new() };
            let byte = view.half.line_rate().map_or(0.0, |rate| 1.0 / rate);
            points(view, losses, 0, &PassTimes { delays, byte })
        };
        merge(views.iter().zip(&losses).map(of).collect())
    };
    let fit = |by_sender: bool| {
        let points = merged(by_sender);
        let passes = points.iter().filter(|p| !p.lost).count();
        let convinces = |fit: &Fit| fit.convinces(runs, rounds) || is_hardly_empty(fit, runs, rounds);
        best_fit(&points, mss).filter(|fit| passes >= MIN_PASSES && convinces(fit))
    };
    let fits = [fit(false), if hidden { fit(true) } else { None }];
    let Some(best) = fits.into_iter().flatten().max_by(better) else { return none() };
    if is_queue(views, &all, &best, base.as_secs_f64()) {
        return none();
    }
    let since = all.first().map_or(Instant::ZERO, |l| l.sent);
    let passed: Vec<f64> = views.iter().map(|v| v.half.counts.bytes as f64).collect();
    let whole = passed.iter().sum::<f64>().max(1.0);
    let policing = |(losses, own): (&Vec<&FlowLoss>, &f64)| {
        let first = losses.first().filter(|_| losses.len() >= MIN_OWN)?;
        Some(Policing {
            rate: Rate::from_bytes_per_sec_f64(best.rate),
            burst: best.depth as u64,
            since: first.sent.max(since),
            confidence: (0.3 + 0.4 * best.full + 0.3 * best.apart).min(0.9),
            connections: views.len(),
            share: own / whole,
        })
    };
    losses.iter().zip(&passed).map(policing).collect()
}

/// Where several connections press a bucket it is nearly full most of the time, so that passes lie little
/// below losses. Many losses tell such a bucket from chance all the same.
fn is_hardly_empty(fit: &Fit, runs: f64, rounds: usize) -> bool {
    let chance = CHANCE / libm::sqrt(runs.max(1.0));
    rounds >= MIN_ROUNDS_OF_MANY
        && fit.full >= MIN_FULL_OF_PRESSED
        && fit.over <= MAX_OVER_OF_PRESSED
        && fit.apart >= MIN_APART_OF_PRESSED.max(MANY_DEVIATIONS * chance)
}

/// The bucket that fits is a queue: what stands in it takes time.
fn is_queue(views: &[View<'_>], losses: &[&FlowLoss], bucket: &Fit, base: f64) -> bool {
    let delay = bucket.depth / bucket.rate;
    let queued = median(losses.iter().map(|l| l.queued.as_secs_f64()).collect());
    let deep = median(views.iter().map(|v| v.deep.as_secs_f64()).collect()) / delay;
    let densest = views.iter().filter_map(|v| v.half.line_rate()).fold(0.0, f64::max);
    let most = if densest < EVEN * bucket.rate { MAX_DEEP_OF_EVEN } else { MAX_DEEP };
    let all: Vec<&View<'_>> = views.iter().collect();
    is_of_longest_queues(&all, usize::MAX)
        || queued > (MAX_QUEUED * delay).min(base.max(MIN_STANDING))
        || deep > most
        || delay < MIN_DELAY.min(base / 16.0)
}

/// The passes and losses of several connections in order of time, with what all of them had got through.
fn merge(each: Vec<Vec<Point>>) -> Vec<Point> {
    let mut last = vec![0.0f64; each.len()];
    let mut all: Vec<(usize, Point)> = each
        .into_iter()
        .enumerate()
        .flat_map(|(n, points)| points.into_iter().map(move |p| (n, p)))
        .collect();
    all.sort_by(|a, b| a.1.time.total_cmp(&b.1.time));
    let mut sum = 0.0;
    all.into_iter()
        .map(|(n, point)| {
            if let Some(last) = last.get_mut(n) {
                sum += (point.passed - *last).max(0.0);
                *last = last.max(point.passed);
            }
            Point { passed: sum, ..point }
        })
        .collect()
}

/// The rate that explains the losses best. Where several send at once the bucket is hardly ever empty: what
/// gets through between two losses, over the time, is near its rate.
fn best_fit(points: &[Point], mss: u32) -> Option<Fit> {
    let lost: Vec<&Point> = points.iter().filter(|p| p.lost).collect();
    let at = |eighth: usize| lost.get((lost.len() * eighth / 8).min(lost.len().saturating_sub(1)));
    let rate = |(from, to): (usize, usize)| {
        let (from, to) = (at(from)?, at(to)?);
        let time = to.time - from.time;
        (time > 0.0).then(|| (to.passed - from.passed) / time)
    };
    let parts = [(0, 8), (0, 4), (1, 8), (2, 8), (4, 8), (2, 6)];
    let near = |rate: f64, step: f64, n: i32| (-n..=n).map(move |at| rate * (1.0 + step * f64::from(at)));
    let tried = parts.into_iter().filter_map(rate).flat_map(|rate| near(rate, STEP, RATES));
    let fit = |rate: f64| if rate > 0.0 { fit_at(points, rate, mss) } else { None };
    let mut best = tried.filter_map(fit).max_by(better)?;
    let mut step = STEP;
    for _ in 0..TIMES_FINER {
        step /= f64::from(FINER);
        best = near(best.rate, step, FINER).filter_map(fit).max_by(better).unwrap_or(best);
    }
    Some(best)
}
