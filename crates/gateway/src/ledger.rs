//! What has to be known of connections when the gateway has died.

use farpace_units::Seq;
use std::net::SocketAddr;

/// The numbers that a leg speaks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegNumbers {
    /// The oldest that its host has not acknowledged.
    pub unacknowledged: Seq,
    /// The next one that it sends: what the host expects is between both.
    pub next: Seq,
    /// The next one of the host.
    pub expected: Seq,
}

/// A connection that its hosts cannot continue without the gateway: something acknowledged is undelivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The host of the LAN side, and that of the WAN side.
    pub hosts: [SocketAddr; 2],
    /// The leg to each.
    pub legs: [LegNumbers; 2],
}

/// Remembers such connections where a crash of the gateway does not reach.
pub trait FlowLedger {
    /// The connection in this slot is such a one now, or is none.
    fn set(&mut self, slot: usize, entry: Option<LedgerEntry>);
}

/// Where the gateway of a thread writes, if anywhere.
#[derive(Default)]
pub(crate) struct KeptLedger(pub Option<Box<dyn FlowLedger>>);

impl KeptLedger {
    /// What is to be said of the flow in a slot now; `is_there`: whether anything was said, and then is.
    pub fn update(&mut self, slot: usize, entry: Option<LedgerEntry>, is_there: &mut bool) {
        if let Some(ledger) = self.0.as_mut().filter(|_| entry.is_some() || *is_there) {
            *is_there = entry.is_some();
            ledger.set(slot, entry);
        }
    }
}
