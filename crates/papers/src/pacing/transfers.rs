//! TCP through a small FIFO: Table 5, Figs. 8 and 9.

use super::scheduler::PacingMethod;
use crate::assumptions::{RunPart, WorldAssumptions};
use crate::experiment::{MeasureError, StopRequest};
use crate::observe::{PaperObserver, Setting, observe, scenario, set, verified};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunProgress};
use farpace_path::{DropReason, Meter};
use farpace_units::{Rate, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One sender; `farpace run` takes the file as well.
pub const ONE: &str = include_str!("../../../../scenarios/papers/pacing.toml");
/// Two senders.
pub const TWO: &str = include_str!("../../../../scenarios/papers/pacing-two.toml");

/// Rates that the paper gives one sender, and each of two.
const RATES: [Rate; 2] = [Rate::from_mbit(500), Rate::from_mbit(200)];
/// In shorter transfers the second flow does not begin after 5 s, but in the middle.
const SHORT: Span = Span::from_secs(10);
/// The element behind the FIFO.
const BOTTLENECK: &str = "line";

/// Which transfer of the paper it is, which decides its length and its bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FifoRunKind {
    /// A cell of Table 5.
    Table5,
    /// Two flows of Fig. 9: curves in bins of 1 s.
    Pair,
    /// The slow start of Fig. 8: curves in bins of 500 us.
    SlowStart,
    /// What goes beyond the paper: curves in bins of 1 s.
    Extension,
}

/// Who sends through what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FifoCase {
    pub kind: FifoRunKind,
    /// The pacing of the sender, or of both.
    pub pacers: Vec<PacingMethod>,
    /// The FIFO before the bottleneck, in kB.
    pub fifo: u32,
    settings: Vec<Setting>,
}

impl FifoCase {
    pub fn one(kind: FifoRunKind, pacer: PacingMethod, fifo: u32) -> Self {
        FifoCase { kind, pacers: vec![pacer], fifo, settings: Vec::new() }
    }
    /// A cell of Table 5.
    pub fn table_5(pacer: PacingMethod, fifo: u32) -> Self {
        FifoCase::one(FifoRunKind::Table5, pacer, fifo)
    }
    /// A pair of Fig. 9.
    pub fn pair(first: PacingMethod, second: PacingMethod) -> Self {
        let kind = FifoRunKind::Pair;
        FifoCase { kind, pacers: vec![first, second], fifo: 32, settings: Vec::new() }
    }
    /// The same with a setting.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.settings.push(set(key, value));
        self
    }

    /// The width of bins that are kept; none: they are not.
    fn bin(&self) -> Option<Span> {
        match self.kind {
            FifoRunKind::Table5 => None,
            FifoRunKind::SlowStart => Some(Span::from_micros(500)),
            FifoRunKind::Pair | FifoRunKind::Extension => Some(Span::from_secs(1)),
        }
    }

    /// The scenario, run for `time`, with `more` on top.
    ///
    /// # Errors
    /// What the settings make impossible.
    pub(crate) fn scenario(&self, time: Span, more: &WorldAssumptions) -> Result<Scenario, MeasureError> {
        let two = self.pacers.len() > 1;
        let (text, name, nics): (_, _, &[&str]) = if two {
            (TWO, "scenarios/papers/pacing-two.toml", &["nic1", "nic2"])
        } else {
            (ONE, "scenarios/papers/pacing.toml", &["nic"])
        };
        let mut all = vec![
            set("duration", time.to_string()),
            set("links.line.queue", format!("{} kB", self.fifo)),
            set("trace.bin", self.bin().unwrap_or(Span::from_millis(100)).to_string()),
        ];
        if two && time < SHORT {
            all.push(set("flows.second.start", (time / 2).to_string()));
        }
        for (nic, pacer) in nics.iter().zip(&self.pacers) {
            let table = pacer.table(RATES[usize::from(two)]);
            let key = format!("links.{nic}.forward");
            all.extend(table.map(|table| set(key, format!("{{ pacing = {table} }}"))));
        }
        all.extend(self.settings.iter().cloned());
        more.apply(&mut all, &self.parts(nics, if two { &["first", "second"] } else { &["bulk"] }));
        scenario(text, name, &all)
    }

    /// The parts that worlds may change. What goes beyond the paper has none, and a bucket of a size of its
    /// own keeps it.
    fn parts(&self, nics: &[&str], flows: &[&str]) -> Vec<RunPart<'static>> {
        if self.kind == FifoRunKind::Extension {
            return Vec::new();
        }
        let own_burst = self.settings.iter().any(|(key, _)| key.ends_with(".burst"));
        let mut parts = Vec::new();
        for (nic, pacer) in nics.iter().zip(&self.pacers) {
            let forward = format!("links.{nic}.forward");
            if *pacer == PacingMethod::None {
                parts.push(("unpaced-nic", forward));
                continue;
            }
            let pacing = format!("{forward}.pacing");
            if *pacer == PacingMethod::TokenBucket && !own_burst {
                parts.push(("token-bucket", pacing.clone()));
            }
            parts.push(("paced-nic", pacing));
        }
        let hosts: &[&str] = if flows.len() > 1 { &["a1", "a2"] } else { &["a"] };
        parts.extend(hosts.iter().map(|host| ("sender-host", format!("hosts.{host}"))));
        for flow in flows {
            parts.push(("sender", format!("flows.{flow}.sender")));
            parts.push(("receiver", format!("flows.{flow}.receiver")));
        }
        parts
    }

    /// Makes the run.
    ///
    /// # Errors
    /// See [`MeasureError`].
    pub(crate) fn measure(
        &self,
        time: Span,
        more: &WorldAssumptions,
        stop: &StopRequest<'_>,
    ) -> Result<FifoTransfer, MeasureError> {
        let drawn = self.bin().is_some();
        let mut first = FirstDrop { wanted: drawn, at: None };
        let run = observe(&self.scenario(time, more)?, Inputs::default(), &mut first, stop)?;
        let mut measured = FifoTransfer { first_lost: first.at, ..FifoTransfer::default() };
        if drawn {
            let curve = |(_, meter): (&str, &Meter)| {
                meter.rates().map(|(at, rate)| (at.as_secs_f64(), rate.as_mbit_f64())).collect()
            };
            measured.curves = run.meters().map(curve).collect();
        }
        let outcome = verified(run)?;
        for flow in &outcome.flows {
            measured.goodput.push(flow.goodput().as_mbit_f64());
            measured.timeouts += flow.timeouts;
        }
        for drop in outcome.drops.iter().filter(|drop| drop.reason == DropReason::QueueFull) {
            match drop.place == BOTTLENECK {
                true => measured.lost += drop.packets,
                false => measured.dropped_at_sender += drop.packets,
            }
        }
        Ok(measured)
    }
}

impl fmt::Display for FifoCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pacers: Vec<&str> = self.pacers.iter().map(|p| p.label()).collect();
        write!(f, "{}, FIFO {} kB", pacers.join(" + "), self.fifo)?;
        self.settings.iter().try_for_each(|(key, value)| write!(f, ", {key} = {value}"))
    }
}

/// What came of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FifoTransfer {
    /// Payload that reached the receiving program over the time, flow by flow, in Mbit/s.
    pub goodput: Vec<f64>,
    /// Packets that found the FIFO full.
    pub lost: u64,
    /// Packets that found the queue of their sender's own NIC full.
    pub dropped_at_sender: u64,
    /// Retransmission timeouts of all flows.
    pub timeouts: u64,
    /// End of the first bin in which the FIFO dropped, in seconds, if bins are kept.
    pub first_lost: Option<f64>,
    /// Frames that reached each receiving host: begin of a bin in seconds, Mbit/s.
    pub curves: Vec<Vec<(f64, f64)>>,
}

struct FirstDrop {
    wanted: bool,
    at: Option<f64>,
}

impl PaperObserver for FirstDrop {
    fn bin(&mut self, run: &mut Run, progress: RunProgress) {
        if !self.wanted || self.at.is_some() {
            return;
        }
        let world = run.world();
        let line = world.ids().find(|id| world.name(*id) == BOTTLENECK);
        let ledger = line.and_then(|id| world.ledger(id));
        if ledger.is_some_and(|ledger| ledger.dropped(DropReason::QueueFull) > 0) {
            self.at = Some(progress.now.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a case is refused by the scenario reader in the middle of a long measurement.
    #[test]
    fn every_pacer_has_a_scenario() {
        for pacer in [
            PacingMethod::None,
            PacingMethod::TokenBucket,
            PacingMethod::Psp,
            PacingMethod::Edf,
            PacingMethod::Fq,
            PacingMethod::Connection,
        ] {
            let (time, literal) = (Span::from_secs(1), WorldAssumptions::default());
            let one = FifoCase::table_5(pacer, 16).with("flows.bulk.sender.profile", "linux-2.6.22");
            let scenario = one.scenario(time, &literal);
            assert!(scenario.is_ok(), "{pacer}: {scenario:?}");
            assert!(FifoCase::pair(pacer, PacingMethod::Edf).scenario(time, &literal).is_ok(), "{pacer}");
        }
    }
}
