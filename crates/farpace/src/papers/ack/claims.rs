//! What the thesis claims, and whether it came out here. Nothing is tuned to hold.

use super::clocks;
use super::plan::{Policy, Route};
use super::results::Results;
use super::thesis::MORE_ACKS;
use farpace_report::Claim;

/// All claims.
pub fn claims(results: &Results) -> Vec<Claim> {
    vec![
        all_gain(results),
        slow_start_best(results),
        ranking(results),
        uneven(results),
        traffic(results),
        confirmed(results),
        timestamps(results),
        round_trips(results),
        repair(results),
    ]
}

fn claim(id: &str, text: &str, holds: bool, evidence: Vec<String>) -> Claim {
    let mut evidence = evidence.join("; ");
    if let Some(why) = why(id).filter(|_| !holds) {
        evidence.push_str(". Why: ");
        evidence.push_str(why);
    }
    Claim { id: id.to_owned(), text: text.to_owned(), holds, evidence }
}

/// What is known of the reason, where a claim did not come out when this was written.
fn why(id: &str) -> Option<&'static str> {
    let _ = id;
    None
}

/// Policies that ask.
fn asking() -> impl Iterator<Item = Policy> {
    Policy::ALL.into_iter().filter(|p| *p != Policy::None)
}

fn delivered(results: &Results, route: Route) -> Vec<String> {
    let one = |policy: Policy| format!("{} {}", policy.label(), results.delivered(route, policy).text());
    vec![format!("{}: {} kB", route.name(), Policy::ALL.map(one).join(", "))]
}

fn both(of: impl Fn(Route) -> Vec<String>) -> Vec<String> {
    Route::ALL.into_iter().flat_map(of).collect()
}

fn all_gain(results: &Results) -> Claim {
    let gains = |route| asking().all(|policy| results.gain(route, policy) > 0.0);
    claim(
        "every-policy-gains",
        "Every policy delivers more than none, on both paths (Figs. 5.4, 5.5)",
        Route::ALL.into_iter().all(gains),
        both(|route| delivered(results, route)),
    )
}

fn slow_start_best(results: &Results) -> Claim {
    let best = |route| {
        let gain = |policy| results.gain(route, policy);
        asking().filter(|p| *p != Policy::SlowStart).all(|p| gain(Policy::SlowStart) > gain(p))
    };
    claim(
        "slow-start-best",
        "Asking with all segments of slow start delivers the most (626 kB)",
        Route::ALL.into_iter().all(best),
        both(|route| delivered(results, route)),
    )
}

fn ranking(results: &Results) -> Claim {
    let every = [Policy::Every(2), Policy::Every(3), Policy::Every(4)];
    let ranked = |route| {
        let gain = |policy| results.gain(route, policy);
        gain(Policy::Rtt) > 0.0
            && every.iter().all(|p| gain(*p) > gain(Policy::Rtt) && gain(Policy::SlowStart) > gain(*p))
    };
    let says = |route: Route| {
        let gain = |policy: Policy| format!("{} {:+.1}", policy.label(), results.gain(route, policy));
        vec![format!(
            "{}: {} kB more than none",
            route.name(),
            asking().map(gain).collect::<Vec<_>>().join(", ")
        )]
    };
    claim(
        "ranking",
        "None < RTT < RTT with every 2nd, 3rd or 4th < RTT with slow start (Table 5.2: 568 < 581 < 583, 585, 591 < 626 kB)",
        Route::ALL.into_iter().all(ranked),
        both(says),
    )
}

fn uneven(results: &Results) -> Claim {
    let mut holds = true;
    let says = asking().map(|policy| {
        let [even, uneven] = Route::ALL.map(|route| results.gain(route, policy));
        holds &= uneven > even;
        format!("{}: {even:+.1} kB at 25+25 ms, {uneven:+.1} at 45+5", policy.label())
    });
    let says = says.collect();
    claim(
        "uneven-gains-more",
        "CDL gains more where data takes longer than ACKs: 45+5 ms (Fig. 5.3)",
        holds,
        says,
    )
}

fn traffic(results: &Results) -> Claim {
    let mut holds = true;
    let says = asking().map(|policy| {
        let more = results.more_acks(Route::Even, policy);
        holds &= (MORE_ACKS.0..=MORE_ACKS.1).contains(&more);
        format!("{} {more:+.0} %", policy.label())
    });
    let mut says: Vec<String> = says.collect();
    says.push("by Table 5.2: +17, +23, +35, +22, +62 % in the order of its rows".to_owned());
    claim("ack-traffic", "ACKs become more by 10 to 20 % (section 7.3)", holds, says)
}

fn confirmed(results: &Results) -> Claim {
    let mut holds = true;
    let mut says = Vec::new();
    for policy in asking() {
        let lacking = results.row(Route::Even, policy, false, |m| m.asked - m.confirmed);
        let asked = results.row(Route::Even, policy, false, |m| m.asked).mean;
        // What is under way at the end cannot be confirmed yet: a window at most.
        holds &= asked > 0.0 && lacking.most <= 6.0;
        says.push(format!("{}: {asked:.0} asked, {} unconfirmed", policy.label(), lacking.text()));
    }
    let text =
        "Every request is confirmed, but for those under way at the end (CDLACK within a window of CDL)";
    claim("confirmed", text, holds, says)
}

fn timestamps(results: &Results) -> Claim {
    let of = |ts| results.row(Route::Even, Policy::Rtt, ts, |m| m.delivered);
    let (without, with) = (of(false), of(true));
    claim(
        "timestamps-help",
        "With timestamps, asking for the timed segment delivers more than without (616 to 581 kB)",
        with.mean > without.mean,
        vec![format!("{} to {} kB", with.text(), without.text())],
    )
}

fn round_trips(results: &Results) -> Claim {
    let error = |clock, cdl| {
        let case = clocks::case(clock, cdl);
        results.over(&case, |m| m.round_trips.as_ref().map_or(f64::NAN, |s| s.error)).mean
    };
    let mut holds = true;
    let says = clocks::CLOCKS.map(|clock| {
        let (without, with) = (error(clock, false), error(clock, true));
        holds &= with < without;
        format!("{clock}: {with:.1} ms with, {without:.1} without")
    });
    claim(
        "srtt-nearer",
        "Samples of confirmed segments bring SRTT nearer to the path's round trip (chapter 6), at every clock",
        holds,
        says.into(),
    )
}

fn repair(results: &Results) -> Claim {
    let repaired = |clock, cdl| clocks::repaired(results, &clocks::case(clock, cdl)).mean;
    let old = clocks::repaired(results, &clocks::bsd()).mean;
    let new = repaired("1 us", true);
    let mut says = vec![format!("BSD's estimator {old:.2} s")];
    says.extend(clocks::CLOCKS.map(|clock| {
        format!("{clock}: {:.2} s with CDL, {:.2} without", repaired(clock, true), repaired(clock, false))
    }));
    claim(
        "repaired-sooner",
        "Fine clocks with CDL repair a lost tail sooner (chapter 6)",
        new < old && new <= repaired("1 us", false),
        says,
    )
}
