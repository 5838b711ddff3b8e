//! The numbers of `--json`, each with what had to be assumed.

use super::plan::{ALGORITHMS, NEIGHBOURS, label};
use super::results::{Results, mean_bandwidth, mean_window};
use crate::grid::{Ber, Queue};
use farpace_report::ReproductionRow;

/// How much faster than another STAR is at 1e-8, in percent (§4.2.1).
pub const GAINS: [(&str, f64); 4] =
    [("reno", 152.0), ("highspeed", 95.9), ("scalable", 41.6), ("tcp-j", 13.5)];
/// Figs. 6 and 7: the window that STAR keeps at 1e-7, in kB, and when windows reach it without errors, in seconds.
pub const KEPT: f64 = 625.0;
/// See [`KEPT`].
pub const FILLED: (f64, f64) = (2.0, 9.0);
/// Fig. 15: the mean estimate of two flows, Mbit/s.
pub const ESTIMATE: f64 = 8.0;
/// Fig. 17: mean windows of two STAR flows behind 15 kB, kB.
pub const WINDOWS: [f64; 2] = [266.0, 210.0];

/// What the paper leaves open and holds for every row.
pub fn assumptions(results: &Results) -> Vec<String> {
    vec![
        format!("Each run lasts {}, from connecting on; the paper shows at least 53 s (its Fig. 8)", results.time),
        format!(
            "Means of {} seeds with 95 % confidence intervals; the paper's are of 5 runs. Of a single flow without \
             errors there is one run, as the dice have no say in it",
            results.seeds
        ),
        "Bit errors lose packets on the way of data only (Fig. 5 is on the loss of data segments): each by its length, \
         1 - (1 - BER)^12000 for 1500 bytes"
            .to_owned(),
        "The link's 10 Mbit/s count Ethernet frames of 1514 bytes without preamble and gap: at most 9.56 Mbit/s of payload"
            .to_owned(),
        "All senders have the same recovery (RFC 6675 with SACK), an initial window of 2 segments, a least timeout \
         of 1 s, and in slow start one segment more for each ACK, as stacks of the time had; the paper's HighSpeed and Scalable TCP ran on Linux, the others on NetBSD"
            .to_owned(),
        "Senders reach the router by 1 Gbit/s without delay; the rate of these links is not stated".to_owned(),
        "What is in flight is limited to 625 kB by the receive window; the send buffer is larger".to_owned(),
        "STAR is literal: ABE unfiltered, 1 ms as the first interval, no cap but the windows of 625 kB, AEN takes any \
         ACK for its answer. TCP-J has the same estimator with 1 us"
            .to_owned(),
    ]
}

const TWO: &str = "Both flows start together, the second one up to 3.7 s later: 37 ms from seed to seed";
const ONE_SECOND: &str = "All ACKs that the receiver sends in one second, after three quarters of the time, are lost (\"about 1 s\" from 45 s on)";

/// All rows.
pub fn rows(results: &Results) -> Vec<ReproductionRow> {
    let mut rows = Rows { all: Vec::new(), assumptions: assumptions(results) };
    for (other, paper) in GAINS {
        let (id, name) = (format!("gain/{other}"), label(other));
        rows.add(
            &id,
            format!("goodput of STAR over {name}, BER 1e-8"),
            "%",
            Some(paper),
            results.gain(other),
            &[],
        );
    }
    for (name, label) in ALGORITHMS {
        for ber in Ber::ALL {
            let goodput = results.single(name, ber).goodput(0).mean;
            let id = format!("fig5/{name}/ber-{}", ber.name());
            rows.add(&id, format!("goodput, {label}, BER {}", ber.name()), "Mbit/s", None, goodput, &[]);
        }
    }
    let kept = mean_window(results.single("star", Ber::E7).readings(0)).unwrap_or(f64::NAN);
    rows.add("fig6/star/window", "mean window, STAR, BER 1e-7, one seed".into(), "kB", Some(KEPT), kept, &[]);
    for (name, label) in ALGORITHMS {
        let paper = if name == "star" { FILLED.0 } else { FILLED.1 };
        let filled = results.fills_at(name).unwrap_or(f64::NAN);
        let text = format!("window reaches the bandwidth-delay product, {label}, BER 0");
        rows.add(&format!("fig7/{name}/filled"), text, "s", Some(paper), filled, &[]);
        let after = results.recovers_after(name).unwrap_or(f64::NAN);
        let text = format!("throughput is back after the ACKs are, {label}");
        rows.add(&format!("fig8/{name}/recovered"), text, "s", None, after, &[ONE_SECOND]);
    }
    for (queue, [total, shares, mixed]) in
        Queue::ROUTER.into_iter().zip([["fig10", "fig12", "fig19"], ["fig11", "fig16", "fig20"]])
    {
        for ber in Ber::ALL {
            let at = format!("BER {}, queue {}", ber.name(), queue.name());
            for (name, label) in ALGORITHMS {
                let cell = results.pair(name, name, ber, queue);
                let id = format!("{total}/{name}/ber-{}", ber.name());
                let text = format!("goodput of two flows together, {label}, {at}");
                rows.add(&id, text, "Mbit/s", None, cell.total().mean, &[TWO]);
                let id = format!("{shares}/{name}/ber-{}", ber.name());
                for flow in 0..2 {
                    let text = format!("goodput of flow {}, two of {label}, {at}", flow + 1);
                    let id = format!("{id}/flow-{}", flow + 1);
                    rows.add(&id, text, "Mbit/s", None, cell.goodput(flow).mean, &[TWO]);
                }
                let text = format!("Jain's index, two of {label}, {at}");
                rows.add(&format!("{id}/jain"), text, "", None, cell.fairness().mean, &[TWO]);
            }
            for name in NEIGHBOURS {
                let cell = results.pair("star", name, ber, queue);
                for (flow, who) in ["star", name].into_iter().enumerate() {
                    let id = format!("{mixed}/star-{name}/ber-{}/{who}", ber.name());
                    let text = format!("goodput of {}, STAR beside {}, {at}", label(who), label(name));
                    rows.add(&id, text, "Mbit/s", None, cell.goodput(flow).mean, &[TWO]);
                }
            }
        }
    }
    let large = results.pair("star", "star", Ber::E8, Queue::Large);
    let estimate = (0..2).filter_map(|f| mean_bandwidth(large.readings(f))).sum::<f64>() / 2.0;
    let text = "mean bandwidth estimate, two STAR flows, BER 1e-8, queue 625 kB, one seed";
    rows.add("fig15/estimate", text.to_owned(), "Mbit/s", Some(ESTIMATE), estimate, &[TWO]);
    let small = results.pair("star", "star", Ber::Zero, Queue::Small);
    for (flow, paper) in WINDOWS.into_iter().enumerate() {
        let mean = mean_window(small.readings(flow)).unwrap_or(f64::NAN);
        let text = format!("mean window of STAR flow {}, BER 0, queue 15 kB, one seed", flow + 1);
        rows.add(&format!("fig17/flow-{}/window", flow + 1), text, "kB", Some(paper), mean, &[TWO]);
    }
    rows.all
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
