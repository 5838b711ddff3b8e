//! F-RTO with SACK (RFC 5682 §3): after a timeout, wait with further retransmissions until it is clear
//! whether the timeout was right.

use farpace_units::Seq;

/// New segments that step 2 b may send.
const NEW_SEGMENTS: u32 = 2;

/// Where the algorithm stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FRto {
    /// It does not run.
    #[default]
    Off,
    /// Step 2: the head was sent again; its acknowledgment decides.
    First,
    /// Step 3: new segments may leave; the next acknowledgment decides.
    Second {
        /// SND.NXT when the first acknowledgment came.
        recovery_point: Seq,
        /// New segments that may still be sent.
        allowed: u32,
    },
}

/// What an acknowledgment looks like to F-RTO.
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    /// SND.UNA after it.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
    /// It has moved SND.UNA.
    pub advanced: bool,
    /// It acknowledges or SACKs a segment that was never sent again and left before the first acknowledgment.
    pub original: bool,
    /// It acknowledges or SACKs something beyond the recovery point.
    pub beyond: bool,
    /// It is a duplicate.
    pub duplicate: bool,
    /// There is new data that the peer's window has room for.
    pub new_data: bool,
}

impl FRto {
    /// An acknowledgment has arrived after the timeout. True: the timeout was spurious.
    pub fn on_ack(&mut self, sign: &Sign) -> bool {
        match *self {
            FRto::Off => false,
            FRto::First if !sign.advanced => false,
            FRto::First => {
                let covered = sign.snd_una.after_eq(sign.snd_nxt);
                *self = if covered || !sign.new_data {
                    FRto::Off
                } else {
                    FRto::Second { recovery_point: sign.snd_nxt, allowed: NEW_SEGMENTS }
                };
                false
            }
            FRto::Second { .. } if !sign.advanced && !sign.duplicate && !sign.original && !sign.beyond => {
                false
            }
            FRto::Second { .. } => {
                *self = FRto::Off;
                sign.original && !sign.beyond
            }
        }
    }

    /// The highest sequence number that counts as sent before the decision.
    pub fn recovery_point(&self) -> Option<Seq> {
        match self {
            FRto::Second { recovery_point, .. } => Some(*recovery_point),
            _ => None,
        }
    }

    /// Retransmissions have to wait.
    pub fn holds(&self) -> bool {
        matches!(self, FRto::Second { .. })
    }

    /// A new segment may be sent, whatever the window says.
    pub fn allows_new(&self) -> bool {
        matches!(self, FRto::Second { allowed: 1.., .. })
    }

    /// A new segment was sent.
    pub fn on_new(&mut self) {
        if let FRto::Second { allowed, .. } = self {
            *allowed = allowed.saturating_sub(1);
        }
    }
}
