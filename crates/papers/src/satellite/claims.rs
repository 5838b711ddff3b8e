//! What the paper claims, and whether it came out. Nothing is tuned to hold.

use super::cases::{Ber, RouterQueue};
use super::rows::{ESTIMATE, GAINS};
use super::{ALGORITHMS, NEIGHBOURS, SatellitePaper, label, pair, single};
use crate::experiment::Measured;
use crate::paper::ClaimList;

/// "Equal", "almost the same": within this part.
const ALMOST: f64 = 0.05;
/// "Slightly below", "unharmed": at least this part of the other.
const SLIGHTLY: f64 = 0.9;
/// Two flows are equal from this value of Jain's index on.
const FAIR: f64 = 0.95;
/// A gain agrees with the paper's if it is within this part of it.
const AGREES: f64 = 0.2;

/// All claims.
pub fn claims(m: &Measured<'_, SatellitePaper>, claims: &mut ClaimList) {
    single_flows(m, claims);
    start_and_recovery(m, claims);
    two_of_a_kind(m, claims);
    side_by_side(m, claims);
}

fn others() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALGORITHMS.into_iter().filter(|(name, _)| *name != "star")
}

/// The best of several, as (name, value); NaN is never the best.
fn best<'a>(values: impl Iterator<Item = (&'a str, f64)>) -> (&'a str, f64) {
    values.fold(("nobody", f64::MIN), |best, v| if v.1 > best.1 { v } else { best })
}

/// True if `check` is for every bit error rate, and what it says of each.
fn all_rates(mut check: impl FnMut(Ber) -> (bool, String)) -> (bool, Vec<String>) {
    let all = Ber::ALL.map(&mut check);
    (all.iter().all(|one| one.0), all.map(|one| one.1).into())
}

/// The same with the bit error rate before each text.
fn named_rates(mut check: impl FnMut(Ber) -> (bool, String)) -> (bool, Vec<String>) {
    all_rates(|ber| {
        let (holds, says) = check(ber);
        (holds, format!("BER {}: {says}", ber.name()))
    })
}

/// The same for both queues of the router, one text each.
fn both_queues(mut check: impl FnMut(Ber, RouterQueue) -> (bool, String), unit: &str) -> (bool, Vec<String>) {
    let both = RouterQueue::BOTH.map(|queue| {
        let (holds, says) = all_rates(|ber| check(ber, queue));
        (holds, format!("queue {}: {}{unit}", queue.name(), says.join(", ")))
    });
    (both.iter().all(|one| one.0), both.map(|one| one.1).into())
}

fn single_flows(m: &Measured<'_, SatellitePaper>, claims: &mut ClaimList) {
    let goodput = |name: &str, ber| m.flow_goodput(&single(name, ber), 0);
    let (holds, says) = named_rates(|ber| {
        let star = goodput("star", ber);
        let (name, other) = best(others().map(|(n, l)| (l, goodput(n, ber).mean)));
        (star.mean > other, format!("{} Mbit/s, next {name} {other:.2}", star.text(2)))
    });
    let text = "A single STAR flow has the highest throughput at every bit error rate (Fig. 5)";
    claims.add("single-highest", text, holds, says);

    let mut holds = true;
    let says = GAINS.map(|(other, paper)| {
        let gain = m.gain(other);
        holds &= ((1.0 + gain / 100.0) / (1.0 + paper / 100.0) - 1.0).abs() <= AGREES;
        format!("{}: +{paper:.1} % | {gain:+.1} ± {:.1} %", label(other), m.gain_ci95(other))
    });
    let text = "At 1e-8 STAR is 152 % faster than NewReno, 95.9 % than HSTCP, 41.6 % than Scalable, 13.5 % \
                than TCP-J (each ratio within 20 %)";
    claims.add("gains", text, holds, says);

    let window = |name: &str| m.mean_window(&single(name, Ber::E7), 0);
    let star = window("star");
    let (name, other) = best(others().map(|(n, l)| (l, window(n))));
    let says = format!("mean window {star:.0} kB, next {name} {other:.0} kB (one seed)");
    let text =
        "At 1e-7 STAR keeps its window near the bandwidth-delay product of 625 kB, above all others (Fig. 6)";
    claims.add("window-kept", text, star > other && star >= 562.5, [says]);
}

fn seconds(time: Option<f64>) -> String {
    time.map_or_else(|| "never".to_owned(), |s| format!("{s:.2} s"))
}

/// A time of STAR is at most 2 s, and those of the others are at least what `min` makes of it.
fn sooner(time: impl Fn(&str) -> Option<f64>, min: impl Fn(f64) -> f64) -> (bool, Vec<String>) {
    let star = time("star");
    let mut holds = star.is_some_and(|s| s <= 2.0);
    let mut says = vec![format!("STAR {}", seconds(star))];
    for (name, label) in others() {
        let other = time(name);
        holds &= other.is_none_or(|s| s >= min(star.unwrap_or(f64::MAX)));
        says.push(format!("{label} {}", seconds(other)));
    }
    (holds, says)
}

fn start_and_recovery(m: &Measured<'_, SatellitePaper>, claims: &mut ClaimList) {
    let (holds, says) = sooner(|name| m.fills_at(name), |_| 6.0);
    let text =
        "STAR's window reaches the bandwidth-delay product within 2 s, the others' not before 6 s (Fig. 7)";
    claims.add("fills-first", text, holds, says);

    let goodput = |name: &str| m.flow_goodput(&single(name, Ber::Zero), 0).mean;
    let values: Vec<(&str, f64)> = others().map(|(n, l)| (l, goodput(n))).collect();
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v.1), h.max(v.1)));
    let mut says = vec![format!("STAR {:.2}", goodput("star"))];
    says.extend(values.iter().map(|(label, v)| format!("{label} {v:.2} Mbit/s")));
    let text =
        "Without errors the others are almost the same, and STAR is above them by its start alone (Fig. 5)";
    claims.add("error-free-alike", text, high <= low * (1.0 + ALMOST) && goodput("star") > high, says);

    let (holds, says) = sooner(|name| m.recovers_after(name), |star| star + 2.0);
    let text = "After a second without ACKs STAR is back within 2 s (the paper's second 47 to 48), the \
                others at least 2 s later (47 to 53; Fig. 8)";
    claims.add("recovers-first", text, holds, says);
}

fn two_of_a_kind(m: &Measured<'_, SatellitePaper>, claims: &mut ClaimList) {
    let total = |name: &str, ber, queue| m.total(&pair(name, name, ber, queue)).mean;
    let (holds, says) = named_rates(|ber| {
        let of = |name: &str| total(name, ber, RouterQueue::Large);
        let (name, other) = best(others().map(|(n, l)| (l, of(n))));
        (of("star") > other, format!("{:.2} Mbit/s, next {name} {other:.2}", of("star")))
    });
    let text = "With a queue of 625 kB two STAR flows together have the highest throughput (Fig. 10)";
    claims.add("two-highest", text, holds, says);

    let small = |name: &str, ber| total(name, ber, RouterQueue::Small);
    let (holds, says) = named_rates(|ber| {
        let slower = others().filter(|(name, _)| *name != "tcp-j");
        let (name, other) = best(slower.map(|(n, l)| (l, small(n, ber))));
        let star = small("star", ber);
        (star > other, format!("{star:.2} Mbit/s, {name} {other:.2}"))
    });
    let text = "With a queue of 15 kB two STAR flows have more than HSTCP, Scalable and NewReno (Fig. 11)";
    claims.add("small-queue", text, holds, says);

    let (holds, says) = named_rates(|ber| {
        let [star, j] = ["star", "tcp-j"].map(|name| small(name, ber));
        let holds = if ber == Ber::E5 { star >= j } else { star <= j && star >= j * SLIGHTLY };
        (holds, format!("{star:.2} and {j:.2} Mbit/s"))
    });
    let text = "With a queue of 15 kB STAR is at or slightly below TCP-J (at least 90 % of it), but not at \
                1e-5 (Fig. 11)";
    claims.add("slightly-below-tcp-j", text, holds, says);

    let fair = |ber, queue| {
        let jain = m.fairness(&pair("star", "star", ber, queue)).mean;
        (jain >= FAIR, format!("{jain:.3}"))
    };
    let (holds, says) = both_queues(fair, "");
    let text = "Two STAR flows get equal shares: Jain's index is at least 0.95, at each bit error rate \
                (Figs. 12, 16)";
    claims.add("equal-shares", text, holds, says);

    let case = pair("star", "star", Ber::E8, RouterQueue::Large);
    let means = [0, 1].map(|flow| m.mean_bandwidth(&case, flow));
    let holds = means.iter().all(|m| (m / ESTIMATE - 1.0).abs() <= AGREES);
    let text = "Two STAR flows each estimate about 8 Mbit/s, not 5 (within 20 %; Fig. 15)";
    claims.add("estimate-too-high", text, holds, [means.map(|m| format!("{m:.1} Mbit/s")).join(", ")]);
}

fn side_by_side(m: &Measured<'_, SatellitePaper>, claims: &mut ClaimList) {
    let beside = |name: &'static str, holds: fn(f64, f64) -> bool| {
        let shares = |ber, queue| {
            let case = pair("star", name, ber, queue);
            let [star, other] = [0, 1].map(|flow| m.flow_goodput(&case, flow).mean);
            (holds(star, other), format!("{star:.2} and {other:.2}"))
        };
        both_queues(shares, " Mbit/s")
    };
    let (holds, says) = beside("tcp-j", |star, j| star.min(j) >= SLIGHTLY * star.max(j));
    let text = "STAR and TCP-J beside each other get almost the same (each at least 90 % of the other; Figs. \
                19, 20)";
    claims.add("beside-tcp-j", text, holds, says);
    let (holds, says) = beside("highspeed", |star, other| star > other);
    let text = "Beside HSTCP, STAR gets more, at each bit error rate (Figs. 19, 20)";
    claims.add("beside-hstcp", text, holds, says);

    let mut holds = true;
    let says = NEIGHBOURS.map(|name| {
        let (unharmed, shares) = all_rates(|ber| {
            let beside = m.flow_goodput(&pair("star", name, ber, RouterQueue::Large), 1).mean;
            let own = m.total(&pair(name, name, ber, RouterQueue::Large)).mean / 2.0;
            (beside >= SLIGHTLY * own, format!("{:.0} %", beside / own * 100.0))
        });
        holds &= unharmed;
        format!("{}: {}", label(name), shares.join(", "))
    });
    let text = "STAR does not harm its neighbours: TCP-J and HSTCP keep at least 90 % of what they have \
                beside their own kind, queue 625 kB (Figs. 12, 19)";
    claims.add("neighbours-unharmed", text, holds, says);
}
