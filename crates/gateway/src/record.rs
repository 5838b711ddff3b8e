//! What a split connection was, when it has ended.

use crate::view::{FlowView, GatewaySide};
use farpace_tcp::CloseReason;
use farpace_units::Instant;

/// Records that wait for [`Gateway::take_ended`](crate::Gateway::take_ended) at most. Further ones are
/// counted, and not kept.
pub const MAX_ENDED: usize = 65_536;

/// How a split connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// By FINs of both hosts, with all payload delivered.
    Finished,
    /// By the host of this side, or by silence on its side.
    Failed(GatewaySide, CloseReason),
    /// The handshake was not completed: the other host has refused, or one of them has given up.
    NotOpened,
    /// The gateway drains: the hosts go on with each other.
    HandedOver,
    /// The answer of the other host did not pass here: the hosts go on with each other.
    Asymmetric,
    /// One of the hosts has opened another connection between the same ends.
    Replaced,
    /// The gateway has ended with undelivered payload.
    Cut,
    /// The gateway gave it up with undelivered payload, because its peer is down.
    Abandoned,
}

impl FlowEnd {
    /// In a word; the side is in [`side`](FlowEnd::side).
    pub const fn name(self) -> &'static str {
        match self {
            FlowEnd::Finished => "finished",
            FlowEnd::Failed(_, CloseReason::Reset) => "reset",
            FlowEnd::Failed(_, CloseReason::TimedOut) => "timed_out",
            FlowEnd::Failed(_, CloseReason::Unreachable) => "unreachable",
            FlowEnd::Failed(_, CloseReason::Aborted | CloseReason::Finished) => "aborted",
            FlowEnd::NotOpened => "not_opened",
            FlowEnd::HandedOver => "handed_over",
            FlowEnd::Asymmetric => "asymmetric",
            FlowEnd::Replaced => "replaced",
            FlowEnd::Cut => "cut",
            FlowEnd::Abandoned => "abandoned",
        }
    }

    /// The side whose host has ended it, or was silent.
    pub const fn side(self) -> Option<GatewaySide> {
        match self {
            FlowEnd::Failed(side, _) => Some(side),
            _ => None,
        }
    }
}

/// A split connection that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedFlow {
    /// When it ended.
    pub at: Instant,
    /// How it ended.
    pub end: FlowEnd,
    /// As it was then.
    pub view: FlowView,
}

/// The connections of a gateway that have ended, until they are taken.
#[derive(Default)]
pub(crate) struct EndedFlows {
    flows: Vec<EndedFlow>,
    lost: u64,
}

impl EndedFlows {
    pub fn add(&mut self, flow: EndedFlow) {
        match self.flows.len() < MAX_ENDED {
            true => self.flows.push(flow),
            false => self.lost += 1,
        }
    }

    /// Those that were kept since the last call, and the number of those that were not.
    pub fn take(&mut self) -> (Vec<EndedFlow>, u64) {
        (std::mem::take(&mut self.flows), std::mem::take(&mut self.lost))
    }
}
