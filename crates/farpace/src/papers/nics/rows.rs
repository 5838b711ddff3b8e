//! The numbers of `--json`, each with what had to be assumed.

use super::beyond;
use super::case::{Case, Measured};
use super::claims::udp;
use super::failure::{self, moved};
use super::host::IDLE;
use super::plan::{FIG_10, RATIOS, at_90, at_99, fig_10};
use super::printed::{ALONE, BEST, CONVENTIONAL, GAIN, UDP, UNOBSERVED, WINDOW};
use super::results::Results;
use super::sets::Receiver;
use farpace_report::ReproductionRow;

/// What the paper leaves open and holds for all of its runs.
pub fn assumptions(results: &Results) -> Vec<String> {
    vec![
        "The sender's processor takes 12.9 us for a frame and 7.8 us for an ACK: worked out from the paper's 914 Mbit/s of UDP and \
         689 Mbit/s of TCP over the wide card alone. The receiver takes no time"
            .to_owned(),
        "Its TCP has SACK, three duplicate ACKs, Reno, halves its window at once and never learns of reordering (profile rfc6675), as \
         Linux 2.2.17's; a receive window of 400 segments; an ACK for every two; the congestion window is never below S + 1"
            .to_owned(),
        "Slots of narrow cards are evenly spread; frames are held for 10 ms after the last that came; ACKs take turns at the same ratio \
         and are not put in order"
            .to_owned(),
        "Cards interrupt at once; one switch, 500 ns on each wire".to_owned(),
        format!("Each run takes {}, the first tenth of it does not count", results.plan.time),
    ]
}

/// What the paper's observed runs assume besides.
pub const OBSERVER: &str = "The program that observes retransmissions takes 9.5 us for each frame and ACK: worked out from the paper's best \
                        speed with it, 373 Mbit/s";
/// What all other cards assume.
pub const WIRES: &str = "Stacks of today (profile modern, CUBIC), hosts that take no time, buffers of 2 MB on a switch and 16 MB at the \
                     house; 1448 of each 1538 B of a line are payload";

/// All rows.
pub fn rows(results: &Results) -> Vec<ReproductionRow> {
    let mut rows = Rows { all: Vec::new(), assumptions: assumptions(results) };
    let again = |m: &Measured| m.resent_percent();
    for (ratio, of) in [(RATIOS[0], at_90 as fn(u16) -> Case), (RATIOS[1], at_99)] {
        let (id, more) = if ratio == RATIOS[0] { ("90-10", &[OBSERVER][..]) } else { ("99.6-0.4", &[][..]) };
        for skip in &results.plan.skips {
            let printed = [&CONVENTIONAL, &BEST, &UNOBSERVED];
            let printed = printed.into_iter().find(|p| p.ratio == ratio && p.skip == *skip);
            let (case, at) = (of(*skip), format!("{ratio}, S = {skip}"));
            let name = format!("fig9/{id}/s{skip}");
            let paper = printed.map(|p| p.mbit);
            rows.add(
                &format!("{name}/goodput"),
                format!("goodput, {at}"),
                "Mbit/s",
                paper,
                results.goodput(&case),
                more,
            );
            let (text, paper) = (format!("segments sent again, {at}"), printed.and_then(|p| p.resent));
            rows.add(&format!("{name}/again"), text, "%", paper, results.of(&case, again), more);
        }
        let (skip, mbit) = results.best(of);
        let paper = if ratio == RATIOS[0] { &BEST } else { &UNOBSERVED };
        let text = format!("best skip number, {ratio}");
        rows.add(&format!("best/{id}/skip"), text, "", Some(f64::from(paper.skip)), f64::from(skip), more);
        let text = format!("goodput with it, {ratio}");
        rows.add(&format!("best/{id}/goodput"), text, "Mbit/s", Some(paper.mbit), mbit, more);
    }
    let observed = &[OBSERVER];
    let text = "goodput at the best skip number over S = 0, 90/10".to_owned();
    rows.add("gain", text, "times", Some(GAIN), results.gain(), observed);
    let [none, some] = FIG_10.map(|skip| results.of(&fig_10(skip), |m| m.window));
    rows.add(
        "fig10/window",
        "mean window at S = 8 over S = 0".to_owned(),
        "times",
        Some(WINDOW),
        some / none,
        observed,
    );
    let calibrated = &["The costs of a frame and an ACK come from this number"];
    let alone = results.goodput(&Case::alone(IDLE));
    rows.add("alone", "TCP over the wide card alone".to_owned(), "Mbit/s", Some(ALONE), alone, calibrated);
    rows.add("udp/90-10", "UDP, 90/10".to_owned(), "Mbit/s", Some(UDP), udp(results, RATIOS[0]), calibrated);
    rows.add("udp/99.6-0.4", "UDP, 99.6/0.4".to_owned(), "Mbit/s", None, udp(results, RATIOS[1]), &[]);
    rows.assumptions = vec![WIRES.to_owned()];
    beyond_rows(results, &mut rows);
    rows.all
}

fn beyond_rows(results: &Results, rows: &mut Rows) {
    for set in beyond::sets(results) {
        for receiver in Receiver::BOTH {
            for order in &results.plan.orders {
                let case = set.case(order, receiver);
                if results.case(&case).is_none() {
                    continue;
                }
                let id = format!("beyond/{}/{}/{order}", set.id, receiver.id());
                let share = beyond::share(results, set, &case);
                rows.add(&format!("{id}/share"), format!("share of the sum, {case}"), "%", None, share, &[]);
                let again = results.of(&case, |m| m.spurious_percent());
                rows.add(
                    &format!("{id}/again"),
                    format!("sent again for nothing, {case}"),
                    "%",
                    None,
                    again,
                    &[],
                );
            }
        }
        let share = beyond::share(results, set, &set.single());
        let text = format!("share of the sum, {}", set.single());
        rows.add(&format!("beyond/{}/alone", set.id), text, "%", None, share, &[]);
    }
    let quick = results.plan.is_quick();
    let measured = results.case(&failure::case(quick));
    for failure in failure::failures(quick) {
        let times = measured.map_or([None; 2], |m| moved(&failure, m));
        let name = failure::SET.wires.get(failure.wire).map_or("", |wire| wire.name);
        for ((what, text), time) in
            [("lost", "the others carry it"), ("back", "all carry again")].into_iter().zip(times)
        {
            let text = format!("the {name} card fails: {text} after");
            rows.add(&format!("failure/{name}/{what}"), text, "ms", None, time.unwrap_or(f64::NAN), &[]);
        }
    }
}

struct Rows {
    all: Vec<ReproductionRow>,
    assumptions: Vec<String>,
}

impl Rows {
    fn add(&mut self, id: &str, text: String, unit: &str, paper: Option<f64>, measured: f64, more: &[&str]) {
        let mut assumptions = self.assumptions.clone();
        assumptions.extend(more.iter().map(|a| (*a).to_owned()));
        self.all.push(ReproductionRow {
            id: id.to_owned(),
            quantity: text,
            unit: unit.to_owned(),
            paper,
            measured: Some(measured).filter(|m| m.is_finite()),
            assumptions,
        });
    }
}
