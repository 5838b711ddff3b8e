//! The rows around the first loss, kept without keeping the whole run.
//!
//! Start reading at [`FlightRecorder`].

use crate::BinInterval;
use farpace_events::{Cause, Record, RecordSink};
use farpace_units::{Instant, Seq, Span};
use std::collections::VecDeque;

/// Keeps the newest rows of one connection until it first retransmits data, then the rows from `before`
/// ahead of that retransmission to `after` behind it, and stops. What it holds is what Figs. 5 and 6 of the
/// paper on communication stops show.
///
/// Contract: feed it rows in order of time; once [`done`](FlightRecorder::done) is true it ignores all more,
/// so the caller can stop recording.
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    connection: u32,
    before: Span,
    after: Span,
    rows: VecDeque<Record>,
    origin: Option<Seq>,
    trigger: Option<Instant>,
    done: bool,
    cut_short: bool,
}

impl FlightRecorder {
    /// Most rows ever kept (about 12 MB): ten round trips of 2,500 packets, sent and acknowledged.
    pub const MAX_RECORDS: usize = 60_000;
    /// Of these, most that lie ahead of the first retransmission, so that there is room behind it.
    const MAX_AHEAD: usize = Self::MAX_RECORDS / 2;
    /// Round trips kept ahead of the first retransmission unless the caller knows better.
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
            cut_short: false,
        }
    }

    /// True once the window is complete or [`FlightRecorder::MAX_RECORDS`] rows are kept.
    pub fn done(&self) -> bool {
        self.done
    }

    /// When data was first sent again; none so far if there was no loss.
    pub fn trigger(&self) -> Option<Instant> {
        self.trigger
    }

    /// The sequence number of the first data byte of the connection, if its sending was seen.
    pub fn origin(&self) -> Option<Seq> {
        self.origin
    }

    /// True if the window had to end early because it was full.
    pub fn cut_short(&self) -> bool {
        self.cut_short
    }

    /// The time the kept rows cover; none without rows.
    pub fn interval(&self) -> Option<BinInterval> {
        let (first, last) = (self.rows.front()?, self.rows.back()?);
        Some(BinInterval::new(first.time, last.time + Span::from_nanos(1)))
    }

    /// The rows kept, in order. Without a loss: the newest ones.
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
                self.cut_short = in_time;
                return;
            }
        }
        if self.origin.is_none() && record.cause == Some(Cause::NewData) {
            self.origin = Some(record.seq);
        }
        // A SYN that is sent again is no loss episode of data.
        let again = record.cause.is_some_and(|c| c.is_retransmission() && c != Cause::SynRetransmit);
        let frozen = self.trigger.is_some();
        if !frozen && again {
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

    /// Breaks: Figs. 5 and 6 show the wrong part of the run, or recording never ends.
    #[test]
    fn the_window_lies_around_the_first_retransmission() {
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
        assert!(recorder.done() && !recorder.cut_short());
        feed(&mut recorder, 152, Cause::NewData);
        assert_eq!(recorder.trigger(), Some(at(100)));
        assert_eq!(recorder.origin(), Some(row(at(1), 0).seq));
        let interval = recorder.interval().unwrap();
        assert!(interval.contains(at(70)) && interval.contains(at(150)) && !interval.contains(at(151)));
        let rows = recorder.into_records();
        assert_eq!((rows.len(), rows[0].time), (81, at(70)));
    }

    /// Breaks: memory grows with the run, or a long stretch ahead leaves no room for the loss itself.
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
        assert!(recorder.done() && recorder.cut_short());
        assert_eq!(recorder.into_records().len(), FlightRecorder::MAX_RECORDS);
    }

    /// Breaks: rows of another connection get into the figure.
    #[test]
    fn other_connections_are_left_out() {
        let mut recorder = FlightRecorder::new(7, Span::from_millis(30), Span::from_millis(50));
        feed(&mut recorder, 1, Cause::FastRetransmit);
        assert!(recorder.trigger().is_none());
        assert!(recorder.interval().is_none());
    }
}
