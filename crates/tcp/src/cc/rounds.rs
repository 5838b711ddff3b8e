//! Round trips, told apart by what was sent when they began.

use super::AckSample;
use farpace_units::Seq;

/// Round trips by sequence number: one is over when all that was sent at its begin is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeqRounds {
    /// SND.NXT at the begin; none before the first ACK.
    end: Option<Seq>,
}

impl SeqRounds {
    /// True: this ACK ends a round trip, and the next one begins. The first ACK only begins one.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        let over = self.end.is_none_or(|end| ack.snd_una.after_eq(end));
        let first = self.end.is_none();
        if over {
            self.end = Some(ack.snd_nxt);
        }
        over && !first
    }
}

/// Round trips by packets: one is over when something sent after its begin is delivered (draft-ietf-ccwg-bbr
/// §5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketRounds {
    next_delivered: u64,
    pub count: u64,
    /// The ACK at hand begins a round trip.
    pub start: bool,
}

impl PacketRounds {
    /// A round trip begins with what is sent from now on. `delivered`: segments over the whole connection.
    pub fn restart(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }

    /// An ACK; `prior_delivered`: `delivered` when the newest segment that it brought was sent, if it brought
    /// any.
    pub fn on_ack(&mut self, prior_delivered: Option<u64>, delivered: u64) {
        self.start = prior_delivered.is_some_and(|prior| prior >= self.next_delivered);
        if self.start {
            self.restart(delivered);
            self.count += 1;
        }
    }
}
