//! farpace's own records, one row per segment sent and ACK processed, as if they were a capture at the
//! sender.

use super::{Capture, Follower};
use crate::flow::Flow;
use crate::frame::{CapturedSegment, Flags, Options};
use arrayvec::ArrayVec;
use farpace_events::{Cause, Record, RecordDirection, RecordSink};
use farpace_trace::COLUMNS;
use farpace_units::{ByteCount, Instant};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::net::{IpAddr, Ipv4Addr};

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The file is damaged, or no Parquet file.
    #[error("cannot read the trace: {0}")]
    Parquet(#[from] ParquetError),
    /// A column that farpace writes is not there, or has another type.
    #[error("the trace has no column `{0}` as farpace writes it")]
    Column(&'static str),
}

/// Follows connections by the records of their senders.
#[derive(Default)]
pub struct RecordFollower {
    follower: Follower,
    /// Which connections have had a SYN, an answer, and data.
    begun: Vec<Begun>,
}

#[derive(Clone, Copy, Default)]
struct Begun {
    syn: bool,
    answered: bool,
}

/// Connections in one trace.
const MAX_CONNECTIONS: u32 = 100_000;

/// What the rows of a trace say that a segment has.
struct RowOf {
    time: Instant,
    connection: u32,
    sent: bool,
    seq: u32,
    len: u32,
    ack: u32,
    rwnd: u32,
    syn: bool,
    fin: bool,
    sack: ArrayVec<(u32, u32), 4>,
}

impl RecordFollower {
    fn take(&mut self, row: &RowOf, each: &mut impl FnMut(&CapturedSegment)) {
        if row.connection >= MAX_CONNECTIONS {
            return;
        }
        let at = row.connection as usize;
        if self.begun.len() <= at {
            self.begun.resize(at + 1, Begun::default());
        }
        let Some(begun) = self.begun.get_mut(at) else { return };
        let mut flags = Flags::ACK;
        if row.sent && row.syn {
            flags = Flags::SYN;
            begun.syn = true;
        } else if !row.sent && begun.syn && !begun.answered {
            flags |= Flags::SYN;
            begun.answered = true;
        } else if row.fin {
            flags |= Flags::FIN;
        }
        let port = 1_024 + (row.connection % 60_000) as u16;
        let client = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), port);
        let server = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 1 + (row.connection / 60_000) as u16);
        let (src, dst) = if row.sent { (client, server) } else { (server, client) };
        let syn = flags & Flags::SYN != 0;
        let segment = CapturedSegment {
            frame: self.follower.frames + 1,
            time: row.time,
            interface: 0,
            src: src.0,
            dst: dst.0,
            src_port: src.1,
            dst_port: dst.1,
            seq: row.seq,
            ack: row.ack,
            flags: Flags(flags),
            window: row.rwnd,
            len: row.len,
            // The segment size is that of what was sent, and windows are whole.
            options: Options {
                mss: syn.then_some(u16::MAX),
                window_scale: syn.then_some(0),
                sack_permitted: syn,
                sack: row.sack.clone(),
                ..Options::default()
            },
            ip_id: 0,
            ttl: 0,
            ecn: 0,
            ip_len: row.len,
            damaged: None,
        };
        self.follower.segment(&segment);
        each(&segment);
    }

    /// The number of a connection in the records, from what [`finish`](Self::finish) gave.
    pub fn connection(flow: &Flow) -> Option<u32> {
        let [client, server] = flow.ends;
        let (port, group) = (u32::from(client.port()), u32::from(server.port()));
        Some(port.checked_sub(1_024)? + 60_000 * group.checked_sub(1)?)
    }

    /// Ends, and gives the connections, in the order of their first rows.
    pub fn finish(self) -> Capture {
        self.follower.finish()
    }
}

impl RecordSink for RecordFollower {
    fn record(&mut self, record: &Record) {
        if record.direction == RecordDirection::Internal {
            return;
        }
        let sent = record.direction == RecordDirection::Sent;
        let row = RowOf {
            time: record.time,
            connection: record.connection,
            sent,
            seq: record.seq.get(),
            len: u32::try_from(record.len.get()).unwrap_or_default(),
            ack: record.ack.get(),
            rwnd: u32::try_from(record.rwnd.get()).unwrap_or(u32::MAX),
            syn: matches!(record.cause, Some(Cause::Syn | Cause::SynRetransmit)),
            fin: record.cause == Some(Cause::Fin),
            sack: record.sack.iter().map(|b| (b.start.get(), b.end.get())).take(4).collect(),
        };
        self.take(&row, &mut |_| {});
    }
}

/// Reads a trace that `farpace run` has written.
///
/// # Errors
/// A file that is no such trace.
pub fn read_records(file: impl ChunkReader + 'static) -> Result<Capture, RecordsError> {
    read_records_with(file, |_| {})
}

/// The same, and shows each row as a segment.
///
/// # Errors
/// As [`read_records`].
pub fn read_records_with(
    file: impl ChunkReader + 'static,
    mut each: impl FnMut(&CapturedSegment),
) -> Result<Capture, RecordsError> {
    let reader = SerializedFileReader::new(file)?;
    let columns = reader.metadata().file_metadata().schema_descr();
    let names: Vec<String> = columns.columns().iter().map(|c| c.name().to_owned()).collect();
    for column in &COLUMNS {
        if !names.iter().any(|n| n == column.name) {
            return Err(RecordsError::Column(column.name));
        }
    }
    let place = |name: &str| names.iter().position(|n| n == name);
    let mut follower = RecordFollower::default();
    for row in reader.get_row_iter(None)? {
        let row = row?;
        let field = |name: &'static str| {
            let at = place(name).ok_or(RecordsError::Column(name))?;
            row.get_column_iter().nth(at).map(|(_, field)| field).ok_or(RecordsError::Column(name))
        };
        if let Some(row) = row_of(&row, field)? {
            follower.take(&row, &mut each);
        }
    }
    Ok(follower.finish())
}

fn row_of<'a>(
    _: &'a Row,
    field: impl Fn(&'static str) -> Result<&'a Field, RecordsError>,
) -> Result<Option<RowOf>, RecordsError> {
    let number = |name: &'static str| match field(name)? {
        Field::UInt(n) => Ok(u64::from(*n)),
        Field::ULong(n) => Ok(*n),
        Field::Int(n) => Ok(u64::from(*n as u32)),
        Field::Long(n) => Ok(*n as u64),
        _ => Err(RecordsError::Column(name)),
    };
    let word = |name: &'static str| match field(name)? {
        Field::Str(text) => Ok(text.as_str()),
        Field::Null => Ok(""),
        _ => Err(RecordsError::Column(name)),
    };
    let direction = word("direction")?;
    if direction == RecordDirection::Internal.name() {
        return Ok(None);
    }
    let mut sack = ArrayVec::new();
    for (start, end) in [
        ("sack1_start", "sack1_end"),
        ("sack2_start", "sack2_end"),
        ("sack3_start", "sack3_end"),
        ("sack4_start", "sack4_end"),
    ] {
        if matches!(field(start)?, Field::Null) {
            break;
        }
        let _ = sack.try_push((number(start)? as u32, number(end)? as u32));
    }
    let cause = word("cause")?;
    Ok(Some(RowOf {
        time: Instant::from_nanos(number("time_ns")?),
        connection: number("connection")? as u32,
        sent: direction == RecordDirection::Sent.name(),
        seq: number("seq")? as u32,
        len: u32::try_from(ByteCount::new(number("len")?).get()).unwrap_or_default(),
        ack: number("ack")? as u32,
        rwnd: u32::try_from(number("rwnd")?).unwrap_or(u32::MAX),
        syn: cause == Cause::Syn.name() || cause == Cause::SynRetransmit.name(),
        fin: cause == Cause::Fin.name(),
        sack,
    }))
}
