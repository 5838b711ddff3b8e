//! The rows around the first retransmission.
//!
//! Start reading at [`FlightRecorder`].

use crate::BinInterval;
use farpace_events::{Cause, Record, RecordSink};
use farpace_units::{Instant, Seq, Span};
use std::collections::VecDeque;

/// Records the rows of one connection from `before` ahead of its first retransmission of data to `after`
/// behind it, then stops. Figs. 5 and 6 of the paper on communication stops show these rows.
///
/// Rows must be in order of time. Once [`done`](FlightRecorder::done) is true, further rows are ignored, so
/// the caller can stop recording.
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    connection: u32,
    before: Span,
    after: Span,
    rows: VecDeque<Record>,
    origin: Option<Seq>,
    trigger: Option<Instant>,
    done: bool,
    truncated: bool,
}

impl FlightRecorder {
    /// Maximum number of rows (about 12 MB): ten round trips of 2,500 packets, sent and acknowledged.
    pub const MAX_RECORDS: usize = 60_000;
    /// Maximum number of rows before the first retransmission, to leave space for those behind it.
    const MAX_AHEAD: usize = Self::MAX_RECORDS / 2;
    /// Default number of round trips before the first retransmission.
    pub const ROUND_TRIPS_AHEAD: u64 = 3;

    /// A recorder for `connection`, from `before` ahead of its first retransmission to `after` behind it.
    pub fn new(connection: u32, before: Span, after: Span) -> Self {
        FlightRecorder {
            connection,
            before,
            after,
            rows: VecDeque::new(),
            origin: None,
            trigger: None,
            done: false,
            truncated: false,
        }
    }

    /// True if the interval is complete or [`FlightRecorder::MAX_RECORDS`] rows are stored.
    pub fn done(&self) -> bool {
        self.done
    }

    /// Time of the first retransmission of data; none without one.
    pub fn trigger(&self) -> Option<Instant> {
        self.trigger
    }

    /// The first sequence number of data of the connection, if its transmission was recorded.
    pub fn origin(&self) -> Option<Seq> {
        self.origin
    }

    /// True if the interval ended early because the recorder was full.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// The interval of the stored rows; none without rows.
    pub fn interval(&self) -> Option<BinInterval> {
        let (first, last) = (self.rows.front()?, self.rows.back()?);
        Some(BinInterval::new(first.time, last.time + Span::from_nanos(1)))
    }

    /// The stored rows in order; without a retransmission the newest ones.
    pub fn into_records(self) -> Vec<Record> {
        self.rows.into()
    }
}

impl RecordSink for FlightRecorder {
    fn record(&mut self, record: &Record) {
        if self.done || record.connection != self.connection {
            return;
        }
        if let Some(trigger) = self.trigger {
            let in_time = record.time <= trigger + self.after;
            if !in_time || self.rows.len() >= Self::MAX_RECORDS {
                self.done = true;
                self.truncated = in_time;
                return;
            }
        }
        if self.origin.is_none() && record.cause == Some(Cause::NewData) {
            self.origin = Some(record.seq);
        }
        // A retransmitted SYN is not a loss of data.
        let retransmits = record.cause.is_some_and(|c| c.is_retransmission() && c != Cause::SynRetransmit);
        let frozen = self.trigger.is_some();
        if !frozen && retransmits {
            self.trigger = Some(record.time);
        }
        self.rows.push_back(record.clone());
        if !frozen {
            let stale = |row: &Record| row.time + self.before < record.time;
            while self.rows.len() > Self::MAX_AHEAD || self.rows.front().is_some_and(stale) {
                self.rows.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::row;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn feed(recorder: &mut FlightRecorder, ms: u64, cause: Cause) {
        let mut r = row(at(ms), 0);
        r.cause = Some(cause);
        recorder.record(&r);
    }

    /// Breaks: recording covers the interval around the first retransmission, and ends.
    #[test]
    fn the_interval_is_around_the_first_retransmission() {
        let mut recorder = FlightRecorder::new(0, Span::from_millis(30), Span::from_millis(50));
        feed(&mut recorder, 0, Cause::SynRetransmit);
        for ms in 1..100 {
            feed(&mut recorder, ms, Cause::NewData);
        }
        assert!(recorder.trigger().is_none() && !recorder.done());
        feed(&mut recorder, 100, Cause::FastRetransmit);
        for ms in 101..=150 {
            feed(&mut recorder, ms, Cause::ForwardRetransmit);
        }
        assert!(!recorder.done());
        feed(&mut recorder, 151, Cause::NewData);
        assert!(recorder.done() && !recorder.truncated());
        feed(&mut recorder, 152, Cause::NewData);
        assert_eq!(recorder.trigger(), Some(at(100)));
        assert_eq!(recorder.origin(), Some(row(at(1), 0).seq));
        let interval = recorder.interval().unwrap();
        assert!(interval.contains(at(70)) && interval.contains(at(150)) && !interval.contains(at(151)));
        let rows = recorder.into_records();
        assert_eq!((rows.len(), rows[0].time), (81, at(70)));
    }

    /// Breaks: memory is bounded, and many rows before the loss leave space for the loss itself.
    #[test]
    fn rows_are_bounded() {
        let mut recorder = FlightRecorder::new(0, Span::MAX, Span::MAX);
        for i in 0..FlightRecorder::MAX_RECORDS as u64 {
            feed(&mut recorder, i, Cause::NewData);
        }
        assert_eq!(recorder.rows.len(), FlightRecorder::MAX_AHEAD);
        for i in 0..FlightRecorder::MAX_RECORDS as u64 {
            feed(&mut recorder, 1_000_000 + i, Cause::FastRetransmit);
        }
        assert!(recorder.done() && recorder.truncated());
        assert_eq!(recorder.into_records().len(), FlightRecorder::MAX_RECORDS);
    }

    /// Breaks: rows of other connections are ignored.
    #[test]
    fn other_connections_are_ignored() {
        let mut recorder = FlightRecorder::new(7, Span::from_millis(30), Span::from_millis(50));
        feed(&mut recorder, 1, Cause::FastRetransmit);
        assert!(recorder.trigger().is_none());
        assert!(recorder.interval().is_none());
    }
}
