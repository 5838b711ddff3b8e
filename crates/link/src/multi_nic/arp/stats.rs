//! Why lists of NICs are refused, and counters.

use farpace_path::Inspection;
use farpace_wire::ExtensionError;
use std::collections::BTreeMap;

/// Why the list of a neighbour is refused. The stack gets the message without the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum ArpRefusal {
    /// The list itself is invalid.
    #[error("{0}")]
    Malformed(#[from] ExtensionError),
    /// It contains a NIC of this host.
    #[error("it contains a NIC of this host")]
    OwnNic,
    /// The sender is neither known nor was it requested.
    #[error("it was not requested")]
    Unsolicited,
    /// A newer list is known.
    #[error("a newer list is known")]
    OlderGeneration,
    /// Another list of the same generation is known.
    #[error("another list of the same generation is known")]
    SameGeneration,
    /// It contains a NIC of another neighbour.
    #[error("it contains a NIC of another neighbour")]
    NicOfOther,
}

/// Counters of extended ARP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArpStats {
    /// Messages sent with a list.
    pub lists_sent: u64,
    /// Announcements among them.
    pub announced: u64,
    /// New or newer lists accepted.
    pub learned: u64,
    /// Lists removed because the host no longer sends one, or another host uses the address.
    pub evicted: u64,
    /// Neighbours removed after a long silence.
    pub expired: u64,
    /// Neighbours removed to make room for others.
    pub replaced: u64,
    /// Lists refused, by reason.
    pub refused: BTreeMap<ArpRefusal, u64>,
}

impl ArpStats {
    /// Counts a refused list.
    pub(super) fn refuse(&mut self, why: ArpRefusal) {
        *self.refused.entry(why).or_default() += 1;
    }
    /// Number of lists refused for this reason.
    pub fn refused(&self, why: ArpRefusal) -> u64 {
        self.refused.get(&why).copied().unwrap_or(0)
    }
    /// The counters as named readings.
    pub fn inspect(&self) -> Inspection {
        let ArpStats { lists_sent, announced, learned, evicted, expired, replaced, refused } = self;
        let refused: Vec<_> = refused.iter().map(|(why, times)| format!("{times} ({why})")).collect();
        vec![
            ("lists sent", lists_sent.to_string()),
            ("announcements sent", announced.to_string()),
            ("lists learned", learned.to_string()),
            ("lists evicted", evicted.to_string()),
            ("neighbours expired", expired.to_string()),
            ("neighbours replaced", replaced.to_string()),
            ("lists refused", if refused.is_empty() { "none".to_owned() } else { refused.join(", ") }),
        ]
    }
}
