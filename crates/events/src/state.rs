//! The states of loss recovery.

/// The congestion state of Linux, which the paper names in §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum RecoveryState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs have been seen.
    Disorder,
    /// The window is being reduced for another reason than loss.
    Cwr,
    /// Fast retransmit is under way.
    Recovery,
    /// A retransmission timeout has happened.
    Loss,
}

impl RecoveryState {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            RecoveryState::Open => "open",
            RecoveryState::Disorder => "disorder",
            RecoveryState::Cwr => "cwr",
            RecoveryState::Recovery => "recovery",
            RecoveryState::Loss => "loss",
        }
    }
}
