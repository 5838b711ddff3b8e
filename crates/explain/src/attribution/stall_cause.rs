//! Why the sender stood still: a cause for each stall.

use super::{Attribution, all_windows, label_at, zero_window};
use crate::cause::Cause;
use crate::flow::{Stall, Wait};
use crate::losses;
use crate::view::{Episode, Vantage, View};
use farpace_units::Span;

/// Gives each stall that is kept its cause.
pub(super) fn stalls(view: &View<'_>, time: &mut Attribution) {
    let kept = view.half.stalls.kept();
    let mut causes: Vec<Cause> = Vec::with_capacity(kept.len());
    while let Some(stall) = kept.get(causes.len()) {
        if stall.wait != Wait::Timer {
            causes.push(untimed(view, time, stall));
            continue;
        }
        // One timeout after the other, and nothing heard between.
        let from = causes.len();
        let mut to = from + 1;
        while kept.get(to).is_some_and(|s| s.wait == Wait::Timer && s.start <= kept[to - 1].end && !s.heard) {
            to += 1;
        }
        let cause = timeouts(view, time, &kept[from..to]);
        causes.resize(to, cause);
    }
    spread_pauses(kept, &mut causes, view.vantage);
    time.stalls = causes;
}

/// Behind a path that pauses, also what the sender sends between needless timeouts looks like a pause of its
/// program. One on either side is a part of the pause; a program that pauses at a period has many.
fn spread_pauses(kept: &[Stall], causes: &mut [Cause], vantage: Vantage) {
    let joined = |a: usize, b: usize| kept[b].start.since(kept[a].end) <= kept[b].round;
    // At the sender nothing is heard while the path pauses.
    let idle = |at: usize| kept[at].wait == Wait::Program && !(kept[at].heard && vantage == Vantage::Sender);
    let paused: Vec<bool> = causes.iter().map(|cause| *cause == Cause::SpuriousTimeout).collect();
    for at in (0..causes.len()).filter(|at| idle(*at)) {
        let before = at.checked_sub(1).is_some_and(|before| paused[before] && joined(before, at));
        if before || paused.get(at + 1).is_some_and(|paused| *paused && joined(at, at + 1)) {
            causes[at] = Cause::SpuriousTimeout;
        }
    }
}

/// The repair of a tail takes a round trip more, in which a transfer that ends has nothing else to wait for.
pub(super) fn repairs(view: &View<'_>, time: &mut Attribution) {
    let kept = view.half.stalls.kept();
    let Some((stall, _)) = kept.iter().zip(&time.stalls).rfind(|(_, cause)| **cause == Cause::TailLoss)
    else {
        return;
    };
    if view.end.since(stall.end) > stall.round * 4 {
        return;
    }
    for (stretch, label) in view.stretches.iter().zip(&mut time.labels) {
        if stretch.slice.start >= stall.start + stall.round && stretch.slice.end > stall.end {
            *label = Cause::TailLoss;
        }
    }
}

fn untimed(view: &View<'_>, time: &Attribution, stall: &Stall) -> Cause {
    match stall.wait {
        // The sender's timer fired meanwhile: what had left in time was held on the path.
        Wait::Program | Wait::Sender if stall.spurious => Cause::SpuriousTimeout,
        Wait::Program if hides_outage(view, time, stall) => Cause::Outage,
        Wait::Program => Cause::SenderApplication,
        Wait::Peer => Cause::PeerApplication,
        Wait::ZeroWindow => zero_window(view),
        // A full window is acknowledged in a round trip, whoever reads it.
        Wait::Window
            if !stall.heard
                && stall.outstanding >= 2 * u64::from(view.mss)
                && outlasts_queues(view, stall) =>
        {
            Cause::SpuriousTimeout
        }
        Wait::Window => all_windows(view),
        Wait::DelayedAck => Cause::DelayedAck,
        Wait::Connect => Cause::Connect,
        // An ACK that came late, without a timeout: a pause of the path. In a queue something always moves.
        Wait::Ack if outlasts_queues(view, stall) => Cause::SpuriousTimeout,
        // Where the handshake is missing, the first round trip is one of which nothing was known.
        Wait::Ack | Wait::Sender
            if stall.outstanding >= 8 * u64::from(view.mss)
                && stall.duration() > view.base * 6 / 5 + MIN_LATE_PAUSE =>
        {
            Cause::SpuriousTimeout
        }
        Wait::Ack | Wait::Sender | Wait::Timer => label_at(view, time, stall.start),
    }
}

/// No queue explains it.
fn outlasts_queues(view: &View<'_>, stall: &Stall) -> bool {
    stall.duration() > view.base * 3 + view.deep.min(stall.round)
}

/// With many segments under way, ACKs that come so much later than a round trip and a fifth are late.
const MIN_LATE_PAUSE: Span = Span::from_millis(10);

/// Nothing seemed to be outstanding in this silence. But what passed first behind it repaired the beginning
/// of a flight that had left before and is missing.
fn hides_outage(view: &View<'_>, time: &Attribution, stall: &Stall) -> bool {
    let shown = stall.end + view.base * 2;
    view.episodes.iter().zip(&time.classes).any(|(e, class)| {
        *class == Cause::Outage
            && e.upstream
            && (stall.start..=shown).contains(&e.start)
            && e.silence >= stall.duration()
    })
}

/// Segments that no burst of losses takes all of.
const WHOLE_FLIGHT: u64 = 60;

/// Timers that fire one after the other, and nothing arrives: also where losses come in bursts.
const MANY_TIMERS: usize = 3;
/// A silence of so many times the first timeout outlasts at least three of them.
const LONG_SILENCE: u64 = 4;
/// Where there are more of them, they belong to losses that come in bursts.
const MAX_OUTAGES: usize = 4;

/// Why timeouts were needed.
fn timeouts(view: &View<'_>, time: &Attribution, group: &[Stall]) -> Cause {
    let half = view.half;
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return Cause::Unknown };
    // Losses that these timeouts repaired; a hole before the capture point is seen only afterwards.
    let margin = view.base * 3 / 2;
    let related = |i: &usize| {
        let e = &view.episodes[*i];
        !e.spurious && e.start <= last.end + margin && e.repaired + Span::from_micros(1) > first.start
    };
    let lost: Vec<usize> = (0..view.episodes.len()).filter(related).collect();
    let class = |i: &usize| time.classes.get(*i).copied().unwrap_or(Cause::Unknown);
    if lost.iter().any(|i| class(i) == Cause::MtuBlackHole)
        || lost.is_empty() && losses::black_hole(view).is_some_and(|hole| hole.contains(&first.start))
    {
        return Cause::MtuBlackHole;
    }
    if group.iter().any(|s| was_late(view, s)) {
        return Cause::SpuriousTimeout;
    }
    // Nothing of a whole flight arrived, and nothing of what followed: that is longer than any burst.
    let unheard = group.iter().skip(1).all(|s| !s.heard);
    let flight = first.outstanding.max(u64::from(first.unseen) * u64::from(view.mss));
    let whole = flight >= WHOLE_FLIGHT * u64::from(view.mss);
    let segments = flight / u64::from(view.mss.max(1)) + group.len() as u64;
    let burst = losses::is_usual_run(&time.pattern, segments as f64);
    let long = group.len() >= 2 || first.unseen > 0 && first.duration() > losses::tail_repair(first.round);
    // So is a silence in which several timers must have fired.
    let is_long = |s: &&Stall| s.wait == Wait::Timer && s.duration() > max_pause(view, s) * LONG_SILENCE / 2;
    let seldom = || half.stalls.kept().iter().filter(is_long).count() <= MAX_OUTAGES;
    let lasts = last.end.since(first.start) > max_pause(view, first) * LONG_SILENCE && seldom();
    let lasts = lasts && !is_backed_off(view, group);
    let passes_nothing = first.sacked == 0 && whole && long && !burst || lasts || group.len() >= MANY_TIMERS;
    // Where only needless copies were sent the path may have paused, unless others were lost meanwhile.
    let out = lost.iter().any(|i| class(i) == Cause::Outage);
    let needless = group.iter().all(|s| s.spurious && s.unseen <= 1) && !out;
    if passes_nothing && unheard && !needless {
        return Cause::Outage;
    }
    // Where losses come in bursts, timers that fire again and again are part of it.
    if time.pattern.fast >= 4 && time.pattern.main == Some(Cause::BurstLoss) {
        return Cause::BurstLoss;
    }
    if out {
        return Cause::Outage;
    }
    if losses::crawls(view) && !(unheard && group.len() >= MANY_TIMERS) {
        return Cause::Linux2617;
    }
    // All that was sent for longer than one timeout takes was lost before the capture point, or nothing is
    // seen of what several timers sent.
    if group.iter().any(|s| {
        let pause = max_pause(view, s);
        s.unseen > 1 && s.duration() > pause || s.upstream && !s.heard && s.duration() > pause * 2
    }) {
        return Cause::Outage;
    }
    let chance = time.pattern.pervasive && view.loss_rate() > 0.01;
    // The end of the data, and the probe that was to show its loss.
    let probed = group.len() == 2 && lost.iter().any(|i| class(i) == Cause::TailLoss);
    if unheard && (group.len() >= MANY_TIMERS || group.len() == 2 && !chance && !probed) {
        return Cause::Outage;
    }
    // Behind the sender: what a path had held would pass before its copies, and a path on which only ACKs are
    // missing passes the copy of the first timeout.
    let needless = |s: &&Stall| s.spurious && s.outstanding == 0;
    let over =
        |s: &Stall| s.duration() > max_pause(view, s) && !follows_waits(view.half.stalls.kept(), group);
    if lost.is_empty() && group.iter().filter(needless).any(over) {
        return Cause::Outage;
    }
    if lost.is_empty() && group.iter().any(|s| s.spurious) {
        let acks_missing = half.counts.missing_acks * 10 > half.counts.numbered_acks;
        return if acks_missing && !first.heard { Cause::AckLoss } else { Cause::SpuriousTimeout };
    }
    if group.iter().any(|s| s.overlooked || s.upstream && is_left_over(view, time, s, &lost)) {
        return Cause::LostRetransmission;
    }
    // The newest of the losses is the one that no ACK told of.
    match lost.last() {
        Some(i) if time.pattern.pervasive => class(i),
        Some(i) if view.episodes[*i].tail || last.tail => Cause::TailLoss,
        Some(i) => class(i),
        None if last.tail => Cause::TailLoss,
        None => time.pattern.main.unwrap_or(Cause::SpuriousTimeout),
    }
}

/// One timer ended the silence, and it was as long because of what was waited for before it. What was sent
/// behind the loss had arrived.
fn is_backed_off(view: &View<'_>, group: &[Stall]) -> bool {
    let [only] = group else { return false };
    let arrived = !only.upstream && only.sacked * 2 >= only.outstanding;
    arrived && follows_waits(view.half.stalls.kept(), group)
}

/// A single timer is as long as this one because others had fired, or ACKs had come late, before it (RFC
/// 6298, sections 2.3 and 5.5).
fn follows_waits(kept: &[Stall], group: &[Stall]) -> bool {
    let [only] = group else { return false };
    let before = kept.iter().filter(|s| s.end <= only.start && matches!(s.wait, Wait::Timer | Wait::Ack));
    let waited = before.fold(Span::ZERO, |sum, s| sum + s.duration());
    waited * MAX_BACKED_OFF >= only.duration()
}

/// A timer is no longer than so many times what was waited for before.
const MAX_BACKED_OFF: u64 = 4;

/// What was sent last before an outage, and copies that were sent in it, were lost in it, however short their
/// run is.
pub(super) fn spread_outages(view: &View<'_>, time: &mut Attribution) {
    let kept = view.half.stalls.kept();
    let mut classes = time.classes.clone();
    for group in groups(kept) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if timeouts(view, time, group) != Cause::Outage {
            continue;
        }
        let inside = |e: &Episode| e.end >= first.start && e.start <= last.end && e.resent >= first.end;
        for (e, class) in view.episodes.iter().zip(&mut classes) {
            if !e.spurious && inside(e) && OF_OUTAGES.contains(class) {
                *class = Cause::Outage;
            }
        }
    }
    time.classes = classes;
}

/// What losses in an outage look like by themselves.
const OF_OUTAGES: [Cause; 4] = [Cause::RandomLoss, Cause::BurstLoss, Cause::SmallQueue, Cause::TailLoss];

/// Timeouts that follow each other, and nothing is heard between.
fn groups(kept: &[Stall]) -> impl Iterator<Item = &[Stall]> {
    let joined =
        |a: &Stall, b: &Stall| a.wait == Wait::Timer && b.wait == Wait::Timer && b.start <= a.end && !b.heard;
    kept.chunk_by(joined).filter(|group| group[0].wait == Wait::Timer)
}

/// Behind the sender: SACKs told of several holes of a loss, of which only a part was filled in time. What
/// was sent into the others was lost as well. A queue or a policer that takes both is the cause of both.
fn is_left_over(view: &View<'_>, time: &Attribution, stall: &Stall, lost: &[usize]) -> bool {
    let filled = |e: &Episode| e.resent <= stall.start && e.repaired >= stall.end && e.timeouts < e.losses;
    let alone = |i: &usize| !matches!(time.classes.get(*i), Some(Cause::Congestion | Cause::Policer));
    let few = !time.pattern.pervasive && stall.sacked > 0;
    few && lost.iter().filter(|i| alone(i)).any(|i| filled(&view.episodes[*i]))
}

/// Segments that the end of all data has at most.
const MAX_TAIL: u64 = 10;

/// The longest silence that the loss of a tail explains. Behind the end of all data nothing else tells of it,
/// so that a lost probe takes as long again.
fn max_pause(view: &View<'_>, stall: &Stall) -> Span {
    let left = view.half.stream().saturating_sub(stall.offset);
    let repair = losses::tail_repair(stall.round);
    if left <= MAX_TAIL * u64::from(view.mss) && u64::from(stall.unseen) <= MAX_TAIL {
        repair * 2
    } else {
        repair
    }
}

/// ACKs of first transmissions that tell of a delay: one may be an ACK that stands for lost ones.
const MIN_LATE_ACKS: u32 = 3;

/// Nothing was lost: ACKs of the first transmissions came after the timer had fired.
fn was_late(view: &View<'_>, stall: &Stall) -> bool {
    let expected = stall.outstanding / (2 * u64::from(view.mss.max(1)));
    u64::from(stall.late_acks) >= u64::from(MIN_LATE_ACKS).min(expected).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Instant;

    /// Breaks: what a sender sends between needless timeouts makes the rest of the pause its program's, or a
    /// pause of the program long before, or in the period before, becomes one of the path.
    #[test]
    fn idle_times_beside_needless_timeouts_belong_to_the_pause() {
        use Cause::{SenderApplication, SpuriousTimeout};
        let at = |from: u64, to: u64, wait| {
            let mut stall = Stall::example();
            (stall.start, stall.end) = (Instant::from_nanos(from), Instant::from_nanos(to));
            (stall.round, stall.wait) = (Span::from_nanos(10), wait);
            stall
        };
        let mut kept = [
            at(0, 100, Wait::Program),
            at(200, 295, Wait::Program),
            at(300, 400, Wait::Program),
            at(400, 500, Wait::Timer),
            at(505, 600, Wait::Program),
            at(605, 700, Wait::Ack),
        ];
        let timer_alone = |at: usize| if at == 3 { SpuriousTimeout } else { SenderApplication };
        let mut causes: [Cause; 6] = std::array::from_fn(timer_alone);
        spread_pauses(&kept, &mut causes, Vantage::Receiver);
        let (program, path) = (SenderApplication, SpuriousTimeout);
        assert_eq!(causes, [program, program, path, path, path, program]);
        // The sender hears nothing while the path pauses.
        kept[2].heard = true;
        causes = std::array::from_fn(timer_alone);
        spread_pauses(&kept, &mut causes, Vantage::Sender);
        assert_eq!(causes, [program, program, program, path, path, program]);
    }

    /// Breaks: behind a path that pauses again and again, a timer that late ACKs have made long passes for an
    /// outage that took the copies of shorter ones; or any silence is explained by a wait, however short.
    #[test]
    fn a_timer_is_as_long_as_waits_before_it_have_made_it() {
        let at = |from, to, wait| {
            let mut stall = Stall::example();
            (stall.start, stall.end) = (Instant::from_nanos(from), Instant::from_nanos(to));
            stall.wait = wait;
            stall
        };
        let long = at(1_000, 1_400, Wait::Timer);
        let cases = [
            (at(0, 100, Wait::Ack), true),
            (at(0, 100, Wait::Timer), true),
            (at(0, 99, Wait::Ack), false),
            (at(0, 100, Wait::Program), false),
            (at(1_500, 1_900, Wait::Ack), false),
        ];
        for (other, explained) in cases {
            let (wait, kept) = (other.wait, [other, long]);
            assert_eq!(follows_waits(&kept, &kept[1..]), explained, "{wait:?}");
            assert!(!follows_waits(&kept, &kept), "several timers fired");
        }
    }
}
