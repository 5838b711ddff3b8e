//! TCP through a small FIFO: Table 5, Figs. 8 and 9.

use super::pace::{LINE, Pace};
use crate::interrupt;
use anyhow::{Result, anyhow, bail};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, VerifyError};
use farpace_path::DropReason;
use farpace_units::{Rate, Span};
use std::fmt;

/// One sender; `farpace run` takes the file as well.
pub const ONE: &str = include_str!("../../../../../scenarios/papers/pacing.toml");
/// Two of them.
pub const TWO: &str = include_str!("../../../../../scenarios/papers/pacing-two.toml");

/// What the paper lets one sender have, and each of two.
const RATES: (Rate, Rate) = (Rate::from_mbit(500), Rate::from_mbit(200));

/// In transfers that are shorter the second flow does not begin after 5 s, but in the middle.
const SHORT: Span = Span::from_secs(10);

/// Who sends through what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The pacing of the sender, or of both.
    pub paces: Vec<Pace>,
    /// The FIFO before the bottleneck, in kB.
    pub fifo: u32,
    /// What differs from the scenario.
    pub settings: Vec<(String, String)>,
    /// Every bin is kept: so wide.
    pub bin: Option<Span>,
}

/// What came of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// Payload that reached the receiving program over the time, flow by flow, in Mbit/s.
    pub goodput: Vec<f64>,
    /// Packets that found the FIFO full.
    pub lost: u64,
    /// Packets that found another queue full.
    pub lost_elsewhere: u64,
    /// Retransmission timeouts of all flows.
    pub timeouts: u64,
    /// End of the first bin in which the FIFO dropped, in seconds, if bins were kept.
    pub first_lost: Option<f64>,
    /// Frames that reached each receiving host: the beginning of a bin in seconds, Mbit/s.
    pub curves: Vec<Vec<(f64, f64)>>,
}

impl Case {
    /// A cell of Table 5.
    pub fn one(pace: Pace, fifo: u32) -> Case {
        Case { paces: vec![pace], fifo, settings: Vec::new(), bin: None }
    }

    /// A pair of Fig. 9.
    pub fn two(first: Pace, second: Pace) -> Case {
        Case { paces: vec![first, second], fifo: 32, settings: Vec::new(), bin: Some(Span::from_secs(1)) }
    }

    /// The same with another value of the scenario.
    pub fn with(mut self, key: &str, value: &str) -> Case {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The same with a figure.
    pub fn drawn(mut self, bin: Span) -> Case {
        self.bin = Some(bin);
        self
    }

    /// The scenario, run for `time`, with `set` on top.
    ///
    /// # Errors
    /// What the settings make impossible.
    pub fn scenario(&self, time: Span, set: &[(String, String)]) -> Result<Scenario> {
        let two = self.paces.len() > 1;
        let (text, name, rate, nics): (_, _, _, &[&str]) = if two {
            (TWO, "scenarios/papers/pacing-two.toml", RATES.1, &["nic1", "nic2"])
        } else {
            (ONE, "scenarios/papers/pacing.toml", RATES.0, &["nic"])
        };
        let key = |key: &str, value: String| (key.to_owned(), value);
        let bin = self.bin.unwrap_or(Span::from_millis(100));
        let mut all = vec![
            key("duration", time.to_string()),
            key("links.line.queue", format!("{} kB", self.fifo)),
            key("trace.bin", bin.to_string()),
        ];
        if two && time < SHORT {
            all.push(key("flows.second.start", (time / 2).to_string()));
        }
        for (nic, pace) in nics.iter().zip(&self.paces) {
            if let Some(table) = pace.table(rate) {
                all.push((format!("links.{nic}.forward"), format!("{{ pacing = {table} }}")));
            }
        }
        all.extend(self.settings.iter().chain(set).cloned());
        Scenario::parse_with(text, name, &all).map_err(|e| anyhow!("{e}"))
    }

    /// Makes the run; none if interrupted.
    ///
    /// # Errors
    /// A defect of the lab, or bytes that arrive other than they were sent.
    pub fn measure(&self, time: Span, set: &[(String, String)]) -> Result<Option<Transfer>> {
        let scenario = self.scenario(time, set)?;
        let mut run = Run::new(&scenario, Inputs::default())?;
        let mut measured = Transfer::default();
        loop {
            let progress = run.advance(None)?;
            if interrupt::asked() {
                return Ok(None);
            }
            if self.bin.is_some() && measured.first_lost.is_none() && fifo_drops(&run) > 0 {
                measured.first_lost = Some(progress.now.as_secs_f64());
            }
            if progress.finished {
                break;
            }
        }
        if self.bin.is_some() {
            let curve = |(_, meter): (&str, &farpace_path::Meter)| {
                meter.rates().map(|(at, rate)| (at.as_secs_f64(), rate.as_mbit_f64())).collect()
            };
            measured.curves = run.meters().map(curve).collect();
        }
        let outcome = run.finish()?;
        for flow in &outcome.flows {
            match &flow.verified {
                // The run ends by its time.
                Ok(_) | Err(VerifyError::Short { .. }) => {}
                Err(error) => bail!("flow `{}`: {error}", flow.name),
            }
            measured.goodput.push(flow.goodput().as_mbit_f64());
            measured.timeouts += flow.timeouts;
        }
        for drop in &outcome.drops {
            if drop.reason == DropReason::QueueFull {
                let here = drop.place == BOTTLENECK;
                *(if here { &mut measured.lost } else { &mut measured.lost_elsewhere }) += drop.packets;
            }
        }
        Ok(Some(measured))
    }
}

/// The element before which the FIFO stands.
const BOTTLENECK: &str = "line";

fn fifo_drops(run: &Run) -> u64 {
    let world = run.world();
    let line = world.ids().find(|id| world.name(*id) == BOTTLENECK);
    line.and_then(|id| world.ledger(id)).map_or(0, |ledger| ledger.dropped(DropReason::QueueFull))
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paces: Vec<&str> = self.paces.iter().map(|p| p.label()).collect();
        write!(f, "{}, FIFO {} kB", paces.join(" + "), self.fifo)?;
        self.settings.iter().try_for_each(|(key, value)| write!(f, ", {key} = {value}"))
    }
}

/// The line of a sender is not what holds it back.
const _: () = assert!(LINE.bits_per_sec() > 2 * RATES.1.bits_per_sec());

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a case is refused by the scenario reader in the middle of a long measurement.
    #[test]
    fn every_pacing_has_a_scenario() {
        for pace in [Pace::None, Pace::TokenBucket, Pace::Psp, Pace::Edf, Pace::Fq, Pace::Connection] {
            let time = Span::from_secs(1);
            let one = Case::one(pace, 16).with("flows.bulk.sender.profile", "linux-2.6.22");
            let scenario = one.scenario(time, &[]);
            assert!(scenario.is_ok(), "{pace}: {scenario:?}");
            assert!(Case::two(pace, Pace::Edf).scenario(time, &[]).is_ok(), "{pace}");
        }
    }
}
