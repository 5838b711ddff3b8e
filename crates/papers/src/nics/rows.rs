//! The numbers of `--json`.

use super::NicsPaper;
use super::cases::{ALONE, GAIN, IDLE, NicsCase, PUBLISHED, RATIOS, UDP, WINDOW};
use super::sets::{ReceivingHost, failure_case, failures};
use super::striped::StripedRun;
use crate::experiment::Measured;
use crate::paper::RowList;

const OBSERVER: &str = "The program that observes retransmissions takes 9.5 us for each frame and ACK: \
                        worked out from the paper's best speed with it, 373 Mbit/s";
const CALIBRATED: &str = "The costs of a frame and an ACK come from this number";
const OTHER_NICS: &str = "Stacks of today (profile modern, CUBIC), hosts that take no time, buffers of 2 MB \
                          on a switch and 16 MB at the house; 1448 of each 1538 B of a line are payload";

/// What the paper leaves open and holds for all of its runs.
fn assumptions(paper: &NicsPaper) -> [String; 5] {
    [
        "The sender's processor takes 12.9 us for a frame and 7.8 us for an ACK: worked out from the paper's \
         914 Mbit/s of UDP and 689 Mbit/s of TCP over the wide NIC alone. The receiver takes no time"
            .into(),
        "Its TCP has SACK, three duplicate ACKs, Reno, halves its window at once and never learns of \
         reordering (profile rfc6675), as Linux 2.2.17's; a receive window of 400 segments; an ACK for every \
         two; the congestion window is never below S + 1"
            .into(),
        "Slots of narrow NICs are evenly spread; frames are held for 10 ms after the last that came; ACKs \
         take turns at the same ratio and are not put in order"
            .into(),
        "NICs interrupt at once; one switch, 500 ns on each wire".into(),
        format!("Each run takes {}, the first tenth of it does not count", paper.time),
    ]
}

/// All rows.
pub fn rows(m: &Measured<'_, NicsPaper>, rows: &mut RowList) {
    rows.assume(assumptions(m.of));
    let observed: &[&str] = &[OBSERVER];
    for (ratio, case, id, more, best) in [
        (RATIOS[0], NicsCase::at_90 as fn(u16) -> NicsCase, "90-10", observed, &PUBLISHED[1]),
        (RATIOS[1], NicsCase::at_99, "99.6-0.4", &[], &PUBLISHED[2]),
    ] {
        for &skip in &m.of.skips {
            let paper = PUBLISHED.iter().find(|p| p.ratio == ratio && p.skip == skip);
            let (case, at, id) = (case(skip), format!("{ratio}, S = {skip}"), format!("fig9/{id}/s{skip}"));
            let (goodput, again) = (m.total(&case), m.of_first(&case, StripedRun::resent_percent));
            let name = format!("goodput, {at}");
            rows.add(format!("{id}/goodput"), name, "Mbit/s", paper.map(|p| p.goodput), goodput, more);
            let name = format!("segments sent again, {at}");
            rows.add(format!("{id}/again"), name, "%", paper.and_then(|p| p.resent), again, more);
        }
        let (skip, mbit) = m.best(case);
        let (name, paper) = (format!("best skip number, {ratio}"), f64::from(best.skip));
        rows.add(format!("best/{id}/skip"), name, "", paper, f64::from(skip), more);
        let name = format!("goodput with it, {ratio}");
        rows.add(format!("best/{id}/goodput"), name, "Mbit/s", best.goodput, mbit, more);
    }
    let name = "goodput at the best skip number over S = 0, 90/10";
    rows.add("gain", name, "times", GAIN, m.gain(), observed);
    let [none, some] = m.windows();
    rows.add("fig10/window", "mean window at S = 8 over S = 0", "times", WINDOW, some / none, observed);
    let alone = m.total(&NicsCase::alone(IDLE));
    rows.add("alone", "TCP over the wide NIC alone", "Mbit/s", ALONE, alone, &[CALIBRATED]);
    rows.add("udp/90-10", "UDP, 90/10", "Mbit/s", UDP, m.udp(RATIOS[0]), &[CALIBRATED]);
    rows.add("udp/99.6-0.4", "UDP, 99.6/0.4", "Mbit/s", None, m.udp(RATIOS[1]), &[]);
    rows.assume([OTHER_NICS]);
    extensions(m, rows);
}

/// What goes beyond the paper.
fn extensions(m: &Measured<'_, NicsPaper>, rows: &mut RowList) {
    for set in m.of.all_sets() {
        for receiver in ReceivingHost::BOTH {
            for order in &m.of.orders {
                let case = set.case(order, receiver);
                let Some(run) = m.first(&case) else { continue };
                let id = format!("beyond/{}/{}/{order}", set.id, receiver.id());
                let share = m.share(set, &case);
                rows.add(format!("{id}/share"), format!("share of the sum, {case}"), "%", None, share, &[]);
                let name = format!("sent again for nothing, {case}");
                rows.add(format!("{id}/again"), name, "%", None, run.spurious_percent(), &[]);
            }
        }
        let (single, id) = (set.single(), format!("beyond/{}/alone", set.id));
        rows.add(id, format!("share of the sum, {single}"), "%", None, m.share(set, &single), &[]);
    }
    let measured = m.first(&failure_case(m.of.quick));
    for failure in failures(m.of.quick) {
        let (name, times) = (failure.name(), failure.moved(measured));
        let both = [("lost", "the others carry it"), ("back", "all carry again")];
        for ((what, text), time) in both.into_iter().zip(times) {
            let text = format!("the {name} NIC fails: {text} after");
            rows.add(format!("failure/{name}/{what}"), text, "ms", None, time.unwrap_or(f64::NAN), &[]);
        }
    }
}
