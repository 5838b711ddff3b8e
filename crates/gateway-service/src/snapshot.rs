//! What a running gateway tells: JSON for other processes, and metrics.

use super::capture::CaptureView;
use super::connection_view::flow;
use super::gain::{GainRow, GroupView};
use super::pair::{PairView, PathView};
use farpace_gateway::{FlowView, GatewayTotals};
use farpace_live::DeviceCounters;
use farpace_units::Span;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;

/// Connections that are told at most; [`GatewayTotals`] counts all.
pub const MAX_ROWS: usize = 1_000;

/// What a gateway is, and what it does.
pub struct Snapshot {
    pub lan: Vec<String>,
    pub wan: Vec<String>,
    /// Links of the paths to a peer, as they were named.
    pub via: Vec<String>,
    /// Why the rules that lead to the peer could not be set or taken away.
    pub rules_error: Option<String>,
    /// Priority and table of the rules of the LAN side.
    pub rule_priority: u32,
    pub table: u32,
    /// Firewall marks of packets that pass by the kernel.
    pub pass_marks: Vec<u32>,
    pub names: Vec<String>,
    pub mtus: [u16; 2],
    /// Threads that the connections are spread over.
    pub threads: usize,
    pub uptime: Span,
    pub totals: GatewayTotals,
    /// Of the devices of the sides, then of the paths to a peer.
    pub devices: Vec<DeviceCounters>,
    /// The link to a peer.
    pub pair: Option<PairView>,
    pub flows: Vec<FlowView>,
    /// Share of connections that pass unsplit for the comparison, and what it has found.
    pub control_group: f64,
    pub gain: Vec<GainRow>,
    /// The capture that runs, or that has ended by itself.
    pub capture: Option<CaptureView>,
}

/// True for the status of a gateway of this network namespace. Another one may share the folder of the
/// control sockets.
pub fn is_here(status: &Value) -> bool {
    let network = status["network_namespace"].as_u64();
    network.is_none() || network == own_network()
}

/// The number of the network namespace of this process.
fn own_network() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/net").ok().map(|file| file.ino())
}

impl Snapshot {
    /// For `farpace gateway status --json`.
    pub fn json(&self) -> Value {
        json!({
            "pid": std::process::id(),
            "lan": self.lan,
            "wan": self.wan,
            "via": self.via,
            "rules_error": self.rules_error,
            "rule_priority": self.rule_priority,
            "table": self.table,
            "pass_marks": self.pass_marks,
            "network_namespace": own_network(),
            "peer": self.pair.as_ref().map(peer),
            "devices": self.names,
            "mtu_bytes": { "lan": self.mtus[0], "wan": self.mtus[1] },
            "threads": self.threads,
            "uptime_s": seconds(self.uptime),
            "capture": self.capture.as_ref().map(CaptureView::json),
            "totals": totals(&self.totals),
            "control_group": self.control_group,
            "gain": self.gain.iter().map(GainRow::json).collect::<Vec<_>>(),
            "connections": self.flows.iter().map(flow).collect::<Vec<_>>(),
        })
    }

    /// In the text format of Prometheus. The number of lines does not depend on the traffic.
    pub fn metrics(&self) -> String {
        let t = &self.totals;
        let mut text = String::new();
        let mut put = |name: &str, kind: &str, help: &str, values: &[(&str, f64)]| {
            text += &format!("# HELP farpace_gateway_{name} {help}\n# TYPE farpace_gateway_{name} {kind}\n");
            for (labels, value) in values {
                text += &format!("farpace_gateway_{name}{labels} {value}\n");
            }
        };
        put("up_seconds", "gauge", "Time since the start.", &[("", seconds(self.uptime))]);
        put("draining", "gauge", "1 while new connections pass.", &[("", f64::from(u8::from(t.draining)))]);
        put("connections", "gauge", "Split connections.", &[("", t.connections as f64)]);
        put(
            "half_open",
            "gauge",
            "Split connections whose handshake is not complete.",
            &[("", t.half_open as f64)],
        );
        put("split_total", "counter", "Connections split.", &[("", t.split as f64)]);
        put(
            "passed_total",
            "counter",
            "Connections passed unsplit.",
            &[
                ("{why=\"policy\"}", t.passed_by_policy as f64),
                ("{why=\"short\"}", t.passed_short as f64),
                ("{why=\"options\"}", t.passed_options as f64),
                ("{why=\"limit\"}", t.passed_limit as f64),
                ("{why=\"draining\"}", t.passed_draining as f64),
                ("{why=\"control_group\"}", t.passed_control as f64),
            ],
        );
        put(
            "asymmetric_total",
            "counter",
            "Connections of which one direction does not pass here.",
            &[("", t.asymmetric as f64)],
        );
        put(
            "failed_total",
            "counter",
            "Split connections that ended with a reset or a timeout.",
            &[("", t.ended_by_error as f64)],
        );
        put(
            "handed_over_total",
            "counter",
            "Split connections handed over to their hosts.",
            &[("", t.handed_over as f64)],
        );
        put(
            "packets_total",
            "counter",
            "Packets received.",
            &[
                ("{what=\"split\"}", t.packets_split as f64),
                ("{what=\"passed\"}", t.packets_passed as f64),
                ("{what=\"dropped\"}", t.packets_dropped as f64),
            ],
        );
        let handed_over = t.packets_handed_over as f64;
        put(
            "handed_over_packets_total",
            "counter",
            "Packets that came to a thread other than that of their connection.",
            &[("", handed_over)],
        );
        put(
            "threads",
            "gauge",
            "Threads that the connections are spread over.",
            &[("", self.threads as f64)],
        );
        put(
            "payload_bytes_total",
            "counter",
            "Payload moved between the legs.",
            &[("{to=\"wan\"}", t.moved[0].get() as f64), ("{to=\"lan\"}", t.moved[1].get() as f64)],
        );
        put(
            "wan_sent_bytes_total",
            "counter",
            "Payload sent on WAN legs.",
            &[("", t.wan_bytes_sent.get() as f64)],
        );
        let again = t.wan_bytes_retransmitted.get() as f64;
        put("wan_retransmitted_bytes_total", "counter", "Of it, retransmissions.", &[("", again)]);
        put("memory_bytes", "gauge", "Memory of connections.", &[("", t.memory.get() as f64)]);
        put("memory_limit_bytes", "gauge", "What it may be.", &[("", t.memory_limit.get() as f64)]);
        let sides = ["{side=\"lan\"}", "{side=\"wan\"}"];
        let each = |of: fn(&DeviceCounters) -> u64| -> Vec<(&str, f64)> {
            let devices = self.devices.iter().take(self.names.len()).map(|device| of(device) as f64);
            sides.iter().copied().zip(devices).collect()
        };
        let received = each(|device| device.segments_received);
        put("device_received_packets_total", "counter", "Packets read, super-segments cut.", &received);
        put(
            "device_sent_packets_total",
            "counter",
            "Packets written, super-segments cut.",
            &each(|d| d.segments_sent),
        );
        put("device_received_bytes_total", "counter", "Bytes read.", &each(|device| device.bytes_received));
        put("device_sent_bytes_total", "counter", "Bytes written.", &each(|device| device.bytes_sent));
        put(
            "device_refused_packets_total",
            "counter",
            "Packets that the system refused.",
            &each(|device| device.refused),
        );
        if !self.gain.is_empty() {
            gain_metrics(&self.gain, &mut put);
        }
        if let Some(pair) = &self.pair {
            pair_metrics(pair, &mut put);
        }
        text
    }
}

/// Takes name, type, help, and a value for each set of labels.
type PutMetric<'a> = dyn FnMut(&str, &str, &str, &[(&str, f64)]) + 'a;

/// The comparison of split connections with the control group: at most 8 directions and sizes.
fn gain_metrics(rows: &[GainRow], put: &mut PutMetric<'_>) {
    let label = |row: &GainRow, more: &str| {
        format!("{{direction=\"{}\",size=\"{}\"{more}}}", row.direction, row.size)
    };
    let mut each = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
        let values: Vec<_> = values.iter().map(|(labels, value)| (labels.as_str(), *value)).collect();
        put(name, kind, help, &values);
    };
    let groups = rows.iter().flat_map(|row| {
        let both = [("split", row.split), ("unsplit", row.unsplit)];
        both.map(|(name, group)| (label(row, &format!(",group=\"{name}\"")), group))
    });
    let groups: Vec<(String, GroupView)> = groups.collect();
    let of = |value: fn(&GroupView) -> f64| {
        groups.iter().map(|(labels, view)| (labels.clone(), value(view))).collect()
    };
    let connections = of(|view| view.connections as f64);
    each("compared_connections", "gauge", "Connections that are compared, the latest 1,000.", connections);
    let medians = of(|view| view.median.map_or(f64::NAN, |rate| rate.bits_per_sec() as f64));
    each("compared_bits_per_second", "gauge", "Their median rate.", medians);
    let gains = rows.iter().filter_map(|row| row.gain.map(|[gain, ..]| (label(row, ""), gain))).collect();
    each("gain_ratio", "gauge", "Ratio of the medians, split to unsplit.", gains);
}

/// The metrics of the link to a peer. Paths are labelled with their number, from 1.
fn pair_metrics(pair: &PairView, put: &mut PutMetric<'_>) {
    put("peer_heard", "gauge", "1 once the peer was heard.", &[("", f64::from(u8::from(pair.heard)))]);
    let [sent, received, foreign] = pair.packets.map(|count| count as f64);
    put(
        "peer_packets_total",
        "counter",
        "Packets for the peer, from it, and dropped for their addresses.",
        &[("{what=\"sent\"}", sent), ("{what=\"received\"}", received), ("{what=\"foreign\"}", foreign)],
    );
    let [first, refused] = pair.priority.map(|count| count as f64);
    put(
        "priority_packets_total",
        "counter",
        "Packets that preceded TCP, and of such packets those dropped.",
        &[("{what=\"sent\"}", first), ("{what=\"dropped\"}", refused)],
    );
    put("repaired_total", "counter", "Frames sent again by another path.", &[("", pair.repaired as f64)]);
    put("path_failures_total", "counter", "Failures of paths.", &[("", pair.failures as f64)]);
    let labels: Vec<String> = (1..=pair.paths.len()).map(|number| format!("{{path=\"{number}\"}}")).collect();
    let mut each = |name: &str, kind: &str, help: &str, of: &dyn Fn(&PathView) -> f64| {
        let values: Vec<_> = labels.iter().map(String::as_str).zip(pair.paths.iter().map(of)).collect();
        put(name, kind, help, &values);
    };
    each("path_up", "gauge", "1 while frames arrive.", &|path| f64::from(u8::from(path.up)));
    each("path_rate_bits_per_second", "gauge", "The measured rate.", &|path| path.rate.unwrap_or(0) as f64);
    each("path_rtt_seconds", "gauge", "Smoothed round trip.", &|path| path.rtt.map_or(0.0, seconds));
    each("path_loss_ratio", "gauge", "Recent share of lost frames.", &|path| path.loss.unwrap_or(0.0));
    each("path_sent_bytes_total", "counter", "Bytes inside the tunnel, sent.", &|path| {
        path.tunnel.as_ref().map_or(0, |tunnel| tunnel.sent) as f64
    });
    each("path_received_bytes_total", "counter", "Bytes inside the tunnel, received.", &|path| {
        path.tunnel.as_ref().map_or(0, |tunnel| tunnel.received) as f64
    });
    each("path_rejected_total", "counter", "Datagrams that were not accepted.", &|path| {
        rejected(path) as f64
    });
}

/// Datagrams of strangers, forged and replayed ones.
fn rejected(path: &PathView) -> u64 {
    let r = &path.rejected;
    r.malformed + r.unknown + r.forged + r.replayed + r.flooded + r.foreign + r.marked
}

fn peer(pair: &PairView) -> Value {
    json!({
        "site": pair.site,
        "name": pair.peer,
        "file": pair.file,
        "prefixes": pair.prefixes,
        "peer_prefixes": pair.peer_prefixes,
        "heard": pair.heard,
        "caught": pair.caught,
        "packets": { "sent": pair.packets[0], "received": pair.packets[1], "foreign": pair.packets[2] },
        "priority": { "sent": pair.priority[0], "dropped": pair.priority[1] },
        "repaired_frames": pair.repaired,
        "path_failures": pair.failures,
        "paths": pair.paths.iter().map(path).collect::<Vec<_>>(),
    })
}

fn path(path: &PathView) -> Value {
    let tunnel = path.tunnel.as_ref();
    json!({
        "via": path.via,
        "endpoint": tunnel.and_then(|tunnel| tunnel.endpoint).map(|at| at.to_string()),
        "endpoint_error": path.endpoint_error,
        "proven": tunnel.is_some_and(|tunnel| tunnel.proven),
        "up": path.up,
        "rate_bit_s": path.rate,
        "rtt_ms": path.rtt.map(|rtt| seconds(rtt) * 1e3),
        "loss": path.loss,
        "mtu_bytes": tunnel.map(|tunnel| tunnel.mtu),
        "frames": { "sent": path.frames[0], "received": path.frames[1] },
        "sent_bytes": tunnel.map_or(0, |tunnel| tunnel.sent),
        "received_bytes": tunnel.map_or(0, |tunnel| tunnel.received),
        "handshakes": tunnel.map_or(0, |tunnel| tunnel.handshakes),
        "moves": tunnel.map_or(0, |tunnel| tunnel.moves),
        "rejected_datagrams": rejected(path),
    })
}

fn seconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e9
}

fn totals(t: &GatewayTotals) -> Value {
    json!({
        "connections": t.connections,
        "half_open": t.half_open,
        "split": t.split,
        "passed": {
            "policy": t.passed_by_policy,
            "short": t.passed_short,
            "options": t.passed_options,
            "limit": t.passed_limit,
            "draining": t.passed_draining,
            "control_group": t.passed_control,
        },
        "asymmetric": t.asymmetric,
        "handed_over": t.handed_over,
        "cut": t.cut,
        "failed": t.ended_by_error,
        "packets": {
            "split": t.packets_split,
            "passed": t.packets_passed,
            "dropped": t.packets_dropped,
            "handed_over": t.packets_handed_over,
        },
        "payload_bytes": { "to_wan": t.moved[0].get(), "to_lan": t.moved[1].get() },
        "wan_sent_bytes": t.wan_bytes_sent.get(),
        "wan_retransmitted_bytes": t.wan_bytes_retransmitted.get(),
        "memory_bytes": t.memory.get(),
        "memory_peak_bytes": t.memory_peak.get(),
        "memory_limit_bytes": t.memory_limit.get(),
        "draining": t.draining,
    })
}
