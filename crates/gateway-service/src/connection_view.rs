//! What is told of a connection: in `status --json`, in the log, and in the columns of records.

use farpace_gateway::{FlowView, GatewaySide, LegLimit, LegView};
use farpace_trace::{ParquetCell, TableKind};
use farpace_units::{Rate, Span};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// A column of a record, and of the same value in a leg of `status --json`.
pub struct RecordColumn<T> {
    pub name: &'static str,
    pub kind: TableKind,
    pub description: &'static str,
    pub of: fn(&T) -> ParquetCell,
}

/// What a row tells of each leg, with `lan_` or `wan_` before the name.
pub const LEG_COLUMNS: [RecordColumn<LegView>; 17] = [
    column("state", TableKind::Text, "the state of RFC 9293", |leg| text(format!("{:?}", leg.state))),
    column("srtt_ms", TableKind::Number, "smoothed round trip", |leg| milliseconds(leg.srtt)),
    column("min_rtt_ms", TableKind::Number, "the least round trip lately", |leg| {
        leg.min_rtt.map_or(ParquetCell::Null, milliseconds)
    }),
    column("cwnd_segments", TableKind::Count, "congestion window", |leg| count(leg.cwnd.get().into())),
    column("in_flight_segments", TableKind::Count, "segments in flight", |leg| {
        count(leg.in_flight.get().into())
    }),
    column("peer_window_bytes", TableKind::Count, "the window that the host announces", |leg| {
        count(leg.peer_window.get())
    }),
    column("mss_bytes", TableKind::Count, "payload of a full segment", |leg| count(leg.mss.into())),
    column("pacing_bit_s", TableKind::Count, "payload leaves at this rate at most", |leg| {
        leg.pacing.map_or(ParquetCell::Null, |rate| count(rate.bits_per_sec()))
    }),
    column(
        "bandwidth_bit_s",
        TableKind::Count,
        "the bandwidth that congestion control has measured",
        |leg| leg.bandwidth.map_or(ParquetCell::Null, |rate| count(rate.bits_per_sec())),
    ),
    column("sent_segments", TableKind::Count, "data segments sent, retransmissions included", |leg| {
        count(leg.segments_sent)
    }),
    column("sent_bytes", TableKind::Count, "payload sent, retransmissions included", |leg| {
        count(leg.bytes_sent.get())
    }),
    column("retransmitted_bytes", TableKind::Count, "of it, retransmissions", |leg| {
        count(leg.bytes_retransmitted.get())
    }),
    column("received_bytes", TableKind::Count, "payload received in order", |leg| {
        count(leg.bytes_received.get())
    }),
    column("timeouts", TableKind::Count, "retransmission timeouts", |leg| count(leg.timeouts)),
    column(
        "waiting_bytes",
        TableKind::Count,
        "acknowledged to the host, not yet given to the other leg",
        |l| count(l.readable.get()),
    ),
    column("unacknowledged_bytes", TableKind::Count, "given to the leg, not yet acknowledged", |leg| {
        count(leg.unacknowledged.get())
    }),
    column("limited_by", TableKind::Text, "what limits it now", |leg| text(leg.limit.name())),
];

pub const fn column<T>(
    name: &'static str,
    kind: TableKind,
    description: &'static str,
    of: fn(&T) -> ParquetCell,
) -> RecordColumn<T> {
    RecordColumn { name, kind, description, of }
}

pub fn text(value: impl ToString) -> ParquetCell {
    ParquetCell::Text(value.to_string())
}

pub fn count(value: u64) -> ParquetCell {
    ParquetCell::Count(i64::try_from(value).unwrap_or(i64::MAX))
}

pub fn time(since_1970: Span) -> ParquetCell {
    count(since_1970.as_nanos())
}

pub fn seconds(span: Span) -> ParquetCell {
    ParquetCell::Number(span.as_secs_f64())
}

pub fn milliseconds(span: Span) -> ParquetCell {
    ParquetCell::Number(span.as_nanos() as f64 / 1e6)
}

/// The hosts of a connection: that of the LAN, and that beyond the link.
pub fn ends(view: &FlowView) -> [SocketAddr; 2] {
    match view.opener_side {
        GatewaySide::Lan => [view.opener, view.acceptor],
        GatewaySide::Wan => [view.acceptor, view.opener],
    }
}

/// The legs of a connection: LAN, WAN.
pub fn legs(view: &FlowView) -> [Option<LegView>; 2] {
    match view.opener_side {
        GatewaySide::Lan => [view.to_opener, Some(view.to_acceptor)],
        GatewaySide::Wan => [Some(view.to_acceptor), view.to_opener],
    }
}

/// Of a pair from opener to acceptor and back: towards the WAN, and towards the LAN.
pub fn directed<T: Copy>(view: &FlowView, pair: [T; 2]) -> [T; 2] {
    match view.opener_side {
        GatewaySide::Lan => pair,
        GatewaySide::Wan => [pair[1], pair[0]],
    }
}

/// A connection as people see it: the LAN host first, and "up" towards the WAN.
pub fn flow(view: &FlowView) -> Value {
    let ([lan, wan], [lan_leg, wan_leg]) = (ends(view), legs(view));
    let of = |pair: [u64; 2]| {
        let [up, down] = directed(view, pair);
        json!({ "up": up, "down": down })
    };
    json!({
        "lan": lan.to_string(),
        "wan": wan.to_string(),
        "opened_by": view.opener_side.name(),
        "age_s": view.age.as_secs_f64(),
        "payload_bytes": of(view.moved.map(|moved| moved.get())),
        "rate_bit_s": of(view.rates.map(Rate::bits_per_sec)),
        "undelivered_bytes": of(view.undelivered.map(|bytes| bytes.get())),
        "lan_leg": lan_leg.as_ref().map(leg_json),
        "wan_leg": wan_leg.as_ref().map(leg_json),
    })
}

/// A leg as `status --json` and the log have it.
pub fn leg_json(leg: &LegView) -> Value {
    let value = |column: &RecordColumn<LegView>| match (column.of)(leg) {
        ParquetCell::Null => Value::Null,
        ParquetCell::Text(text) => json!(text),
        ParquetCell::Number(number) => json!(number),
        ParquetCell::Count(count) => json!(count),
        ParquetCell::Truth(truth) => json!(truth),
    };
    let mut object: Map<String, Value> =
        LEG_COLUMNS.iter().map(|column| (column.name.to_owned(), value(column))).collect();
    let times = LegLimit::ALL.iter().zip(leg.limit_times);
    let times = times.map(|(limit, time)| (limit.name().to_owned(), json!(time.as_secs_f64())));
    object.insert("limited_s".into(), Value::Object(times.collect()));
    Value::Object(object)
}
