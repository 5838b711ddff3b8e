//! What the paper claims, what farpace aims at, and whether it came out. Nothing is tuned to hold.

use super::MeasuredNics;
use super::cases::{ALONE, FEWER, FIG_10, GAIN, IDLE, NicsCase, PUBLISHED, WINDOW};
use super::sets::{NicSet, ReceivingHost, failure_case, failures};
use super::striped::StripedRun;
use crate::paper::ClaimList;

/// The narrow NIC's share in percent, and how near to it retransmissions are to be.
const NARROW: (f64, f64) = (10.0, 1.0);
/// A connection has collapsed if it has less than this part of what UDP has.
const COLLAPSED: f64 = 0.5;
/// Aims on a switch: percent of the sum, and of spurious retransmissions.
const SWITCHED: (f64, f64) = (97.0, 0.1);
/// Aim at a house: percent of the sum.
const WAN: f64 = 90.0;
/// What a measurement of a few seconds leaves open, in percent.
const BELOW: f64 = 0.5;
/// Traffic has moved after so many milliseconds.
const MOVED_MS: f64 = 100.0;

/// All claims.
pub fn claims(m: &MeasuredNics<'_>, claims: &mut ClaimList) {
    let none = NicsCase::at_90(0);
    let (mbit, udp) = (m.total(&none), m.udp("90/10"));
    let resent = m.of_first(&none, StripedRun::resent_percent);
    let holds = mbit < COLLAPSED * udp && (resent - NARROW.0).abs() <= NARROW.1;
    let text = "Without order (S = 0) the connection collapses, to less than half of UDP, and sends again \
                what goes by the narrow NIC: 10 % (within a point; paper 143 of 914 Mbit/s, 9.79 %)";
    claims.add("collapse", text, holds, [format!("{mbit:.0} of {udp:.0} Mbit/s, {resent:.2} %")]);
    best(m, "best-90", 8, "At 90/10 the best skip number is 8 (within one)", NicsCase::at_90, claims);
    gain(m, claims);
    best(m, "best-99", 18, "At 99.6/0.4 the best skip number is 18 (within one)", NicsCase::at_99, claims);
    let [both, alone] = [NicsCase::at_99(18), NicsCase::alone(IDLE)].map(|case| m.total(&case));
    let paper = PUBLISHED[2].goodput;
    let text = format!(
        "With 99.6/0.4 and S = 18 it is faster than the wide NIC alone (paper {paper} and {ALONE} Mbit/s)"
    );
    claims.add("beats-alone", text, both > alone, [format!("{both:.1} and {alone:.1} Mbit/s")]);
    extensions(m, claims);
    failover(m, claims);
}

fn best(
    m: &MeasuredNics<'_>,
    id: &str,
    paper: u16,
    text: &str,
    case: fn(u16) -> NicsCase,
    claims: &mut ClaimList,
) {
    let (skip, mbit) = m.best(case);
    let near = (paper.saturating_sub(2)..=paper.saturating_add(2)).map(|skip| (skip, m.total(&case(skip))));
    let near = near.filter(|(_, mbit)| mbit.is_finite()).map(|(skip, mbit)| format!("{skip}: {mbit:.1}"));
    let says = [format!("best {skip} with {mbit:.1} Mbit/s"), near.collect::<Vec<_>>().join(", ")];
    claims.add(id, text, skip.abs_diff(paper) <= 1, says);
}

fn gain(m: &MeasuredNics<'_>, claims: &mut ClaimList) {
    let (skip, mbit) = m.best(NicsCase::at_90);
    let (none, gain) = (m.total(&NicsCase::at_90(0)), m.gain());
    let text = format!("At the best skip number it is at least {GAIN} times as fast as without order");
    let says = format!("{mbit:.0} Mbit/s at S = {skip}, {none:.0} without: {gain:.2} times");
    claims.add("gain", text, gain >= GAIN, [says]);

    let [none, some] = FIG_10.map(|skip| m.of_first(&NicsCase::at_90(skip), StripedRun::resent_percent));
    let fewer = (1.0 - some / none) * 100.0;
    let text = format!(
        "At S = 8 at least {FEWER} % fewer segments are sent again than without order (paper 9.79 and 7.17 %)"
    );
    let mut says = format!("{none:.2} % and {some:.2} %: {fewer:.1} % fewer");
    if fewer > 2.0 * FEWER {
        says.push_str(", more than twice the paper's reduction: the claim has no upper bound");
    }
    claims.add("fewer", text, fewer >= FEWER, [says]);

    let [none, some] = m.windows();
    let text = "At S = 8 the window is at least three times as large as without order (Fig. 10)";
    let says = format!("{none:.1} and {some:.1} segments of the receiver's 22: {:.1} times", some / none);
    claims.add("window", text, some >= WINDOW * none, [says]);
}

/// Aims with other NICs and the order `earliest`.
fn extensions(m: &MeasuredNics<'_>, claims: &mut ClaimList) {
    let of = |set: &NicSet, receiver| {
        let case = set.case("earliest", receiver);
        (m.share(set, &case), m.of_first(&case, StripedRun::spurious_percent))
    };
    let mut holds = true;
    let says = m.of.all_sets().filter(|set| set.is_switched() && set.jitter_us == 0).map(|set| {
        let (share, spurious) = of(set, ReceivingHost::Stock);
        holds &= share >= SWITCHED.0 && spurious < SWITCHED.1;
        format!("{}: {share:.1} %, {spurious:.3} %", set.name)
    });
    let says: Vec<String> = says.collect();
    let text = "Beyond the paper: one connection, order \"earliest\", receivers as they are, reaches at \
                least 97 % of the sum of NICs on a switch, and sends less than 0.1 % again for nothing";
    claims.add("sum-wired", text, holds, says);

    let mut holds = true;
    let says = m.of.all_sets().filter(|set| !set.is_switched()).map(|set| {
        let (share, spurious) = of(set, ReceivingHost::Resequences);
        holds &= share >= WAN;
        format!("{}: {share:.1} %, {spurious:.3} % again for nothing", set.name)
    });
    let says: Vec<String> = says.collect();
    let text = "Beyond the paper: at least 90 % of the sum of three lines of a house, if the receiving host \
                puts frames in order";
    claims.add("sum-wan", text, holds, says);

    let mut below = Vec::new();
    for set in m.of.all_sets() {
        let alone = m.total(&set.single());
        for receiver in ReceivingHost::BOTH {
            let mbit = m.total(&set.case("earliest", receiver));
            if mbit < alone * (1.0 - BELOW / 100.0) {
                below.push(format!("{}, {}: {mbit:.1}, alone {alone:.1} Mbit/s", set.name, receiver.id()));
            }
        }
    }
    let text = "Beyond the paper: \"earliest\" is never below the best line alone (by more than 0.5 %)";
    let holds = below.is_empty();
    claims.add("never-below", text, holds, if holds { vec!["on none of them".to_owned()] } else { below });
}

fn failover(m: &MeasuredNics<'_>, claims: &mut ClaimList) {
    let measured = m.first(&failure_case(m.of.quick));
    let mut holds = true;
    let says = failures(m.of.quick).map(|failure| {
        let [lost, back] = failure.moved(measured).map(|time| {
            holds &= time.is_some_and(|ms| ms < MOVED_MS);
            time.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms"))
        });
        format!("the {} NIC: {lost}, and after its return {back}", failure.name())
    });
    let text = "Beyond the paper: when a NIC dies, the others carry what they can within 100 ms; when it \
                returns, all do";
    claims.add("failover", text, holds, says);
}
