//! What the paper claims, what follows from it, and whether it came out. Nothing is tuned to hold.

use super::StopsPaper;
use super::cases::{KernelVariant as V, SMALL_WINDOW, TABLE_2};
use super::transfer::PolicedGroup;
use crate::experiment::Measured;
use crate::paper::ClaimList;
use farpace_events::{Cause, RecoveryState};

/// What the paper calls 96 %: 1448/1500 of the policed rate, which counts headers, is payload.
const SATURATED: f64 = 96.0;

type Stops<'a> = Measured<'a, StopsPaper>;

/// All claims.
pub fn claims(m: &Stops<'_>, claims: &mut ClaimList) {
    for window in &m.of.windows {
        order(m, *window, claims);
    }
    saturates(m, claims);
    by_window(m, claims);
    abc_alone(m, claims);
    sort_in_fix(m, claims);
    sort_alone(m, claims);
    one_pass_alone(m, claims);
    let main = m.of.main;
    let (holds, says) =
        compare(m, &[(V::FixMaxEnd, main), (V::Linux2624, main), (V::FixMaxEnd, SMALL_WINDOW)]);
    let text = "While no ACK is lost, the three ways to find lost retransmissions (remedies A and B of the \
                paper, and that of 2.6.24) give the same transfer";
    claims.add("remedies-agree", text, holds, says);
    let (holds, says) = compare(m, &[(V::Linux2624, SMALL_WINDOW)]);
    let text = format!(
        "All of linux-2.6.24 gives the same transfer as the fix, with a window of {SMALL_WINDOW}, too"
    );
    claims.add("linux-2.6.24-agrees", text, holds, says);
}

fn order(m: &Stops<'_>, window: u32, claims: &mut ClaimList) {
    let [old, newer, fix] = TABLE_2.map(|v| m.deep(v, window));
    let [a, b, c] = [&old, &newer, &fix].map(|g| g.goodput().mean);
    let runs = fix.len();
    let mut says = vec![format!(
        "mean goodput {a:.1} (2.6.17), {b:.1} (2.6.22), {c:.1} Mbit/s (fix), of {runs} runs each"
    )];
    let leads = a < b && b > c;
    if leads {
        let (spread, late) = (fix.goodput(), [newer.timeouts().mean, fix.timeouts().mean]);
        says.push(format!(
            "the fix has {:.1} to {:.1} from phase to phase, and timeouts are {:.1} (2.6.22) and {:.1} per \
             run (fix)",
            spread.min, spread.max, late[0], late[1]
        ));
    }
    let text = format!("Mean goodput: 2.6.17 < 2.6.22 <= fix, with a window of {window} packets");
    claims.add_explained(format!("order/window-{window}"), text, a < b && b <= c, says, leads);
}

fn saturates(m: &Stops<'_>, claims: &mut ClaimList) {
    let (main, fix) = (m.of.main, m.main(V::Fix));
    let (runs, min, timeouts) = (fix.len(), fix.efficiency().min, fix.timeouts().max);
    let text = format!(
        "The fix saturates the policed rate: at least {SATURATED:.0} % of 500 Mbit/s in every run, without a \
         timeout (window {main})"
    );
    let says = format!(
        "least efficiency {min:.1} %, most timeouts {timeouts:.0}, of {runs} runs. The ceiling is 96.5 % \
         (1448 bytes of payload in packets of 1500), plus what the full bucket adds at the start ({:.1} % in \
         all for this size)",
        m.of.size.get() as f64 * 8.0 / m.of.min_seconds() / 5e6,
    );
    claims.add("fix-saturates", text, runs > 0 && min >= SATURATED && timeouts == 0.0, [says]);
}

/// Claims on every window of Table 2: who stands still, and who crawls.
fn by_window(m: &Stops<'_>, claims: &mut ClaimList) {
    let [mut stops, mut cured_go_on, mut cured_are_fast, mut fix_is_fast] = [true; 4];
    let [mut stopped, mut silences, mut crawls] = [const { Vec::new() }; 3];
    for &window in &m.of.windows {
        let old = m.deep(V::Linux2617, window);
        let stuck = old.stopped_in(&[RecoveryState::Recovery, RecoveryState::Loss]);
        stops &= stuck > 0;
        let silent = old.over(|m| m.silent).mean / old.time().mean * 100.0;
        stopped.push(format!(
            "window {window}: in {stuck} of {} runs, longest {}, {silent:.0} % of the time silent",
            old.len(),
            longest(&old)
        ));
        let cured = [V::Linux2622, V::Fix].map(|variant| (variant, m.deep(variant, window)));
        let of = |says: [String; 2]| format!("window {window}: {}", says.join(", "));
        silences.push(of(cured.each_ref().map(|(variant, group)| {
            cured_go_on &= group.stopped() == 0;
            format!("{} {}", variant.label(), longest(group))
        })));
        // Stricter than the paper's words: a few packets per round trip are hardly better than one.
        crawls.push(of(cured.each_ref().map(|(variant, group)| {
            let crawl = group.crawl();
            cured_are_fast &= crawl.is_none();
            fix_is_fast &= *variant != V::Fix || crawl.is_none();
            let text = crawl.map_or_else(|| "never".to_owned(), |s| format!("for up to {s:.1} s"));
            format!("{} {text} ({} of {} runs)", variant.label(), group.crawled(), group.len())
        })));
    }
    let text = "2.6.17 stands still for seconds, with at most one packet per round trip, in Recovery or Loss";
    claims.add("patient-stops", text, stops, stopped);
    let text = "2.6.22 and the fix never stand still for a second, with at most one packet per round trip";
    let silences = silences.join("; ");
    let says =
        format!("longest silences: {silences}. Those of about 0.2 s are waits for the retransmission timer");
    claims.add("cured-do-not-stop", text, cured_go_on, [says]);
    let text =
        "2.6.22 and the fix never fall below 2 % of the policed rate (8 packets per round trip) for a second";
    claims.add_explained("cured-do-not-crawl", text, cured_are_fast, crawls, fix_is_fast);
}

/// The longest silence of a group in words.
fn longest(group: &PolicedGroup<'_>) -> String {
    let text =
        |s: super::transfer::LongestSilence| format!("{:.2} s in {}", s.span().as_secs_f64(), s.state_name());
    group.longest().map_or_else(|| "none".to_owned(), text)
}

/// A group with a defect beside the same phases without it.
fn pair<'m>(m: &'m Stops<'_>, with: V, without: V, window: u32) -> (PolicedGroup<'m>, PolicedGroup<'m>) {
    let with = m.deep(with, window);
    let without = m.deep(without, window).matching(&with);
    (with, without)
}

fn abc_alone(m: &Stops<'_>, claims: &mut ClaimList) {
    let (with, without) = pair(m, V::FixAbcBuggy, V::Fix, SMALL_WINDOW);
    let main_window = m.of.main;
    let (main, main_without) = pair(m, V::FixAbcBuggy, V::Fix, main_window);
    let small_window = |group: &PolicedGroup<'_>| group.over(|m| m.small_window).mean;
    let says = format!(
        "window {SMALL_WINDOW}, where the fix has timeouts ({:.0} per run): {:.1} s instead of {:.1} s, \
         longest silence {} instead of {}, {:.1} s instead of {:.1} s at a window of 2 packets or less. At \
         window {main_window} there is no timeout, and no damage: {:.2} s and {:.2} s",
        with.timeouts().mean,
        with.time().mean,
        without.time().mean,
        longest(&with),
        longest(&without),
        small_window(&with),
        small_window(&without),
        main.time().mean,
        main_without.time().mean,
    );
    let text = "The ABC defect alone, put back into the fix: after a timeout the window stays at one packet, \
                and the transfer stands still for seconds in Loss";
    let holds = with.stopped_in(&[RecoveryState::Loss]) > 0 && without.stopped() == 0;
    claims.add("abc-alone", text, holds, [says]);
}

/// True if each run with the defect takes longer than any run without it, whatever the phases.
fn slower_than_all(with: &PolicedGroup<'_>, without: &[PolicedGroup<'_>]) -> bool {
    let slowest = without.iter().map(|g| g.time().max).fold(f64::MIN, f64::max);
    with.len() > 0 && with.time().min > slowest
}

fn comparison(slower: bool) -> &'static str {
    if slower {
        ", each run slower than any without it"
    } else {
        ", but not every run is slower than all without it"
    }
}

fn sort_in_fix(m: &Stops<'_>, claims: &mut ClaimList) {
    let mut holds = false;
    let says = [SMALL_WINDOW, m.of.main].map(|window| {
        let (with, without) = pair(m, V::FixSortBuggy, V::Fix, window);
        holds |= slower_than_all(&with, &[m.deep(V::Fix, window)]);
        format!("window {window}: {:.2} s instead of {:.2} s", with.time().mean, without.time().mean)
    });
    let text =
        "The sort defect alone, put back into the fix, slows it down by more than the policer's phase does";
    claims.add("sort-alone-in-fix", text, holds, says);
}

fn sort_alone(m: &Stops<'_>, claims: &mut ClaimList) {
    let main = m.of.main;
    let (with, without) = pair(m, V::Linux2624SortBuggy, V::Linux2624, main);
    let holds = slower_than_all(&with, &[V::Linux2624, V::Fix].map(|v| m.main(v)));
    let lost = |group: &PolicedGroup<'_>| group.over(|m| m.sent(Cause::LostRetransmission) as f64).mean;
    let says = format!(
        "window {main}: {:.2} s instead of {:.2} s, {:.1} instead of {:.1} Mbit/s{}. \
         Retransmissions that were found lost: {:.0} instead of {:.0}",
        with.time().mean,
        without.time().mean,
        with.goodput().mean,
        without.goodput().mean,
        comparison(holds),
        lost(&with),
        lost(&without),
    );
    let text = "The sort defect alone, put back into linux-2.6.24, which reads all blocks: news of the \
                newest block is lost, and recovery takes longer";
    claims.add("sort-alone", text, holds, [says]);
}

fn one_pass_alone(m: &Stops<'_>, claims: &mut ClaimList) {
    let main = m.of.main;
    let (with, without) = pair(m, V::Linux2622, V::Fix, main);
    let slower = slower_than_all(&with, &[m.main(V::Fix)]);
    let says = format!(
        "window {main}: {:.1} timeouts instead of {:.1}, {:.1} s instead of {:.1} s, {:.0} instead of {:.0} \
         Mbit/s{}. Fast retransmissions that were lost again come to light by the timer",
        with.timeouts().mean,
        without.timeouts().mean,
        with.time().mean,
        without.time().mean,
        with.goodput().mean,
        without.goodput().mean,
        comparison(slower),
    );
    let text = "The one-pass defect alone, put back into the fix (this is linux-2.6.22): lost \
                retransmissions are overlooked, and only a timeout helps";
    let holds = slower && with.timeouts().min > 0.0 && without.timeouts().max == 0.0;
    claims.add("one-pass-alone", text, holds, [says]);
}

/// Whether all runs of others have the outcome of the fix, to the nanosecond and the last retransmission.
fn compare(m: &Stops<'_>, others: &[(V, u32)]) -> (bool, Vec<String>) {
    let mut holds = true;
    let says = others.iter().map(|&(variant, window)| {
        let (group, fix) = pair(m, variant, V::Fix, window);
        let is_same = |(phase, m): &(&u64, &&super::PolicedTransfer)| {
            fix.0.get(*phase).is_some_and(|f| {
                f.elapsed_ns == m.elapsed_ns
                    && f.timeouts == m.timeouts
                    && f.retransmitted().eq(m.retransmitted())
            })
        };
        let (same, of) = (group.0.iter().filter(is_same).count(), group.len());
        holds &= same == of && of > 0;
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
