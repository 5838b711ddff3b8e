//! Acknowledgement error notification (TCP-STAR §2 (III)): after a timeout, ask what was lost before
//! believing that everything was.
//!
//! The newest segment goes out again as the probe, and nothing else. What comes back decides:
//!
//! | answer | verdict | what follows |
//! |---|---|---|
//! | SND.UNA passes the probe | only ACKs were lost, or late | new data, with the window as it was |
//! | an ACK for the probe that stays below it | data was lost | what any timeout does |
//! | no answer for the backed-off timeout | the probe was lost | what any timeout does |
//!
//! The price is a round trip before the repair begins.
//!
//! The paper takes any ACK below the probe for the answer. That is the `literal` form. But an ACK that was
//! merely late says nothing of the probe: here only one that echoes the probe's timestamp or that SACKs the
//! probe is its answer, and others just advance SND.UNA. Three more things can be known without being asked:
//! if the newest segment was SACKed before the timeout, there are holes and no probe is needed; if nothing
//! was acknowledged since the timeout before, the repair has been tried and goes on without a probe; and if
//! the answer has no D-SACK for the probe, the probe was the first to arrive, so that the newest segment
//! alone was lost and is repaired now.

use crate::recovery::AckInput;
use farpace_events::Cause;
use farpace_units::Seq;
use farpace_wire::tcp::SackBlock;

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AenVerdict {
    /// All data has arrived; the ACKs were lost on the way, or late.
    Acks,
    /// The newest segment was lost, and nothing else; the probe has repaired it.
    Tail,
    /// Data below the probe is missing.
    Data,
    /// The probe was not answered.
    Probe,
}

impl AenVerdict {
    /// How the trace says it.
    pub const fn cause(self) -> Cause {
        match self {
            AenVerdict::Acks => Cause::AenAcksLost,
            AenVerdict::Tail => Cause::AenTailLost,
            AenVerdict::Data => Cause::AenDataLost,
            AenVerdict::Probe => Cause::AenProbeLost,
        }
    }
}

/// Where the procedure stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aen {
    /// It does not run.
    #[default]
    Off,
    /// The probe is to be sent.
    Due,
    /// The probe is under way.
    Sent {
        /// One past its last sequence number.
        end: Seq,
        /// TSval that it carries.
        timestamp: u32,
    },
}

impl Aen {
    /// Nothing but the probe may be sent.
    pub fn holds(self) -> bool {
        self != Aen::Off
    }

    /// The probe left: it ends at `end` and carries `timestamp`.
    pub fn on_sent(&mut self, end: Seq, timestamp: u32) {
        if *self == Aen::Due {
            *self = Aen::Sent { end, timestamp };
        }
    }

    /// True if this D-SACK answers the probe: then it tells nothing of other retransmissions.
    pub fn explains(self, dsack: SackBlock) -> bool {
        matches!(self, Aen::Sent { end, .. } if end == dsack.end)
    }

    /// What this ACK says, if it is the answer. `sacked`: it SACKs or D-SACKs the probe, which was not SACKed
    /// when it left.
    pub fn judge(
        self,
        literal: bool,
        ack: &AckInput<'_>,
        sacked: bool,
        dsack: Option<SackBlock>,
    ) -> Option<AenVerdict> {
        let Aen::Sent { end, timestamp } = self else { return None };
        let echoes = ack.tsecr.is_some_and(|echo| (echo.wrapping_sub(timestamp) as i32) >= 0);
        if ack.snd_una.after_eq(end) {
            // P_seq <= ACK_seq, with P_seq the last byte: at equality with the first the probe itself is
            // missing.
            let duplicate = dsack.is_some_and(|d| d.end == end);
            let first = !literal && echoes && !duplicate;
            return Some(if first { AenVerdict::Tail } else { AenVerdict::Acks });
        }
        (literal || echoes || sacked).then_some(AenVerdict::Data)
    }
}
