//! The numbers of `--json`.

use super::AckPaper;
use super::cases::{AckCase, AskPolicy, DelaySplit};
use super::clocks;
use super::published::{COLUMNS, FIRST_ROUND_TRIP, TABLE_1, TABLE_2};
use crate::experiment::Measured;
use crate::paper::RowList;

const NO_SPLIT: &str = "The tables do not say which path they are of: 25+25 ms";
const NO_MIN: &str = "No least timeout (1 ms), but for BSD's estimator: two ticks of 500 ms";

/// What the thesis leaves open and holds for every row.
fn assumptions(paper: &AckPaper) -> [String; 8] {
    [
        format!(
            "Means over {} runs in which the connection begins 50 ms later each time, against the ticks of \
             200 ms and 500 ms of both hosts; the thesis made one run each",
            paper.phases()
        ),
        "10 s from the first SYN; the thesis' begin is not stated".into(),
        "The emulator's 512 kbit/s count IP packets, as its ceiling of 640 kB does; its queue is not stated: \
         50 packets, as BSD's interfaces have. With windows of six segments it never fills"
            .into(),
        "Both PCs reach the emulator by Ethernet of 10 Mbit/s with 50 us each; hosts take no time".into(),
        "The profile net2 at both ends: 4.3BSD's Reno, ACKs for every second segment and at the ticks of 200 \
         ms, an initial window of one segment, a first slow-start threshold of 64 kB"
            .into(),
        "The receive window of 8760 B (Fig. 5.1) limits what is in flight; the send buffer does not".into(),
        "The row without CDL has a receiver that would answer, and a sender that does not ask".into(),
        "\"Bytes\" are payload sent: the thesis' are its segments times 1460 in all rows without timestamps \
         but one".into(),
    ]
}

/// All rows.
pub fn rows(m: &Measured<'_, AckPaper>, rows: &mut RowList) {
    rows.assume(assumptions(m.of));
    for (table, published) in [("table5.1", &TABLE_1[..]), ("table5.2", &TABLE_2)] {
        for row in published {
            let with = if row.timestamps { "-timestamps" } else { "" };
            for ((name, unit, id, of), paper) in COLUMNS.into_iter().zip(row.numbers) {
                let id = format!("{table}/{}{with}/{id}", row.policy.id());
                let measured = m.over(&row.case(DelaySplit::Even), of).mean;
                rows.add(id, format!("{name}, {}", row.label()), unit, paper, measured, &[NO_SPLIT]);
            }
        }
    }
    for split in DelaySplit::BOTH {
        let place = split.name().trim_end_matches(" ms");
        for policy in AskPolicy::ALL {
            let at = format!("{}, {}", policy.label(), split.name());
            let id = |what: &str| format!("{place}/{}/{what}", policy.id());
            let delivered = m.delivered(split, policy).mean;
            rows.add(id("delivered"), format!("payload delivered, {at}"), "kB", None, delivered, &[]);
            let per_mb = m.acks_per_mb(split, policy).mean;
            rows.add(id("acks-per-mb"), format!("ACKs per MB delivered, {at}"), "1/MB", None, per_mb, &[]);
        }
        for policy in [AskPolicy::None, AskPolicy::Rtt] {
            let delivered = m.over(&AckCase::new(split, policy, true), |m| m.delivered).mean;
            let id = format!("{place}/{}-timestamps/delivered", policy.id());
            let text = format!("payload delivered, {}, timestamps, {}", policy.label(), split.name());
            rows.add(id, text, "kB", None, delivered, &[]);
        }
    }
    let first = m.trips(&clocks::case("1 us", 1), |s| s.first);
    let text = "round trip of the first data segment, which asks (Fig. 5.1)";
    rows.add("fig5.1/round-trip", text, "ms", FIRST_ROUND_TRIP, first, &[]);
    for (_, _, id, case) in clocks::all() {
        for (what, text, unit, value) in [
            ("srtt-error", "mean error of SRTT", "ms", m.trips(&case, |s| s.error)),
            ("rto", "timeout in force", "ms", m.trips(&case, |s| s.rto)),
            ("longest", "longest round trip", "ms", m.trips(&case, |s| s.longest)),
            ("timeouts", "timeouts without loss", "", m.over(&case, |m| m.timeouts).mean),
            ("repaired", "time to repair a lost tail", "s", m.repaired(case.clone()).mean),
        ] {
            rows.add(format!("clock/{id}/{what}"), format!("{text}, {case}"), unit, None, value, &[NO_MIN]);
        }
    }
}
