//! The states of loss recovery.

/// The congestion state of Linux, as in §2 of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum RecoveryState {
    /// No problem detected.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs have been received.
    Disorder,
    /// The window is being reduced for a reason other than loss.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a retransmission timeout.
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
