//! Records of split connections: a row of a table for each that has ended or lives, and a line of the log.
//!
//! The latest that have ended stay in memory. `farpace gateway status --records` asks for all of them: the
//! file is made in the thread that answers, and written by the process that asks, with its rights.

use super::connection_view::{self, LEG_COLUMNS, RecordColumn, column, count, seconds, text, time};
use farpace_gateway::{EndedFlow, FlowEnd, FlowView, GatewaySide, LegLimit};
use farpace_trace::{ParquetCell, ParquetColumn, TableKind, TableWriter, TraceError};
use farpace_units::{ByteCount, Instant, Span};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// Connections that live of which a file tells at most.
pub const MAX_LIVING: usize = 100_000;

/// What a row tells of a connection besides its legs. "up" is towards the WAN.
const FLOW_COLUMNS: [RecordColumn<ConnectionRecord>; 16] = [
    column("began", TableKind::Time, "when its SYN came", |r| time(r.began)),
    column("ended", TableKind::Time, "when it ended; null while it lives", |r| {
        r.end.map_or(ParquetCell::Null, |(at, _)| time(at))
    }),
    column("age_s", TableKind::Number, "from its SYN to its end, or to now", |r| seconds(r.view.age)),
    column("end", TableKind::Text, "how it ended; null while it lives", |r| {
        r.end.map_or(ParquetCell::Null, |(_, end)| text(end.name()))
    }),
    column("ended_by", TableKind::Text, "lan or wan: the host that ended it by a reset or by silence", |r| {
        r.end.and_then(|(_, end)| end.side()).map_or(ParquetCell::Null, |side| text(side.name()))
    }),
    column("opened_by", TableKind::Text, "lan or wan", |r| text(r.view.opener_side.name())),
    column("lan_address", TableKind::Text, "the host of the LAN", |r| {
        text(connection_view::ends(&r.view)[0].ip())
    }),
    column("lan_port", TableKind::Count, "its port", |r| {
        count(connection_view::ends(&r.view)[0].port().into())
    }),
    column("wan_address", TableKind::Text, "the host beyond the link", |r| {
        text(connection_view::ends(&r.view)[1].ip())
    }),
    column("wan_port", TableKind::Count, "its port", |r| {
        count(connection_view::ends(&r.view)[1].port().into())
    }),
    column("up_bytes", TableKind::Count, "payload moved towards the WAN", |r| directed(r, r.view.moved, 0)),
    column("down_bytes", TableKind::Count, "payload moved towards the LAN", |r| directed(r, r.view.moved, 1)),
    column("up_undelivered_bytes", TableKind::Count, "acknowledged to the LAN host alone", |r| {
        directed(r, r.view.undelivered, 0)
    }),
    column("down_undelivered_bytes", TableKind::Count, "acknowledged to the WAN host alone", |r| {
        directed(r, r.view.undelivered, 1)
    }),
    column("up_bit_s", TableKind::Number, "mean rate of the payload towards the WAN", |r| mean_rate(r, 0)),
    column("down_bit_s", TableKind::Number, "mean rate of the payload towards the LAN", |r| mean_rate(r, 1)),
];

/// Of a pair from opener to acceptor and back: that towards the WAN (0), or towards the LAN (1).
fn directed(record: &ConnectionRecord, pair: [ByteCount; 2], way: usize) -> ParquetCell {
    count(connection_view::directed(&record.view, pair)[way].get())
}

fn mean_rate(record: &ConnectionRecord, way: usize) -> ParquetCell {
    let moved = connection_view::directed(&record.view, record.view.moved)[way];
    match record.view.age {
        Span::ZERO => ParquetCell::Null,
        age => ParquetCell::Number(moved.get() as f64 * 8.0 / age.as_secs_f64()),
    }
}

/// A connection that has ended, or lives.
pub struct ConnectionRecord {
    /// Time of its SYN, since 1970-01-01.
    began: Span,
    /// When it ended, since 1970-01-01, and how.
    end: Option<(Span, FlowEnd)>,
    view: FlowView,
}

impl ConnectionRecord {
    /// A connection that lives; `now`: since 1970-01-01.
    pub fn living(now: Span, view: FlowView) -> Self {
        ConnectionRecord { began: now - view.age, end: None, view }
    }

    /// One that has ended; `epoch`: when the time of the gateway began, since 1970-01-01.
    pub fn ended(epoch: Span, flow: EndedFlow) -> Self {
        let at = epoch + flow.at.since(Instant::ZERO);
        ConnectionRecord { began: at - flow.view.age, end: Some((at, flow.end)), view: flow.view }
    }

    /// A line of the log. Times are seconds since 1970-01-01.
    pub fn json(&self) -> Value {
        let mut value = connection_view::flow(&self.view);
        let since_1970 = |span: Span| span.as_nanos() as f64 / 1e9;
        if let Some(object) = value.as_object_mut() {
            object.insert("began_s".into(), json!(since_1970(self.began)));
            object.insert("ended_s".into(), json!(self.end.map(|(at, _)| since_1970(at))));
            object.insert("end".into(), json!(self.end.map(|(_, end)| end.name())));
            let side = self.end.and_then(|(_, end)| end.side());
            object.insert("ended_by".into(), json!(side.map(GatewaySide::name)));
        }
        value
    }

    fn row(&self) -> Vec<ParquetCell> {
        let mut row: Vec<ParquetCell> = FLOW_COLUMNS.iter().map(|column| (column.of)(self)).collect();
        for leg in connection_view::legs(&self.view) {
            row.extend(LEG_COLUMNS.iter().map(|column| leg.as_ref().map_or(ParquetCell::Null, column.of)));
            let time = |at: usize| leg.map_or(ParquetCell::Null, |leg| seconds(leg.limit_times[at]));
            row.extend((0..LegLimit::COUNT).map(time));
        }
        row
    }
}

/// All columns, with what they mean.
fn columns() -> Vec<(ParquetColumn, String)> {
    fn of<T>(column: &RecordColumn<T>, prefix: &str, of_what: &str) -> (ParquetColumn, String) {
        let name = format!("{prefix}{}", column.name);
        (ParquetColumn { name, kind: column.kind }, format!("{of_what}{}", column.description))
    }
    let mut all: Vec<_> = FLOW_COLUMNS.iter().map(|column| of(column, "", "")).collect();
    for (prefix, leg) in [("lan_", "LAN leg: "), ("wan_", "WAN leg: ")] {
        all.extend(LEG_COLUMNS.iter().map(|column| of(column, prefix, leg)));
        all.extend(LegLimit::ALL.iter().map(|limit| {
            let name = format!("{prefix}limited_by_{}_s", limit.name());
            (ParquetColumn { name, kind: TableKind::Number }, format!("{leg}for so long this has limited it"))
        }));
    }
    all
}

/// The records as Parquet, with `farpace.description.NAME` for each column.
///
/// # Errors
/// The library reports one.
pub fn parquet(records: &[Arc<ConnectionRecord>]) -> Result<Vec<u8>, TraceError> {
    let columns = columns();
    let described = |(column, text): &(ParquetColumn, String)| {
        (format!("farpace.description.{}", column.name), text.clone())
    };
    let described: Vec<_> = columns.iter().map(described).collect();
    let columns = columns.into_iter().map(|(column, _)| column).collect();
    let mut table = TableWriter::new(Vec::new(), "connection", columns, described)?;
    for record in records {
        table.add(record.row())?;
    }
    table.finish()
}

/// The latest connections that have ended, the oldest first.
#[derive(Default)]
pub struct EndedRing(VecDeque<Arc<ConnectionRecord>>);

impl EndedRing {
    /// Keeps the latest `most`.
    pub fn keep(&mut self, ended: &[Arc<ConnectionRecord>], most: usize) {
        let latest = ended.len().saturating_sub(most);
        self.0.extend(ended.iter().skip(latest).cloned());
        self.0.drain(..self.0.len().saturating_sub(most));
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ConnectionRecord>> {
        self.0.iter()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use farpace_gateway::LegView;
    use farpace_tcp::{CloseReason, ConnectionState};
    use farpace_units::{Packets, Rate};

    fn leg(sent: u64) -> LegView {
        LegView {
            state: ConnectionState::Established,
            srtt: Span::from_millis(560),
            min_rtt: None,
            cwnd: Packets::new(10),
            in_flight: Packets::new(9),
            peer_window: ByteCount::new(65_535),
            mss: 1448,
            pacing: None,
            bandwidth: Some(Rate::from_mbit(10)),
            segments_sent: 3,
            bytes_sent: ByteCount::new(sent),
            bytes_retransmitted: ByteCount::ZERO,
            bytes_received: ByteCount::ZERO,
            timeouts: 1,
            readable: ByteCount::ZERO,
            unacknowledged: ByteCount::ZERO,
            limit: LegLimit::Pacing,
            limit_times: std::array::from_fn(|at| Span::from_millis(at as u64)),
        }
    }

    /// A connection that a host of the WAN has opened, of 4 MB to the LAN and 2 MB to the WAN in 2 s.
    pub fn view() -> FlowView {
        FlowView {
            opener: "[2001:db8::1]:443".parse().unwrap(),
            acceptor: "[fd00::1]:5000".parse().unwrap(),
            opener_side: GatewaySide::Wan,
            age: Span::from_secs(2),
            to_opener: Some(leg(2_000_000)),
            to_acceptor: leg(4_000_000),
            moved: [4_000_000, 2_000_000].map(ByteCount::new),
            rates: [Rate::from_mbit(16), Rate::from_mbit(8)],
            undelivered: [ByteCount::new(7), ByteCount::ZERO],
        }
    }

    pub fn ended() -> ConnectionRecord {
        let end = FlowEnd::Failed(GatewaySide::Wan, CloseReason::Reset);
        let at = Instant::ZERO + Span::from_secs(5);
        ConnectionRecord::ended(Span::from_secs(1_000), EndedFlow { at, end, view: view() })
    }

    /// The cells of a row by their names.
    fn cells(record: &ConnectionRecord) -> Vec<(String, ParquetCell)> {
        let names = columns().into_iter().map(|(column, _)| column.name);
        names.zip(record.row()).collect()
    }

    /// Breaks: a value stands in the column of another, or of the other leg or direction.
    #[test]
    fn each_column_has_its_value() {
        let cells = cells(&ended());
        assert_eq!(cells.len(), columns().len());
        let cell = |name: &str| &cells.iter().find(|(own, _)| own == name).unwrap().1;
        assert_eq!(*cell("began"), ParquetCell::Count(1_003_000_000_000));
        assert_eq!(*cell("ended"), ParquetCell::Count(1_005_000_000_000));
        for (name, says) in [
            ("end", "reset"),
            ("ended_by", "wan"),
            ("opened_by", "wan"),
            ("lan_address", "fd00::1"),
            ("wan_address", "2001:db8::1"),
            ("wan_state", "Established"),
            ("lan_limited_by", "pacing"),
        ] {
            assert_eq!(*cell(name), text(says), "{name}");
        }
        for (name, value) in [
            ("lan_port", 5_000),
            ("wan_port", 443),
            ("up_bytes", 2_000_000),
            ("down_bytes", 4_000_000),
            ("down_undelivered_bytes", 7),
            ("wan_sent_bytes", 2_000_000),
            ("lan_sent_bytes", 4_000_000),
        ] {
            assert_eq!(*cell(name), ParquetCell::Count(value), "{name}");
        }
        assert_eq!(*cell("down_bit_s"), ParquetCell::Number(16e6));
        assert_eq!(*cell("wan_min_rtt_ms"), ParquetCell::Null);
        for (at, limit) in LegLimit::ALL.into_iter().enumerate() {
            let name = format!("wan_limited_by_{}_s", limit.name());
            assert_eq!(*cell(&name), ParquetCell::Number(at as f64 / 1e3), "{name}");
        }
        let living = ConnectionRecord::living(Span::from_secs(1_005), view());
        assert_eq!(living.row()[1..4], [ParquetCell::Null, ParquetCell::Number(2.0), ParquetCell::Null]);
        assert_eq!(living.row()[0], *cell("began"));
    }

    /// Breaks: the log says something else than the table.
    #[test]
    fn a_line_of_the_log_has_the_same() {
        let line = ended().json();
        assert_eq!((line["began_s"].as_f64(), line["ended_s"].as_f64()), (Some(1_003.0), Some(1_005.0)));
        assert_eq!((&line["end"], &line["ended_by"]), (&json!("reset"), &json!("wan")));
        assert_eq!(line["payload_bytes"], json!({ "up": 2_000_000, "down": 4_000_000 }));
        assert_eq!(line["wan_leg"]["bandwidth_bit_s"], json!(10_000_000));
        assert_eq!(line["lan_leg"]["limited_s"]["pacing"], json!(0.004));
        assert!(!line.to_string().contains('\n'), "a record is a line");
    }

    /// Breaks: ended connections take more memory than the operator allows, or the oldest are kept.
    #[test]
    fn the_latest_are_kept() {
        let mut ring = EndedRing::default();
        let numbered = |n: u64| Arc::new(ConnectionRecord { began: Span::from_secs(n), ..ended() });
        let kept = |ring: &EndedRing| ring.all().map(|record| record.began.as_secs_f64()).collect::<Vec<_>>();
        ring.keep(&[numbered(1), numbered(2)], 3);
        ring.keep(&[numbered(3), numbered(4)], 3);
        assert_eq!(kept(&ring), [2.0, 3.0, 4.0]);
        ring.keep(&(10..20).map(numbered).collect::<Vec<_>>(), 2);
        assert_eq!(kept(&ring), [18.0, 19.0]);
        ring.keep(&[], 0);
        assert!(kept(&ring).is_empty());
        assert!(size_of::<ConnectionRecord>() < 1_024, "{}", size_of::<ConnectionRecord>());
    }
}
