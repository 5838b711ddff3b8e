//! Records of what a connection does, made only when somebody asked for them.

use super::Connection;
use farpace_events::{Cause, Record, RecordDirection};
use farpace_units::{ByteCount, Instant, Seq};
use farpace_wire::tcp::SackBlocks;

/// Records that wait to be fetched.
#[derive(Debug)]
pub(super) struct Log {
    connection: u32,
    records: Vec<Record>,
}

impl Log {
    pub fn new(connection: u32) -> Self {
        Log { connection, records: Vec::new() }
    }

    pub fn drain(&mut self, take: impl FnMut(Record)) {
        self.records.drain(..).for_each(take);
    }
}

/// The part of a record that is about a segment.
pub(super) struct LogEntry<'a> {
    pub direction: RecordDirection,
    pub seq: Seq,
    pub len: usize,
    pub ack: Seq,
    pub sack: &'a SackBlocks,
    pub cause: Option<Cause>,
}

impl Connection {
    /// Makes a record, if anybody wants records.
    #[cold]
    pub(super) fn note(&mut self, now: Instant, entry: &LogEntry<'_>) {
        if let Some(log) = &mut self.log {
            log.records.push(Record {
                time: now,
                connection: log.connection,
                direction: entry.direction,
                seq: entry.seq,
                len: ByteCount::of_len(entry.len),
                ack: entry.ack,
                sack: entry.sack.clone(),
                snd_una: self.snd.una,
                snd_nxt: self.snd.nxt,
                cwnd: self.flight.window.cwnd(),
                ssthresh: self.flight.window.ssthresh(),
                in_flight: self.flight.segments.in_flight(),
                packets_out: self.flight.segments.packets_out(),
                lost_out: self.flight.segments.lost_out(),
                sacked_out: self.flight.segments.sacked_out(),
                fackets_out: self.flight.segments.fackets_out(),
                retrans_out: self.flight.segments.retrans_out(),
                state: self.flight.recovery.state(),
                srtt: self.flight.rto.srtt(),
                rttvar: self.flight.rto.rttvar(),
                rto: self.flight.rto.rto(),
                rwnd: ByteCount::new(u64::from(self.snd.wnd)),
                bandwidth: self.flight.cc.bandwidth().unwrap_or_default(),
                cause: entry.cause,
            });
        }
    }

    /// A record without a segment: a timer or a change of the window.
    pub(super) fn note_internal(&mut self, now: Instant, cause: Cause) {
        let entry = LogEntry {
            direction: RecordDirection::Internal,
            seq: self.snd.nxt,
            len: 0,
            ack: self.rcv.nxt,
            sack: &SackBlocks::new(),
            cause: Some(cause),
        };
        self.note(now, &entry);
    }

    /// Counts and notes the reductions that recovery made during this call.
    #[inline]
    pub(super) fn note_causes(&mut self, now: Instant) {
        if !self.flight.causes.is_empty() {
            self.tell_reductions();
            self.note_pending_causes(now);
        }
    }

    #[cold]
    fn note_pending_causes(&mut self, now: Instant) {
        let mut causes = std::mem::take(&mut self.flight.causes);
        for cause in causes.drain(..) {
            self.counters.window_changes.note(cause);
            self.note_internal(now, cause);
        }
        self.flight.causes = causes;
    }
}
