//! What controls and classes of farpace do in this kernel, as text, JSON and metrics.

use crate::class_looks::ClassLooks;
use crate::error::KernelServiceError;
use farpace_kernel::{
    KernelConnection, KernelConnections, KernelError, PolicyCounters, connections, policy_counters,
};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::{Packets, Rate, Span};
use serde_json::{Value, json};
use std::fmt::Write;

/// The connections under controls, if any is loaded, and what the policy did for them.
#[derive(Debug)]
pub struct KernelStatus(Option<(KernelConnections, Option<PolicyCounters>)>);

impl KernelStatus {
    /// Reads it. Where classes are loaded, there may be no control.
    ///
    /// # Errors
    /// Nothing is loaded, or the kernel cannot be asked.
    pub fn look(classes: &ClassLooks) -> Result<Self, KernelServiceError> {
        match connections() {
            Ok(found) => Ok(KernelStatus(Some((found, policy_counters())))),
            Err(KernelError::NotLoaded) if !classes.devices().is_empty() => Ok(KernelStatus(None)),
            Err(error) => Err(error.into()),
        }
    }

    /// Tables for a terminal with `width` columns, that of `classes` first.
    pub fn text(&self, classes: &ClassLooks, width: Option<usize>) -> String {
        let connections = self.0.as_ref().map(|(found, policy)| text(found, policy.as_ref(), width));
        let parts = [classes.text(width), connections.unwrap_or_default()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// For programs.
    pub fn json(&self, classes: &ClassLooks) -> Value {
        match &self.0 {
            Some((found, policy)) => to_json(found, policy.as_ref(), classes),
            None => to_json(&KernelConnections::default(), None, classes),
        }
    }

    /// The text format of Prometheus.
    pub fn metrics(&self, classes: &ClassLooks) -> String {
        let connections = self.0.as_ref().map(|(found, policy)| metrics(found, policy.as_ref()));
        connections.unwrap_or_default() + &classes.metrics()
    }
}

fn ms(span: Span) -> TableCell {
    if span.is_zero() { TableCell::Missing } else { TableCell::Number(span.as_secs_f64() * 1e3, None) }
}

fn mbit(rate: Rate) -> TableCell {
    TableCell::Number(rate.as_mbit_f64(), None)
}

fn phase(status: &KernelConnection) -> &'static str {
    status.phase.map_or("–", |phase| phase.name())
}

fn text(found: &KernelConnections, policy: Option<&PolicyCounters>, width: Option<usize>) -> String {
    let columns = vec![
        TableColumn::text("local"),
        TableColumn::text("remote"),
        TableColumn::text("control"),
        TableColumn::text("phase"),
        TableColumn::text("state"),
        TableColumn::number("window", "packets"),
        TableColumn::number("in flight", "packets"),
        TableColumn::number("pacing", "Mbit/s"),
        TableColumn::number("bandwidth", "Mbit/s"),
        TableColumn::number("rtt", "ms"),
        TableColumn::number("empty path", "ms"),
        TableColumn::number("acked", "kB"),
        TableColumn::number("lost", "packets"),
        TableColumn::number("sent again", "packets"),
    ];
    let mut table = Table::new("", columns);
    for status in &found.rows {
        table.row(vec![
            status.addresses.local.to_string().into(),
            status.addresses.remote.to_string().into(),
            status.control.name().into(),
            phase(status).into(),
            status.state.name().into(),
            u64::from(status.cwnd.get()).into(),
            u64::from(status.in_flight.get()).into(),
            status.pacing.map_or(TableCell::Missing, mbit),
            mbit(status.bandwidth),
            ms(status.srtt),
            ms(status.base_rtt),
            TableCell::Number(status.acked.get() as f64 / 1e3, Some(0)),
            u64::from(status.lost).into(),
            u64::from(status.retransmissions).into(),
        ]);
    }
    let mut text = table.to_text_for(width);
    let _ = write!(text, "\n{} connections, {} since it was loaded", found.rows.len(), found.begun);
    if found.without_state > 0 {
        let _ = write!(text, ", {} without memory for their state", found.without_state);
    }
    if found.left_out > 0 {
        let _ = write!(text, ", {} not listed (too many, or of another version)", found.left_out);
    }
    if found.hidden_processes > 0 {
        let hidden = found.hidden_processes;
        let _ = write!(text, "; processes whose network namespace is unknown (CAP_SYS_PTRACE): {hidden}");
    }
    if let Some(policy) = policy {
        let _ = write!(text, "; the policy was for {}", policy.connections);
        if policy.refused > 0 {
            let _ = write!(text, " ({} settings were refused)", policy.refused);
        }
        if policy.agreed > 0 {
            let _ = write!(
                text,
                "; ACK requests: {} agreed, {} sent, {} answered",
                policy.agreed, policy.asked, policy.answered
            );
        }
    }
    text + ".\n"
}

fn to_json(found: &KernelConnections, policy: Option<&PolicyCounters>, classes: &ClassLooks) -> Value {
    let ns = |span: Span| span.as_secs_f64();
    let rows = found.rows.iter().map(|status| {
        let KernelConnection {
            id,
            addresses,
            control,
            phase,
            state,
            tcp_state,
            cwnd,
            ssthresh,
            in_flight,
            mss,
            srtt,
            min_rtt,
            base_rtt,
            pacing,
            bandwidth,
            acked,
            delivered,
            data_segments,
            retransmissions,
            lost,
        } = status;
        json!({
            "id": id,
            "local": addresses.local,
            "remote": addresses.remote,
            "namespace": addresses.namespace,
            "control": control,
            "phase": phase,
            "state": state.name(),
            "tcp_state": tcp_state,
            "cwnd_packets": cwnd.get(),
            "ssthresh_packets": (*ssthresh != Packets::MAX).then_some(ssthresh.get()),
            "in_flight_packets": in_flight.get(),
            "mss_bytes": mss,
            "srtt_s": ns(*srtt),
            "min_rtt_s": ns(*min_rtt),
            "base_rtt_s": ns(*base_rtt),
            "pacing_bit_s": pacing.map(|rate| rate.bits_per_sec()),
            "bandwidth_bit_s": bandwidth.bits_per_sec(),
            "acked_bytes": acked.get(),
            "delivered_packets": delivered,
            "data_segments": data_segments,
            "retransmissions": retransmissions,
            "lost_packets": lost,
        })
    });
    json!({
        "format": "farpace-kernel-status/1",
        "connections": rows.collect::<Vec<_>>(),
        "begun": found.begun,
        "without_state": found.without_state,
        "trace_lost": found.trace_lost,
        "left_out": found.left_out,
        "hidden_processes": found.hidden_processes,
        "policy": policy,
        "devices": classes.json(),
    })
}

/// The text format of Prometheus.
fn metrics(found: &KernelConnections, policy: Option<&PolicyCounters>) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
        let _ = writeln!(text, "# HELP farpace_kernel_{name} {help}\n# TYPE farpace_kernel_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "farpace_kernel_{name}{labels} {value}");
        }
    };
    let alone = |value: u64| vec![(String::new(), value as f64)];
    metric("connections", "gauge", "Connections under a control of farpace", alone(found.rows.len() as u64));
    metric("connections_begun_total", "counter", "Connections that began under one", alone(found.begun));
    metric(
        "without_state_total",
        "counter",
        "Connections without memory for their state",
        alone(found.without_state),
    );
    if let Some(policy) = policy {
        metric("policy_refused_total", "counter", "Settings that the kernel refused", alone(policy.refused));
        metric("ack_requests_sent_total", "counter", "Segments that asked for an ACK", alone(policy.asked));
        metric(
            "ack_requests_answered_total",
            "counter",
            "Requests that came and were answered",
            alone(policy.answered),
        );
    }
    let of_each = |value: fn(&KernelConnection) -> f64| {
        let labels = |s: &KernelConnection| {
            format!(
                "{{local=\"{}\",remote=\"{}\",control=\"{}\"}}",
                s.addresses.local, s.addresses.remote, s.control
            )
        };
        found.rows.iter().map(|s| (labels(s), value(s))).collect::<Vec<_>>()
    };
    metric("cwnd_packets", "gauge", "Congestion window", of_each(|s| f64::from(s.cwnd.get())));
    metric("srtt_seconds", "gauge", "Smoothed round-trip time", of_each(|s| s.srtt.as_secs_f64()));
    metric(
        "base_rtt_seconds",
        "gauge",
        "Round trip of the empty path",
        of_each(|s| s.base_rtt.as_secs_f64()),
    );
    metric(
        "bandwidth_bits_per_second",
        "gauge",
        "Measured bandwidth",
        of_each(|s| s.bandwidth.bits_per_sec() as f64),
    );
    metric("acked_bytes_total", "counter", "Bytes acknowledged", of_each(|s| s.acked.get() as f64));
    metric(
        "retransmissions_total",
        "counter",
        "Segments sent again",
        of_each(|s| f64::from(s.retransmissions)),
    );
    metric("lost_packets_total", "counter", "Segments found lost", of_each(|s| f64::from(s.lost)));
    text
}
