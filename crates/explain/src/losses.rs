//! How losses lie: what kind of loss a transfer suffers from.

use crate::bucket::Policing;
use crate::cause::Cause;
use crate::flow::{FlowLoss, Stall, Trigger, Wait};
use crate::policing::is_shared_bucket;
use crate::statistics::{at_least, both_by_chance, mean_at_least, median};
use crate::view::{Episode, Vantage, View};
use farpace_units::{Instant, Span};
use std::ops::RangeInclusive;

/// What all losses of a transfer have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pattern {
    /// Episodes without those that were spurious.
    pub episodes: usize,
    /// Of these, repaired without a timeout or a silence before it.
    pub fast: usize,
    /// Losses happen all over the transfer, not once or twice.
    pub pervasive: bool,
    /// Mean length of runs of lost segments.
    pub run: f64,
    /// Share of lost segments in the longest runs of their episodes, of those that chance hardly makes.
    pub in_runs: f64,
    /// Most of the losses of one segment are no short bursts: other losses happen beside these.
    pub singles: bool,
    /// Mean position in bursts of lost segments over that of all.
    pub burst: f64,
    /// Share of episodes that lie behind the beginning of a burst.
    pub late: f64,
    /// How likely chance alone would put as many episodes there.
    pub late_by_chance: f64,
    /// The largest delay in queues at a loss.
    pub queue: Span,
    /// Share of episodes while queues were long.
    pub queued: f64,
    /// Losses come in clumps: many within a round trip, none in most.
    pub clumped: bool,
    /// Most episodes begin at the same place in a burst: where the queue is full.
    pub same_place: bool,
    /// How likely chance alone would put the losses as near to the beginning as they are.
    pub early: f64,
    /// The first flights overflowed a queue, and later losses, which the rest of this is about, are others:
    /// the data that had passed before the last loss of the first flights.
    pub start: Option<u64>,
    /// The losses nearest to the beginning of the transfer came at the beginning of bursts, or while others
    /// waited longer: no queue overflowed.
    pub at_front: bool,
    /// How likely chance alone would put each episode as far behind the beginning of a burst as they all are.
    pub behind: f64,
    /// The flight was about the same when losses came, and varied more at other times.
    pub same_flight: bool,
    /// The delay in the queue was the same at all losses, and hardly larger at other times: a queue that was
    /// full.
    pub same_queue: bool,
    /// The mean share of round trips that are shorter than those at losses, 0 to 1; none if it is not known.
    pub rank: Option<f64>,
    /// Losses came while about the longest queue of their time stood, short as it may be: it was full.
    pub full_queue: bool,
    /// Losses depend on what was sent before them, and no queue stood: a bucket that others fill as well.
    pub bucket: bool,
    /// The first round trip in which a part of the segments got through, and no queue stood.
    pub thinned: Option<Thinned>,
    /// Half of the episodes that were repaired without a timeout have no longer runs; 0 if there are few.
    pub usual_run: f64,
    /// The commonest cause.
    pub main: Option<Cause>,
}

/// A round trip in which something let a part of the segments pass, and kept no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinned {
    /// Segments lost.
    pub lost: u32,
    /// In so many runs, between which others got through.
    pub runs: u32,
    /// Of so many segments.
    pub of: u32,
}

impl Thinned {
    /// The lost part of the segments, 0 to 1.
    fn share(self) -> f64 {
        f64::from(self.lost) / f64::from(self.of.max(1))
    }
}

impl Pattern {
    /// Measures it.
    pub(crate) fn of(view: &View<'_>) -> Self {
        let mut real: Vec<&Episode> =
            view.episodes.iter().filter(|e| !e.spurious && e.again < e.losses).collect();
        // What a black hole takes tells nothing of other losses.
        if let Some(hole) = black_hole(view)
            && real.iter().any(|e| !falls_in(view, &hole, e))
        {
            real.retain(|e| !falls_in(view, &hole, e));
        }
        // Neither does what an outage takes.
        let (told, usual_run) = runs_told(view, &real);
        let outages = outages(view, &Pattern { fast: told, usual_run, ..Pattern::default() });
        let mut all = view.episodes.iter().zip(&outages);
        let mut remains =
            |e: &&Episode| all.find(|(o, _)| std::ptr::eq(*o, *e)).is_some_and(|(_, out)| !*out);
        let rest: Vec<&Episode> = real.iter().copied().filter(|e| remains(e)).collect();
        if !rest.is_empty() {
            real = rest;
        }
        if real.is_empty() {
            return Pattern::default();
        }
        let queued = real.iter().filter(|e| is_queued(view, e)).count() as f64 / real.len() as f64;
        // What losses have in common is asked of those that no queue explains.
        let rest: Vec<&Episode> = real.iter().copied().filter(|e| !is_queued(view, e)).collect();
        let mut real = if rest.is_empty() { real } else { rest };
        let thinned = real.iter().find_map(|e| thinned(view, e));
        // A bucket is asked for all of them: it drops in the first flights and later.
        let bucket = rank(&real).is_some_and(|rank| rank < MAX_RANK)
            && (thinned.is_some() || is_shared_bucket(view, &real));
        let (early, first) = early(view, &real);
        let begins = early < MAX_CHANCE && real.len() >= first + MIN_LATER;
        let start = real.get(first.saturating_sub(1)).filter(|_| begins).map(|e| e.passed);
        let usual = usual_burst(view);
        let at_front = {
            let first = real.get(..first).unwrap_or_default();
            let waits = rank(first).is_none_or(|rank| rank >= MAX_RANK_OF_QUEUE);
            first.iter().all(|e| !e.upstream) && (burst(first, usual) < MAX_FRONT || !waits)
        };
        if begins {
            real.drain(..first);
        }
        let (fast, usual_run) = runs_told(view, &real);
        let losses: f64 = real.iter().map(|e| f64::from(e.losses)).sum();
        let runs: f64 = real.iter().map(|e| f64::from(e.runs)).sum();
        let weighted = real.iter().map(|e| f64::from(e.losses) * f64::from(e.losses)).sum::<f64>() / losses;
        let rank = rank(&real);
        let per_round = losses / (view.duration().as_secs_f64() / view.base.as_secs_f64().max(1e-4)).max(1.0);
        Pattern {
            clumped: weighted >= 4.0 && weighted > 4.0 * per_round,
            early,
            start,
            usual_run,
            behind: behind(view, &real),
            same_place: same_place(&real),
            same_flight: same_flight(view, &real),
            same_queue: same_queue(view, &real),
            rank,
            full_queue: rank.is_some_and(|rank| is_full_queue(rank, &real)),
            bucket,
            thinned,
            episodes: real.len(),
            pervasive: real.len() >= 4,
            run: losses / runs.max(1.0),
            in_runs: real.iter().filter(|e| e.run >= MIN_RUN).map(|e| f64::from(e.run)).sum::<f64>() / losses,
            singles: has_singles(&real),
            at_front,
            burst: burst(&real, usual),
            late: real.iter().filter(|e| e.burst >= MIN_POSITION).count() as f64 / real.len() as f64,
            late_by_chance: late_by_chance(view, &real),
            queue: real.iter().map(|e| e.queued).max().unwrap_or_default(),
            queued,
            fast,
            main: None,
        }
    }
}

/// Episodes that ACKs told of, and the length of runs that half of them do not exceed; 0 if there are few.
/// Losses that a silence follows may be those of an outage.
fn runs_told(view: &View<'_>, episodes: &[&Episode]) -> (usize, f64) {
    let told = episodes.iter().filter(|e| e.timeouts == 0 && !is_silent(view, e));
    let runs: Vec<f64> = told.map(|e| f64::from(e.run)).collect();
    (runs.len(), if runs.len() >= MIN_RUNS { median(runs) } else { 0.0 })
}

/// The mean position of segments in bursts.
fn usual_burst(view: &View<'_>) -> f64 {
    let all: f64 = view.half.bursts.iter().map(|n| *n as f64).sum();
    let positions = view.half.bursts.iter().enumerate().map(|(at, n)| {
        let position = if at == 0 { 0.0 } else { 1.5 * f64::from(1u32 << (at - 1)) };
        position * *n as f64
    });
    positions.sum::<f64>() / all.max(1.0)
}

/// The mean position in bursts of lost segments over that of all.
fn burst(episodes: &[&Episode], usual: f64) -> f64 {
    let losses: f64 = episodes.iter().map(|e| f64::from(e.losses)).sum();
    let lost = episodes.iter().map(|e| e.burst * f64::from(e.losses)).sum::<f64>() / losses.max(1.0);
    (lost + 0.5) / (usual + 0.5)
}

/// A run of losses that chance hardly makes, and the share of losses in such runs where losses come in
/// bursts: of bursts that end by chance some are short.
const MIN_RUN: u32 = 3;
const MIN_IN_RUNS: f64 = 0.4;
/// Runs of losses of which the usual length is known.
const MIN_RUNS: usize = 4;
/// Where runs end by chance after each packet, the longest of `n` has `ln n` times the mean as a rule, and in
/// one of twenty cases this times the mean more.
const LONGER: f64 = 3.0;

/// A run of losses that is no longer than bursts are on this path.
pub(crate) fn is_usual_run(pattern: &Pattern, segments: f64) -> bool {
    let longest = libm::log(pattern.fast.max(1) as f64) + LONGER;
    pattern.usual_run >= 2.0 && segments <= longest * pattern.usual_run
}

/// More losses of one segment than this, and than so many times those that bursts bring, happen beside them.
const MIN_SINGLES: f64 = 4.0;
const TIMES_SINGLES: f64 = 2.0;

/// Bursts that end by chance after each packet, with the same likelihood, also end after the first one: how
/// often tells the mean length of those that do not. Others that hit one segment are losses of another kind.
fn has_singles(episodes: &[&Episode]) -> bool {
    let alone = |e: &&&Episode| e.runs == 1 && e.timeouts == 0;
    let single = episodes.iter().filter(alone).filter(|e| e.run == 1).count() as f64;
    let long = || episodes.iter().filter(alone).filter(|e| e.run >= MIN_RUN).map(|e| f64::from(e.run));
    let (count, beyond) =
        (long().count() as f64, long().map(|run| run - f64::from(MIN_RUN - 1)).sum::<f64>());
    // The likelihood that a burst ends, with one more observation that it does at once.
    let ends = (count + 1.0) / (beyond + 1.0);
    let expected = (count + 1.0) * ends / ((1.0 - ends) * (1.0 - ends)).max(1e-3);
    count > 0.0 && single >= MIN_SINGLES && single > TIMES_SINGLES * expected
}

/// Segments in flight without which what is lost may be a tail.
const MIN_FLIGHT: u32 = 4;
/// What chance does so rarely is no chance.
const MAX_CHANCE: f64 = 0.01;
/// Episodes behind the first flights that are judged by themselves.
const MIN_LATER: usize = 4;
/// A queue takes a few packets of a burst before it overflows.
const MIN_POSITION: f64 = 2.5;
/// The class of positions (in powers of two) that begins behind it.
const FIRST_LATE: usize = 2;
/// Most of what it drops lies behind these.
const MIN_LATE: f64 = 0.51;
/// Where chance puts so many losses as far back in bursts more often than this, they lie there by chance.
const MAX_CHANCE_LATE: f64 = 0.1;
/// Delays in a queue that are the same, and the least that is measured well enough for that.
const SAME_QUEUE: f64 = 0.15;
const MIN_QUEUE: Span = Span::from_micros(200);
/// The mean rank of queues at losses where these are full, the highest where no queue drops, and how likely
/// chance may rank them as those that are full.
const MIN_RANK: f64 = 0.8;
const MAX_RANK: f64 = 0.67;
const MAX_CHANCE_RANK: f64 = 0.003;
/// Bursts of losses that come within a round trip.
const MAX_BURSTS: u32 = 2;
/// What stands in a queue that is full, as a share of the most that stood there.
const MIN_FILLED: f64 = 0.5;
/// What a round trip loses where more comes than something takes: segments, their share of all in that time,
/// at least and at most, the runs that they lie in, and the mean length of these. Chance, and bursts, do not
/// make that.
const MIN_THINNED: u32 = 8;
const MIN_THINNED_SHARE: f64 = 0.2;
const MAX_THINNED_SHARE: f64 = 0.9;
const MIN_THINNED_RUNS: u32 = 4;
const MAX_THINNED_RUN: u32 = 5;
/// Chance loses as many at all times: such a round trip loses so many times as many as the transfer. A start
/// sends at most twice what the path takes, of which a queue drops a half.
const TIMES_THINNED: f64 = 4.0;
const MAX_DOUBLED: f64 = 0.6;
/// Segments that wait at such a time where there is no queue.
const MAX_WAITING: f64 = 1.5;
/// Segments that the path takes while a full queue drops those that come.
const MAX_FULL: f64 = 2.0;
/// Where losses come while others wait longer, so often, no queue dropped them.
const MAX_RANK_OF_QUEUE: f64 = 0.4;
/// What stands in an empty queue at most: less than the target of one that is managed (RFC 8289, 5 ms).
const MAX_EMPTY: Span = Span::from_millis(2);
/// A round trip at losses that is longer than so many others tells of a queue, and losses that come nearer to
/// the beginning of bursts than other segments tell of none.
const MAX_RANK_OF_BUCKET: f64 = 0.9;
const MAX_FRONT: f64 = 1.0;
/// The flight at losses varies by no more.
const MAX_SPREAD: f64 = 0.15;

/// How likely as many episodes would lie behind the beginning of a burst if each segment were lost alike.
fn late_by_chance(view: &View<'_>, episodes: &[&Episode]) -> f64 {
    let all: u64 = view.half.bursts.iter().sum();
    let behind: u64 = view.half.bursts.iter().skip(FIRST_LATE).sum();
    let late = episodes.iter().filter(|e| e.burst >= MIN_POSITION).count();
    at_least(late, episodes.len(), behind as f64 / (all as f64).max(1.0))
}

fn same_place(episodes: &[&Episode]) -> bool {
    let places: Vec<f64> = episodes.iter().map(|e| e.first_burst).collect();
    let usual = median(places.clone());
    let near = places.iter().filter(|p| (**p - usual).abs() <= (0.15 * usual).max(1.5)).count();
    episodes.len() >= 5 && (4.0..100.0).contains(&usual) && near * 10 >= episodes.len() * 8
}

/// How likely chance would put so many runs of losses so near to the beginning, and how many episodes these
/// are: the least over the runs, each held against the part of the data that had passed before it.
fn early(view: &View<'_>, episodes: &[&Episode]) -> (f64, usize) {
    let bytes = (view.half.counts.bytes as f64).max(1.0);
    // Losses in a row tell as much as one.
    let all: u32 = episodes.iter().map(|e| e.runs).sum();
    let (mut least, mut first, mut by_then) = (1.0, 0, 0);
    for (at, e) in episodes.iter().enumerate() {
        by_then += e.runs;
        let chance = at_least(by_then as usize, all as usize, (e.passed as f64 / bytes).min(1.0));
        if chance < least {
            (least, first) = (chance, at + 1);
        }
    }
    // It is looked for at as many places.
    ((least * episodes.len() as f64).min(1.0), first)
}

/// The share of segments that lie as far behind the beginning of a burst as all episodes do, to the power of
/// their number. A full queue has been busy for all that it holds: what it drops follows so many that came at
/// the rate of the line.
fn behind(view: &View<'_>, episodes: &[&Episode]) -> f64 {
    let least = episodes.iter().map(|e| e.first_burst).fold(f64::INFINITY, f64::min);
    if least < MIN_POSITION {
        return 1.0;
    }
    let bucket = (8 - (least as u8).leading_zeros()).min(8) as usize;
    let all: u64 = view.half.bursts.iter().sum();
    let there: u64 = view.half.bursts.iter().skip(bucket).sum();
    libm::pow(there as f64 / (all as f64).max(1.0), episodes.len() as f64)
}

/// More came than a place on the path takes, so that it dropped what was too much, segment by segment. A
/// queue is full at such a time; a bucket delays nothing.
fn thinned(view: &View<'_>, e: &Episode) -> Option<Thinned> {
    let mss = f64::from(view.mss.max(1));
    let all = e.passed_last.saturating_sub(e.passed) as f64 / mss + 1.0;
    let through = (all - f64::from(e.losses)).max(1.0) * mss / e.end.since(e.start).as_secs_f64().max(1e-6);
    let slower = view.half.line_rate().map_or(through, |line| line.min(through));
    let waits = e.queued.as_secs_f64() * slower / mss;
    let lost = f64::from(e.losses);
    let many = e.losses >= MIN_THINNED && lost >= MIN_THINNED_SHARE * all;
    // A part got through. After a timeout also what has arrived is sent again.
    let part = lost <= MAX_THINNED_SHARE * all && e.timeouts == 0;
    let alternate = e.runs * MAX_THINNED_RUN >= e.losses && e.runs >= MIN_THINNED_RUNS;
    let waits = waits >= MAX_WAITING || e.rank.is_some_and(|rank| rank > MAX_RANK_OF_BUCKET);
    (many && part && alternate && !waits && view.sees_near_queues()).then_some(Thinned {
        lost: e.losses,
        runs: e.runs,
        of: all as u32,
    })
}

/// How evenly high the flight was when losses came: a limit that is always the same, or chance. Where it
/// varies as little at other times, it tells nothing.
fn same_flight(view: &View<'_>, episodes: &[&Episode]) -> bool {
    let at_losses = spread(episodes.iter().skip(1).map(|e| f64::from(e.flight)));
    let since = episodes.get(1).map_or(Instant::ZERO, |e| e.start);
    let others = view.stretches.iter().filter(|s| s.slice.start >= since);
    at_losses < MAX_SPREAD && at_losses * 2.0 < spread(others.map(|s| s.slice.flight as f64))
}

/// What stands in a full queue takes the same time to leave it at every loss.
fn same_queue(view: &View<'_>, episodes: &[&Episode]) -> bool {
    let delays: Vec<f64> = episodes.iter().map(|e| e.queued.as_secs_f64()).collect();
    let usual = median(delays.clone());
    let near = delays.iter().filter(|d| (**d - usual).abs() <= SAME_QUEUE * usual).count();
    delays.len() >= 2
        && usual >= MIN_QUEUE.as_secs_f64()
        && near * 10 >= delays.len() * 8
        && view.deep.as_secs_f64() <= 1.5 * usual
}

/// The mean rank of the round trips at losses.
fn rank(episodes: &[&Episode]) -> Option<f64> {
    let known = episodes.iter().filter_map(|e| e.rank);
    let (sum, n) = known.fold((0.0, 0u32), |(sum, n), rank| (sum + rank, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// A queue that overflows delays most when it does. By chance losses come while as many others wait longer.
fn is_full_queue(mean_rank: f64, episodes: &[&Episode]) -> bool {
    let known = episodes.iter().filter(|e| e.rank.is_some()).count();
    mean_rank >= MIN_RANK && mean_at_least(mean_rank, known) < MAX_CHANCE_RANK
}

/// Standard deviation over mean; infinite for fewer than five.
fn spread(flights: impl Iterator<Item = f64>) -> f64 {
    let flights: Vec<f64> = flights.filter(|f| *f > 0.0).collect();
    if flights.len() < 5 {
        return f64::INFINITY;
    }
    let n = flights.len() as f64;
    let mean = flights.iter().sum::<f64>() / n;
    libm::sqrt(flights.iter().map(|f| (f - mean) * (f - mean)).sum::<f64>() / n) / mean
}

/// A queue stood when it was lost, near the largest there was.
fn is_queued(view: &View<'_>, e: &Episode) -> bool {
    let least = (view.base / 10).max(Span::from_millis(1));
    let (rate, deep) = view.about(e.start);
    // Where the rate changes, the same queue delays more at other times.
    let long = e.queued * 5 > deep * 2 || e.queued > least && view.is_longest_queue(e.start, e.queued);
    // A queue that drops several in a row is full, and as full at all times, whatever its rate is. A queue
    // that is managed drops one at a time; one that overflows in a start drops in many places.
    let full = e.run < MIN_RUN
        || e.runs > MAX_BURSTS
        || rate * e.queued.as_secs_f64() >= MIN_FILLED * view.longest_queue
        || e.queued.as_secs_f64() >= MIN_FILLED * view.deep.as_secs_f64();
    e.queued > least / 2 && deep.max(e.queued) > least && long && full
}

/// Segments were lost one after the other for longer than a queue stays full: it has room again as soon as
/// the path has taken a segment. What is lost before the capture point is not seen to come.
fn outlasts_queue(view: &View<'_>, e: &Episode) -> bool {
    // The path may be slower at this time than at others.
    let at = view.stretches.partition_point(|s| s.slice.end < e.start);
    let about = view.stretches.iter().skip(at.saturating_sub(1)).take(3).map(|s| s.rate).filter(|r| *r > 0.0);
    let rate = about.fold(view.about(e.start).0, f64::min);
    let segment = f64::from(view.mss) / rate.max(1.0);
    let lasts = e.run_time.as_secs_f64();
    e.run >= MIN_RUN && !e.upstream && lasts > MAX_FULL * segment
}

/// The end of a burst was too much for a queue, which stood before it: what was sent again first passed at
/// once, as a timer or a probe needs no longer than after any lost tail.
fn is_overflow(view: &View<'_>, e: &Episode) -> bool {
    is_queued(view, e) && e.again == 0 && e.silence <= tail_repair(view.base + view.about(e.start).1)
}

/// The cause of each episode.
pub(crate) fn classify(view: &View<'_>, policing: Option<&Policing>, pattern: &Pattern) -> Vec<Cause> {
    let old = crawls(view);
    let hole = black_hole(view);
    let bits = long_frames_only(view);
    let outages = outages(view, pattern);
    view.episodes
        .iter()
        .zip(outages)
        .map(|(e, out)| {
            if e.spurious {
                return spurious(view, e);
            }
            if hole.as_ref().is_some_and(|hole| falls_in(view, hole, e)) {
                return Cause::MtuBlackHole;
            }
            if old && e.timeouts > 0 {
                return Cause::Linux2617;
            }
            if let Some(policing) = policing
                && e.start >= policing.since
            {
                return Cause::Policer;
            }
            if out {
                return Cause::Outage;
            }
            if is_queued(view, e) {
                return Cause::Congestion;
            }
            // Of others ACKs told, as of losses that are no tails.
            let timed = e.upstream || e.timeouts + e.probes > 0;
            if e.tail && timed && !pattern.pervasive && e.runs == 1 {
                return Cause::TailLoss;
            }
            unqueued(view, e, pattern, bits)
        })
        .collect()
}

/// Which episodes are those of outages.
fn outages(view: &View<'_>, pattern: &Pattern) -> Vec<bool> {
    let old = crawls(view);
    let hole = black_hole(view);
    // Until the path passed something again.
    let mut out: Option<Instant> = None;
    let in_outage = |e: &Episode| {
        let hidden = hole.as_ref().is_some_and(|hole| falls_in(view, hole, e));
        if e.spurious || hidden || old && e.timeouts > 0 {
            return false;
        }
        let overflow = is_overflow(view, e);
        // Probes that leave in an outage are lost in it.
        let taken = out.is_some_and(|until| e.start <= until)
            || is_outage(view, e) && !overflow && !is_usual_run(pattern, f64::from(e.run))
            || is_out_both_ways(view, e);
        if taken {
            out = out.max(Some(e.resent));
        }
        taken
    };
    view.episodes.iter().map(in_outage).collect()
}

/// A queue that is long at other times was empty: it cannot have dropped, nor has one that is managed.
fn was_empty(view: &View<'_>, e: &Episode) -> bool {
    let (_, deep) = view.about(e.start);
    let low = e.rank.is_some_and(|rank| rank < MAX_RANK_OF_QUEUE) && !e.upstream;
    low && e.queued < MAX_EMPTY && e.queued * 10 < deep
}

/// Nothing queued when it was lost.
fn unqueued(view: &View<'_>, e: &Episode, pattern: &Pattern, bits: bool) -> Cause {
    // Where long queues are seen at other times, a queue is not small.
    let long = view.deep.max(view.about(e.start).1) > view.base / 3 + view.threshold();
    // In times in which others wait longer, it dropped nothing.
    let idle = pattern.episodes >= MIN_LATER && pattern.rank.is_some_and(|rank| rank < MAX_RANK_OF_QUEUE);
    if long && pattern.queued >= 0.3 && pattern.run < 2.2 && !idle && !was_empty(view, e) {
        return Cause::Congestion;
    }
    if outlasts_queue(view, e) && !pattern.bucket {
        return Cause::BurstLoss;
    }
    if !long && pattern.full_queue {
        return Cause::SmallQueue;
    }
    if pattern.bucket {
        return Cause::Policer;
    }
    let late = pattern.late >= MIN_LATE && pattern.late_by_chance < MAX_CHANCE_LATE;
    if !long && pattern.burst > 1.8 && late && (pattern.episodes >= 2 || e.losses >= 3) {
        return Cause::SmallQueue;
    }
    if !long && (pattern.same_place || pattern.same_queue) {
        return Cause::SmallQueue;
    }
    // The first bursts overflow a queue that later ones, which are spread, do not.
    let tail = pattern.run < 2.2 || e.first_burst >= 4.0;
    let applies = pattern.start.is_none_or(|start| e.passed <= start) && !pattern.at_front;
    if !long && tail && applies && both_by_chance(pattern.early, pattern.behind) < MAX_CHANCE {
        return Cause::SmallQueue;
    }
    if !long && pattern.run < 2.2 && pattern.burst >= 1.0 && (pattern.clumped || pattern.same_flight) {
        return Cause::SmallQueue;
    }
    // More came than something takes, which is no bucket, in one round trip of many.
    let doubled = |thinned: &Thinned| {
        let share = thinned.share();
        view.loss_rate() * TIMES_THINNED < share && share <= MAX_DOUBLED
    };
    if !long && pattern.thinned.as_ref().is_some_and(doubled) {
        return Cause::SmallQueue;
    }
    let bursts = pattern.run >= 2.2 || pattern.in_runs >= MIN_IN_RUNS || (!pattern.pervasive && e.run >= 4);
    if bursts && !(pattern.singles && e.losses == 1) {
        return Cause::BurstLoss;
    }
    if bits { Cause::BitErrors } else { Cause::RandomLoss }
}

/// Sent again although it had arrived.
fn spurious(view: &View<'_>, e: &Episode) -> Cause {
    if e.timeouts + e.probes > 0 {
        let counts = &view.half.counts;
        return if counts.missing_acks * 10 > counts.numbered_acks {
            Cause::AckLoss
        } else {
            Cause::SpuriousTimeout
        };
    }
    Cause::Reordering
}

/// The longest silence before the repair of a lost tail, by a probe (RFC 8985, section 7.2) or the first
/// timeout.
pub(crate) fn tail_repair(round: Span) -> Span {
    round * 3 + Span::from_millis(200)
}

/// Everything from one moment on was lost, more than a tail, and a timer had to find out.
fn is_outage(view: &View<'_>, e: &Episode) -> bool {
    if is_last(view, e) {
        return false;
    }
    let whole = e.runs <= 2 && e.run >= 4 && e.run * 10 >= e.losses * 9;
    let share = e.bytes as f64 / f64::from(e.flight.max(1));
    let most = share >= 0.5 || share >= 0.25 && e.run >= 8;
    let waited = e.resent.since(e.start) > view.base * 3 / 2 || e.upstream && e.silence > view.base * 3 / 2;
    let long = e.silence > tail_repair(view.base) || most && e.run > 8;
    let timed = e.timeouts > 0 || most && is_silent(view, e);
    whole && (timed && (most || e.tail) && waited || e.upstream && waited && long)
}

/// Segments of a flight were lost, and so were the ACKs of others that arrived: a timer sent them again, too,
/// and nothing was heard until then.
fn is_out_both_ways(view: &View<'_>, e: &Episode) -> bool {
    let least = view.base * 3 / 2;
    let needless = |s: &&Episode| s.spurious && s.timeouts > 0;
    let mut others = view.episodes.iter().filter(needless);
    if e.upstream {
        return e.silence > least && others.any(|s| s.silence == e.silence);
    }
    let flies = e.flight >= MIN_FLIGHT * view.mss;
    let together = |s: &Episode| s.start <= e.end && s.resent > e.start && s.resent <= e.resent;
    flies && e.timeouts > 0 && e.resent.since(e.start) > least && is_silent(view, e) && others.any(together)
}

/// Nothing was heard after it, so that a probe had to ask for an ACK.
fn is_silent(view: &View<'_>, e: &Episode) -> bool {
    let after = |s: &Stall| s.start >= e.start && s.start <= e.resent;
    view.half.stalls.kept().iter().any(|s| s.wait == Wait::Timer && !s.heard && after(s))
}

/// The end of all data was lost, which is less than a flight, and came once it was sent again.
fn is_last(view: &View<'_>, e: &Episode) -> bool {
    let repaired_at_once = e.again == 0 && e.silence <= tail_repair(view.base) * 2;
    e.tail
        && view.half.stream() <= e.last + 1
        && e.bytes < u64::from(e.flight)
        && repaired_at_once
        && e.runs == 1
}

/// The signature of Linux 2.6.15 to 2.6.17: after a timeout, one segment per round trip. Where repairs are
/// lost again, any sender goes as slowly.
pub(crate) fn crawls(view: &View<'_>) -> bool {
    let after = &view.half.after_timeout;
    view.half.counts.lost_again * 4 <= after.single
        && after.single >= 16
        && after.single * 10 >= after.acks * 6
        && after.time > view.base * 16
}

/// So many segments, all that are longer than any that arrived, are lost by nothing else.
const MIN_TAKEN: usize = 5;

/// Full segments are lost every time, shorter ones arrive.
pub(crate) fn is_black_hole(view: &View<'_>) -> bool {
    let half = view.half;
    // Super-segments tell nothing of their parts.
    let most = if half.mss > 0 { half.mss } else { u32::MAX };
    let large = half.counts.largest.min(most);
    let passed = half.largest_delivered;
    let timed = |l: &FlowLoss| l.len > passed && l.len <= most && l.trigger != Trigger::Fast;
    let again = half.most_sent >= 3 && half.counts.timeouts >= 2 && view.losses().any(timed);
    let seen = large > passed + 8 && (again || taken(view, passed, most) >= MIN_TAKEN);
    seen || hidden_black_hole(view)
}

/// Segments longer than `passed` that were lost, as they were sent first: what is sent again may be cut.
fn taken(view: &View<'_>, passed: u32, most: u32) -> usize {
    let seen: Vec<&FlowLoss> = view.losses().filter(|l| !l.upstream && !l.copy).collect();
    let whole =
        seen.chunk_by(|a, b| a.frame == b.frame).map(|parts| parts.iter().map(|l| l.len).sum::<u32>());
    whole.filter(|len| *len > passed && *len <= most).count()
}

/// From the first segment that a black hole took to the repair by shorter ones; none: there is no black hole.
pub(crate) fn black_hole(view: &View<'_>) -> Option<RangeInclusive<Instant>> {
    if !is_black_hole(view) {
        return None;
    }
    let extend = |until: Instant, e: &Episode| if e.start <= until { until.max(e.repaired) } else { until };
    let mut long = view.episodes.iter().filter(|e| !e.spurious && is_too_long(view, e));
    let Some(first) = long.next() else {
        // Behind the hole. What is seen first repairs what had left before, or is the end of segments that
        // were cut and are still too long: then the first byte comes later.
        let first = view.half.first_data.map_or(view.start, |(at, _)| at);
        let repairs = view.half.stalls.kept().iter().filter(|s| s.wait == Wait::Timer && s.offset == 0);
        let first = repairs.fold(first, |first, s| first.max(s.end));
        let missing = view.episodes.iter().filter(|e| !e.spurious && e.upstream);
        return Some(view.start..=missing.fold(first + view.base * 2, extend));
    };
    // Later ones are probes for larger segments.
    Some(first.start..=long.fold(first.repaired, extend))
}

/// A black hole took it. It may have been cut when it was sent again, so that its parts are short.
fn falls_in(view: &View<'_>, hole: &RangeInclusive<Instant>, e: &Episode) -> bool {
    hole.contains(&e.start) || is_too_long(view, e)
}

/// It has segments longer than any that arrived.
fn is_too_long(view: &View<'_>, e: &Episode) -> bool {
    e.longest > view.half.largest_delivered
}

/// Behind the hole large segments are never seen: only a long silence, and then segments smaller than what
/// was agreed on.
fn hidden_black_hole(view: &View<'_>) -> bool {
    let half = view.half;
    let agreed = view.flow.said(view.side).mss.zip(view.flow.said(view.side.other()).mss);
    let smaller = agreed.is_some() && half.counts.largest + 8 < half.mss && half.counts.data_segments > 10;
    // An ACK of the handshake that is data as well is lost in the hole.
    let answered = view.flow.hello.iter().filter_map(|h| h.first).map(|(time, _)| time + view.base).max();
    let since = view.flow.established.map(|(time, _)| answered.map_or(time, |answered| time.min(answered)));
    let silence = since.zip(half.first_data).map(|(since, (first, _))| first.since(since));
    // Two timeouts at least before a smaller segment is tried.
    smaller
        && view.vantage != Vantage::Sender
        && silence.is_some_and(|silence| silence > view.base * 3 + Span::from_millis(500))
}

/// Losses hit long segments more often than short ones, by more than chance.
pub(crate) fn long_frames_only(view: &View<'_>) -> bool {
    let [[short, long], [short_lost, long_lost]] = view.half.by_size;
    if short < 50 || long < 50 || long_lost < 8 {
        return false;
    }
    let rate = long_lost as f64 / long as f64;
    let expected = rate * short as f64;
    expected > 5.0 && (short_lost as f64) < expected * 0.35
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: where losses come in bursts, one more of them is no outage; where they come one by one, it is.
    #[test]
    fn a_run_is_usual_where_others_are_as_long() {
        let bursts = Pattern { usual_run: 20.0, ..Pattern::default() };
        assert!(is_usual_run(&bursts, 60.0));
        assert!(!is_usual_run(&bursts, 100.0));
        let single = Pattern { usual_run: 1.0, ..Pattern::default() };
        assert!(!is_usual_run(&single, 4.0));
        assert!(!is_usual_run(&Pattern::default(), 1.0));
    }
}
