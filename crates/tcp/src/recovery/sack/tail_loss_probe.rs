//! Tail loss probes: when nothing is heard for two round trips, one segment asks (RFC 8985 §7).

use crate::recovery::AckInput;
use crate::segments::Segments;
use farpace_units::{Instant, Packets, Seq, Span};
use farpace_wire::tcp::SackBlock;

/// TLP.max_ack_delay: a lone segment may be acknowledged late.
const MAX_ACK_DELAY: Span = Span::from_millis(200);
/// The wait without a round-trip sample.
const WITHOUT_SRTT: Span = Span::from_secs(1);

/// What the probe will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlpState {
    /// A segment that was never sent: one beyond the congestion window.
    New,
    /// The last segment again.
    Last,
}

/// Variables of RFC 8985 §7.1 and the probe timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailLossProbe {
    /// PTO.
    pub deadline: Option<Instant>,
    end_seq: Option<Seq>,
    is_retrans: bool,
    /// A probe is to be sent.
    pub pending: Option<TlpState>,
    /// A round trip was measured since the last probe.
    measured: bool,
    probed: bool,
}

impl TailLossProbe {
    /// §7.2: arms the timer, if a probe would help: no SACKed segments, no recovery.
    pub fn arm(&mut self, now: Instant, srtt: Span, rto_deadline: Option<Instant>, segments: &Segments) {
        let eligible = self.end_seq.is_none() && !segments.is_empty() && segments.sacked_out().is_zero();
        self.measured |= !self.probed && !srtt.is_zero(); // the handshake measured
        self.deadline = eligible.then(|| {
            let alone = segments.packets_out() == Packets::new(1);
            let pto = match (srtt.is_zero(), alone) {
                (true, _) => WITHOUT_SRTT,
                (false, true) => srtt * 2 + MAX_ACK_DELAY,
                (false, false) => srtt * 2,
            };
            rto_deadline.map_or(now + pto, |rto| (now + pto).min(rto))
        });
    }

    /// A round trip was measured.
    pub fn on_sample(&mut self) {
        self.measured = true;
    }

    /// §7.3: the timer has fired. True: a probe is to be sent, and the retransmission timer begins anew. (If
    /// there is none to send, that timer was never stopped here, so it need not be started again.) With
    /// `inside` the tail has not left the host: it is its own probe.
    pub fn on_timer(&mut self, new_data: bool, inside: bool) -> bool {
        self.deadline = None;
        if self.end_seq.is_some() || !self.measured || inside {
            return false;
        }
        self.pending = Some(if new_data { TlpState::New } else { TlpState::Last });
        true
    }

    /// The probe left; SND.NXT is `snd_nxt` now.
    pub fn on_sent(&mut self, snd_nxt: Seq) {
        if let Some(probe) = self.pending.take() {
            self.end_seq = Some(snd_nxt);
            self.is_retrans = probe == TlpState::Last;
            self.measured = false;
            self.probed = true;
        }
    }

    /// §7.4.2: true if this ACK shows that a probe has repaired a loss, so that the window must come down.
    pub fn on_ack(&mut self, ack: &AckInput<'_>, dsack: Option<SackBlock>) -> bool {
        let Some(end) = self.end_seq.filter(|end| ack.ack.after_eq(*end)) else { return false };
        let duplicate = ack.ack == ack.prior_snd_una && !ack.has_data && !ack.window_update;
        if !self.is_retrans || dsack.is_some_and(|block| block.end == end) {
            self.end_seq = None; // both arrived, or the probe carried new data
            false
        } else if ack.ack.after(end) {
            self.end_seq = None;
            true
        } else {
            if duplicate && ack.sack.is_empty() {
                self.end_seq = None; // both arrived, told by a receiver without D-SACK
            }
            false
        }
    }

    /// True if this D-SACK answers a probe: then no retransmission was wrong.
    pub fn explains(&self, dsack: SackBlock) -> bool {
        self.is_retrans && self.end_seq == Some(dsack.end)
    }

    /// §7.1: recovery begins.
    pub fn reset(&mut self) {
        let (measured, probed) = (self.measured, self.probed);
        *self = TailLossProbe { measured, probed, ..TailLossProbe::default() };
    }
}
