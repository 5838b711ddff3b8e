//! What each run gave, and what asking changed.

use super::plan::{Cell, Plan};
use super::words::Choice;
use crate::interrupt;
use crate::statistics::percentile;
use anyhow::{Result, anyhow, bail};
use farpace_lab::{Inputs, Run};
use farpace_path::{Link, LinkStats, Port};
use std::collections::BTreeMap;

/// Ethernet header of each frame; what follows is the IP packet.
const ETHERNET: u64 = 14;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// From connecting to the last byte, in seconds.
    pub completion: f64,
    /// Payload, in MB.
    pub megabytes: f64,
    /// IP packets and bytes on the way of data.
    pub data: (u64, u64),
    /// The same on the way of ACKs.
    pub acks: (u64, u64),
    /// Segments that asked.
    pub asked: u64,
    /// Confirmations that came.
    pub confirmed: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Measured {
    /// ACKs for each MB of payload.
    pub fn acks_per_mb(&self) -> f64 {
        self.acks.0 as f64 / self.megabytes
    }
    /// Bytes of ACKs for each MB of payload, in kB.
    pub fn ack_kb_per_mb(&self) -> f64 {
        self.acks.1 as f64 / 1e3 / self.megabytes
    }
}

/// Makes one run to the end of its flow; none if interrupted.
///
/// # Errors
/// A defect of the lab, or a flow that does not arrive whole.
pub fn measure(cell: &Cell) -> Result<Option<Measured>> {
    let mut run = Run::new(&cell.scenario()?, Inputs::default())?;
    while !run.advance(None)?.finished {
        if interrupt::asked() {
            return Ok(None);
        }
    }
    let world = run.world();
    let line = world.find("line").and_then(|id| world.element::<Link>(id));
    let line = line.ok_or_else(|| anyhow!("there is no line"))?;
    let ip = |s: &LinkStats| (s.packets, s.bytes.get().saturating_sub(ETHERNET * s.packets));
    let (data, acks) = (ip(line.direction(Port(0)).stats()), ip(line.direction(Port(1)).stats()));
    let outcome = run.finish()?;
    let [flow] = outcome.flows.as_slice() else { bail!("there is no flow") };
    if !flow.is_intact() {
        bail!("the flow did not arrive whole");
    }
    Ok(Some(Measured {
        completion: flow.elapsed.as_secs_f64(),
        megabytes: flow.size.get() as f64 / 1e6,
        data,
        acks,
        asked: flow.counters.asked,
        confirmed: flow.counters.confirmed,
        retransmissions: flow.retransmissions(),
        timeouts: flow.timeouts,
    }))
}

/// All runs.
pub struct Results {
    /// What they are made of.
    pub plan: Plan,
    runs: BTreeMap<Cell, Measured>,
}

/// What asking did over many flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Completion time saved, in percent: the worst flow, the middle one, the best one.
    pub gain: [f64; 3],
    /// Flows that gained 1 % or more, and that lost as much.
    pub moved: (usize, usize),
    /// Flows.
    pub flows: usize,
    /// ACKs for each MB: mean over the flows.
    pub acks_per_mb: f64,
    /// Their bytes, in kB for each MB.
    pub ack_kb_per_mb: f64,
    /// Bytes on the way of data, in percent more than without asking, retransmissions included: mean.
    pub data_more: f64,
    /// Of the segments that asked, those whose confirmation came, in percent.
    pub confirmed: f64,
}

impl Results {
    /// `measured` in the order of the plan's cells.
    pub fn new(plan: &Plan, measured: Vec<Measured>) -> Results {
        Results { runs: plan.cells.iter().copied().zip(measured).collect(), plan: plan.clone() }
    }

    /// How many runs there were.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Every run with the one that does not ask, in a fixed order.
    pub fn all(&self) -> impl Iterator<Item = (&Cell, &Measured, &Measured)> {
        self.runs.iter().filter_map(|(cell, m)| Some((cell, m, self.runs.get(&cell.unasked())?)))
    }

    /// Completion time that asking saves, in percent.
    pub fn gain(&self, cell: &Cell) -> Option<f64> {
        Some(gain(self.runs.get(cell)?, self.runs.get(&cell.unasked())?))
    }

    /// What `asked` does to all flows to a receiver whose window grows so; none if nothing was measured.
    pub fn effect(&self, growth: Choice, receiver: Choice, asked: Choice) -> Option<Effect> {
        let these = self
            .all()
            .filter(|(c, ..)| (c.growth, c.receiver, c.asked) == (growth, receiver, asked))
            .collect::<Vec<_>>();
        let flows = these.len();
        let mean = |of: &dyn Fn(&Measured, &Measured) -> f64| {
            these.iter().map(|(_, m, off)| of(m, off)).sum::<f64>() / flows as f64
        };
        let mut gains: Vec<f64> = these.iter().map(|(_, m, off)| gain(m, off)).collect();
        let median = percentile(&mut gains, 50.0)?;
        let (worst, best) = (*gains.first()?, *gains.last()?);
        let (asked, confirmed) =
            these.iter().fold((0, 0), |(a, c), (_, m, _)| (a + m.asked, c + m.confirmed));
        Some(Effect {
            gain: [worst, median, best],
            moved: (
                gains.iter().filter(|g| **g >= 1.0).count(),
                gains.iter().filter(|g| **g <= -1.0).count(),
            ),
            flows,
            acks_per_mb: mean(&|m, _| m.acks_per_mb()),
            ack_kb_per_mb: mean(&|m, _| m.ack_kb_per_mb()),
            data_more: mean(&|m, off| (m.data.1 as f64 / off.data.1 as f64 - 1.0) * 100.0),
            confirmed: confirmed as f64 * 100.0 / asked as f64,
        })
    }

    /// The flow that gains most by being asked so.
    pub fn best(&self, growth: Choice, receiver: Choice, asked: Choice) -> Option<&Cell> {
        let these = self.all().filter(|(c, ..)| (c.growth, c.receiver, c.asked) == (growth, receiver, asked));
        these.max_by(|a, b| gain(a.1, a.2).total_cmp(&gain(b.1, b.2))).map(|(cell, ..)| cell)
    }
}

/// Completion time saved, in percent.
pub fn gain(asked: &Measured, off: &Measured) -> f64 {
    (1.0 - asked.completion / off.completion) * 100.0
}
