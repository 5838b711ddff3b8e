//! The congestion window of a run, reduced during the run (Fig. 4 of the paper on communication stops).
//!
//! Start reading at [`WindowHistory`].

use crate::{BinInterval, Reduced};
use farpace_events::{Cause, Record, RecordSink, RecoveryState};
use farpace_units::{Instant, Packets, Span};

/// An interval in one congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBand {
    /// The interval.
    pub interval: BinInterval,
    /// The state.
    pub state: RecoveryState,
}

/// Window, threshold, timeouts and states of one connection, in bounded memory.
///
/// Its input is rows of a trace (as a [`RecordSink`]) or readings (with [`sample`](WindowHistory::sample)),
/// but not both.
#[derive(Clone, Debug)]
pub struct WindowHistory {
    connection: u32,
    cwnd: Reduced,
    ssthresh: Reduced,
    timeouts: Vec<Instant>,
    timeout_count: u64,
    bands: Vec<StateBand>,
    /// True if the last band has not ended.
    open: bool,
    /// Gaps between bands of one state up to this are closed if there are too many bands.
    resolution: Span,
    now: Instant,
}

impl WindowHistory {
    /// Maximum number of timeouts whose time is stored; later ones are only counted.
    pub const MAX_TIMEOUTS: usize = 4_000;
    /// Maximum number of state bands. If there are more, adjacent bands of one state are joined.
    pub const MAX_BANDS: usize = 4_000;

    /// An empty history of `connection`.
    pub fn new(connection: u32) -> Self {
        WindowHistory {
            connection,
            cwnd: Reduced::default(),
            ssthresh: Reduced::default(),
            timeouts: Vec::new(),
            timeout_count: 0,
            bands: Vec::new(),
            open: false,
            resolution: Span::from_micros(1),
            now: Instant::ZERO,
        }
    }

    /// The congestion window, in packets.
    pub fn cwnd(&self) -> &Reduced {
        &self.cwnd
    }
    /// The slow-start threshold in packets, from its first value on.
    pub fn ssthresh(&self) -> &Reduced {
        &self.ssthresh
    }
    /// Times at which the retransmission timer fired.
    pub fn timeouts(&self) -> &[Instant] {
        &self.timeouts
    }
    /// Number of times that it fired.
    pub fn timeout_count(&self) -> u64 {
        self.timeout_count
    }
    /// Intervals in the states Recovery and Loss, in order.
    pub fn bands(&self) -> &[StateBand] {
        &self.bands
    }
    /// The time of the newest row.
    pub fn end(&self) -> Instant {
        self.now
    }

    /// Adds a reading of the connection, in order of time, as the paper's Web100 took them periodically.
    /// `timeouts` is their number so far. Changes between two readings are not visible. A timeout gets the
    /// time of the next reading.
    pub fn sample(
        &mut self,
        time: Instant,
        cwnd: Packets,
        ssthresh: Packets,
        state: RecoveryState,
        timeouts: u64,
    ) {
        while self.timeout_count < timeouts && self.timeouts.len() < Self::MAX_TIMEOUTS {
            self.timeout_count += 1;
            self.timeouts.push(time);
        }
        self.timeout_count = self.timeout_count.max(timeouts);
        self.variables(time, cwnd, ssthresh, state);
    }

    fn variables(&mut self, time: Instant, cwnd: Packets, ssthresh: Packets, state: RecoveryState) {
        self.cwnd.push(time, f64::from(cwnd.get()));
        if ssthresh != Packets::MAX {
            self.ssthresh.push(time, f64::from(ssthresh.get()));
        }
        self.enter(time, state);
        self.now = time;
    }

    fn enter(&mut self, time: Instant, state: RecoveryState) {
        let shown = matches!(state, RecoveryState::Recovery | RecoveryState::Loss);
        let mut open = self.bands.last_mut().filter(|_| self.open);
        self.open = shown;
        if let Some(band) = &mut open {
            band.interval.end = time;
        }
        if !shown || open.is_some_and(|band| band.state == state) {
            return;
        }
        while self.bands.len() >= Self::MAX_BANDS {
            self.resolution = self.resolution * 2;
            let resolution = self.resolution;
            let mut joined: Vec<StateBand> = Vec::new();
            for band in self.bands.drain(..) {
                match joined.last_mut() {
                    // At the coarsest resolution, bands of different states are joined too, so this
                    // terminates.
                    Some(last)
                        if band.interval.start.since(last.interval.end) <= resolution
                            && (last.state == band.state || last.interval.span() <= resolution) =>
                    {
                        last.interval.end = band.interval.end;
                        last.state = last.state.max(band.state);
                    }
                    _ => joined.push(band),
                }
            }
            self.bands = joined;
        }
        self.bands.push(StateBand { interval: BinInterval::new(time, time), state });
    }
}

impl RecordSink for WindowHistory {
    fn record(&mut self, record: &Record) {
        if record.connection != self.connection {
            return;
        }
        if record.cause == Some(Cause::TimerRto) {
            self.timeout_count += 1;
            if self.timeouts.len() < Self::MAX_TIMEOUTS {
                self.timeouts.push(record.time);
            }
        }
        self.variables(record.time, record.cwnd, record.ssthresh, record.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::row;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn feed(history: &mut WindowHistory, ms: u64, state: RecoveryState, cause: Option<Cause>) {
        let mut r = row(at(ms), 0);
        r.state = state;
        r.cause = cause;
        history.record(&r);
    }

    /// Breaks: the background of the window figure shows the states at the right time.
    #[test]
    fn bands_follow_the_state() {
        let mut history = WindowHistory::new(0);
        feed(&mut history, 0, RecoveryState::Open, None);
        feed(&mut history, 10, RecoveryState::Recovery, None);
        feed(&mut history, 15, RecoveryState::Recovery, None);
        feed(&mut history, 20, RecoveryState::Loss, Some(Cause::TimerRto));
        feed(&mut history, 30, RecoveryState::Open, None);
        feed(&mut history, 35, RecoveryState::Open, None);
        feed(&mut history, 40, RecoveryState::Recovery, None);
        let band = |a, b, state| StateBand { interval: BinInterval::new(at(a), at(b)), state };
        let expected = [
            band(10, 20, RecoveryState::Recovery),
            band(20, 30, RecoveryState::Loss),
            band(40, 40, RecoveryState::Recovery),
        ];
        assert_eq!(history.bands(), expected);
        assert_eq!((history.timeouts(), history.timeout_count()), (&[at(20)][..], 1));
    }

    /// Breaks: readings yield the same figure as rows: timeouts, states and values.
    #[test]
    fn readings_yield_the_same_figure_as_rows() {
        let mut history = WindowHistory::new(0);
        let readings =
            [(0, RecoveryState::Open, 0), (10, RecoveryState::Loss, 2), (20, RecoveryState::Open, 2)];
        for (ms, state, timeouts) in readings {
            history.sample(at(ms), Packets::new(7), Packets::MAX, state, timeouts);
        }
        assert_eq!((history.timeouts(), history.timeout_count()), (&[at(10), at(10)][..], 2));
        let band = StateBand { interval: BinInterval::new(at(10), at(20)), state: RecoveryState::Loss };
        assert_eq!(history.bands(), [band]);
        assert_eq!((history.cwnd().range(), history.ssthresh().range()), (Some((7.0, 7.0)), None));
        assert_eq!(history.end(), at(20));
    }

    /// Breaks: the memory of a run with many losses is bounded, and its end is shown.
    #[test]
    fn bands_and_timeouts_are_bounded() {
        let mut history = WindowHistory::new(0);
        for i in 0..30_000 {
            let state = if i % 3 == 0 { RecoveryState::Recovery } else { RecoveryState::Loss };
            feed(&mut history, i * 10, state, Some(Cause::TimerRto));
        }
        assert!(history.bands().len() <= WindowHistory::MAX_BANDS);
        assert_eq!(history.timeouts().len(), WindowHistory::MAX_TIMEOUTS);
        assert_eq!(history.timeout_count(), 30_000);
        assert_eq!(history.bands()[0].interval.start, at(0));
        assert_eq!(history.bands()[history.bands().len() - 1].interval.end, at(29_999 * 10));
    }
}
