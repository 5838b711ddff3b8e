//! Whether the path is full: by queues that stand, or by a rate that is kept.

use crate::cause::Cause;
use crate::statistics::median;
use crate::view::{Stretch, View};
use farpace_units::Span;

/// The share of the path's rate at which it is full.
pub(super) const FULL: f64 = 0.9;
/// In a path that is kept full more than a segment waits again and again, and ACKs never come much closer to
/// each other than on average.
const MIN_STANDING: f64 = 1.2;
const MAX_DENSER: f64 = 1.1;
/// A path that is full has no more than this many times the rate of the transfer.
const MAX_IDLE: f64 = 1.3;
/// Rates that count as that of the path, or as the same, and stretches that tell whether losses lower the
/// rate.
pub(super) const NEARLY: f64 = 0.85;
const LEVEL: f64 = 0.03;
const MIN_STRETCHES: usize = 30;
/// Losses that show that the path is idle after each.
const MIN_CUTS: usize = 3;

/// Segments that wait at all times where a path is full, round trips after which it has been, and how many
/// times as long a sender that follows its rate takes in all.
const MIN_WAITING: f64 = 1.2;
pub(super) const MIN_FILLED: u64 = 4;
pub(super) const MAX_BETWEEN: u64 = 3;
/// Delays below this, and below this part of the round trip, come from hosts.
const MIN_SHORT_QUEUE: Span = Span::from_micros(300);

/// All that came in this stretch had waited behind other segments, at the rate of that time: the path was
/// never idle, whatever its rate is at other times.
pub(super) fn is_filled(view: &View<'_>, stretch: &Stretch) -> bool {
    let slice = &stretch.slice;
    let segment = f64::from(view.mss) / stretch.rate.max(1.0);
    let least = MIN_SHORT_QUEUE.max(view.base / 32);
    slice.short == 0
        && slice.far.n >= 4
        && stretch.queued.is_some_and(|q| q > least && q.as_secs_f64() > MIN_WAITING * segment)
}

/// The rate at which the path delivers while a queue stands: a transfer that has it fills the path also
/// when the queue is short.
pub(super) fn path_rate(view: &View<'_>) -> Option<f64> {
    let threshold = view.threshold();
    let queued =
        view.stretches.iter().filter(|s| s.queued.is_some_and(|q| q > threshold) && s.slice.losses == 0);
    let rates: Vec<f64> = queued.map(|s| s.rate).filter(|r| *r > 0.0).collect();
    // Delays that come and go while less is delivered than at other times are no queue of this transfer.
    let enough = rates.len() >= 2 && rates.len() * 20 >= view.stretches.len();
    let rate = median(rates);
    // A queue that stands for less time than the path is idle does not fill it.
    let idle = view.half.line_rate().is_some_and(|line| line > MAX_IDLE * rate);
    (enough && !idle && rate >= 0.8 * view.capacity).then_some(rate)
}

/// The sender keeps the path full with hardly a queue, as controls do that measure the path's rate: the
/// transfer has one rate most of the time, segments come out of the path at this rate and no faster, and one
/// or two of them wait there. A sender that is bounded otherwise sends bursts that the path spreads, or
/// leaves no queue.
pub(super) fn keeps_full(view: &View<'_>) -> bool {
    let capacity = |s: &Stretch| view.about(s.slice.start + s.slice.duration() / 2).0;
    let fast: Vec<&Stretch> = view.stretches.iter().filter(|s| s.rate >= FULL * capacity(s)).collect();
    let segment = |s: &Stretch| f64::from(view.mss) / capacity(s).max(1.0);
    let mut waiting: Vec<f64> =
        fast.iter().filter_map(|s| Some(s.queued?.as_secs_f64() / segment(s))).collect();
    waiting.sort_by(f64::total_cmp);
    let often = waiting.get(waiting.len() * 9 / 10).copied().unwrap_or_default();
    let even = view.half.line_rate().is_some_and(|densest| densest <= MAX_DENSER * view.capacity);
    even && fast.len() * 2 >= view.stretches.len() && often >= MIN_STANDING
}

/// The rate after the first losses were repaired.
struct AfterLosses {
    whole: Span,
    /// Nearly the path's rate.
    fast: Span,
    /// Exactly that rate.
    level: Span,
    /// Stretches that tell of queues, and those in which one was seen.
    seen: usize,
    queued: usize,
    /// Queues before the capture point are not seen.
    blind: bool,
}

impl AfterLosses {
    /// None where too little follows.
    fn of(view: &View<'_>) -> Option<Self> {
        let first = view.episodes.iter().find(|e| !e.spurious)?;
        let blind = !view.sees_near_queues();
        let mut all =
            AfterLosses { whole: Span::ZERO, fast: Span::ZERO, level: Span::ZERO, seen: 0, queued: 0, blind };
        for stretch in view.stretches.iter().filter(|s| s.slice.start >= first.repaired + view.base * 2) {
            let lasts = stretch.slice.duration();
            let share = stretch.rate / view.capacity;
            all.whole += lasts;
            all.fast += if share >= NEARLY { lasts } else { Span::ZERO };
            all.level += if (share - 1.0).abs() <= LEVEL { lasts } else { Span::ZERO };
            all.seen += usize::from(stretch.peak.is_some() || blind);
            all.queued += usize::from(stretch.peak.is_some_and(|p| p > view.threshold()));
        }
        (all.seen >= MIN_STRETCHES).then_some(all)
    }

    /// The rate is the path's nearly all the time. Where queues are not seen, a rate that is reached again
    /// and again and never exceeded is the path's.
    fn undiminished(&self) -> bool {
        self.fast * 10 >= self.whole * 8 || self.blind && self.level * 3 >= self.whole
    }
}

/// What the cause of a loss stands for where the rate after losses is the path's: they do not bound it,
/// because the sender (as BBR does) keeps to the rate that it has measured, or because a queue that is not
/// seen was full.
pub(super) fn undiminished(view: &View<'_>) -> Option<fn(Cause) -> Cause> {
    let after = AfterLosses::of(view).filter(AfterLosses::undiminished)?;
    // What is sent beyond the path's rate is queued, or the queue is too short for it.
    Some(if after.queued * 3 > after.seen || after.blind {
        |class| match class {
            Cause::RandomLoss | Cause::BitErrors | Cause::BurstLoss | Cause::SmallQueue => Cause::Congestion,
            class => class,
        }
    } else {
        |class| if class == Cause::BurstLoss { Cause::SmallQueue } else { class }
    })
}

/// After each of several losses the path is idle for a time: the queue that overflows is too small for what
/// the sender cuts its window by.
pub(super) fn leaves_path_idle(view: &View<'_>) -> bool {
    let losses = view.episodes.iter().filter(|e| !e.spurious).count();
    losses >= MIN_CUTS
        && view.deep * 5 < view.base
        && AfterLosses::of(view).is_some_and(|after| !after.undiminished() && after.fast * 2 < after.whole)
}

/// A queue that comes and goes within a round trip: senders that probe keep the path full without a
/// standing queue.
pub(super) fn brief_queues(view: &View<'_>) -> bool {
    let threshold = view.threshold();
    let seen = view.stretches.iter().filter(|s| s.peak.is_some()).count();
    let high = view
        .stretches
        .iter()
        .filter(|s| s.peak.is_some_and(|p| p > threshold * 2) && s.rate >= 0.85 * view.capacity)
        .count();
    let fast = view.stretches.iter().filter(|s| s.rate >= 0.85 * view.capacity).count();
    // Bursts that leave the path idle between them are no probes.
    if view.half.line_rate().is_some_and(|line| line > MAX_IDLE * view.capacity) {
        return false;
    }
    view.episodes.iter().all(|e| e.spurious) && seen > 8 && high * 8 > seen && fast * 2 > seen
}
