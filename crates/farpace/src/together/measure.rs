//! One run, and what is noted of it.

use crate::interrupt;
use anyhow::{Result, bail};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, VerifyError};
use farpace_path::DropReason;
use farpace_trace::Cause;
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
    /// Packets dropped because of bit errors, of 1,000 data segments sent.
    pub errors_lost: f64,
    /// Segments sent again that had not been dropped anywhere, of 1,000 sent: for nothing.
    pub spurious: f64,
    /// ACKs that the receiver sent, for 100 data segments.
    pub acks: f64,
    /// What arrived in each bin.
    pub bins: Vec<(Instant, ByteCount)>,
}

/// Makes a run to the end of its time; none if interrupted.
///
/// # Errors
/// A defect of the lab, or bytes that arrive other than they were sent.
pub fn measure(scenario: &Scenario) -> Result<Option<Measurement>> {
    let mut run = Run::new(scenario, Inputs::default())?;
    let mut bins = Vec::new();
    loop {
        let progress = run.advance(None)?;
        if interrupt::asked() {
            return Ok(None);
        }
        let of_first = run.samples().iter().filter(|sample| sample.flow == 0);
        bins.extend(of_first.map(|sample| (sample.time, sample.delivered)));
        if progress.finished {
            break;
        }
    }
    let outcome = run.finish()?;
    let Some(flow) = outcome.flows.first() else { bail!("the scenario has no flow") };
    match &flow.verified {
        // The run ends by its time.
        Ok(_) | Err(VerifyError::Short { .. }) => {}
        Err(error) => bail!("flow `{}`: {error}", flow.name),
    }
    let sent: u64 = flow.sent().map(|(_, n)| n).sum();
    let dropped = |which: fn(DropReason) -> bool| -> u64 {
        outcome.drops.iter().filter(|d| which(d.reason)).map(|d| d.packets).sum()
    };
    let congestion = dropped(|reason| matches!(reason, DropReason::QueueFull | DropReason::Policed));
    let errors = dropped(|reason| !matches!(reason, DropReason::QueueFull | DropReason::Policed));
    let acks: u64 = Cause::ALL
        .iter()
        .zip(&flow.receiver.sent)
        .filter(|(cause, _)| cause.is_acknowledgment())
        .map(|(_, n)| n)
        .sum();
    let of_sent = |n: u64, of: f64| n as f64 * of / sent.max(1) as f64;
    Ok(Some(Measurement {
        goodput: flow.goodput().as_mbit_f64(),
        silence: longest_silence(&bins).as_secs_f64(),
        congestion_lost: of_sent(congestion, 1e3),
        errors_lost: of_sent(errors, 1e3),
        spurious: of_sent(flow.retransmissions().saturating_sub(congestion + errors), 1e3),
        acks: of_sent(acks, 1e2),
        bins,
    }))
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
