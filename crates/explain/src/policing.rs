//! The detector of token buckets (after Flach et al., SIGCOMM 2016).

mod shared;
mod unseen;

use crate::bucket::Policing;
use crate::flow::FlowLoss;
use crate::statistics::median;
use crate::view::{View, capacity_since};
use farpace_units::{Instant, Rate, Span};

pub(crate) use shared::mark as mark_shared;
pub(crate) use unseen::is_shared_bucket;

/// Losses and segments that got through that are needed.
const MIN_LOSSES: usize = 10;
const MIN_PASSES: usize = 30;
/// Runs of losses, and round trips with losses, that are needed, and those without which a fit has to be
/// perfect.
const MIN_RUNS: f64 = 6.0;
const FEW_RUNS: f64 = 10.0;
const MIN_ROUNDS: usize = 2;
const FEW_ROUNDS: usize = 3;
/// Episodes at the start that may have another cause, the share of all losses from which on they count, and
/// the round trips with losses that must follow.
const START_EPISODES: usize = 3;
const MIN_START: f64 = 0.1;
const MANY_ROUNDS: usize = 6;
/// The same where passes do not lie far below losses, and the share of losses that a bucket then explains.
const SURE_ROUNDS: usize = 40;
const SURE_FULL: f64 = 0.85;
/// What may queue at losses, as a share of the bucket's time, where losses are in few round trips.
const MAX_QUEUE_OF_FEW: f64 = 0.2;
/// What a bucket must explain, see [`Fit`]: always, where passes lie far below losses, and where many runs of
/// losses agree.
const MIN_FULL: f64 = 0.9;
const MAX_OVER: f64 = 0.015;
const MIN_APART: f64 = 0.35;
const FAR_APART: f64 = 0.7;
const MIN_SUM: f64 = 1.5;
const MANY_RUNS: f64 = 60.0;
const MIN_ROUNDS_OF_MANY: usize = 12;
const MIN_FULL_OF_MANY: f64 = 0.65;
const MIN_APART_OF_MANY: f64 = 0.5;
/// What stands in a queue for less than that, in seconds, or for less than a sixteenth of the round trip,
/// does not show.
const MIN_DELAY: f64 = 0.005;
/// A queue delays at losses by the time in which it sends what it holds, to this part; behind a bucket it is
/// shorter than this part of the time in which the bucket leaks what it holds.
const SAME_DELAY: f64 = 0.25;
const MAX_BEHIND: f64 = 0.5;
/// A queue of so many seconds, and of a round trip, stands at losses only where it is what drops.
const MIN_STANDING: f64 = 0.05;
/// The share of losses that come while the queue is the longest where a queue drops.
const MOSTLY: f64 = 0.8;
/// The confidence of a bucket that connections share, from which on no other is asked for.
const ENOUGH: f64 = 0.85;
/// The share of its rate that is all of it.
const USED_UP: f64 = 0.96;
/// The least bucket, in segments.
const MIN_DEPTH: f64 = 3.5;
/// A bucket is full at first: this part of its depth passes before the first loss. What a queue of one or two
/// packets lets pass is less than the bucket that would explain its losses later.
const MIN_FIRST: f64 = 0.5;
/// Deeper buckets, in segments, are not mistaken for such queues, nor for one on the line that explains the
/// losses better.
const SMALL: f64 = 32.0;
/// The least that is held to be one where a queue on the line would explain the losses as well, and they are
/// not many.
const DEEP: f64 = 8.0;
/// Losses of an episode that shows the rate by itself.
const MIN_EPISODE: usize = 8;
/// Round trips over which what got through tells the rate well.
const LONG: f64 = 20.0;
/// Rates that are tried, from this share of the best rate seen to the last.
const RATES: usize = 45;
const FIRST_RATE: f64 = 0.7;
const LAST_RATE: f64 = 1.6;
/// Then so many on each side of the best, each time over a range that is narrower by their number: the level
/// is the sum over the whole transfer, in which a small error of the rate grows.
const FINER: i32 = 6;
const TIMES_FINER: i32 = 2;

/// The time of a run of losses that no bucket makes, in segments at its rate, beyond the longest tick at
/// which buckets are filled, in seconds; how many such runs there are at least, and among how many.
const MAX_RUN: f64 = 1.5;
const TICK: f64 = 0.005;
const MIN_LONGER: usize = 2;
const RUNS_FOR_LONGER: usize = 5;

/// How far apart levels of a bucket may be at losses: in segments, and in seconds at its rate: what a short
/// tick brings, and so many times what data waits in queues before and behind it. How many runs of losses are
/// compared with one, at least and on each side at most, and how many have others to be compared with.
const MAX_SPREAD: f64 = 5.0;
const SHORT_TICK: f64 = 0.00125;
const TIMES_WAIT: f64 = 1.5;
const MIN_NEAR: usize = 3;
const MAX_NEAR: usize = 32;
const MIN_COMPARED: usize = 6;

impl Policing {
    /// The transfer has the policer's rate all the same: pacing a little below it would bring nothing.
    pub(crate) fn is_used_up(&self, view: &View<'_>) -> bool {
        let since = view.stretches.iter().filter(|s| s.slice.start >= self.since);
        let (bytes, time) = since
            .fold((0, Span::ZERO), |(bytes, time), s| (bytes + s.slice.delivered, time + s.slice.duration()));
        bytes as f64 >= USED_UP * self.share * self.rate.as_bytes_per_sec_f64() * time.as_secs_f64()
    }
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

    /// Chance does not make losses lie so even if there are few.
    fn is_perfect(&self, runs: f64) -> bool {
        self.full >= 0.95 && self.apart >= if runs < FEW_RUNS { 0.95 } else { 0.85 }
    }

    /// Chance does not make losses lie so, in so many runs and round trips.
    fn convinces(&self, runs: f64, rounds: usize) -> bool {
        if self.over > MAX_OVER {
            return false;
        }
        let many = runs >= MANY_RUNS
            && rounds >= MIN_ROUNDS_OF_MANY
            && self.full >= MIN_FULL_OF_MANY
            && self.apart >= MIN_APART_OF_MANY;
        let far = self.full.min(self.apart) >= FAR_APART && self.full + self.apart >= MIN_SUM;
        let all = self.full >= MIN_FULL && self.apart >= MIN_APART || far;
        if rounds < FEW_ROUNDS || runs < FEW_RUNS { self.is_perfect(runs) } else { all || many }
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
    if view.capacity <= 0.0 {
        return None;
    }
    losses.sort_by_key(|l| l.sent);
    // Slow start may overflow a queue before the bucket is empty.
    let mut behind_start =
        view.episodes.iter().filter(|e| !e.spurious).take(START_EPISODES).filter_map(|e| {
            let from = losses.partition_point(|l| l.sent <= e.end);
            (from as f64 >= MIN_START * losses.len() as f64).then_some(from)
        });
    let shared = || view.flow.shared_policing(view.side).cloned();
    match origin(view, &losses, 0) {
        // The bucket of all of them has the right rate; one that fits a part of what passes has a lower one.
        LossOrigin::Policer(own) => {
            shared().filter(|all| all.confidence >= own.confidence.min(ENOUGH)).or(Some(own))
        }
        LossOrigin::Queue => shared(),
        LossOrigin::Neither => behind_start
            .find_map(|from| match origin(view, &losses, from) {
                LossOrigin::Policer(policing) => Some(policing),
                LossOrigin::Queue | LossOrigin::Neither => None,
            })
            .or_else(shared),
    }
}

/// What losses come from, by the bucket that explains them.
enum LossOrigin {
    Policer(Policing),
    /// The bucket that fits is a queue.
    Queue,
    Neither,
}

/// Holds the losses from number `from` on against buckets.
fn origin(view: &View<'_>, losses: &[&FlowLoss], from: usize) -> LossOrigin {
    let Some(asked) = losses.get(from..).filter(|asked| asked.len() >= MIN_LOSSES) else {
        return LossOrigin::Neither;
    };
    let first = asked[0];
    let rounds = rounds(asked, view.base);
    // Losses in a row tell as much as one.
    let runs = asked.len() as f64 / view.mean_run().max(1.0);
    if rounds < MIN_ROUNDS || runs < MIN_RUNS {
        return LossOrigin::Neither;
    }
    let base = view.base.as_secs_f64();
    let byte = view.half.line_rate().map_or(0.0, |rate| 1.0 / rate);
    let seen = PassTimes { delays: Vec::new(), byte };
    let hidden = asked.iter().any(|l| l.upstream);
    let by_clock = delays(view).filter(|_| hidden).map(|delays| PassTimes { delays, byte });
    // What stood in queues at most losses: before the bucket, behind it, or instead of it.
    let queue = by_clock.as_ref().map(|times| times.delay_at(asked));
    let mut is_queue = false;
    let mut fit = |times: &PassTimes| {
        let points = points(view, losses, from, times);
        let passes = points.iter().filter(|p| !p.lost).count();
        let fit = best_fit(view, &points, first).filter(|_| passes >= MIN_PASSES)?;
        let own = fit.depth / fit.rate;
        let shallow = fit.depth < DEEP * f64::from(view.mss);
        let small = fit.depth < SMALL * f64::from(view.mss) && runs < MANY_RUNS;
        let on_line =
            view.half.line_rate().filter(|_| small).and_then(|line| fit_at(&points, line, view.mss));
        // A deeper bucket explains the losses better than a queue, if it is one.
        let as_queue = on_line
            .is_some_and(|queue| queue.convinces(runs, rounds) && (shallow || queue.score() > fit.score()))
            || queue.is_some_and(|queue| (queue / own - 1.0).abs() <= SAME_DELAY);
        is_queue |= as_queue && fit.convinces(runs, rounds);
        // Few round trips do not tell the rate: what queued may have been all there was.
        let apart = rounds >= FEW_ROUNDS || queue.is_none_or(|queue| queue <= MAX_QUEUE_OF_FEW * own);
        // Where some losses are left out, the others have to be explained all the better.
        let whole = from == 0
            || rounds >= MANY_ROUNDS && fit.is_perfect(runs)
            || rounds >= SURE_ROUNDS && fit.full >= SURE_FULL;
        (whole && apart && !as_queue && fit.convinces(runs, rounds)).then_some(fit)
    };
    // In times without queues more is asked of a bucket: what queued before it would be one.
    let low = |fit: &Fit| queue.is_some_and(|queue| queue < (MAX_BEHIND * fit.depth / fit.rate).min(base));
    let sure = |fit: &Fit| fit.is_perfect(runs) || runs >= MANY_RUNS;
    let sent = by_clock.as_ref().and_then(&mut fit).filter(low).filter(sure);
    let fits = [fit(&seen), sent];
    let Some(best) = fits.into_iter().flatten().max_by(better) else {
        return if is_queue { LossOrigin::Queue } else { LossOrigin::Neither };
    };
    // A queue of that depth would have delayed what stood in it.
    let delay = best.depth / best.rate;
    let small = best.depth < SMALL * f64::from(view.mss);
    if from == 0 && small && (first.passed as f64) < MIN_FIRST * best.depth {
        return LossOrigin::Queue;
    }
    // One that holds so little may as well be a queue: queues of a few packets are common, such buckets are
    // not.
    if delay < MIN_DELAY.min(base / 16.0) {
        return LossOrigin::Queue;
    }
    let mut queued: Vec<f64> = asked.iter().map(|l| l.queued.as_secs_f64()).collect();
    queued.sort_by(f64::total_cmp);
    let usual = queued.get(queued.len() / 2).copied().unwrap_or_default();
    // Bursts that a bucket lets pass may queue behind it, too; but then it also drops while nothing is
    // queued.
    let real = view.episodes.iter().filter(|e| !e.spurious && e.start >= first.sent);
    let (deep, all) = real
        .fold((0, 0), |(deep, all), e| (deep + usize::from(e.queued * 2 > view.about(e.start).1), all + 1));
    let share = if all < 5 { 0.3 } else { 0.12 };
    // A queue of more than a round trip fits buckets of lower rates, too; a short one does not.
    let sharp = best.is_perfect(runs) && delay < base / 2.0;
    // So does one that holds more than a round trip at most losses, however deep the bucket would have to be.
    if deep * 10 > all * 6 && usual > base.max(MIN_STANDING) {
        return LossOrigin::Queue;
    }
    if is_of_longest_queues(&[view], asked.len()) {
        return LossOrigin::Queue;
    }
    if usual > 0.6 * delay || usual > share * delay && deep * 10 > all * 6 && !sharp {
        return LossOrigin::Queue;
    }
    let delays = asked.iter().map(|l| by_clock.as_ref().map_or(0.0, |times| times.delay(l.before)));
    let waits = queued.iter().copied().chain(delays).fold(0.0, f64::max);
    let most = MAX_SPREAD + (SHORT_TICK + TIMES_WAIT * waits) * best.rate / f64::from(view.mss);
    let spread = |times| spread_of_levels(&points(view, losses, from, times), best.rate, view.mss, base);
    let spreads = || [Some(&seen), by_clock.as_ref()].into_iter().flatten().filter_map(spread);
    if is_outlasted(view, asked, best.rate) || spreads().reduce(f64::min).is_some_and(|least| least > most) {
        return LossOrigin::Neither;
    }
    LossOrigin::Policer(Policing {
        rate: Rate::from_bytes_per_sec_f64(best.rate),
        burst: best.depth as u64,
        since: first.sent,
        confidence: (0.3 + 0.4 * best.full + 0.3 * best.apart).min(0.97),
        connections: 1,
        share: 1.0,
    })
}

/// What overflows delays most when it drops, whatever its rate is then. What queues behind a bucket drains
/// while the bucket drops. The last `asked` losses of each are looked at.
fn is_of_longest_queues(views: &[&View<'_>], asked: usize) -> bool {
    let (mut all, mut longest) = (0, 0);
    for view in views {
        let mut losses: Vec<&FlowLoss> = view.losses().collect();
        losses.sort_by_key(|l| l.sent);
        let losses = &losses[losses.len().saturating_sub(asked)..];
        all += losses.len();
        longest += losses.iter().filter(|l| view.is_longest_queue(l.sent, l.queued)).count();
    }
    longest as f64 >= MOSTLY * all as f64
}

/// Runs of losses during which a bucket of this rate would have let more than a segment pass: it takes one
/// again as soon as so much has leaked, so that none of its runs lasts longer. What is lost before the
/// capture point is not seen to come.
fn is_outlasted(view: &View<'_>, losses: &[&FlowLoss], rate: f64) -> bool {
    let longest = MAX_RUN * f64::from(view.mss) / rate.max(1.0) + TICK;
    let mut sorted: Vec<&FlowLoss> = losses.iter().copied().filter(|l| !l.copy && !l.upstream).collect();
    sorted.sort_by_key(|l| (l.sent, l.offset));
    // Nothing passed between two losses of a run.
    let runs = sorted.chunk_by(|a, b| b.passed == a.passed + u64::from(a.len));
    let lasted = runs.filter_map(|run| {
        // What had waited in a queue came closer together at the bucket.
        let (first, last) = (run.first()?, run.last()?);
        Some((last.sent.since(first.sent) - first.queued).as_secs_f64())
    });
    let (longer, all) = lasted.fold((0, 0), |(longer, all), t| (longer + usize::from(t > longest), all + 1));
    longer >= MIN_LONGER && longer * RUNS_FOR_LONGER >= all
}

/// How far apart what is in the bucket is at losses of some round trips, in segments: of four runs of losses
/// three are no farther from the median of those. A bucket drops when it is full, so that its level is the
/// same at all of them. A short queue drops what a burst has too much, whatever came before. Over a longer
/// time the error of the rate counts. None: there are too few.
fn spread_of_levels(points: &[Point], rate: f64, mss: u32, round: f64) -> Option<f64> {
    let mut runs: Vec<(f64, f64)> = Vec::new();
    let mut last = f64::NAN;
    for (point, level) in levels(points, rate) {
        // Losses in a row tell as much as one.
        if point.lost && point.passed != last {
            runs.push((point.time, level / f64::from(mss)));
            last = point.passed;
        }
    }
    let half = LONG / 2.0 * round;
    let mut apart: Vec<f64> = Vec::with_capacity(runs.len());
    for (at, (time, level)) in runs.iter().enumerate() {
        let from = runs.partition_point(|run| run.0 < time - half).max(at.saturating_sub(MAX_NEAR));
        let to = runs.partition_point(|run| run.0 <= time + half).min(at + MAX_NEAR);
        let near: Vec<f64> = runs[from..to].iter().map(|run| run.1).collect();
        if near.len() >= MIN_NEAR {
            apart.push((level - median(near)).abs());
        }
    }
    apart.sort_by(f64::total_cmp);
    (apart.len() >= MIN_COMPARED).then(|| apart[apart.len() * 3 / 4])
}

fn better(a: &Fit, b: &Fit) -> std::cmp::Ordering {
    a.score().total_cmp(&b.score())
}

/// The rate that explains the losses best.
fn best_fit(view: &View<'_>, points: &[Point], first: &FlowLoss) -> Option<Fit> {
    // Once the bucket is empty, its rate is the most that gets through; and what gets through between the
    // losses of one episode.
    let usual = capacity_since(&view.stretches, view.base, first.resent);
    let mut tried: Vec<f64> = (0..=RATES)
        .map(|n| usual * (FIRST_RATE + (LAST_RATE - FIRST_RATE) * n as f64 / RATES as f64))
        .collect();
    tried.extend(episode_rates(view, points));
    tried.extend(long_rates(view, points));
    let rates = tried.into_iter().filter(|rate| *rate > 0.0);
    let mut best = rates.filter_map(|rate| fit_at(points, rate, view.mss)).max_by(better)?;
    let mut step = (LAST_RATE - FIRST_RATE) / RATES as f64;
    for _ in 0..TIMES_FINER {
        let middle = best.rate;
        let near = (-FINER..=FINER).map(|n| middle * (1.0 + step * f64::from(n) / f64::from(FINER)));
        best = near.filter_map(|rate| fit_at(points, rate, view.mss)).max_by(better).unwrap_or(best);
        step /= f64::from(FINER);
    }
    Some(best)
}

/// What got through between the first and the last loss of each large episode, over the time.
fn episode_rates(view: &View<'_>, points: &[Point]) -> Vec<f64> {
    let rate = |start: f64, end: f64| {
        let lost: Vec<&Point> =
            points.iter().filter(|p| p.lost && p.time >= start && p.time <= end).collect();
        let (first, last) = (lost.first()?, lost.last()?);
        let time = last.time - first.time;
        (lost.len() >= MIN_EPISODE && time > 0.0).then(|| (last.passed - first.passed) / time)
    };
    let mut large: Vec<_> = view.episodes.iter().filter(|e| !e.spurious).collect();
    large.sort_by_key(|e| std::cmp::Reverse(e.losses));
    // What a hole hides may have been lost a little earlier.
    let start = |at: Instant| at.as_secs_f64() - view.base.as_secs_f64() / 2.0;
    large.iter().take(3).filter_map(|e| rate(start(e.start), e.end.as_secs_f64())).collect()
}

/// What got through between the first and the last loss, over the time, and the same for parts of the
/// transfer, if they are long: exact where the bucket was never empty between.
fn long_rates(view: &View<'_>, points: &[Point]) -> Vec<f64> {
    let lost: Vec<&Point> = points.iter().filter(|p| p.lost).collect();
    let at = |quarter: usize| lost.get((lost.len() * quarter / 4).min(lost.len().saturating_sub(1)));
    let rate = |(from, to): (usize, usize)| {
        let (from, to) = (at(from)?, at(to)?);
        let time = to.time - from.time;
        (time > LONG * view.base.as_secs_f64()).then(|| (to.passed - from.passed) / time)
    };
    [(0, 4), (0, 2), (1, 4), (2, 4)].into_iter().filter_map(rate).collect()
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

/// Passes, and losses from number `from` on, in order of time, with the data that had got through: all that
/// was seen, less what was lost behind the capture point.
fn points(view: &View<'_>, losses: &[&FlowLoss], from: usize, times: &PassTimes) -> Vec<Point> {
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
    let lost: std::collections::BTreeSet<u64> =
        losses.iter().filter(|l| !l.upstream).map(|l| l.frame).filter(|f| *f > 0).collect();
    let mut points: Vec<Point> = view
        .half
        .passes
        .kept()
        .iter()
        .filter(|p| !lost.contains(&p.frame))
        .map(|p| Point { time: times.of(p.time), passed: through(p.time, p.passed), lost: false })
        .collect();
    points.extend(losses.iter().zip(times.of_losses(losses)).skip(from).map(|(l, time)| Point {
        time,
        passed: through(l.sent, l.passed),
        lost: true,
    }));
    points.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.passed.total_cmp(&b.passed)));
    points
}

/// When segments came to a bucket, in seconds.
struct PassTimes {
    /// Delays in queues behind the bucket, by the time when segments are seen: what queued was together when
    /// it came there. Empty: it came when it is seen.
    delays: Vec<(f64, f64)>,
    /// Seconds per byte of segments that follow each other.
    byte: f64,
}

impl PassTimes {
    fn of(&self, at: Instant) -> f64 {
        at.as_secs_f64() - self.delay(at)
    }

    /// Of what is seen at that time.
    fn delay(&self, at: Instant) -> f64 {
        let at = at.as_secs_f64();
        let next = self.delays.partition_point(|(time, _)| *time <= at);
        self.delays.get(next.saturating_sub(1)).map_or(0.0, |(_, delay)| *delay)
    }

    /// The median of the delays at losses.
    fn delay_at(&self, losses: &[&FlowLoss]) -> f64 {
        median(losses.iter().map(|l| self.delay(l.before)).collect())
    }

    /// What was lost before the capture point came after the segment before it, at the distance of segments
    /// that follow each other, and before the one that showed the hole.
    fn of_losses(&self, losses: &[&FlowLoss]) -> Vec<f64> {
        let mut times = Vec::with_capacity(losses.len());
        let mut from = 0;
        while let Some(first) = losses.get(from) {
            let hole =
                losses[from..].iter().take_while(|l| l.upstream && l.frame == first.frame).count().max(1);
            let (before, seen) = (self.of(first.before), self.of(first.sent));
            for at in 0..hole {
                let even = (seen - before) * (at + 1) as f64 / (hole + 1) as f64;
                let close = self.byte * f64::from(first.len) * (at + 1) as f64;
                times.push(if first.upstream { before + close.min(even) } else { seen });
            }
            from += hole;
        }
        times
    }
}

/// The delays in queues by the clock of the sender; none if it is not known.
fn delays(view: &View<'_>) -> Option<Vec<(f64, f64)>> {
    let passes = view.half.passes.kept().iter();
    let delays: Vec<_> = passes
        .filter_map(|pass| {
            let time = pass.time.as_secs_f64();
            Some((time, time - view.half.undelayed(pass.tsval?)?.as_secs_f64()))
        })
        .collect();
    (!delays.is_empty()).then_some(delays)
}

/// What is in a bucket that leaks at `rate`, in bytes, when each point comes to it.
fn levels(points: &[Point], rate: f64) -> impl Iterator<Item = (&Point, f64)> {
    let (mut time, mut passed) = points.first().map_or((0.0, 0.0), |first| (first.time, first.passed));
    let mut level = 0.0f64;
    points.iter().map(move |point| {
        level = (level + (point.passed - passed).max(0.0) - (point.time - time) * rate).max(0.0);
        (time, passed) = (point.time, passed.max(point.passed));
        (point, level)
    })
}

/// How well a bucket that leaks at `rate` explains the losses.
fn fit_at(points: &[Point], rate: f64, mss: u32) -> Option<Fit> {
    let mss = f64::from(mss);
    let (mut at_losses, mut at_passes) = (Vec::new(), Vec::new());
    for (point, level) in levels(points, rate) {
        if point.lost { &mut at_losses } else { &mut at_passes }.push(level);
    }
    at_losses.sort_by(f64::total_cmp);
    at_passes.sort_by(f64::total_cmp);
    let depth = *at_losses.get(at_losses.len() / 2)?;
    if depth < MIN_DEPTH * mss {
        return None;
    }
    let slack = (4.0 * mss).min(0.5 * depth).max(0.2 * depth);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 1000 bytes at these times, in milliseconds, and whether they are lost.
    fn segments(all: impl IntoIterator<Item = (f64, bool)>) -> Vec<Point> {
        let mut passed = 0.0;
        let point = |(time, lost): (f64, bool)| {
            let before = passed;
            passed += if lost { 0.0 } else { 1e3 };
            Point { time: time / 1e3, passed: before, lost }
        };
        all.into_iter().map(point).collect()
    }

    /// Breaks: a short queue passes for a policer with a deep bucket, because a bucket of some rate explains
    /// where in the transfer the losses are.
    #[test]
    fn a_bucket_has_one_level_at_losses_and_a_short_queue_has_many() {
        // A megabyte a second is a segment in a millisecond. Bursts of growing length come each 100 ms.
        let burst = |n: u32| (0..60 + 2 * n).map(move |at| (f64::from(n * 100) + 0.1 * f64::from(at), at));
        let mut tokens = 300.0f64;
        let mut last = 0.0;
        let bucket = segments((0..40).flat_map(burst).map(|(time, _)| {
            tokens = (tokens + time - last).min(300.0);
            last = time;
            let passes = tokens >= 1.0;
            tokens -= f64::from(u8::from(passes));
            (time, !passes)
        }));
        assert!(bucket.iter().filter(|p| p.lost).count() > 20);
        let spread = spread_of_levels(&bucket, 1e6, 1000, 0.1).unwrap();
        assert!(spread <= 1.0, "{spread} segments");
        // A queue of twenty, and a line that takes every second of a burst.
        let queue = segments((0..40).flat_map(burst).map(|(time, at)| (time, at > 40 && at % 2 == 0)));
        let spread = spread_of_levels(&queue, 0.6e6, 1000, 0.1).unwrap();
        assert!(spread > MAX_SPREAD, "{spread} segments");
        let few = segments((0..4).map(|n| (f64::from(n), true)));
        assert_eq!(spread_of_levels(&few, 1e6, 1000, 0.1), None);
    }
}
