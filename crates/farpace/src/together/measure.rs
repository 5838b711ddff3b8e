//! What is looked at in a run.

use crate::grid;
use farpace_units::{ByteCount, Instant, Span};

/// What came of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Payload that arrived, over the time from connecting to the end of the run, in Mbit/s.
    pub goodput: f64,
    /// The longest time in which nothing arrived, after the first byte had, in seconds: as fine as a bin.
    pub silence: f64,
    /// Packets dropped by policers and full queues, of 1,000 data segments sent.
    pub congestion_lost: f64,
    /// Packets dropped for other reasons, which are bit errors here, of 1,000 data segments sent.
    pub errors_lost: f64,
    /// Segments sent again beyond all that was dropped anywhere, of 1,000 sent: for nothing.
    pub spurious: f64,
    /// ACKs that the receiver sent, for 100 data segments.
    pub acks: f64,
    /// What arrived in each bin.
    pub bins: Vec<(Instant, ByteCount)>,
}

impl Measurement {
    /// Of the only flow of a run that was measured with readings; none if it has no flow.
    pub fn of(run: &grid::Measurement) -> Option<Measurement> {
        let flow = run.flows.first()?;
        let bins: Vec<_> = flow.readings.iter().map(|reading| (reading.at, reading.delivered)).collect();
        // Percent there.
        let of_1000 = |percent: f64| percent * 10.0;
        Some(Measurement {
            goodput: flow.goodput,
            silence: longest_silence(&bins).as_secs_f64(),
            congestion_lost: of_1000(run.congestion_lost),
            errors_lost: of_1000(run.lost - run.congestion_lost),
            spurious: of_1000((flow.retransmitted - run.lost).max(0.0)),
            acks: flow.acks,
            bins,
        })
    }
}

/// The longest stretch of bins without a byte, from the first byte to the end.
fn longest_silence(bins: &[(Instant, ByteCount)]) -> Span {
    let [(first, _), (second, _), ..] = bins else { return Span::ZERO };
    let silences = bins.split(|(_, delivered)| *delivered > ByteCount::ZERO);
    // What is before the first byte is no silence.
    let longest = silences.skip(1).map(<[_]>::len).max().unwrap_or(0);
    second.since(*first) * longest as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a stop is not seen, is longer than it was, or the time before the first byte counts.
    #[test]
    fn silence_is_what_lies_between_bytes_and_behind_the_last() {
        let of = |bins: &[u64]| {
            let at = |(n, bytes): (usize, &u64)| {
                (Instant::ZERO + Span::from_millis(100) * (n as u64 + 1), ByteCount::new(*bytes))
            };
            longest_silence(&bins.iter().enumerate().map(at).collect::<Vec<_>>()).as_millis()
        };
        assert_eq!(of(&[0, 0, 0, 5, 5, 5]), 0);
        assert_eq!(of(&[0, 5, 0, 0, 5, 0, 5]), 200);
        assert_eq!(of(&[5, 0, 5, 0, 0, 0]), 300);
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[0, 0]), 0);
    }
}
