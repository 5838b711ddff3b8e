//! Where ACK requests still make a flow end sooner with modern stacks, and what the ACKs cost.

use super::choices::{
    AUTO, BSD, BY_BYTES, EVERYTHING, FLIGHT_END, LINUX, NEVER_DELAYED, NamedSettings, OFF, PER_ACK,
    RENO_PER_ACK, RFC5681, RTT, SLOW_START, STRETCH, overrides, requests,
};
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::observe::{observe, scenario, set};
use crate::report::ExperimentReport;
use crate::statistics::percentile;
use farpace_lab::Inputs;
use farpace_lab::scenario::Scenario;
use farpace_path::{Link, LinkStats, Port};
use farpace_report::{Figure, HeatRow, Page, Table, TableCell, cells, heat_map};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// The scenario that all runs are made from.
const SCENARIO: &str = r#"title = "A flow of one size over a path of today"
# Nothing here is drawn: the seed makes the payload alone.
seed = 1
duration = "7200 s"

[hosts.a]
[hosts.b]

[[links]]
name = "line"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "25 ms"

[[flows]]
name = "flow"
from = "a"
to = "b"
size = "1 MB"

[flows.sender]
send_buffer = "64 MB"

[flows.receiver]
# Windows never limit.
receive_buffer = "64 MB"

[trace]
bin = "10 ms"
"#;

/// The smallest queue in bytes: the ten segments of the first window fit.
const MIN_QUEUE: u64 = 15_200;
/// Ethernet header of each frame; what follows is the IP packet.
const ETHERNET: u64 = 14;

/// ACK requests with modern stacks: what each combination has.
pub struct ModernAcks {
    /// Mbit/s.
    rates: &'static [u64],
    /// Round trips of the empty path, in ms.
    rtts: &'static [u64],
    /// kB.
    sizes: &'static [u64],
    receivers: &'static [NamedSettings],
    growths: &'static [NamedSettings],
    /// Requests, [`OFF`] first.
    asked: &'static [NamedSettings],
}

/// Who asks whom over which path for a flow of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModernAckCase {
    growth: NamedSettings,
    receiver: NamedSettings,
    rate: u64,
    rtt: u64,
    size: u64,
    asked: NamedSettings,
}

impl ModernAckCase {
    /// The same flow without requests.
    fn unasked(self) -> Self {
        ModernAckCase { asked: OFF, ..self }
    }
    fn scenario(&self) -> Result<Scenario, MeasureError> {
        // What the path holds.
        let queue = (self.rate * self.rtt * 125).max(MIN_QUEUE);
        let mut all = vec![
            set("links.line.rate", format!("{} Mbit/s", self.rate)),
            set("links.line.delay", format!("{} us", self.rtt * 500)),
            set("links.line.queue", format!("{queue} B")),
            set("flows.flow.size", format!("{} kB", self.size)),
        ];
        all.extend(overrides("flow", "sender", self.growth));
        if self.asked != NEVER_DELAYED {
            all.extend(overrides("flow", "receiver", self.receiver));
        }
        all.extend(requests("flow", self.asked));
        scenario(SCENARIO, "papers/ack/today", &all)
    }
}

impl fmt::Display for ModernAckCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModernAckCase { growth, receiver, rate, rtt, size, asked } = self;
        let (growth, receiver, asked) = (growth.name, receiver.name, asked.name);
        write!(f, "{rate} Mbit/s, {rtt} ms, {size} kB, {receiver}, {growth}, {asked}")
    }
}

/// What came of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletedFlow {
    /// From connecting to the last byte, in seconds.
    completion: f64,
    /// Payload in MB.
    megabytes: f64,
    /// Bytes of IP packets in the direction of data.
    data_bytes: u64,
    /// IP packets in the direction of ACKs, and their bytes.
    acks: [u64; 2],
    /// Segments that asked, and confirmations that came.
    requests: [u64; 2],
    retransmissions: u64,
    timeouts: u64,
}

impl CompletedFlow {
    /// ACKs for each MB of payload.
    fn acks_per_mb(&self) -> f64 {
        self.acks[0] as f64 / self.megabytes
    }
    /// Bytes of ACKs for each MB of payload, in kB.
    fn ack_kb_per_mb(&self) -> f64 {
        self.acks[1] as f64 / 1e3 / self.megabytes
    }
    /// Completion time saved against the flow without requests, in percent.
    fn saved(&self, off: &CompletedFlow) -> f64 {
        (1.0 - self.completion / off.completion) * 100.0
    }
}

impl ModernAcks {
    /// All combinations, or the quick measurement.
    pub fn new(quick: bool) -> Self {
        if quick {
            ModernAcks {
                rates: &[10, 1_000],
                rtts: &[10, 50, 200],
                sizes: &[100, 1_000],
                receivers: &[LINUX, BSD],
                growths: &[BY_BYTES, PER_ACK],
                asked: &[OFF, SLOW_START, AUTO, EVERYTHING, NEVER_DELAYED],
            }
        } else {
            ModernAcks {
                rates: &[10, 100, 1_000, 10_000],
                rtts: &[1, 10, 50, 200, 600],
                sizes: &[100, 1_000, 10_000],
                receivers: &[LINUX, RFC5681, STRETCH, BSD],
                growths: &[BY_BYTES, PER_ACK, RENO_PER_ACK],
                asked: &[OFF, RTT, SLOW_START, FLIGHT_END, AUTO, EVERYTHING, NEVER_DELAYED],
            }
        }
    }
    /// Rate and round trip of each path.
    fn paths(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (rates, rtts) = (self.rates, self.rtts);
        rates.iter().flat_map(move |rate| rtts.iter().map(move |rtt| (*rate, *rtt)))
    }
    /// Receiver and size of each flow over a path.
    fn flows(&self) -> impl Iterator<Item = (NamedSettings, u64)> + use<> {
        let (receivers, sizes) = (self.receivers, self.sizes);
        receivers.iter().flat_map(move |receiver| sizes.iter().map(move |size| (*receiver, *size)))
    }
}

impl Experiment for ModernAcks {
    type Case = ModernAckCase;
    type Measurement = CompletedFlow;

    fn plan(&self) -> Vec<CaseRun<ModernAckCase>> {
        let mut plan = Vec::new();
        for &growth in self.growths {
            for (receiver, size) in self.flows() {
                for (rate, rtt) in self.paths() {
                    for &asked in self.asked {
                        let case = ModernAckCase { growth, receiver, rate, rtt, size, asked };
                        plan.push(CaseRun { case, number: 1 });
                    }
                }
            }
        }
        plan
    }
    fn measure(
        &self,
        run: &CaseRun<ModernAckCase>,
        stop: &StopRequest<'_>,
    ) -> Result<CompletedFlow, MeasureError> {
        let incomplete = |what: &str| MeasureError::Incomplete(what.to_owned());
        let run = observe(&run.case.scenario()?, Inputs::default(), &mut (), stop)?;
        let world = run.world();
        let line = world.find("line").and_then(|id| world.element::<Link>(id));
        let line = line.ok_or_else(|| incomplete("there is no line"))?;
        let ip = |s: &LinkStats| [s.packets, s.bytes.get().saturating_sub(ETHERNET * s.packets)];
        let [data, acks] = [0, 1].map(|port| ip(line.direction(Port(port)).stats()));
        let outcome = run.finish()?;
        let [flow] = outcome.flows.as_slice() else { return Err(incomplete("there is no flow")) };
        if !flow.is_intact() {
            return Err(incomplete("the flow did not arrive whole"));
        }
        Ok(CompletedFlow {
            completion: flow.elapsed.as_secs_f64(),
            megabytes: flow.size.get() as f64 / 1e6,
            data_bytes: data[1],
            acks,
            requests: [flow.counters.asked, flow.counters.confirmed],
            retransmissions: flow.retransmissions(),
            timeouts: flow.timeouts,
        })
    }
    fn report(&self, m: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        let mut page = Page::new("Asking for acknowledgments on modern paths");
        page.paragraph(
            "A receiver delays acknowledgments to save some. A sender can ask for one at once (CDL). Does a \
             flow end sooner for it, where, and what do the ACKs cost? Each flow has the path for itself. \
             Its queue holds one bandwidth-delay product, ten segments at least. The sender is modern (RACK, \
             CUBIC, initial window of ten) and its window grows in one of three ways.",
        );
        page.figure(&figure(m, BY_BYTES, AUTO, "figures/saved.svg")).table(&effects(m));
        self.receivers.iter().filter_map(|receiver| finding(m, *receiver)).for_each(|text| {
            page.finding(&text);
        });
        page.heading("If each ACK raised the window by one segment").paragraph(
            "The thesis's senders grew by ACKs, so that an ACK more was a segment more. Modern ones grow by \
             what is acknowledged (RFC 3465 without a limit), and a delayed ACK is made up for by the next. \
             With a limit of one segment per ACK both effects come together; the difference between the \
             figures is what growing by ACKs is worth.",
        );
        page.figure(&figure(m, PER_ACK, EVERYTHING, "figures/saved-per-ack.svg"));
        for growth in self.growths.iter().take(2) {
            page.table(&by_path(m, *growth, AUTO));
        }
        page.heading("What is measured").paragraph(
            "Saved: completion time from connecting to the last byte, against the same flow without \
             requests. ACKs: IP packets in the direction of ACKs, handshake included. Data: bytes of IP \
             packets in the direction of data, retransmissions included. Confirmed: of the requests, those \
             whose answer said so. Growth literally by RFC 9438 in congestion avoidance is not separated: \
             the engine's CUBIC counts bytes there.",
        );
        page.heading("How to repeat this").command(command);
        page.details("The scenario all runs are made from", SCENARIO);
        let json = json!({
            "format": "farpace-acks-today/1",
            "seed": 1,
            "scenario": SCENARIO,
            "runs": pairs(m).map(|(case, m, off)| run_json(case, m, off)).collect::<Vec<Value>>(),
        });
        let headline = format!(
            "Asking for ACKs on modern paths: {} runs, seed 1 (nothing is drawn), every byte compared",
            m.count()
        );
        ExperimentReport::new(page, headline, json)
    }
}

/// Every run with the one without requests.
fn pairs<'m>(
    m: &'m Measured<'_, ModernAcks>,
) -> impl Iterator<Item = (&'m ModernAckCase, &'m CompletedFlow, &'m CompletedFlow)> {
    m.cases().filter_map(|(case, _)| Some((case, m.first(case)?, m.first(&case.unasked())?)))
}

/// Completion time that requests save, in percent.
fn saved(m: &Measured<'_, ModernAcks>, case: &ModernAckCase) -> Option<f64> {
    Some(m.first(case)?.saved(m.first(&case.unasked())?))
}

fn run_json(case: &ModernAckCase, m: &CompletedFlow, off: &CompletedFlow) -> Value {
    json!({
        "rate_mbit_s": case.rate,
        "rtt_ms": case.rtt,
        "size_kb": case.size,
        "receiver": case.receiver.name,
        "growth": case.growth.name,
        "asked": case.asked.name,
        "completion_s": m.completion,
        "saved_percent": m.saved(off),
        "acks_per_mb": m.acks_per_mb(),
        "ack_kb_per_mb": m.ack_kb_per_mb(),
        "data_ip_bytes": m.data_bytes,
        "requests": m.requests[0],
        "confirmed": m.requests[1],
        "retransmissions": m.retransmissions,
        "timeouts": m.timeouts,
    })
}

/// What requests did over many flows.
struct RequestEffect<'m> {
    /// Completion time saved, in percent: the worst flow, the middle one, the best one.
    saved: [f64; 3],
    best: &'m ModernAckCase,
    /// Flows, those of them that saved 1 % or more, and those that lost as much.
    flows: [usize; 3],
    /// ACKs for each MB: mean over the flows, and their kB.
    acks: [f64; 2],
    /// Bytes in the direction of data, in percent more than without requests: mean.
    data_more: f64,
    /// Confirmed requests, in percent.
    confirmed: f64,
}

/// What requests do to all flows to a receiver; none if nothing was measured.
fn effect<'m>(
    m: &'m Measured<'_, ModernAcks>,
    growth: NamedSettings,
    receiver: NamedSettings,
    asked: NamedSettings,
) -> Option<RequestEffect<'m>> {
    let is_of = |c: &ModernAckCase| (c.growth, c.receiver, c.asked) == (growth, receiver, asked);
    let these: Vec<_> = pairs(m).filter(|(case, ..)| is_of(case)).collect();
    let mean = |of: &dyn Fn(&CompletedFlow, &CompletedFlow) -> f64| {
        these.iter().map(|(_, m, off)| of(m, off)).sum::<f64>() / these.len() as f64
    };
    let (best, ..) = these.iter().max_by(|a, b| a.1.saved(a.2).total_cmp(&b.1.saved(b.2)))?;
    let mut all: Vec<f64> = these.iter().map(|(_, m, off)| m.saved(off)).collect();
    let median = percentile(&mut all, 50.0)?;
    let [requests, confirmed] = [0, 1].map(|n| these.iter().map(|(_, m, _)| m.requests[n]).sum::<u64>());
    let count = |moved: fn(&&f64) -> bool| all.iter().filter(moved).count();
    Some(RequestEffect {
        saved: [*all.first()?, median, *all.last()?],
        best,
        flows: [all.len(), count(|g| **g >= 1.0), count(|g| **g <= -1.0)],
        acks: [mean(&|m, _| m.acks_per_mb()), mean(&|m, _| m.ack_kb_per_mb())],
        data_more: mean(&|m, off| (m.data_bytes as f64 / off.data_bytes as f64 - 1.0) * 100.0),
        confirmed: confirmed as f64 * 100.0 / requests as f64,
    })
}

/// Zero without a sign for what rounds to it.
fn flat(percent: f64) -> f64 {
    if percent.abs() < 0.05 { 0.0 } else { percent }
}

/// Of all flows to each receiver: what requests gain, and what they cost.
fn effects(m: &Measured<'_, ModernAcks>) -> Table {
    let flows = m.of.paths().count() * m.of.sizes.len();
    let title = format!(
        "What requests change, over {flows} flows in each row (ACKs and bytes: window grows by bytes)"
    );
    let mut table = Table::with(title, "receiver | asked");
    for growth in m.of.growths {
        table.column(&format!("saved, {}", growth.name), "%: middle (worst … best)").column("", "flows ±1 %");
    }
    for (name, unit) in [("ACKs", "per MB"), ("", "kB per MB"), ("data", "bytes, %"), ("confirmed", "%")] {
        table.column(name, unit);
    }
    for &receiver in m.of.receivers {
        for &asked in m.of.asked {
            let mut row = cells![receiver.name, asked.name];
            for &growth in m.of.growths {
                let e = effect(m, growth, receiver, asked).filter(|_| asked != OFF);
                let saved = e.as_ref().map(|e| {
                    let [worst, middle, best] = e.saved.map(flat);
                    format!("{middle:.1} ({worst:.1} … {best:.1})")
                });
                let moved = e.map(|e| format!("+{} −{} of {}", e.flows[1], e.flows[2], e.flows[0]));
                row.extend(cells![saved, moved]);
            }
            if let Some(e) = effect(m, BY_BYTES, receiver, asked) {
                let data = (asked != OFF).then(|| format!("{:+.2}", e.data_more + 0.0));
                row.extend(cells![(e.acks[0], 0), (e.acks[1], 1), data, (e.confirmed, 0)]);
            }
            table.row(row);
        }
    }
    table
}

/// What requests save on each path (rows) for each receiver and size of flow (columns), in percent.
fn fields(
    m: &Measured<'_, ModernAcks>,
    growth: NamedSettings,
    asked: NamedSettings,
) -> Vec<(String, Vec<Option<f64>>)> {
    let row = |(rate, rtt)| {
        let of = |(receiver, size)| saved(m, &ModernAckCase { growth, receiver, rate, rtt, size, asked });
        (format!("{}, {rtt} ms", speed(rate)), m.of.flows().map(of).collect())
    };
    m.of.paths().map(row).collect()
}

fn figure(m: &Measured<'_, ModernAcks>, growth: NamedSettings, asked: NamedSettings, file: &str) -> Figure {
    let heads = m.of.flows().map(|(receiver, size)| format!("{}, {}", receiver.name, amount(size)));
    let heads: Vec<String> = heads.collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let fields = fields(m, growth, asked);
    let rows: Vec<HeatRow<'_>> =
        fields.iter().map(|(label, values)| HeatRow { label, values: values.clone() }).collect();
    let title = format!("Completion time saved by asking `{}`, window grows {}", asked.name, growth.name);
    heat_map(&title, ["saved, %", "lost, %"], &heads, &rows).figure(
        file,
        "Each field is one flow over an empty path: how much sooner it ends than the same flow without \
         requests. Rows are paths, columns are receivers and sizes of the flow.",
    )
}

/// The same as a table.
fn by_path(m: &Measured<'_, ModernAcks>, growth: NamedSettings, asked: NamedSettings) -> Table {
    let title =
        format!("Completion time saved, in percent: asked {}, window grows {}", asked.name, growth.name);
    let mut table = Table::with(title, "path");
    for (receiver, size) in m.of.flows() {
        let is_first = m.of.sizes.first() == Some(&size);
        table.column(if is_first { receiver.name } else { "" }, &amount(size));
    }
    for (path, saved) in fields(m, growth, asked) {
        let cells = saved.into_iter().map(|s| TableCell::from(s.map(|s| (flat(s), 1))));
        table.row(cells![path].into_iter().chain(cells));
    }
    table
}

/// Where requests are worth most, and where nothing.
fn finding(m: &Measured<'_, ModernAcks>, receiver: NamedSettings) -> Option<String> {
    let e = effect(m, BY_BYTES, receiver, AUTO)?;
    let [flows, sooner, later] = e.flows;
    Some(format!(
        "Receiver {}: of {flows} flows that are asked as `auto` does, {} end within 1 % of the same time, \
         {sooner} end sooner, {later} later; best {:.1} % ({}, {} ms, {}), worst {:.1} %.",
        receiver.name,
        flows - sooner - later,
        e.saved[2],
        speed(e.best.rate),
        e.best.rtt,
        amount(e.best.size),
        e.saved[0],
    ))
}

/// `10 Gbit/s`.
fn speed(mbit: u64) -> String {
    if mbit >= 1_000 && mbit.is_multiple_of(1_000) {
        format!("{} Gbit/s", mbit / 1_000)
    } else {
        format!("{mbit} Mbit/s")
    }
}

fn amount(kb: u64) -> String {
    if kb >= 1_000 && kb.is_multiple_of(1_000) { format!("{} MB", kb / 1_000) } else { format!("{kb} kB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a case is refused in the middle of a long measurement, or has no run to be compared with.
    #[test]
    fn every_case_can_be_run_and_compared() {
        let plan = ModernAcks::new(false).plan();
        for CaseRun { case, .. } in &plan {
            let scenario = case.scenario().unwrap_or_else(|e| panic!("{case}: {e}"));
            let mut flows = scenario.flows.iter();
            assert!(flows.all(|f| f.sender.resolve().is_ok() && f.receiver.resolve().is_ok()));
            assert!(plan.iter().any(|run| run.case == case.unasked()), "{case}");
        }
    }
}
