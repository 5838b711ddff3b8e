//! The numbers of `--json`.

use super::cases::{Ber, RouterQueue};
use super::{ALGORITHMS, NEIGHBOURS, SatellitePaper, label, pair, single};
use crate::experiment::Measured;
use crate::paper::RowList;

/// How much faster than another STAR is at 1e-8, in percent (§4.2.1).
pub const GAINS: [(&str, f64); 4] =
    [("reno", 152.0), ("highspeed", 95.9), ("scalable", 41.6), ("tcp-j", 13.5)];
/// Figs. 6 and 7: the window that STAR keeps at 1e-7, in kB, and when the windows of STAR and of the others
/// reach it without errors, in seconds.
const KEPT: f64 = 625.0;
const FILLED: [f64; 2] = [2.0, 9.0];
/// Fig. 15: the mean estimate of two flows, in Mbit/s.
pub const ESTIMATE: f64 = 8.0;
/// Fig. 17: mean windows of two STAR flows behind 15 kB, in kB.
const WINDOWS: [f64; 2] = [266.0, 210.0];

const TWO: &str = "Both flows start together, the second one up to 3.7 s later: 37 ms from seed to seed";
const ONE_SECOND: &str = "All ACKs that the receiver sends in one second, after three quarters of the time, \
                          are lost (\"about 1 s\" from 45 s on)";

/// What the paper leaves open and holds for every row.
fn assumptions(paper: &SatellitePaper) -> [String; 8] {
    [
        format!(
            "Each run lasts {}, from connecting on; the paper shows at least 53 s (its Fig. 8)",
            paper.runs.time
        ),
        format!(
            "Means of {} seeds with 95 % confidence intervals; the paper's are of 5 runs. Of a single flow \
             without errors there is one run: nothing in it is random",
            paper.runs.seeds
        ),
        "Bit errors lose packets on the way of data only (Fig. 5 is on the loss of data segments): each by \
         its length, 1 - (1 - BER)^12000 for 1500 bytes"
            .into(),
        "The link's 10 Mbit/s count Ethernet frames of 1514 bytes without preamble and gap: at most 9.56 \
         Mbit/s of payload"
            .into(),
        "All senders have the same recovery (RFC 6675 with SACK), an initial window of 2 segments, a least \
         timeout of 1 s, and in slow start one segment more for each ACK, as stacks of the time had; the \
         paper's HighSpeed and Scalable TCP ran on Linux, the others on NetBSD"
            .into(),
        "Senders reach the router by 1 Gbit/s without delay; the rate of these links is not stated".into(),
        "What is in flight is limited to 625 kB by the receive window; the send buffer is larger".into(),
        "STAR is literal: ABE unfiltered, 1 ms as the first interval, no cap but the windows of 625 kB, AEN \
         takes any ACK for its answer. TCP-J has the same estimator with 1 us"
            .into(),
    ]
}

/// All rows.
pub fn rows(m: &Measured<'_, SatellitePaper>, rows: &mut RowList) {
    rows.assume(assumptions(m.of));
    for (other, paper) in GAINS {
        let text = format!("goodput of STAR over {}, BER 1e-8", label(other));
        rows.add(format!("gain/{other}"), text, "%", paper, m.gain(other), &[]);
    }
    for (name, label) in ALGORITHMS {
        for ber in Ber::ALL {
            let (at, goodput) = (ber.name(), m.flow_goodput(&single(name, ber), 0).mean);
            let text = format!("goodput, {label}, BER {at}");
            rows.add(format!("fig5/{name}/ber-{at}"), text, "Mbit/s", None, goodput, &[]);
        }
    }
    let kept = m.mean_window(&single("star", Ber::E7), 0);
    rows.add("fig6/star/window", "mean window, STAR, BER 1e-7, one seed", "kB", KEPT, kept, &[]);
    for (name, label) in ALGORITHMS {
        let paper = FILLED[usize::from(name != "star")];
        let [filled, after] = [m.fills_at(name), m.recovers_after(name)].map(|s| s.unwrap_or(f64::NAN));
        let text = format!("window reaches the bandwidth-delay product, {label}, BER 0");
        rows.add(format!("fig7/{name}/filled"), text, "s", paper, filled, &[]);
        let text = format!("throughput is back after the ACKs are, {label}");
        rows.add(format!("fig8/{name}/recovered"), text, "s", None, after, &[ONE_SECOND]);
    }
    let figures = [["fig10", "fig12", "fig19"], ["fig11", "fig16", "fig20"]];
    for (queue, figures) in RouterQueue::BOTH.into_iter().zip(figures) {
        for ber in Ber::ALL {
            two_flows(m, queue, ber, figures, rows);
        }
    }
    let large = pair("star", "star", Ber::E8, RouterQueue::Large);
    let estimate = [0, 1].map(|flow| m.mean_bandwidth(&large, flow)).iter().sum::<f64>() / 2.0;
    let text = "mean bandwidth estimate, two STAR flows, BER 1e-8, queue 625 kB, one seed";
    rows.add("fig15/estimate", text, "Mbit/s", ESTIMATE, estimate, &[TWO]);
    let small = pair("star", "star", Ber::Zero, RouterQueue::Small);
    for (flow, paper) in WINDOWS.into_iter().enumerate() {
        let text = format!("mean window of STAR flow {}, BER 0, queue 15 kB, one seed", flow + 1);
        rows.add(
            format!("fig17/flow-{}/window", flow + 1),
            text,
            "kB",
            paper,
            m.mean_window(&small, flow),
            &[TWO],
        );
    }
}

/// Rows of two flows of a kind, and of STAR beside others.
fn two_flows(
    m: &Measured<'_, SatellitePaper>,
    queue: RouterQueue,
    ber: Ber,
    [total, shares, mixed]: [&str; 3],
    rows: &mut RowList,
) {
    let at = format!("BER {}, queue {}", ber.name(), queue.name());
    let of_ber = format!("ber-{}", ber.name());
    for (name, label) in ALGORITHMS {
        let case = pair(name, name, ber, queue);
        let text = format!("goodput of two flows together, {label}, {at}");
        rows.add(format!("{total}/{name}/{of_ber}"), text, "Mbit/s", None, m.total(&case).mean, &[TWO]);
        let id = format!("{shares}/{name}/{of_ber}");
        for flow in 0..2 {
            let text = format!("goodput of flow {}, two of {label}, {at}", flow + 1);
            let goodput = m.flow_goodput(&case, flow).mean;
            rows.add(format!("{id}/flow-{}", flow + 1), text, "Mbit/s", None, goodput, &[TWO]);
        }
        let text = format!("Jain's index, two of {label}, {at}");
        rows.add(format!("{id}/jain"), text, "", None, m.fairness(&case).mean, &[TWO]);
    }
    for name in NEIGHBOURS {
        let case = pair("star", name, ber, queue);
        for (flow, who) in ["star", name].into_iter().enumerate() {
            let text = format!("goodput of {}, STAR beside {}, {at}", label(who), label(name));
            let id = format!("{mixed}/star-{name}/{of_ber}/{who}");
            rows.add(id, text, "Mbit/s", None, m.flow_goodput(&case, flow).mean, &[TWO]);
        }
    }
}
