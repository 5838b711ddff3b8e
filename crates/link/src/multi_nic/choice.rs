//! Which lanes to a neighbour are used, where all of them together may carry less than one alone.
//!
//! One connection has one window, and each loss on any way cuts it. So what a lane is worth depends on the others: one that loses a
//! frame of a thousand does no harm on a LAN, where the window is a few frames, and ruins a connection whose window has to be
//! thousands. The law of CUBIC (RFC 9438 §5) says what window a share of loss allows, and that is compared for each set of lanes.
//! Nor can a lane be judged by what it has not carried yet, so where windows are long a lane is used when its probes have shown
//! that it loses nothing, and what it carries.

use super::MOST_NICS;
use super::lanes::FULL_FRAME;
use super::probe::Evidence;
use farpace_units::{Rate, Span};

/// Where all lanes together need a window of so many full frames or less, a lane is used until it proves to be bad: a cut is
/// mended within a moment.
const SHORT_WINDOW: f64 = 200.0;
/// Where they need more, it is used once so many frames have shown that it is good.
pub(super) const ENOUGH: u64 = 1_000;
/// Fewer losses than this may be chance: it counts half, and not at all among many.
const FEWEST_LOST: u64 = 2;
/// What a lane has to add at least: a part of what there is without it. Where windows are long, and a cut costs seconds; and
/// where they are short, if the receiver does not put frames in order.
const WORTH_A_LONG_WINDOW: f64 = 0.1;
const WORTH_REORDERING: f64 = 0.02;
/// A lane that is nearer than the widest and carries less than this part of it is left alone. In order, a long way is used only by
/// what waits behind all that the shorter ones carry meanwhile; a connection whose window losses keep small would never get there.
const THIN: f64 = 0.25;
/// Another set must be better by so much.
const BETTER: f64 = 1.08;
/// While windows grow fast, another lane must be better by so much: a change costs more than it brings.
const MUCH_BETTER: f64 = 1.3;
/// A lane is worth what a connection gets that lasts so long, and begins with so many frames.
const TRANSFER: Span = Span::from_secs(5);
const FIRST_WINDOW: f64 = 10.0;
/// So many times what passes between two losses gets through before windows are as small as losses keep them.
const BEFORE_LOSS: f64 = 5.0;
/// A window that nothing cuts is so much longer in the mean of the ten seconds that come (RFC 9438 §4.2): 0.1 * 10^3.
const SOON: f64 = 100.0;

/// What is known of a lane that works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// What it carries.
    pub rate: Rate,
    /// How long a full frame is under way, compared with others.
    pub delay: Span,
    /// There and back, without queues.
    pub rtt: Span,
    /// What it loses.
    pub evidence: Evidence,
    /// Long probes take no longer than they would over a few lines of that rate.
    pub rate_is_likely: bool,
}

impl Candidate {
    fn mbit(&self) -> f64 {
        self.rate.bits_per_sec() as f64 / 1e6
    }
    fn is_proven(&self) -> bool {
        self.rate_is_likely && self.evidence.frames >= ENOUGH
    }
    fn loss(&self) -> f64 {
        let Evidence { frames, lost } = self.evidence;
        match lost < FEWEST_LOST {
            true if frames > ENOUGH * 2 => 0.0,
            true => self.evidence.loss() / 2.0,
            false => self.evidence.loss(),
        }
    }
}

/// Lanes by the numbers of their cards.
pub(super) type Candidates = [Option<Candidate>; MOST_NICS];

fn members(lanes: &Candidates, set: u16) -> impl Iterator<Item = &Candidate> + Clone {
    lanes.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1).filter_map(|(_, lane)| lane.as_ref())
}

/// Full frames that fill all lanes of the set for a round trip.
fn full_window(lanes: &Candidates, set: u16) -> f64 {
    let all: f64 = members(lanes, set).map(Candidate::mbit).sum();
    let rtt = members(lanes, set).map(|lane| lane.rtt).max().unwrap_or_default();
    all * 1e6 * rtt.as_secs_f64() / FULL_FRAME.bits() as f64
}

/// What one connection gets over the lanes of a set, in Mbit/s.
fn goodput(lanes: &Candidates, set: u16) -> f64 {
    let all: f64 = members(lanes, set).map(Candidate::mbit).sum();
    let lost: f64 = members(lanes, set).map(|lane| lane.mbit() * lane.loss()).sum();
    let loss = lost / all.max(1e-9);
    let rtt = members(lanes, set).map(|lane| lane.rtt).max().unwrap_or_default().as_secs_f64();
    if loss <= 0.0 || rtt <= 0.0 {
        return all;
    }
    // RFC 9438 §5.1, and as much as Reno where that is more.
    let cubic = 1.054 * (rtt / loss).powf(0.75);
    brings(lanes, set, cubic.max((1.5 / loss).sqrt()))
}

/// What one connection gets by this lane alone while it lasts for [`TRANSFER`], in Mbit/s: its window doubles with each round trip
/// until the lane is full.
fn alone(lanes: &Candidates, at: usize) -> f64 {
    let set = 1_u16 << at;
    let rtt = members(lanes, set).map(|lane| lane.rtt).max().unwrap_or_default();
    let rounds = (full_window(lanes, set) / FIRST_WINDOW).log2().max(0.0);
    let time = TRANSFER.as_secs_f64();
    // Before the first loss, and until windows have come down to what the law says, more gets through.
    let loss = members(lanes, set).map(Candidate::loss).fold(0.0, f64::max);
    let before = if loss > 0.0 { BEFORE_LOSS / loss * FULL_FRAME.bits() as f64 / time / 1e6 } else { 0.0 };
    let rate = members(lanes, set).map(Candidate::mbit).sum();
    (goodput(lanes, set) + before).min(rate) * (1.0 - rtt.as_secs_f64() * rounds / time).max(0.1)
}

/// What there is to choose by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Situation {
    /// The cards whose lanes are used so far, a bit for each.
    pub used: u16,
    /// Windows grow fast still: [`Growth`](super::growth::Growth).
    pub grows: bool,
    /// The receiver puts frames in order.
    pub resequences: bool,
    /// What was sent in the last round trip, in Mbit/s.
    pub mbit: f64,
}

/// What a window of so many full frames brings over the lanes of a set, the nearest of which is filled first, in Mbit/s.
fn brings(lanes: &Candidates, set: u16, mut window: f64) -> f64 {
    let mut nearest: Vec<&Candidate> = members(lanes, set).collect();
    nearest.sort_by_key(|lane| lane.rtt);
    let mut all = 0.0;
    for lane in nearest {
        let rtt = lane.rtt.as_secs_f64().max(1e-6);
        let most = lane.mbit() * 1e6 * rtt / FULL_FRAME.bits() as f64;
        all += window.min(most) * FULL_FRAME.bits() as f64 / rtt / 1e6;
        window -= window.min(most);
    }
    all
}

/// Full frames under way while so much is sent over the lanes of a set, the nearest of which is filled first.
fn under_way(lanes: &Candidates, set: u16, mut mbit: f64) -> f64 {
    let mut nearest: Vec<&Candidate> = members(lanes, set).collect();
    nearest.sort_by_key(|lane| lane.rtt);
    let mut all = 0.0;
    for lane in nearest {
        let part = mbit.min(lane.mbit());
        all += part * 1e6 * lane.rtt.as_secs_f64() / FULL_FRAME.bits() as f64;
        mbit -= part;
    }
    all
}

/// The set that grows from the lane `from`.
fn grown(lanes: &Candidates, from: usize, cautious: bool, situation: Situation) -> u16 {
    let Situation { used, resequences, .. } = situation;
    let mut set = 1_u16 << from;
    let mut order: Vec<usize> = (0..MOST_NICS).filter(|at| *at != from && lanes[*at].is_some()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(lanes[*at].map(|lane| lane.rate)), *at));
    for at in order {
        let with = set | 1 << at;
        let adds = goodput(lanes, with) > goodput(lanes, set);
        if adds && (!cautious || may_be_used(lanes, at, used)) {
            set = with;
        }
    }
    let worth = match (cautious, resequences) {
        (true, _) => WORTH_A_LONG_WINDOW,
        (false, false) => WORTH_REORDERING,
        (false, true) => 0.0,
    };
    let widest = members(lanes, set).max_by_key(|lane| (lane.rate, lane.delay)).copied();
    let little = |lane: &Candidate| {
        let wider: f64 = members(lanes, set).filter(|o| o.rate > lane.rate).map(Candidate::mbit).sum();
        let thin = widest.is_some_and(|w| lane.delay < w.delay && lane.mbit() < w.mbit() * THIN);
        thin || lane.mbit() < worth * wider
    };
    let left = (0..MOST_NICS).filter(|at| lanes[*at].as_ref().is_some_and(little));
    left.fold(set, |set, at| set & !(1 << at))
}

/// It is used, or nothing speaks against it.
fn may_be_used(lanes: &Candidates, at: usize, used: u16) -> bool {
    used >> at & 1 == 1 || lanes[at].as_ref().is_some_and(Candidate::is_proven)
}

/// The cards whose lanes are used from now on, a bit for each.
pub(super) fn choose(lanes: &Candidates, situation: Situation) -> u16 {
    let now = situation.used;
    let works = (0..MOST_NICS).filter(|at| lanes[*at].is_some());
    let all = works.clone().fold(0_u16, |all, at| all | 1 << at);
    let cautious = full_window(lanes, all) > SHORT_WINDOW;
    if cautious && situation.grows {
        // Ways of several lengths would make round trips longer as each fills, from which TCP takes that it has grown enough.
        let worth = |at: usize| alone(lanes, at);
        let best = works.max_by(|a, b| worth(*a).total_cmp(&worth(*b))).unwrap_or(0);
        let at = now.trailing_zeros() as usize;
        let window = under_way(lanes, now, situation.mbit);
        let later = brings(lanes, 1 << best, window * 2.0 + SOON) < brings(lanes, now, window);
        let single = now.count_ones() == 1 && now & all != 0;
        let stays = single && (later || worth(best) < worth(at) * MUCH_BETTER);
        return if stays { now } else { 1 << best };
    }
    let known = |at: &usize| may_be_used(lanes, *at, now);
    let any = works.clone().any(|at| known(&at));
    let sets = works.filter(|at| !cautious || !any || known(at));
    let sets = sets.map(|from| grown(lanes, from, cautious, situation));
    let worth = |set: u16| goodput(lanes, set);
    // Of equal ones the one with the shortest round trip.
    let rtt = |set: u16| members(lanes, set).map(|lane| lane.rtt).max();
    let best = sets.max_by(|a, b| worth(*a).total_cmp(&worth(*b)).then_with(|| rtt(*b).cmp(&rtt(*a))));
    let best = best.unwrap_or(0);
    if !cautious || now & all != now || now == 0 {
        return best;
    }
    // What is under way now is all that other lanes would have for a while.
    let window = under_way(lanes, now, situation.mbit);
    let soon = worth(best).min(brings(lanes, best, window + SOON));
    let stays = worth(best) < worth(now) * BETTER || (best & now != now && soon < brings(lanes, now, window));
    if stays { now } else { best }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(lanes: &Candidates, used: u16, resequences: bool) -> u16 {
        super::choose(lanes, Situation { used, grows: false, resequences, mbit: 0.0 })
    }

    /// Lanes of so many Mbit/s, so many us of round trip, of so many frames so many lost.
    fn lanes(set: &[(u64, u64, u64, u64)]) -> Candidates {
        let mut lanes = [None; MOST_NICS];
        for (slot, &(mbit, us, frames, lost)) in lanes.iter_mut().zip(set) {
            *slot = Some(Candidate {
                rate: Rate::from_mbit(mbit),
                delay: Span::from_micros(us / 2),
                rtt: Span::from_micros(us),
                evidence: Evidence { frames, lost },
                rate_is_likely: true,
            });
        }
        lanes
    }

    /// Breaks: one connection over several ways is slower than over one: a way that loses frames, or is thin and near, is used
    /// beside a wide and clean one; or ways that would help are not used.
    #[test]
    fn a_set_is_chosen_that_carries_most() {
        let (clean, dirty) = (5_000, 20);
        for (what, set, used) in [
            ("a LAN", vec![(1_000, 60, 0, 0), (100, 300, 0, 0)], 0b11),
            ("a LAN that loses", vec![(1_000, 60, clean, dirty), (100, 300, clean, 0)], 0b11),
            (
                "lines of a house",
                vec![(80, 40_000, clean, 0), (180, 90_000, clean, 0), (150, 60_000, clean, 0)],
                0b111,
            ),
            ("the near one loses", vec![(500, 20_000, clean, dirty), (500, 60_000, clean, 0)], 0b10),
            ("the wide one loses", vec![(500, 60_000, clean, dirty), (200, 60_000, clean, 0)], 0b10),
            ("all lose", vec![(100, 60_000, clean, dirty), (80, 20_000, clean, dirty)], 0b10),
            (
                "near and thin",
                vec![(13, 10_000, clean, 0), (500, 100_000, clean, 0), (400, 20_000, clean, 0)],
                0b110,
            ),
            ("far and thin", vec![(500, 10_000, clean, 0), (13, 100_000, clean, 0)], 0b01),
            ("nothing is known of them", vec![(500, 10_000, 0, 0), (400, 10_000, 0, 0)], 0b01),
            ("one loss may be chance", vec![(500, 10_000, clean, 1), (400, 10_000, clean, 0)], 0b11),
        ] {
            assert_eq!(choose(&lanes(&set), 0, true), used, "{what}");
        }
    }

    /// Breaks: receivers as they are take a card of one in a hundred of all for many losses.
    #[test]
    fn a_card_that_adds_next_to_nothing_is_for_receivers_that_put_in_order() {
        let set = lanes(&[(1_000, 60, 0, 0), (100, 300, 0, 0), (10, 2_000, 0, 0)]);
        assert_eq!((choose(&set, 0, true), choose(&set, 0, false)), (0b111, 0b011));
    }

    /// Breaks: lanes are changed again and again, each time with frames out of order; or one that failed goes on to be used.
    #[test]
    fn a_little_better_is_no_reason_to_change() {
        let (a, b) = ((500, 10_000, 0, 0), (510, 10_000, 0, 0));
        assert_eq!(choose(&lanes(&[a, b]), 0b01, true), 0b01);
        assert_eq!(choose(&lanes(&[a, (530, 10_000, 5_000, 20)]), 0b01, true), 0b01);
        assert_eq!(choose(&lanes(&[(500, 10_000, 5_000, 20), (510, 10_000, 5_000, 0)]), 0b01, true), 0b10);
        let mut failed = lanes(&[a, b]);
        failed[0] = None;
        assert_eq!(choose(&failed, 0b01, true), 0b10);
        assert_eq!(choose(&lanes(&[]), 0, true), 0);
    }

    /// Breaks: a connection that still grows is given ways of other lengths, takes the delay for a queue, and stops growing.
    #[test]
    fn one_lane_is_used_while_windows_grow() {
        let set = lanes(&[(500, 28_000, 5_000, 0), (800, 67_000, 5_000, 0)]);
        let at = |used, grows, mbit| super::choose(&set, Situation { used, grows, resequences: true, mbit });
        assert_eq!((at(0, true, 0.0), at(0b10, true, 300.0), at(0b10, false, 300.0)), (0b10, 0b10, 0b11));
        // What is under way on a short way is little on a long one.
        let set = lanes(&[(320, 2_000, 5_000, 10), (500, 100_000, 5_000, 0)]);
        let at = |mbit| super::choose(&set, Situation { used: 0b01, grows: false, resequences: true, mbit });
        assert_eq!((at(200.0), at(5.0)), (0b01, 0b10));
    }
}
