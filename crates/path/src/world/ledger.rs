//! The packet account of one element.

use super::{ElementId, Observer};
use crate::DropReason;
use farpace_units::Instant;
use farpace_wire::Packet;
use std::fmt;

/// The packets that came into an element and what became of them. Conservation: received + made = emitted +
/// dropped + consumed + held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that arrived.
    pub received: u64,
    /// Packets that were created here.
    pub made: u64,
    /// Packets that left.
    pub emitted: u64,
    /// Packets that reached their destination here.
    pub consumed: u64,
    /// Packets that ended here, by [`DropReason::index`].
    dropped: [u64; DropReason::COUNT],
}

impl Ledger {
    /// Packets dropped for `reason`.
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason.index()]
    }
    /// Packets dropped for any reason.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }
    /// The reasons that occurred, with their numbers, in the order of [`DropReason::ALL`].
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().zip(self.dropped).filter(|(_, n)| *n > 0)
    }
    /// Whether the account balances with `held` packets inside.
    pub fn balances(&self, held: u64) -> bool {
        self.received + self.made == self.emitted + self.all_dropped() + self.consumed + held
    }
    /// Counts the packets that were dropped, and shows them to the observer.
    #[inline(never)]
    pub(super) fn book_drops(
        &mut self,
        dropped: &mut Vec<(Packet, DropReason)>,
        now: Instant,
        element: ElementId,
        observer: &mut dyn Observer,
    ) {
        for (packet, reason) in dropped.drain(..) {
            self.dropped[reason.index()] += 1;
            observer.dropped(now, element, &packet, reason);
        }
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ledger { received, made, emitted, consumed, dropped: _ } = self;
        let dropped = self.all_dropped();
        write!(
            f,
            "received {received} + made {made}; emitted {emitted} + dropped {dropped} + consumed {consumed}"
        )
    }
}
