//! Counters of a layer.

use farpace_path::Inspection;

/// Counters of a [`MultiNic`](super::MultiNic).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MultiNicStats {
    /// Frames of the stack sent, by NIC.
    pub sent: Vec<u64>,
    /// Frames for the stack received, by NIC.
    pub received: Vec<u64>,
    /// Frames of the layer itself sent: probes, replies, announcements.
    pub own: u64,
    /// Received frames for other hosts.
    pub passed_over: u64,
    /// Our own frames that came back, and copies of frames to groups that another card has taken.
    pub copies: u64,
    /// Probes and answers that were not understood.
    pub bad_probes: u64,
    /// Frames of the stack from an address that it may not use (RFC 5227).
    pub unclaimed: u64,
    /// Times that another machine was heard to have an address of ours, or to want it (RFC 5227).
    pub conflicts: u64,
    /// Path failures.
    pub lanes_lost: u64,
    /// Frames that were sent again because a neighbour missed them, or the card that had sent them failed.
    pub repaired: u64,
    /// Messages about what is missing that were not understood.
    pub bad_questions: u64,
}

impl MultiNicStats {
    /// Counters for `nics` NICs.
    pub(super) fn new(cards: usize) -> Self {
        MultiNicStats { sent: vec![0; cards], received: vec![0; cards], ..MultiNicStats::default() }
    }
    /// The counters as named readings.
    pub fn inspect(&self) -> Inspection {
        let MultiNicStats {
            sent,
            received,
            own,
            passed_over,
            copies,
            bad_probes,
            unclaimed,
            conflicts,
            lanes_lost,
            repaired,
            bad_questions,
        } = self;
        let list = |counts: &[u64]| counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        vec![
            ("sent by card", list(sent)),
            ("received by card", list(received)),
            ("own frames", own.to_string()),
            ("passed over", passed_over.to_string()),
            ("copies", copies.to_string()),
            ("bad probes", bad_probes.to_string()),
            ("from unclaimed addresses", unclaimed.to_string()),
            ("address conflicts", conflicts.to_string()),
            ("lanes lost", lanes_lost.to_string()),
            ("sent again", repaired.to_string()),
            ("bad questions", bad_questions.to_string()),
        ]
    }
}
