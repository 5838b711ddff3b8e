//! Which congestion control the sender runs.

use crate::flow::{AT_SENDER, Wait};
use crate::statistics::median;
use crate::view::{Episode, Stretch, Vantage, View};
use crate::words::count;
use farpace_units::{Instant, Span};

/// A guess, and how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// `reno`, `cubic`, `bbr`, `farpace`, or `unknown`.
    pub name: &'static str,
    /// 0 to 1.
    pub confidence: f64,
    /// What it rests on.
    pub evidence: String,
}

impl Control {
    fn unknown(why: &str) -> Self {
        Control { name: "unknown", confidence: 0.0, evidence: why.to_owned() }
    }
}

/// How the flight went from one loss to the next.
struct Epoch {
    /// Flight after over flight before the reduction.
    kept: f64,
    /// Growth in the first and the second half, in segments per round trip.
    growth: [f64; 2],
    rounds: f64,
    /// Flight at its end over flight at its beginning.
    rise: f64,
}

/// Where the flight grew by more than this in two round trips, a loss ended slow start: what remains of such
/// a flight is no share that a control chooses.
const MAX_GROWTH: f64 = 1.5;
/// A share further from the one that a control keeps is not its.
const MAX_OFF: f64 = 0.1;
/// The same where there is one cut only, or no growth that is long enough to be seen.
const MAX_OFF_ALONE: f64 = 0.05;
/// Segments per round trip by which the flight grows after a cut.
const MIN_GROWTH: f64 = 0.05;
/// Cuts that must have left the flight as it was before that tells of BBR.
const MIN_UNCUT: usize = 3;

/// Looks at how the window was cut and how it grew.
pub fn identify(view: &View<'_>) -> Control {
    if let Some(found) = leaps(view).or_else(|| probes(view)) {
        return found;
    }
    // Behind a queue that paces, the segments of all controls leave by a clock: cuts come first.
    let found = cuts(view);
    if found.name == "unknown" { paced(view).unwrap_or(found) } else { found }
}

/// CUBIC and Reno by their cuts and their growth.
fn cuts(view: &View<'_>) -> Control {
    let real: Vec<_> = view.episodes.iter().filter(|e| !e.spurious && e.timeouts == 0).collect();
    if real.is_empty() {
        return Control::unknown("the window was never cut by fast retransmit");
    }
    let epochs: Vec<Epoch> = real
        .iter()
        .enumerate()
        .filter_map(|(at, episode)| {
            epoch(view, episode, real.get(at + 1).map_or(view.end, |next| next.start))
        })
        .collect();
    if epochs.is_empty() {
        return Control::unknown("the stretches between losses are too short, or a loss ended slow start");
    }
    let kept = median(epochs.iter().map(|e| e.kept).collect());
    let long: Vec<&Epoch> = epochs.iter().filter(|e| e.rounds > 6.0).collect();
    let linear = median(long.iter().map(|e| (e.growth[0] + e.growth[1]) / 2.0).collect());
    let bend = median(long.iter().map(|e| e.growth[1] - e.growth[0]).collect());
    let rise = median(long.iter().map(|e| e.rise).collect());
    let n = epochs.len();
    let evidence = format!(
        "{} kept {:.0} % of the flight; it then grew by {linear:.2} segments per round trip, \
         {bend:+.2} from the first to the second half",
        count(n as u64, "cut", "cuts"),
        kept * 100.0
    );
    let sure = 0.5 + 0.4 * (1.0 - 1.0 / (n as f64 + 1.0));
    let flat = long.len() >= MIN_UNCUT && rise < 1.3 && linear.abs() < 0.2;
    if n >= MIN_UNCUT && kept > 0.9 && flat {
        return Control { name: "bbr", confidence: sure * 0.7, evidence };
    }
    let most = if n > 1 && !long.is_empty() { MAX_OFF } else { MAX_OFF_ALONE };
    let keeps = |share: f64| {
        let near = epochs.iter().filter(|e| (e.kept - share).abs() < MAX_OFF).count();
        (kept - share).abs() < most && near * 2 >= n
    };
    let reno_growth = !long.is_empty() && (0.4..=1.4).contains(&linear) && bend.abs() < 0.4;
    // Who keeps the flight constant for long after a cut does not grow from there, as these two do.
    let grows = long.is_empty() || median(long.iter().map(|e| e.growth[0]).collect()) > MIN_GROWTH;
    let name = match () {
        () if keeps(0.5) && reno_growth => "reno",
        () if keeps(0.7) && grows => "cubic",
        () => return Control::unknown(&format!("no control that is known here does this: {evidence}")),
    };
    Control { name, confidence: sure, evidence }
}

/// From an episode of losses to the next. None if there was too little of it, or if it ended slow start.
fn epoch(view: &View<'_>, episode: &Episode, until: Instant) -> Option<Epoch> {
    let mss = f64::from(view.mss.max(1));
    let base = view.base.max(Span::from_micros(100));
    let flight = |s: &Stretch| s.slice.flight as f64 / mss;
    let before = view.stretches.iter().rfind(|s| s.slice.start <= episode.start && s.slice.flight > 0)?;
    let earlier = view
        .stretches
        .iter()
        .filter(|s| s.slice.flight > 0)
        .take_while(|s| s.slice.start + base * 2 <= before.slice.start)
        .last();
    let before = flight(before);
    if before < 14.0 || earlier.is_none_or(|s| before > flight(s) * MAX_GROWTH) {
        return None;
    }
    // A queue makes round trips longer.
    let mut rounds = 0.0;
    let mut flights: Vec<(f64, f64)> = Vec::new();
    let mut last: Option<&Stretch> = None;
    for s in view.stretches.iter().filter(|s| s.slice.flight > 0) {
        if s.slice.start > episode.repaired + view.base && s.slice.end < until {
            if let Some(last) = last {
                let round = base + last.queued.unwrap_or_default();
                rounds += s.slice.start.since(last.slice.start).as_secs_f64() / round.as_secs_f64();
            }
            flights.push((rounds, flight(s)));
            last = Some(s);
        }
    }
    let (first, second, last) = (*flights.first()?, *flights.get(1)?, *flights.last()?);
    let middle = flights[flights.len() / 2];
    let per_round = |a: (f64, f64), b: (f64, f64)| (b.1 - a.1) / (b.0 - a.0).max(1e-9);
    Some(Epoch {
        kept: first.1.min(second.1) / before,
        growth: [per_round(first, middle), per_round(middle, last)],
        rounds: last.0 - first.0,
        rise: last.1 / first.1.max(1.0),
    })
}

/// Segments of a first flight that gives a rate, and a growth from it to one of the next two flights that
/// slow start, which doubles the window, does not reach.
const MIN_FIRST: u64 = 4;
const LEAP: u64 = 5;

/// `farpace` takes the rate of the path from its first flight, and fills the half of it with the next.
fn leaps(view: &View<'_>) -> Option<Control> {
    let mss = u64::from(view.mss.max(1));
    let mut flights = view.stretches.iter().map(|s| s.slice.flight / mss);
    let (first, second) = (flights.next()?, flights.next()?);
    // A start that quadruples the window (`fast_start`) has sixteen times the first flight in the third.
    // Where the second slice ends before the second flight, the third has it.
    let third = flights.next().filter(|_| second < 2 * first).unwrap_or_default();
    let next = second.max(third / 2);
    let begins = view.flow.saw_syn() && view.stretches.first().is_some_and(|s| s.slice.losses == 0);
    (begins && first >= MIN_FIRST && next >= LEAP * first).then(|| Control {
        name: "farpace",
        confidence: 0.8,
        evidence: format!(
            "the first flight had {first} segments, and one of the next two {next} or more: no slow start \
             grows so fast"
        ),
    })
}

/// BBR leaves the path nearly idle for 200 ms every ten (v1) or five (v3) seconds.
fn probes(view: &View<'_>) -> Option<Control> {
    let flights: Vec<(f64, u64)> = view
        .stretches
        .iter()
        .filter(|s| s.slice.segments > 0)
        .map(|s| (s.slice.start.as_secs_f64(), s.slice.flight))
        .collect();
    let usual = median(flights.iter().map(|f| f.1 as f64).collect());
    let mss = f64::from(view.mss.max(1));
    if usual < 12.0 * mss {
        return None;
    }
    let mut dips: Vec<f64> = Vec::new();
    for pair in flights.windows(2) {
        let ([before, low], true) = (pair, true) else { continue };
        let lossless = !view.episodes.iter().any(|e| (e.resent.as_secs_f64() - low.0).abs() < 0.5);
        if (low.1 as f64) <= 6.0 * mss && before.1 as f64 > 0.6 * usual && lossless {
            dips.push(low.0);
        }
    }
    let gaps: Vec<f64> = dips.windows(2).map(|w| w[1] - w[0]).filter(|g| *g > 2.0).collect();
    let regular = gaps.iter().filter(|g| (9.5..=11.5).contains(*g) || (4.8..=5.8).contains(*g)).count();
    (regular > 0 && regular * 2 >= gaps.len()).then(|| Control {
        name: "bbr",
        confidence: (0.6 + 0.1 * regular as f64).min(0.95),
        evidence: format!(
            "{} the flight fell to a few segments without loss, at regular distances",
            count(dips.len() as u64, "time", "times")
        ),
    })
}

/// The share of waits that no ACK ended, from which on a sender is taken for one that paces.
const PACED: f64 = 0.15;
/// The start of BBR has more than twice the flight that the path needs. A limit of the rate
/// (`SO_MAX_PACING_RATE`) paces, too, and has no such start.
const MIN_START: f64 = 1.5;
/// Segments below which the waits between them tell nothing.
const MIN_PACED: u32 = 100;

/// BBR sends by a clock, not when ACKs come; at the sender that shows. Other senders do so only behind a
/// pacing queue.
fn paced(view: &View<'_>) -> Option<Control> {
    // Further away, which ACKs have reached the sender when a segment leaves is a guess.
    let close = view.half.near().is_some_and(|near| near < AT_SENDER);
    if view.vantage != Vantage::Sender || !close || view.half.counts.data_segments < 200 {
        return None;
    }
    let (mut acks, mut own, mut segments) = (0.0, 0.0, 0);
    for slice in view.stretches.iter().filter(|s| s.rate >= 0.5 * view.capacity).map(|s| &s.slice) {
        let wait = |wait| slice.waited(wait).as_secs_f64();
        // Where the receive window or the program is the limit, congestion control decides nothing.
        let others = wait(Wait::Window) + wait(Wait::ZeroWindow) + wait(Wait::Program) + wait(Wait::Peer);
        if slice.segments < 8 || others * 4.0 > slice.duration().as_secs_f64() {
            continue;
        }
        acks += wait(Wait::Ack);
        own += wait(Wait::Sender);
        segments += slice.segments;
    }
    if segments < MIN_PACED {
        return None;
    }
    let share = own / (acks + own).max(1e-9);
    let flights: Vec<f64> =
        view.stretches.iter().filter(|s| s.slice.segments >= 8).map(|s| s.slice.flight as f64).collect();
    let most = flights.iter().copied().fold(0.0, f64::max);
    let starts = most > MIN_START * median(flights);
    let short = view.half.counts.short_segments * 10 > view.half.counts.data_segments;
    (share > PACED && starts && !short).then(|| Control {
        name: "bbr",
        confidence: (0.5 + 0.4 * share).min(0.75),
        evidence: format!(
            "segments leave by a clock: {:.0} % of the waits between them no ACK ended",
            share * 100.0
        ),
    })
}
