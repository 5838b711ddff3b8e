//! The numbers of `--json`, each with what had to be assumed.

use super::lines::{Class, Spread};
use super::pace::Pace;
use super::plan::{EXACT, FIG_6, PAIRS, TABLE_5, UNPACED};
use super::printed::{
    Bandwidth, FIFOS, FIVE, FLOWS, PSPACER, TABLE_2, TABLE_3, TABLE_4, TOKEN_BUCKET, UNLIMITED,
};
use super::results::Results;
use super::sensitivity::{self, TODAY};
use super::sets::PRECISE;
use super::switching;
use super::transfers::Case;
use farpace_report::ReproductionRow;

/// What the paper leaves open and holds for every row.
pub fn assumptions() -> Vec<String> {
    [
        "Rates of classes count layer 2, frames with their check sequence; meter and emulator count frames without it, as the paper's \
         unpaced Gigabit Ethernet of 984 Mbit/s shows (1000 x 1514 / 1538)",
        "Hosts take no time; what a scheduler decides leaves at once, at 1 Gbit/s",
    ]
    .map(str::to_owned)
    .into()
}

/// The same for Tables 2 to 4 and Fig. 6.
pub fn of_lines() -> Vec<String> {
    [
        "Classes always have packets, full frames of 1514 B; iperf's default of 1512 B would change the fourth digit",
        "The bandwidth per n packets is the sum of n packets over the time to the packet after them, by a clock of 2^-24 s; the paper's formula \
         prints n + 1 packets, but its numbers do not have them",
        "Burstiness by the paper's clock is against the mean of all frames, the last one left out, and rounded up to packets; by the line's clock \
         it is against the rate that the scheduler is to give the class (PSPacer: cut off to whole bytes), not rounded",
        "Flows of Tables 3 and 4 begin at times that are drawn within their intervals, 5 and 25 times",
    ]
    .map(str::to_owned)
    .into()
}

/// The same for transfers.
pub fn of_transfers() -> Vec<String> {
    [
        "kB are 1000 B; the emulator's rate and FIFO count frames of 1514 B; the frame on the line counts as queued",
        "The sender is Linux 2.6.17's recovery and BIC without byte counting and without a first threshold, both of which came after \
         2.6.11; the SACK-tag patch is part of it",
        "The token bucket counts frames without check sequence, is filled every 1 ms and holds what comes in 1 ms: the least it can hold \
         (62.5 kB, the burst that the paper's §2 names). What the paper's held is not stated",
        "NIC queue of 10,000 packets, buffers of 25 MB at both ends, GbE without segmentation offload",
        "The emulator's meter stands behind the bottleneck; in Fig. 9 both flows end after 120 s, B has 115 s (the paper's 110)",
    ]
    .map(str::to_owned)
    .into()
}

/// All rows.
pub fn rows(results: &Results) -> Vec<ReproductionRow> {
    let mut rows = Rows { all: Vec::new() };
    for pace in EXACT {
        for row in &TABLE_2 {
            rows.bandwidth("table2", row, pace, results.single(pace, row.rate));
        }
        rows.bandwidth("table3", &TABLE_3, pace, results.many(pace).as_ref());
        for row in &TABLE_4 {
            rows.bandwidth("table4", row, pace, results.five(pace, row));
        }
        for rate in FIG_6 {
            let class = results.fig_6(pace, rate);
            let text = format!("rate of layer 2 above the target of {rate} bit/s, {pace} (Fig. 6)");
            let error = class.map_or(f64::NAN, |c| c.error_ppm);
            rows.add(format!("fig6/{}/{rate}", pace.id()), text, "ppm", None, error, &of_lines());
        }
        for (class, rate) in FIVE.iter().enumerate() {
            let worst = results.switching(pace).map_or(f64::NAN, |bins| switching::worst(bins, class));
            let text = format!(
                "greatest deviation of a bin of 10 ms, class of {} Mbit/s, {pace} (Fig. 7)",
                rate / 1_000_000
            );
            let id = format!("fig7/{}/{}M", pace.id(), rate / 1_000_000);
            rows.add(id, text, "frames", None, worst, &[SCHEDULE.to_owned()]);
        }
    }
    let unpaced = results.single(Pace::None, UNPACED).map_or(f64::NAN, |c| c.bandwidth[0].mean / 1e6);
    rows.add(
        "fig6/none".into(),
        "unpaced Gigabit Ethernet".into(),
        "Mbit/s",
        Some(984.0),
        unpaced,
        &of_lines(),
    );
    for pace in [Pace::TokenBucket, Pace::Fq] {
        let burst = results.single(pace, 500_000_000).map_or(f64::NAN, |c| c.burstiness);
        let text = format!("greatest burstiness at 500 Mbit/s, {pace}");
        rows.add(format!("burstiness/{}", pace.id()), text, "MTU", None, burst, &of_lines());
    }
    for pace in TABLE_5 {
        for (i, fifo) in FIFOS.into_iter().enumerate() {
            let paper = table_5(pace).and_then(|numbers| numbers.get(i));
            rows.transfer(
                results,
                "table5",
                pace.id(),
                &format!("{pace}, FIFO {fifo} kB"),
                &Case::one(pace, fifo),
                fifo,
                paper,
            );
        }
    }
    for (first, second) in PAIRS {
        let case = Case::two(first, second);
        for (flow, pace) in [first, second].into_iter().enumerate() {
            let id = format!("fig9/{}+{}/{flow}", first.id(), second.id());
            let goodput = results.transfer(&case).and_then(|t| t.goodput.get(flow)).copied();
            let text =
                format!("goodput of flow {}, {pace}, beside {}", ["A", "B"][flow], [second, first][flow]);
            rows.add(id, text, "Mbit/s", None, goodput.unwrap_or(f64::NAN), &of_transfers());
        }
        let id = format!("fig9/{}+{}/lost", first.id(), second.id());
        rows.add(
            id,
            format!("packets lost, {first} + {second}"),
            "packets",
            None,
            results.lost(&case),
            &of_transfers(),
        );
    }
    if sensitivity_measured(results) {
        for today in TODAY {
            for fifo in FIFOS {
                let label = today.label();
                let id = label.replace(", ", "-").replace(' ', "-").to_lowercase();
                rows.transfer(
                    results,
                    "beyond",
                    &id,
                    &format!("{label}, FIFO {fifo} kB"),
                    &today.case(fifo),
                    fifo,
                    None,
                );
            }
        }
    }
    let count = |above: fn(&super::sets::Set) -> f64| {
        results.sets.iter().filter(|s| above(s) > PRECISE).count() as f64
    };
    let worst = |of: fn(&super::sets::Set) -> f64| results.sets.iter().map(of).fold(f64::NAN, f64::max);
    let of = format!("of {} random sets of classes, those with a burstiness above 2 MTU", results.sets.len());
    for (id, label, value) in [("psp", "PSPacer", count(|s| s.psp)), ("edf", "edf", count(|s| s.edf))] {
        rows.add(
            format!("sets/{id}/above"),
            format!("{of}, {label}"),
            "sets",
            None,
            value,
            &[SETS.to_owned()],
        );
    }
    for (id, label, value) in [("psp", "PSPacer", worst(|s| s.psp)), ("edf", "edf", worst(|s| s.edf))] {
        let text = format!("greatest burstiness of all sets, {label}");
        rows.add(format!("sets/{id}/worst"), text, "MTU", None, value, &[SETS.to_owned()]);
    }
    rows.all
}

/// True if the cells of the sensitivity tables were measured.
pub fn sensitivity_measured(results: &Results) -> bool {
    sensitivity::cells().iter().any(|case| results.transfer(case).is_some())
}

/// The paper's numbers for a row of Table 5.
pub fn table_5(pace: Pace) -> Option<&'static [(f64, u64); 5]> {
    match pace {
        Pace::None => Some(&UNLIMITED),
        Pace::TokenBucket => Some(&TOKEN_BUCKET),
        Pace::Psp => Some(&PSPACER),
        Pace::Edf | Pace::Fq | Pace::Connection => None,
    }
}

/// What is assumed of Fig. 7.
pub const SCHEDULE: &str = "Classes begin at 5, 10, 15, 20, 25 s and end at 65, 60, 55, 50, 45 s, the fastest first and last; the paper prints \
                            only that all are active from 25 to 45 s";
/// What the sets are.
pub const SETS: &str = "2 to 32 classes on 1 Gbit/s, rates log-uniform over 1 to 500 Mbit/s and scaled to 50 to 100 % of the line; in half of the sets \
                        the classes have frames of different lengths. Burstiness in layer 2, against the rate that each class is to have \
                        (for PSPacer: that it has, cut off to whole bytes), MTU: 1518 B";

struct Rows {
    all: Vec<ReproductionRow>,
}

impl Rows {
    fn bandwidth(&mut self, table: &str, row: &Bandwidth, pace: Pace, class: Option<&Class>) {
        let spread = class.map_or(NOTHING, |c| c.bandwidth[row.n - 1]);
        let unit = if row.unit < 1e6 { "kbit/s" } else { "Mbit/s" };
        let id = |what: &str| format!("{table}/{}/{}/n{}/{what}", pace.id(), row.target, row.n);
        let paper = |n: usize| (pace == Pace::Psp).then(|| row.numbers[n]);
        let of = match table {
            "table3" => format!("of {FLOWS} flows of {}bit/s", row.target),
            _ => format!("of {}bit/s", row.target),
        };
        let numbers = [("least", spread.least), ("greatest", spread.most), ("mean", spread.mean)];
        for (n, (what, value)) in numbers.into_iter().enumerate() {
            let text = format!("{what} bandwidth per {} packets {of}, {pace}", row.n);
            self.add(id(what), text, unit, paper(n), value / row.unit, &of_lines());
        }
        if row.n == 1 {
            let text = format!("greatest burstiness by the paper's clock, in packets, {of}, {pace}");
            let paper = (pace == Pace::Psp).then_some(row.burstiness);
            self.add(
                id("burstiness"),
                text,
                "MTU",
                paper,
                class.map_or(f64::NAN, |c| c.counted),
                &of_lines(),
            );
            let text = format!("the same by the line's clock, {of}, {pace}");
            self.add(id("exact"), text, "MTU", None, class.map_or(f64::NAN, |c| c.burstiness), &of_lines());
            let text = format!("rate of layer 2 above the target {of}, {pace}");
            self.add(id("error"), text, "ppm", None, class.map_or(f64::NAN, |c| c.error_ppm), &of_lines());
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a row's parts")]
    fn transfer(
        &mut self,
        results: &Results,
        table: &str,
        who: &str,
        text: &str,
        case: &Case,
        fifo: u32,
        paper: Option<&(f64, u64)>,
    ) {
        let (goodput, lost) = (paper.map(|p| p.0), paper.map(|p| p.1 as f64));
        let more = of_transfers();
        let id = |what: &str| format!("{table}/{who}/{fifo}kB/{what}");
        self.add(id("goodput"), format!("goodput, {text}"), "Mbit/s", goodput, results.goodput(case), &more);
        self.add(id("lost"), format!("packets lost, {text}"), "packets", lost, results.lost(case), &more);
    }

    fn add(
        &mut self,
        id: String,
        text: String,
        unit: &str,
        paper: Option<f64>,
        measured: f64,
        more: &[String],
    ) {
        let mut assumptions = assumptions();
        assumptions.extend(more.iter().cloned());
        let measured = Some(measured).filter(|m| m.is_finite());
        self.all.push(ReproductionRow {
            id,
            quantity: text,
            unit: unit.to_owned(),
            paper,
            measured,
            assumptions,
        });
    }
}

const NOTHING: Spread = Spread { least: f64::NAN, most: f64::NAN, mean: f64::NAN };
