//! The numbers of `--json`.

use super::StopsPaper;
use super::cases::{GAIN, PolicedCase, SHALLOW, SMALL_WINDOW, TABLE_2, published};
use crate::experiment::Measured;
use crate::paper::RowList;

/// What the paper leaves open and holds for every row.
pub fn assumptions(paper: &StopsPaper) -> [String; 3] {
    [
        format!(
            "Each run sends {}. The paper's \"1 gigabyte\" is 10^9 bytes: 483 Mbit/s in 16.6 s are 1.00 * \
             10^9",
            paper.size
        ),
        "The policer adds tokens every 490 us, which fits the 20 packets passed and 20 dropped in turn of \
         the paper's capture; its trials differ by chance, ours by the policer's phase (steps of 49 us)"
            .to_owned(),
        "Processors cost no time; the paper's sender was too busy for up to 100 ms".to_owned(),
    ]
}

fn assume(paper: &StopsPaper, window: u32, rows: &mut RowList) {
    let of_window = match window {
        SMALL_WINDOW => "Receive window of 1554 packets: what buffers of 3,000,000 bytes announce".to_owned(),
        _ => format!("Receive window of {window} packets: the paper does not state its window"),
    };
    rows.assume([of_window].into_iter().chain(assumptions(paper)));
}

/// All rows.
pub fn rows(measured: &Measured<'_, StopsPaper>, rows: &mut RowList) {
    for &window in &measured.of.windows {
        assume(measured.of, window, rows);
        for variant in TABLE_2 {
            let group = measured.deep(variant, window);
            let (time, goodput, timeouts) = (group.time(), group.goodput().mean, group.timeouts().mean);
            let p = published(variant);
            let p = p.as_ref();
            let at = |n: usize| p.map(|p| p.time[n]);
            for (name, quantity, unit, paper, value) in [
                ("time-mean", "completion time, mean", "s", at(0), time.mean),
                ("time-max", "completion time, largest", "s", at(1), time.max),
                ("time-min", "completion time, smallest", "s", at(2), time.min),
                ("time-sd", "completion time, standard deviation", "s", at(3), time.sd),
                ("goodput", "goodput, mean", "Mbit/s", p.map(|p| p.goodput), goodput),
                ("timeouts", "retransmission timeouts, mean", "", p.map(|p| p.timeouts), timeouts),
                (
                    "least-efficiency",
                    "efficiency, smallest",
                    "%",
                    p.map(|p| p.min_efficiency),
                    group.efficiency().min,
                ),
                ("longest-silence", "longest silence", "s", None, group.longest_seconds()),
            ] {
                let id = format!("table2/window-{window}/{}/{name}", variant.id());
                let text = format!("{quantity}, {}, window {window}", variant.label());
                rows.add(id, text, unit, paper, value, &[]);
            }
        }
        let [_, newer, fix] = TABLE_2.map(|v| measured.deep(v, window).goodput().mean);
        let text = format!("goodput of the fix over that of 2.6.22, window {window}");
        rows.add(format!("gain/window-{window}"), text, "", GAIN, fix / newer, &[]);
    }
    assume(measured.of, SMALL_WINDOW, rows);
    for (n, variant) in TABLE_2.into_iter().enumerate() {
        let group = measured.group(PolicedCase::shallow(variant));
        let (time, efficiency) = (group.time().mean, group.efficiency().mean);
        let paper = |value: f64| (n == 0).then_some(value);
        let id = |what: &str| format!("shallow/{}/{what}", variant.id());
        let text = |what: &str| format!("{what}, mean, {}, burst 256 kB", variant.label());
        rows.add(id("time"), text("completion time"), "s", paper(SHALLOW.0), time, &[]);
        rows.add(id("efficiency"), text("efficiency"), "%", paper(SHALLOW.1), efficiency, &[]);
    }
    for case in measured.cases().map(|(case, _)| *case).filter(PolicedCase::is_defect) {
        let (group, window) = (measured.group(case), case.window);
        assume(measured.of, window, rows);
        for (name, quantity, unit, value) in [
            ("time-mean", "completion time, mean", "s", group.time().mean),
            ("timeouts", "retransmission timeouts, mean", "", group.timeouts().mean),
            ("longest-silence", "longest silence", "s", group.longest_seconds()),
        ] {
            let id = format!("switches/window-{window}/{}/{name}", case.variant.id());
            let text = format!("{quantity}, {}, window {window}", case.variant.label());
            rows.add(id, text, unit, None, value, &[]);
        }
    }
}
