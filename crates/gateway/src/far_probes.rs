//! Questions to the hosts behind the peer of a pair, whose gateway has been away.
//!
//! When it has died, it may have had bytes that it had acknowledged to its host. Then that host was reset,
//! and the other one waits for it. A probe as of keep-alive, in the name of the one that waits, is answered
//! by the one that was reset with a reset, and by one whose connection lives with an ACK that changes
//! nothing.

use farpace_path::Port;
use farpace_units::{Instant, Span};
use farpace_wire::Packet;
use std::collections::VecDeque;

/// Questions that wait at most, of each kind.
pub const MAX_FAR_PROBES: usize = 16_384;
/// So many are asked at once, ...
const BATCH: usize = 32;
/// ... and the next ones after this time: they must not fill a slow link.
const PAUSE: Span = Span::from_millis(10);

/// When the peer is back, it is asked so many times, ...
const ROUNDS: u8 = 3;
/// ... with this time between: the peer leads answers into the tunnel a moment after the first can come.
const ROUND_PAUSE: Span = Span::from_secs(2);

/// What is to be asked.
#[derive(Default)]
pub(crate) struct FarProbes {
    /// Packets for a port.
    packets: VecDeque<(Port, Packet)>,
    /// Flows that live.
    slots: VecDeque<usize>,
    next: Option<Instant>,
    /// Packets for when the peer is back.
    kept: Vec<Packet>,
    /// Rounds that are left, and when the next one begins, if what was before is done.
    rounds: u8,
    round_at: Option<Instant>,
}

/// A question that is due.
pub(crate) enum FarProbe {
    Packet(Port, Packet),
    Flow(usize),
}

impl FarProbes {
    /// To be asked by this port now, and again when the peer is back: it is away.
    pub fn ask(&mut self, now: Instant, port: Port, packet: Packet) {
        // Rounds of the last time that it was back would ask nobody, and the last one forgets what is kept.
        self.round_at = None;
        if self.kept.len() < MAX_FAR_PROBES {
            self.kept.push(packet.clone());
        }
        if self.packets.len() < MAX_FAR_PROBES {
            self.packets.push_back((port, packet));
            self.next.get_or_insert(now);
        }
    }

    /// The peer is back.
    pub fn begin(&mut self, now: Instant) {
        (self.packets, self.slots, self.next) = (VecDeque::new(), VecDeque::new(), None);
        (self.rounds, self.round_at) = (ROUNDS, Some(now));
    }

    /// True if a round is due.
    pub fn is_round_due(&self, now: Instant) -> bool {
        self.next.is_none() && self.round_at.is_some_and(|at| at <= now)
    }

    /// Begins a round: by this port what was kept is asked, and these flows are.
    pub fn begin_round(&mut self, now: Instant, port: Port, slots: impl Iterator<Item = usize>) {
        self.rounds = self.rounds.saturating_sub(1);
        let is_last = self.rounds == 0;
        self.round_at = (!is_last).then_some(now + ROUND_PAUSE);
        self.packets.extend(self.kept.iter().map(|packet| (port, packet.clone())));
        self.slots.extend(slots.take(MAX_FAR_PROBES));
        self.next = Some(now);
        if is_last {
            self.kept = Vec::new();
        }
    }

    /// When something is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.next.or(self.round_at)
    }

    /// What is due now.
    pub fn due(&mut self, now: Instant) -> Vec<FarProbe> {
        if self.next.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let packets = self.packets.len().min(BATCH);
        let slots = self.slots.len().min(BATCH);
        let packets = self.packets.drain(..packets).map(|(port, packet)| FarProbe::Packet(port, packet));
        let due = packets.chain(self.slots.drain(..slots).map(FarProbe::Flow)).collect();
        self.next = (!self.packets.is_empty() || !self.slots.is_empty()).then_some(now + PAUSE);
        due
    }
}
