//! The report: text, tables, a figure, and JSON.

use super::{
    ASKED, BANDWIDTH, ESTIMATED, EstimateErrors, EstimatorCase, EstimatorRun, EstimatorsOfAcks, KnownTraffic,
    LINES, PROBED, SCENARIO, bandwidths, probes, round_trips,
};
use crate::experiment::Measured;
use crate::report::ExperimentReport;
use farpace_report::{Figure, HeatRow, Page, Table, TableCell, cells, heat_map};
use serde_json::{Value, json};

type Estimators<'a> = Measured<'a, EstimatorsOfAcks>;

/// The whole report.
pub fn report(m: &Estimators<'_>, command: &str) -> ExperimentReport {
    let mut page = Page::new("What ACKs that are not delayed give to estimators");
    page.paragraph(
        "Time for which a receiver delays an ACK looks to the sender like time on the path. A sender that \
         asks for ACKs at once \
         (CDL) knows which of its samples are free of that. How much better are its estimates?",
    );
    page.paragraph(
        "The truth: the line is first in, first out, nothing is lost, ACKs meet no queue. So the round trip \
         that each segment would have had without a delayed ACK follows from what was sent before it; \
         queueing is in it. The standard filter (RFC 6298) fed with these, one by one, is what srtt and RTO \
         are compared with at each ACK, from the first second on (requests: from the first ACK on). The \
         least RTO is 5 ms, so that it shows. Bandwidth is compared with the payload that the line carries, \
         which is also its load. The 8 bytes of an option on an ACK or on a segment that is not full are \
         left out of the truth: 6 us at 10 Mbit/s.",
    );
    page.figure(&figure(m));
    KnownTraffic::LIMITED.into_iter().for_each(|traffic| {
        page.table(&round_trip_table(m, traffic));
    });
    page.table(&bandwidth_table(m)).table(&probe_table(m)).paragraph(
        "False timeouts: nothing is lost here, so every timeout is spurious. BBR's min_rtt is compared with \
         the round trip of a \
         full segment over the empty path, every 10 ms of the last nine of 20 s; ProbeRTT comes every 5 s.",
    );
    page.heading("How to repeat this").command(command);
    page.details("The scenario of all runs, without its flows", SCENARIO);
    let runs = m.cases().filter_map(|(case, _)| Some(run_json(case, m.first(case)?)));
    let json = json!({
        "format": "farpace-acks-estimators/1",
        "seed": 1,
        "scenario": SCENARIO,
        "runs": runs.collect::<Vec<Value>>(),
    });
    let headline = format!("Estimators and the truth: {} runs, seed 1, every byte compared", m.count());
    ExperimentReport::new(page, headline, json)
}

fn run_json(c: &EstimatorCase, m: &EstimatorRun) -> Value {
    json!({
        "rate_mbit_s": c.line.rate,
        "rtt_ms": c.line.rtt,
        "traffic": c.traffic.name(),
        "receiver": c.receiver.name,
        "asked": c.asked.name,
        "rto": c.rto,
        "congestion": c.congestion,
        "srtt_error_ms": m.srtt,
        "rto_error_ms": m.rto,
        "bandwidth_error_percent": m.bandwidth,
        "min_rtt_error_ms": m.min_rtt,
        "goodput_mbit_s": m.goodput,
        "acks_per_segment": m.acks,
        "timeouts": m.timeouts,
        "requests": m.requests[0],
        "confirmed": m.requests[1],
    })
}

/// Mean and 95th percentile.
fn errors(e: Option<EstimateErrors>, decimals: u8) -> [TableCell; 2] {
    [e.map(|e| (e.mean, decimals)).into(), e.map(|e| (e.most, decimals)).into()]
}

/// Round trip and timeout under one kind of traffic.
fn round_trip_table(m: &Estimators<'_>, traffic: KnownTraffic) -> Table {
    let title =
        format!("Error of round trip and timeout, {} (without sign: mean, 95th percentile)", traffic.name());
    let mut table = Table::with(title, "receiver | asked, estimator");
    let lines = m.of.lines(&LINES);
    for line in lines {
        table
            .column(&format!("srtt, {line}"), "ms")
            .column("", "95 %")
            .column("RTO", "ms")
            .column("", "95 %");
        table.column("false timeouts", "").column("ACKs", "per segment");
    }
    for &receiver in m.of.receivers() {
        for (row, (asked, rto)) in ESTIMATED.into_iter().enumerate() {
            let mut cells = cells![receiver.name, format!("{}, {rto}", asked.name)];
            let runs = lines.iter().filter_map(|line| m.first(&round_trips(*line, traffic, receiver)[row]));
            for run in runs {
                cells.extend(errors(run.srtt, 2).into_iter().chain(errors(run.rto, 2)));
                cells.extend(cells![run.timeouts, (run.acks, 2)]);
            }
            table.row(cells);
        }
    }
    table
}

/// Bandwidth, against what the line carries.
fn bandwidth_table(m: &Estimators<'_>) -> Table {
    let title = format!(
        "Error of the bandwidth estimate, full path, {} (without sign: mean, 95th percentile)",
        LINES[0]
    );
    let mut table = Table::with(title, "receiver | asked");
    for congestion in BANDWIDTH {
        table.column(congestion, "%").column("", "95 %").column("bias", "%");
    }
    for &receiver in m.of.receivers() {
        for asked in ASKED {
            let mut row = cells![receiver.name, asked.name];
            for case in bandwidths(receiver, asked) {
                let e = m.first(&case).and_then(|m| m.bandwidth);
                row.extend(errors(e, 1));
                row.push(e.map(|e| format!("{:+.1}", e.bias)).into());
            }
            table.row(row);
        }
    }
    table
}

/// BBR's ProbeRTT, with and without requests.
fn probe_table(m: &Estimators<'_>) -> Table {
    let mut table = Table::with(
        "BBRv3: the round trip of the empty path that it goes by, and goodput",
        "path | receiver | asked | min_rtt too high [ms, mean] | [95 %] | goodput [Mbit/s] | timeouts [] | \
         ACKs [per segment] | requests []",
    );
    for line in m.of.lines(&PROBED) {
        for &receiver in m.of.receivers() {
            for case in probes(*line, receiver) {
                let Some(run) = m.first(&case) else { continue };
                let e = run.min_rtt;
                table.row(cells![
                    line.to_string(),
                    receiver.name,
                    case.asked.name,
                    e.map(|e| (e.bias, 2)),
                    e.map(|e| (e.most, 2)),
                    (run.goodput, 2),
                    run.timeouts,
                    (run.acks, 2),
                    run.requests[0],
                ]);
            }
        }
    }
    table
}

fn figure(m: &Estimators<'_>) -> Figure {
    let [line, ..] = LINES;
    let labels = ESTIMATED.map(|(asked, rto)| format!("{}, {rto}", asked.name));
    let heads = labels.each_ref().map(String::as_str);
    let rows: Vec<HeatRow<'_>> =
        m.of.receivers()
            .iter()
            .map(|receiver| {
                let cases = round_trips(line, KnownTraffic::Half, *receiver);
                let error = |case| Some(m.first(&case)?.srtt?.mean);
                HeatRow { label: receiver.name, values: cases.map(error).into() }
            })
            .collect();
    let title = format!("Error of the smoothed round trip in ms: half the path filled, {line}");
    heat_map(&title, ["mean error, ms", "–"], &heads, &rows).figure(
        "figures/round-trip.svg",
        "How far the sender's smoothed round trip is from what the same filter makes of the true round \
         trips: rows are receivers, columns say what is asked and which estimator the timeout has. With \
         `cdl` it takes samples only of segments that had asked, as soon as there are enough of them.",
    )
}
