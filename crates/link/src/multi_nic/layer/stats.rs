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
    pub for_other_hosts: u64,
    /// Own frames received, and multicast frames that another NIC has accepted.
    pub duplicates: u64,
    /// Malformed probes and replies.
    pub bad_probes: u64,
    /// Frames of the stack from an address that it may not use (RFC 5227).
    pub from_unusable_addresses: u64,
    /// Address conflicts (RFC 5227).
    pub conflicts: u64,
    /// Path failures.
    pub path_failures: u64,
    /// Frames retransmitted at the request of a neighbour, or after the failure of a NIC.
    pub retransmitted: u64,
    /// Malformed repair messages.
    pub bad_repair_messages: u64,
}

impl MultiNicStats {
    /// Counters for `nics` NICs.
    pub(super) fn new(nics: usize) -> Self {
        MultiNicStats { sent: vec![0; nics], received: vec![0; nics], ..MultiNicStats::default() }
    }
    /// The counters as named readings.
    pub fn inspect(&self) -> Inspection {
        let MultiNicStats {
            sent,
            received,
            own,
            for_other_hosts,
            duplicates,
            bad_probes,
            from_unusable_addresses,
            conflicts,
            path_failures,
            retransmitted,
            bad_repair_messages,
        } = self;
        let list = |counts: &[u64]| counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        vec![
            ("sent by NIC", list(sent)),
            ("received by NIC", list(received)),
            ("own frames", own.to_string()),
            ("for other hosts", for_other_hosts.to_string()),
            ("duplicates", duplicates.to_string()),
            ("malformed probes", bad_probes.to_string()),
            ("from unusable addresses", from_unusable_addresses.to_string()),
            ("address conflicts", conflicts.to_string()),
            ("path failures", path_failures.to_string()),
            ("retransmitted", retransmitted.to_string()),
            ("malformed repair messages", bad_repair_messages.to_string()),
        ]
    }
}
