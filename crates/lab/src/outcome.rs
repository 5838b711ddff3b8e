//! The outcome of a run.

use crate::payload::VerifyError;
use crate::run_observer::CaptureFile;
use crate::scenario::Direction;
use crate::silence::SilenceMeter;
use farpace_events::Cause;
use farpace_link::nic::NicStats;
use farpace_link::pacing::NamedStats;
use farpace_path::{DropReason, Inspection, Meter, WaitMeter};
use farpace_tcp::{CloseReason, Counters};
use farpace_units::{ByteCount, Instant, Rate, Span};

/// Packets that were dropped at one place for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropCount {
    /// Name of the element.
    pub place: String,
    /// Why.
    pub reason: DropReason,
    /// How many.
    pub packets: u64,
}

/// The outcome of one flow of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramOutcome {
    /// Its name.
    pub name: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received, duplicates included.
    pub received: u64,
    /// Payload received.
    pub bytes: ByteCount,
    /// Of those received: arrived after one that was sent later, or for the second time.
    pub late: u64,
}

/// The outcome of the pacing of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacingOutcome {
    /// The link.
    pub link: String,
    /// Its direction.
    pub direction: Direction,
    /// The node that paced.
    pub from: String,
    /// The node at the other end.
    pub to: String,
    /// What the NIC sent.
    pub nic: NicStats,
    /// The classes, in the order of the configuration; `(rest)` last, if there is one.
    pub classes: Vec<NamedStats>,
}

/// What one of several NICs of a host sent over time.
#[derive(Clone, Debug)]
pub struct NicRate {
    /// The host.
    pub host: String,
    /// `nic0`, `nic1`, ...
    pub name: String,
    /// The link of the NIC.
    pub link: String,
    /// Its frames, without check sequences.
    pub sent: Meter,
}

/// The outcome of a host with several NICs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicsOutcome {
    /// The host.
    pub host: String,
    /// Its NICs, in order.
    pub nics: Vec<NicOutcome>,
    /// Frames that found the queue of the NICs full, or had no route.
    pub dropped: u64,
    /// Readings of the multi-NIC layer.
    pub readings: Inspection,
}

/// The outcome of one NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicOutcome {
    /// `nic0`, `nic1`, ...
    pub name: String,
    /// Its link.
    pub link: String,
    /// The rate of that link.
    pub rate: Rate,
    /// Frames it sent.
    pub sent: u64,
    /// Their bytes, without check sequences.
    pub sent_bytes: ByteCount,
    /// Frames received on its link, those for other stations included.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: ByteCount,
}

/// The outcome of one flow.
#[derive(Debug)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// When the sender connected.
    pub start: Instant,
    /// Payload to be sent.
    pub size: ByteCount,
    /// Payload that reached the receiving program.
    pub delivered: ByteCount,
    /// When the last byte arrived; none: it did not.
    pub completed: Option<Instant>,
    /// From connecting to the last byte, or to the end of the run.
    pub elapsed: Span,
    /// The comparison of received with sent bytes.
    pub verified: Result<ByteCount, VerifyError>,
    /// How the sending connection ended, if it did.
    pub sender_ended: Option<CloseReason>,
    /// The lowest rate on the path.
    pub bottleneck: Option<Rate>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that the sender's transmit queue had no room for a segment, which was kept.
    pub transmit_queue_full: u64,
    /// All counters of the sending connection.
    pub counters: Box<Counters>,
    /// All counters of the receiving connection.
    pub receiver: Box<Counters>,
    /// How long its segments with data that arrived had waited in the queues of links, retransmissions
    /// included.
    pub queued: WaitMeter,
    /// The silences of the flow.
    pub silence: SilenceMeter,
}

impl FlowOutcome {
    /// Payload per time.
    pub fn goodput(&self) -> Rate {
        Rate::of(self.delivered, self.elapsed)
    }

    /// Goodput over the bottleneck's rate, 0 to 1; none on a path without any rate.
    pub fn efficiency(&self) -> Option<f64> {
        let bottleneck = self.bottleneck?.bits_per_sec();
        (bottleneck > 0).then(|| self.goodput().bits_per_sec() as f64 / bottleneck as f64)
    }

    /// Segments sent, retransmissions included, by cause; causes that did not occur are left out.
    pub fn sent(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL.iter().copied().zip(self.counters.sent).filter(|(_, n)| *n > 0)
    }

    /// All retransmissions.
    pub fn retransmissions(&self) -> u64 {
        self.sent().filter(|(c, _)| c.is_retransmission()).map(|(_, n)| n).sum()
    }

    /// Every byte arrived and was right.
    pub fn is_intact(&self) -> bool {
        self.completed.is_some() && self.verified.as_ref().is_ok_and(|n| *n == self.size)
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Virtual time at which it ended.
    pub ended: Instant,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// The flows of datagrams, in the order of the scenario.
    pub datagrams: Vec<DatagramOutcome>,
    /// The paced directions of links, in the order of links, forward before backward.
    pub pacing: Vec<PacingOutcome>,
    /// Hosts with several NICs, by name.
    pub nics: Vec<NicsOutcome>,
    /// Drops by place and reason.
    pub drops: Vec<DropCount>,
    /// Events that the world processed.
    pub events: u64,
    /// Captures that were written.
    pub captures: Vec<CaptureFile>,
}
