//! One run over several NICs, and what came of it.

use super::cases::{DATAGRAMS_BEGIN, NicsCase};
use crate::assumptions::WorldAssumptions;
use crate::experiment::{MeasureError, StopRequest};
use crate::observe::{PaperObserver, data_segments, observe, verified};
use crate::statistics::percentile;
use farpace_lab::{FlowSample, Inputs, Run, RunProgress};
use farpace_units::{ByteCount, Instant, Rate, Span};
use serde::{Deserialize, Serialize};

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StripedRun {
    /// Goodput of each flow, in Mbit/s.
    pub goodput: Vec<f64>,
    /// Payload of datagrams that arrived, in Mbit/s.
    pub udp: Option<f64>,
    /// The part of the datagrams that arrived after one that was sent later.
    pub late: f64,
    /// Segments with data that were sent, of all flows.
    pub sent: u64,
    /// Retransmissions among them.
    pub resent: u64,
    /// Spurious retransmissions: segments whose data the receiver had.
    pub spurious: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Mean of the smaller of congestion and receive window of the first flow, in segments.
    pub window: f64,
    /// The smoothed round trip of the first flow above its minimum, in ms: mean, and what it exceeds in 1 %
    /// of bins.
    pub delay: [f64; 2],
    /// If kept: time in seconds and goodput of each bin, all flows together, in Mbit/s.
    pub rates: Vec<(f64, f64)>,
    /// If kept: time in seconds and window of the first flow, in segments.
    pub windows: Vec<(f64, f64)>,
}

impl StripedRun {
    /// Goodput of all flows, in Mbit/s.
    pub fn total(&self) -> f64 {
        self.goodput.iter().sum()
    }
    /// Retransmissions in percent of all segments.
    pub fn resent_percent(&self) -> f64 {
        self.resent as f64 * 100.0 / self.sent.max(1) as f64
    }
    /// Spurious retransmissions in percent of all segments.
    pub fn spurious_percent(&self) -> f64 {
        self.spurious as f64 * 100.0 / self.sent.max(1) as f64
    }
}

/// Makes a run. What comes in the first part of it, `skipped`, does not count as goodput.
///
/// # Errors
/// See [`MeasureError`].
pub(crate) fn measure(
    case: &NicsCase,
    [time, skipped]: [Span; 2],
    assumed: &WorldAssumptions,
    stop: &StopRequest<'_>,
) -> Result<StripedRun, MeasureError> {
    let scenario = case.scenario(time, assumed)?;
    let mut seen = SampleSums {
        from: Instant::ZERO + skipped,
        curves: case.curves,
        delivered: vec![ByteCount::ZERO; scenario.flows.len()],
        windows: Vec::new(),
        trips: Vec::new(),
        min_trip: f64::MAX,
        rates: Vec::new(),
        last: Instant::ZERO,
    };
    let outcome = verified(observe(&scenario, Inputs::default(), &mut seen, stop)?)?;
    let mut m = seen.summary(time - skipped);
    for flow in &outcome.flows {
        m.sent += data_segments(flow);
        m.resent += flow.retransmissions();
        m.spurious += flow.receiver.duplicates;
        m.timeouts += flow.timeouts;
    }
    if let Some(udp) = outcome.datagrams.first() {
        m.udp = Some(Rate::of(udp.bytes, time - DATAGRAMS_BEGIN).as_mbit_f64());
        m.late = udp.late as f64 / udp.received.max(1) as f64;
    }
    Ok(m)
}

/// What samples add up to.
struct SampleSums {
    from: Instant,
    curves: bool,
    delivered: Vec<ByteCount>,
    windows: Vec<(f64, f64)>,
    trips: Vec<f64>,
    min_trip: f64,
    rates: Vec<(f64, f64)>,
    last: Instant,
}

impl PaperObserver for SampleSums {
    fn bin(&mut self, run: &mut Run, _: RunProgress) {
        run.samples().iter().for_each(|sample| self.take(sample));
    }
}

impl SampleSums {
    fn take(&mut self, sample: &FlowSample) {
        let at = sample.time.as_secs_f64();
        let counts = sample.time > self.from;
        if let Some(delivered) = self.delivered.get_mut(sample.flow).filter(|_| counts) {
            *delivered += sample.delivered;
        }
        if self.curves {
            let bin = if sample.flow == 0 { sample.time.since(self.last) } else { Span::ZERO };
            match self.rates.last_mut() {
                Some(rate) if bin.is_zero() => {
                    let width = (at - rate.0).max(1e-9);
                    rate.1 += sample.delivered.get() as f64 * 8e-6 / width;
                }
                _ => {
                    let begin = self.last.as_secs_f64();
                    self.rates.push((begin, Rate::of(sample.delivered, bin).as_mbit_f64()));
                }
            }
            self.last = sample.time;
        }
        if sample.flow != 0 {
            return;
        }
        let s = &sample.sender;
        let receiver = s.rwnd.get() / u64::from(s.mss.max(1));
        self.windows.push((at, u64::from(s.cwnd.get()).min(receiver) as f64));
        let trip = s.srtt.as_secs_f64() * 1e3;
        if trip > 0.0 {
            self.min_trip = self.min_trip.min(trip);
            self.trips.extend(counts.then_some(trip));
        }
    }

    fn summary(mut self, counted: Span) -> StripedRun {
        let from = self.from.as_secs_f64();
        let later: Vec<f64> = self.windows.iter().filter(|w| w.0 > from).map(|w| w.1).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let average = mean(&self.trips) - self.min_trip;
        let high = percentile(&mut self.trips, 99.0).map_or(f64::NAN, |t| t - self.min_trip);
        StripedRun {
            goodput: self.delivered.iter().map(|d| Rate::of(*d, counted).as_mbit_f64()).collect(),
            window: mean(&later),
            delay: [average, high],
            rates: self.rates,
            windows: if self.curves { self.windows } else { Vec::new() },
            ..StripedRun::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::IDLE;
    use super::*;

    /// Breaks: goodput counts the beginning, or the window is not what may be in flight.
    #[test]
    fn the_beginning_does_not_count() {
        let case =
            NicsCase::published("90/10", 0, IDLE).with("flows.bulk.receiver.window", "10 packets").drawn();
        let from = |ms| {
            measure(&case, [300, ms].map(Span::from_millis), &WorldAssumptions::default(), &|| false).unwrap()
        };
        let (all, later) = (from(0), from(100));
        assert_eq!((all.sent, &all.rates), (later.sent, &later.rates));
        let mean = |from: f64| {
            let rates = all.rates.iter().filter(|(at, _)| *at >= from - 1e-9).map(|(_, rate)| *rate);
            rates.clone().sum::<f64>() / rates.count() as f64
        };
        assert!((all.total() / mean(0.0) - 1.0).abs() < 1e-3, "{} {}", all.total(), mean(0.0));
        assert!((later.total() / mean(0.1) - 1.0).abs() < 1e-3, "{} {}", later.total(), mean(0.1));
        assert!(all.windows.iter().all(|(_, window)| *window <= 10.0));
        assert!(all.resent > 0 && all.spurious > 0 && all.spurious <= all.resent);
    }
}
