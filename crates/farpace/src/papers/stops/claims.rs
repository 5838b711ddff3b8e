//! What the paper claims, what follows from it, and whether it came out here. Nothing is tuned to hold.

use super::measure::{Measurement, Stop};
use super::plan::{MAIN_WINDOW, SMALL_WINDOW, Variant as V};
use super::results::{Group, Results, SECOND};
use farpace_events::{Cause, RecoveryState};
use farpace_report::ReproductionClaim;

/// What the paper calls 96 %: of the policed rate, which counts headers, 1448/1500 is payload.
const SATURATED: f64 = 96.0;

/// All claims.
pub fn claims(results: &Results) -> Vec<ReproductionClaim> {
    let mut claims: Vec<ReproductionClaim> = results.windows.iter().map(|w| order(results, *w)).collect();
    claims.push(saturates(results));
    claims.push(patient_stops(results));
    claims.push(cured_do_not_stop(results));
    claims.push(cured_do_not_crawl(results));
    claims.push(abc_alone(results));
    claims.push(sort_in_fix(results));
    claims.push(sort_alone(results));
    claims.push(one_pass_alone(results));
    claims.push(remedies_agree(results));
    claims.push(remedy_of_2624_agrees(results));
    claims
}

fn claim(id: &str, text: String, holds: bool, evidence: String) -> ReproductionClaim {
    ReproductionClaim { id: id.to_owned(), text, holds, evidence }
}

fn order(results: &Results, window: u32) -> ReproductionClaim {
    let [old, newer, fix] = super::plan::TABLE_2.map(|v| results.deep(v, window));
    let [a, b, c] = [&old, &newer, &fix].map(|g| g.goodput().mean);
    let holds = a < b && b <= c;
    let mut evidence = format!(
        "mean goodput {a:.1} (2.6.17), {b:.1} (2.6.22), {c:.1} Mbit/s (fix), of {} runs each",
        fix.runs.len()
    );
    if a < b && b > c {
        let spread = fix.goodput();
        evidence.push_str(&format!(
            ". 2.6.17 is last, but 2.6.22 leads the fix by {:.1} Mbit/s, within the fix's own range ({:.1} to {:.1} \
             from phase to phase). At this window both suffer timeouts ({:.1} and {:.1} per run), since the window \
             leaves no room to send the new data by which a lost retransmission is recognised. And a timeout costs \
             nothing here: its 0.2 s are shorter than the 0.256 s in which the bucket of 16 MB fills up again, so \
             what was not sent then is sent later",
            b - c,
            spread.min,
            spread.max,
            newer.timeouts().mean,
            fix.timeouts().mean,
        ));
    }
    let text = format!("Mean goodput: 2.6.17 < 2.6.22 <= fix, with a window of {window} packets");
    claim(&format!("order/window-{window}"), text, holds, evidence)
}

fn saturates(results: &Results) -> ReproductionClaim {
    let fix = results.main(V::Fix);
    let (least, timeouts) = (fix.efficiency().min, fix.timeouts().max);
    let text = format!(
        "The fix saturates the policed rate: at least {SATURATED:.0} % of 500 Mbit/s in every run, without a timeout \
         (window {MAIN_WINDOW})"
    );
    let evidence = format!(
        "least efficiency {least:.1} %, most timeouts {timeouts:.0}, of {} runs. The ceiling is 96.5 % (1448 bytes of \
         payload in packets of 1500), plus what the full bucket adds at the start ({:.1} % in all for this size)",
        fix.runs.len(),
        results.size.get() as f64 * 8.0 / results.least_seconds() / 5e6,
    );
    claim("fix-saturates", text, !fix.runs.is_empty() && least >= SATURATED && timeouts == 0.0, evidence)
}

fn stops_in(group: &Group, states: &[RecoveryState]) -> usize {
    let long = |m: &&Measurement| m.longest.is_some_and(|s| s.span >= SECOND && states.contains(&s.state));
    group.runs.values().filter(long).count()
}

const STUCK: [RecoveryState; 2] = [RecoveryState::Recovery, RecoveryState::Loss];

fn patient_stops(results: &Results) -> ReproductionClaim {
    let mut holds = true;
    let evidence = results.windows.iter().map(|window| {
        let group = results.deep(V::Linux2617, *window);
        let stopped = stops_in(&group, &STUCK);
        holds &= stopped > 0;
        let silent = group.silent().mean / group.time().mean * 100.0;
        format!(
            "window {window}: in {stopped} of {} runs, longest {}, {silent:.0} % of the time silent",
            group.runs.len(),
            longest(&group)
        )
    });
    let evidence: Vec<String> = evidence.collect();
    let text = "2.6.17 stands still for seconds, with at most one packet per round trip, in Recovery or Loss";
    claim("patient-stops", text.to_owned(), holds, evidence.join("; "))
}

fn cured_do_not_stop(results: &Results) -> ReproductionClaim {
    let mut holds = true;
    let evidence = results.windows.iter().map(|window| {
        let says = [V::Linux2622, V::Fix].map(|variant| {
            let group = results.deep(variant, *window);
            holds &= group.stopped(SECOND) == 0;
            format!("{} {}", variant.label(), longest(&group))
        });
        format!("window {window}: {}", says.join(", "))
    });
    let evidence: Vec<String> = evidence.collect();
    let text = "2.6.22 and the fix never stand still for a second, with at most one packet per round trip";
    let note = ". Those of about 0.2 s are waits for the retransmission timer";
    claim(
        "cured-do-not-stop",
        text.to_owned(),
        holds,
        format!("longest silences: {}{note}", evidence.join("; ")),
    )
}

/// Stricter than the paper's words: a few packets per round trip are hardly better than one.
fn cured_do_not_crawl(results: &Results) -> ReproductionClaim {
    let (mut holds, mut fix) = (true, true);
    let evidence = results.windows.iter().map(|window| {
        let says = [V::Linux2622, V::Fix].map(|variant| {
            let group = results.deep(variant, *window);
            let crawl = group.crawl();
            holds &= crawl.is_none();
            fix &= variant != V::Fix || crawl.is_none();
            let text = crawl.map_or_else(|| "never".to_owned(), |s| format!("for up to {s:.1} s"));
            format!("{} {text} ({} of {} runs)", variant.label(), group.crawled(), group.runs.len())
        });
        format!("window {window}: {}", says.join(", "))
    });
    let mut evidence = evidence.collect::<Vec<String>>().join("; ");
    if !holds && fix {
        evidence.push_str(
            ". Only 2.6.22 does, which still has the one-pass defect: it finds its lost retransmissions late and all \
             at once, so that hardly anything is in flight, and rate halving takes the window down to 2 or 3 packets \
             until Recovery ends. One packet more than the paper's stops, and the same mechanism",
        );
    }
    let text =
        "2.6.22 and the fix never fall below 2 % of the policed rate (8 packets per round trip) for a second";
    claim("cured-do-not-crawl", text.to_owned(), holds, evidence)
}

/// The longest silence of a group in words.
fn longest(group: &Group) -> String {
    group.longest().map_or_else(|| "none".to_owned(), |s| stop(&s))
}

fn stop(stop: &Stop) -> String {
    format!("{:.2} s in {}", stop.span.as_secs_f64(), state_name(stop.state))
}

/// A state as the paper writes it.
pub fn state_name(state: RecoveryState) -> &'static str {
    match state {
        RecoveryState::Open => "Open",
        RecoveryState::Disorder => "Disorder",
        RecoveryState::Cwr => "CWR",
        RecoveryState::Recovery => "Recovery",
        RecoveryState::Loss => "Loss",
    }
}

/// A group with a defect beside the same phases without it.
fn pair(results: &Results, with: V, without: V, window: u32) -> (Group, Group) {
    let with = results.deep(with, window);
    let without = results.deep(without, window).matching(&with);
    (with, without)
}

fn abc_alone(results: &Results) -> ReproductionClaim {
    let (with, without) = pair(results, V::FixAbcBuggy, V::Fix, SMALL_WINDOW);
    let (main, main_without) = pair(results, V::FixAbcBuggy, V::Fix, MAIN_WINDOW);
    let in_loss = stops_in(&with, &[RecoveryState::Loss]);
    let holds = in_loss > 0 && without.stopped(SECOND) == 0;
    let evidence = format!(
        "window {SMALL_WINDOW}, where the fix has timeouts ({:.0} per run): {:.1} s instead of {:.1} s, longest \
         silence {} instead of {}, {:.1} s instead of {:.1} s at a window of 2 packets or less. At window \
         {MAIN_WINDOW} there is no timeout, and no damage: {:.2} s and {:.2} s",
        with.timeouts().mean,
        with.time().mean,
        without.time().mean,
        longest(&with),
        longest(&without),
        with.small_window().mean,
        without.small_window().mean,
        main.time().mean,
        main_without.time().mean,
    );
    let text = "The ABC defect alone, put back into the fix: after a timeout the window stays at one packet, and the \
                transfer stands still for seconds in Loss";
    claim("abc-alone", text.to_owned(), holds, evidence)
}

/// True if each run with the defect takes longer than any run without it, whatever the phases: damage, not chance.
fn slower_than_all(with: &Group, without: &[Group]) -> bool {
    let slowest = without.iter().map(|g| g.time().max).fold(f64::MIN, f64::max);
    !with.runs.is_empty() && with.time().min > slowest
}

fn verdict(slower: bool) -> &'static str {
    if slower {
        ", each run slower than any without it"
    } else {
        ", but not every run is slower than all without it"
    }
}

fn sort_in_fix(results: &Results) -> ReproductionClaim {
    let mut says = Vec::new();
    let mut holds = false;
    for window in [SMALL_WINDOW, MAIN_WINDOW] {
        let (with, without) = pair(results, V::FixSortBuggy, V::Fix, window);
        holds |= slower_than_all(&with, &[results.deep(V::Fix, window)]);
        says.push(format!(
            "window {window}: {:.2} s instead of {:.2} s",
            with.time().mean,
            without.time().mean
        ));
    }
    let mut evidence = says.join("; ");
    if !holds {
        evidence.push_str(
            ". Remedy B reads only blocks that the last ACK did not have. That is as a rule one block, and one \
             block needs no sorting: the cure of the third defect covers the second",
        );
    }
    let text =
        "The sort defect alone, put back into the fix, slows it down by more than the policer's phase does";
    claim("sort-alone-in-fix", text.to_owned(), holds, evidence)
}

fn sort_alone(results: &Results) -> ReproductionClaim {
    let (with, without) = pair(results, V::Linux2624SortBuggy, V::Linux2624, MAIN_WINDOW);
    let clean = [V::Linux2624, V::Fix].map(|v| results.main(v));
    let holds = slower_than_all(&with, &clean);
    let evidence = format!(
        "window {MAIN_WINDOW}: {:.2} s instead of {:.2} s, {:.1} instead of {:.1} Mbit/s{}. \
         Retransmissions that were found lost: {:.0} instead of {:.0}",
        with.time().mean,
        without.time().mean,
        with.goodput().mean,
        without.goodput().mean,
        verdict(holds),
        mean_sent(&with, Cause::LostRetransmission),
        mean_sent(&without, Cause::LostRetransmission),
    );
    let text = "The sort defect alone, put back into linux-2.6.24, which reads all blocks: news of the newest block is \
                lost, and recovery takes longer";
    claim("sort-alone", text.to_owned(), holds, evidence)
}

fn mean_sent(group: &Group, cause: Cause) -> f64 {
    let sum: u64 = group.runs.values().map(|m| m.sent(cause)).sum();
    sum as f64 / group.runs.len().max(1) as f64
}

fn one_pass_alone(results: &Results) -> ReproductionClaim {
    let (with, without) = pair(results, V::Linux2622, V::Fix, MAIN_WINDOW);
    let slower = slower_than_all(&with, &[results.main(V::Fix)]);
    let holds = slower && with.timeouts().min > 0.0 && without.timeouts().max == 0.0;
    let evidence = format!(
        "window {MAIN_WINDOW}: {:.1} timeouts instead of {:.1}, {:.1} s instead of {:.1} s, {:.0} instead of {:.0} \
         Mbit/s{}. Fast retransmissions that were lost again come to light by the timer",
        with.timeouts().mean,
        without.timeouts().mean,
        with.time().mean,
        without.time().mean,
        with.goodput().mean,
        without.goodput().mean,
        verdict(slower),
    );
    let text = "The one-pass defect alone, put back into the fix (this is linux-2.6.22): lost retransmissions are \
                overlooked, and only a timeout helps";
    claim("one-pass-alone", text.to_owned(), holds, evidence)
}

/// How many runs have the same outcome to the nanosecond and the last retransmission, and of how many.
fn agreement(results: &Results, a: V, b: V, window: u32) -> (usize, usize) {
    let (one, other) = pair(results, b, a, window);
    let same = |(phase, m): &(&u32, &Measurement)| {
        let retransmitted = |m: &Measurement| -> Vec<(Cause, u64)> {
            m.sent.iter().copied().filter(|(cause, _)| cause.is_retransmission()).collect()
        };
        other.runs.get(*phase).is_some_and(|o| {
            o.elapsed == m.elapsed && o.timeouts == m.timeouts && retransmitted(o) == retransmitted(m)
        })
    };
    (one.runs.iter().filter(same).count(), one.runs.len())
}

fn compare(results: &Results, others: &[(V, u32)]) -> (bool, Vec<String>) {
    let mut holds = true;
    let says = others.iter().map(|(variant, window)| {
        let (same, of) = agreement(results, V::Fix, *variant, *window);
        holds &= same == of && of > 0;
        let group = results.deep(*variant, *window);
        let fix = results.deep(V::Fix, *window).matching(&group);
        format!(
            "{}, window {window}: {same} of {of} runs the same ({:.2} and {:.2} s)",
            variant.label(),
            group.time().mean,
            fix.time().mean
        )
    });
    let says = says.collect();
    (holds, says)
}

fn remedies_agree(results: &Results) -> ReproductionClaim {
    let others = [(V::FixMaxEnd, MAIN_WINDOW), (V::Linux2624, MAIN_WINDOW), (V::FixMaxEnd, SMALL_WINDOW)];
    let (holds, says) = compare(results, &others);
    let text = "While no ACK is lost, the three ways to find lost retransmissions (remedies A and B of the paper, and \
                that of 2.6.24) give the same transfer";
    claim("remedies-agree", text.to_owned(), holds, says.join("; "))
}

fn remedy_of_2624_agrees(results: &Results) -> ReproductionClaim {
    let (holds, says) = compare(results, &[(V::Linux2624, SMALL_WINDOW)]);
    let mut evidence = says.join("; ");
    if !holds {
        evidence.push_str(
            ". 2.6.24 has more than another remedy: it also marks lost what it has retransmitted ahead (forward \
             retransmissions), which happens only when the receive window leaves nothing new to send",
        );
    }
    let text = format!(
        "All of linux-2.6.24 gives the same transfer as the fix, with a window of {SMALL_WINDOW}, too"
    );
    claim("linux-2.6.24-agrees", text, holds, evidence)
}
