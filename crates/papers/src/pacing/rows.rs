//! The numbers of `--json`.

use super::classes::{BandwidthSpread, PRECISE, PacedClass, RandomSet};
use super::published::{FIFOS, FIVE, FLOWS, PublishedBandwidth, TABLE_2, TABLE_3, TABLE_4, table_5};
use super::scheduler::PacingMethod;
use super::transfers::FifoCase;
use super::{EXACT, FIG_6, HALF, PAIRS, PacingPaper, TABLE_5, UNPACED, sensitivity};
use crate::experiment::Measured;
use crate::paper::RowList;

/// What the paper leaves open and holds for every row.
const ALL: [&str; 2] = [
    "Rates of classes count layer 2, frames with their check sequence; meter and emulator count frames \
     without it, as the paper's unpaced Gigabit Ethernet of 984 Mbit/s shows (1000 x 1514 / 1538)",
    "Hosts take no time; what a scheduler decides leaves at once, at 1 Gbit/s",
];
/// The same for Tables 2 to 4 and Fig. 6.
const LINES: [&str; 4] = [
    "Classes always have packets, full frames of 1514 B; iperf's default of 1512 B would change the fourth \
     digit",
    "The bandwidth per n packets is the sum of n packets over the time to the packet after them, by a clock \
     of 2^-24 s; the paper's formula prints n + 1 packets, but its numbers do not have them",
    "Burstiness by the paper's clock is against the mean of all frames, the last one left out, and rounded \
     up to packets; by the line's clock it is against the rate that the scheduler is to give the class \
     (PSPacer: cut off to whole bytes), not rounded",
    "Flows of Tables 3 and 4 begin at times that are drawn within their intervals, 5 and 25 times",
];
/// The same for transfers.
const TRANSFERS: [&str; 5] = [
    "kB are 1000 B; the emulator's rate and FIFO count frames of 1514 B; the frame on the line counts as \
     queued",
    "The sender is Linux 2.6.17's recovery and BIC without byte counting and without a first threshold, both \
     of which came after 2.6.11; the SACK-tag patch is part of it",
    "The token bucket counts frames without check sequence, is filled every 1 ms and holds what comes in 1 \
     ms: the least it \
     can hold (62.5 kB, the burst that the paper's §2 names). What the paper's held is not stated",
    "NIC queue of 10,000 packets, buffers of 25 MB at both ends, GbE without segmentation offload",
    "The emulator's meter stands behind the bottleneck; in Fig. 9 both flows end after 120 s, B has 115 s \
     (the paper's 110)",
];
const SCHEDULE: &str = "Classes begin at 5, 10, 15, 20, 25 s and end at 65, 60, 55, 50, 45 s, the fastest \
                        first and last; the paper prints only that all are active from 25 to 45 s";
const SETS: &str = "2 to 32 classes on 1 Gbit/s, rates log-uniform over 1 to 500 Mbit/s and scaled to 50 to \
                    100 % of the line; in half of the sets the classes have frames of different lengths. \
                    Burstiness in layer 2, against the rate that each class is to have (for PSPacer: that it \
                    has, cut off to whole bytes), MTU: 1518 B";

/// All rows.
pub fn rows(m: &Measured<'_, PacingPaper>, rows: &mut RowList) {
    rows.assume(ALL);
    for pacer in EXACT {
        for row in &TABLE_2 {
            bandwidth(rows, "table2", row, pacer, m.single(pacer, row.rate));
        }
        bandwidth(rows, "table3", &TABLE_3, pacer, m.many(pacer).as_ref());
        for row in &TABLE_4 {
            bandwidth(rows, "table4", row, pacer, m.five(pacer, row));
        }
        for rate in FIG_6 {
            let error = m.fig_6(pacer, rate).map_or(f64::NAN, |c| c.error_ppm);
            let text = format!("rate of layer 2 above the target of {rate} bit/s, {pacer} (Fig. 6)");
            rows.add(format!("fig6/{}/{rate}", pacer.id()), text, "ppm", None, error, &LINES);
        }
        for (class, rate) in FIVE.iter().enumerate() {
            let (mbit, worst) = (rate / 1_000_000, m.worst_bin(pacer, class));
            let text =
                format!("greatest deviation of a bin of 10 ms, class of {mbit} Mbit/s, {pacer} (Fig. 7)");
            rows.add(format!("fig7/{}/{mbit}M", pacer.id()), text, "frames", None, worst, &[SCHEDULE]);
        }
    }
    let unpaced = m.single(PacingMethod::None, UNPACED).map_or(f64::NAN, |c| c.bandwidth[0].mean / 1e6);
    rows.add("fig6/none", "unpaced Gigabit Ethernet", "Mbit/s", 984.0, unpaced, &LINES);
    for pacer in [PacingMethod::TokenBucket, PacingMethod::Fq] {
        let burst = m.single(pacer, HALF).map_or(f64::NAN, |c| c.burstiness);
        let text = format!("greatest burstiness at 500 Mbit/s, {pacer}");
        rows.add(format!("burstiness/{}", pacer.id()), text, "MTU", None, burst, &LINES);
    }
    transfers(m, rows);
    sets(m.sets(), rows);
}

fn bandwidth(
    rows: &mut RowList,
    table: &str,
    row: &PublishedBandwidth,
    pacer: PacingMethod,
    class: Option<&PacedClass>,
) {
    const NOTHING: BandwidthSpread = BandwidthSpread { min: f64::NAN, max: f64::NAN, mean: f64::NAN };
    let spread = class.map_or(NOTHING, |c| c.bandwidth[row.n - 1]);
    let unit = if row.unit < 1e6 { "kbit/s" } else { "Mbit/s" };
    let id = |what: &str| format!("{table}/{}/{}/n{}/{what}", pacer.id(), row.target, row.n);
    let is_published = pacer == PacingMethod::Psp;
    let of = match table {
        "table3" => format!("of {FLOWS} flows of {}bit/s", row.target),
        _ => format!("of {}bit/s", row.target),
    };
    let numbers = [("least", spread.min), ("greatest", spread.max), ("mean", spread.mean)];
    for ((what, value), paper) in numbers.into_iter().zip(row.numbers) {
        let text = format!("{what} bandwidth per {} packets {of}, {pacer}", row.n);
        rows.add(id(what), text, unit, is_published.then_some(paper), value / row.unit, &LINES);
    }
    if row.n == 1 {
        let number = |of: fn(&PacedClass) -> f64| class.map_or(f64::NAN, of);
        let text = format!("greatest burstiness by the paper's clock, in packets, {of}, {pacer}");
        let paper = is_published.then_some(row.burstiness);
        rows.add(id("burstiness"), text, "MTU", paper, number(|c| c.counted), &LINES);
        let text = format!("the same by the line's clock, {of}, {pacer}");
        rows.add(id("exact"), text, "MTU", None, number(|c| c.burstiness), &LINES);
        let text = format!("rate of layer 2 above the target {of}, {pacer}");
        rows.add(id("error"), text, "ppm", None, number(|c| c.error_ppm), &LINES);
    }
}

/// Goodput and losses of a transfer.
fn transfer(
    m: &Measured<'_, PacingPaper>,
    rows: &mut RowList,
    id: &str,
    name: &str,
    case: &FifoCase,
    paper: Option<&(f64, u64)>,
) {
    let id = |what: &str| format!("{id}/{}kB/{what}", case.fifo);
    let name = |what: &str| format!("{what}, {name}, FIFO {} kB", case.fifo);
    let (goodput, lost) = (paper.map(|p| p.0), paper.map(|p| p.1 as f64));
    rows.add(id("goodput"), name("goodput"), "Mbit/s", goodput, m.goodput(case), &TRANSFERS);
    rows.add(id("lost"), name("packets lost"), "packets", lost, m.lost(case), &TRANSFERS);
    let own = name("packets dropped by the queue of the sender's own NIC");
    rows.add(id("own-nic"), own, "packets", None, m.dropped_at_sender(case), &TRANSFERS);
}

fn transfers(m: &Measured<'_, PacingPaper>, rows: &mut RowList) {
    for pacer in TABLE_5 {
        for (i, fifo) in FIFOS.into_iter().enumerate() {
            let paper = table_5(pacer).and_then(|numbers| numbers.get(i));
            let id = format!("table5/{}", pacer.id());
            transfer(m, rows, &id, pacer.label(), &FifoCase::table_5(pacer, fifo), paper);
        }
    }
    for pair @ [first, second] in PAIRS {
        let case = FifoCase::pair(first, second);
        let id = format!("fig9/{}+{}", first.id(), second.id());
        for (flow, pacer) in pair.into_iter().enumerate() {
            let goodput = m.transfer(&case).and_then(|t| t.goodput.get(flow)).copied().unwrap_or(f64::NAN);
            let text = format!("goodput of flow {}, {pacer}, beside {}", ["A", "B"][flow], pair[1 - flow]);
            rows.add(format!("{id}/{flow}"), text, "Mbit/s", None, goodput, &TRANSFERS);
        }
        let text = format!("packets lost, {first} + {second}");
        rows.add(format!("{id}/lost"), text, "packets", None, m.lost(&case), &TRANSFERS);
        let text = format!("packets dropped by queues of the senders' own NICs, {first} + {second}");
        rows.add(format!("{id}/own-nic"), text, "packets", None, m.dropped_at_sender(&case), &TRANSFERS);
    }
    if m.of.sweeps {
        for (label, cases) in sensitivity::modern() {
            let id = format!("beyond/{}", label.replace(", ", "-").replace(' ', "-").to_lowercase());
            cases.iter().for_each(|case| transfer(m, rows, &id, &label, case, None));
        }
    }
}

fn sets(sets: &[RandomSet], rows: &mut RowList) {
    type BurstinessOf = fn(&RandomSet) -> f64;
    let both: [(&str, &str, BurstinessOf); 2] = [("psp", "PSPacer", |s| s.psp), ("edf", "edf", |s| s.edf)];
    let of = format!("of {} random sets of classes, those with a burstiness above 2 MTU", sets.len());
    for (id, label, burstiness) in both {
        let above = sets.iter().filter(|s| burstiness(s) > PRECISE).count() as f64;
        rows.add(format!("sets/{id}/above"), format!("{of}, {label}"), "sets", None, above, &[SETS]);
    }
    for (id, label, burstiness) in both {
        let worst = sets.iter().map(burstiness).fold(f64::NAN, f64::max);
        let text = format!("greatest burstiness of all sets, {label}");
        rows.add(format!("sets/{id}/worst"), text, "MTU", None, worst, &[SETS]);
    }
}
