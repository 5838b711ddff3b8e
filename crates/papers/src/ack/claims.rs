//! What the thesis claims, and whether it came out. Nothing is tuned to hold.

use super::MeasuredAcks;
use super::cases::{AckCase, AskPolicy as P, DelaySplit};
use super::clocks::{CLOCKS, bsd, case};
use super::published::MORE_ACKS;
use crate::paper::ClaimList;

const EVEN: DelaySplit = DelaySplit::Even;

/// All claims.
pub fn claims(m: &MeasuredAcks<'_>, claims: &mut ClaimList) {
    deliveries(m, claims);
    uneven(m, claims);
    acks(m, claims);
    timeouts(m, claims);
}

/// What a policy gains, in kB.
type GainOf<'a> = &'a dyn Fn(P) -> f64;

fn deliveries(m: &MeasuredAcks<'_>, claims: &mut ClaimList) {
    let says = || {
        DelaySplit::BOTH.map(|split| {
            let one = |policy: P| format!("{} {}", policy.label(), m.delivered(split, policy).range_text());
            format!("{}: {} kB", split.name(), P::ALL.map(one).join(", "))
        })
    };
    let both = |holds: &dyn Fn(GainOf<'_>) -> bool| {
        DelaySplit::BOTH.into_iter().all(|split| holds(&|policy| m.gain(split, policy)))
    };
    let text = "Every policy delivers more than none, on both paths (Figs. 5.4, 5.5)";
    claims.add("every-policy-gains", text, both(&|gain| P::asking().all(|p| gain(p) > 0.0)), says());

    let text = "No policy delivers more than asking with all segments of slow start (626 kB)";
    let holds = both(&|gain| P::asking().all(|p| gain(P::SlowStart) >= gain(p)));
    claims.add("slow-start-best", text, holds, says());

    let between = [P::Every2, P::Every3, P::Every4];
    let holds = both(&|gain| {
        let ranked = |p: &P| gain(*p) > gain(P::Rtt) && gain(P::SlowStart) > gain(*p);
        gain(P::Rtt) > 0.0 && between.iter().all(ranked)
    });
    let says = DelaySplit::BOTH.map(|split| {
        let six = P::asking().map(|p| format!("{} {:+.1}", p.label(), m.gain(split, p)));
        let four = P::asking().map(|p| format!("{:+.1}", m.gain_of_four(split, p)));
        let [six, four] = [six.collect::<Vec<_>>(), four.collect()].map(|all| all.join(", "));
        format!("{}: {six} kB more than none; with four segments in flight {four}", split.name())
    });
    let text = "None < RTT < RTT with every 2nd, 3rd or 4th < RTT with slow start (Table 5.2: 568 < 581 < \
                583, 585, 591 < 626 kB)";
    claims.add("ranking", text, holds, says);
}

fn uneven(m: &MeasuredAcks<'_>, claims: &mut ClaimList) {
    let mut holds = true;
    let says = P::asking().map(|policy| {
        let [even, uneven] = DelaySplit::BOTH.map(|split| m.gain(split, policy));
        holds &= uneven > even;
        let four = DelaySplit::BOTH.map(|split| format!("{:+.1}", m.gain_of_four(split, policy)));
        format!(
            "{}: {even:+.1} kB at 25+25 ms, {uneven:+.1} at 45+5 (four in flight: {})",
            policy.label(),
            four.join(" and ")
        )
    });
    let says: Vec<String> = says.collect();
    let text = "CDL gains more where data takes longer than ACKs: 45+5 ms (Fig. 5.3)";
    claims.add("uneven-gains-more", text, holds, says);
}

fn acks(m: &MeasuredAcks<'_>, claims: &mut ClaimList) {
    let mut holds = true;
    let says = P::asking().map(|policy| {
        let more = m.more_acks(EVEN, policy);
        holds &= MORE_ACKS.contains(&more);
        format!("{} {more:+.0} %", policy.label())
    });
    let mut says: Vec<String> = says.collect();
    says.push("by Table 5.2: +17, +23, +35, +22, +62 % in the order of its rows".to_owned());
    claims.add("ack-traffic", "ACKs become more by 10 to 20 % (section 7.3)", holds, says);

    let mut holds = true;
    let says = P::asking().map(|policy| {
        let case = AckCase::new(EVEN, policy, false);
        let lacking = m.over(&case, |m| m.asked - m.confirmed);
        let asked = m.over(&case, |m| m.asked).mean;
        // What is under way at the end cannot be confirmed yet: a window at most.
        holds &= asked > 0.0 && lacking.max <= 6.0;
        format!("{}: {asked:.0} asked, {} unconfirmed", policy.label(), lacking.range_text())
    });
    let says: Vec<String> = says.collect();
    let text =
        "Every request is confirmed, but for those under way at the end (CDLACK within a window of CDL)";
    claims.add("confirmed", text, holds, says);

    let [without, with] = [false, true].map(|ts| m.over(&AckCase::new(EVEN, P::Rtt, ts), |m| m.delivered));
    let text = "With timestamps, asking for the timed segment delivers more than without (616 to 581 kB)";
    let says = format!("{} to {} kB", with.range_text(), without.range_text());
    claims.add("timestamps-help", text, with.mean > without.mean, [says]);
}

/// True if `check` is for every clock, and what it says of each.
fn all_clocks(check: impl Fn(&str) -> (bool, String)) -> (bool, [String; 5]) {
    let all = CLOCKS.map(check);
    (all.iter().all(|one| one.0), all.map(|one| one.1))
}

/// Claims on clocks: what is measured without asking, with the timed segment, and with slow start.
fn timeouts(m: &MeasuredAcks<'_>, claims: &mut ClaimList) {
    let (holds, says) = all_clocks(|clock| {
        let [without, with] = [0, 1].map(|asks| m.trips(&case(clock, asks), |s| s.error));
        (with < without, format!("{clock}: {with:.1} ms with, {without:.1} without"))
    });
    let text = "Samples of confirmed segments bring SRTT nearer to the path's round trip, at every clock \
                (section 6.3)";
    claims.add("srtt-nearer", text, holds, says);

    let repaired = |clock: &str, asks| m.repaired(case(clock, asks)).mean;
    let old = m.repaired(bsd()).mean;
    let mut last = old;
    let mut holds = true;
    let mut says = vec![format!("BSD's estimator {old:.2} s")];
    for clock in CLOCKS {
        let now = repaired(clock, 1);
        // Below the time of a segment on the line, 23 ms, it does not matter.
        holds &= now <= last + 0.023;
        last = now;
        says.push(format!("{clock}: {now:.2} s"));
    }
    let text = "The finer the clock, the sooner a lost tail is repaired with CDL (section 6.2)";
    claims.add("finer-clock-sooner", text, holds && last < old, says);

    let (holds, says) = all_clocks(|clock| {
        let [without, with] = [0, 1].map(|asks| m.over(&case(clock, asks), |m| m.timeouts).mean);
        (with == 0.0, format!("{clock}: {with:.1} in 10 s with, {without:.1} without"))
    });
    let text = "SRTT + 4 RTTVAR + dD of confirmed samples does not time out without a loss (section 7.1)";
    claims.add("no-false-timeouts", text, holds, says);

    let (holds, says) = all_clocks(|clock| {
        let [without, timed, end] = [0, 1, 2].map(|asks| repaired(clock, asks));
        let says = format!("{clock}: {timed:.2} s with, {without:.2} without; {end:.2} with slow start");
        (timed < without, says)
    });
    let text =
        "CDL for the timed segment makes the timeout shorter: a lost tail is repaired sooner (section 7.1)";
    claims.add("cdl-repairs-sooner", text, holds, says);
}
