//! Tracks which packets of a connection have left their host, so that queued ones are not retransmitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The packets of a connection, numbered in order of sending (31 bits, which wrap around), and the latest
/// that has left the queues of its host. A kernel derives the same from the memory accounting of a socket.
///
/// ```
/// use farpace_wire::Departures;
/// let departures = Departures::default();
/// let (first, second) = (departures.expect(1), departures.expect(2));
/// assert_eq!(departures.latest(), 0);
/// drop(second);
/// drop(first);
/// assert_eq!(departures.latest(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Departures(Arc<AtomicU32>);

impl Departures {
    /// The number of the latest packet that has left; 0 before the first.
    pub fn latest(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
    /// Packet `number` is about to leave.
    pub fn expect(&self, number: u32) -> Departure {
        Departure { departures: self.clone(), number }
    }
}

/// Held by a packet while it is queued in its host. Dropping it means that the packet has left or was
/// dropped.
#[derive(Debug)]
pub struct Departure {
    departures: Departures,
    number: u32,
}

impl Drop for Departure {
    fn drop(&mut self) {
        let is_later = |latest: u32| (self.number << 1).wrapping_sub(latest << 1) as i32 > 0;
        let later = |latest| is_later(latest).then_some(self.number);
        // It fails if a later packet has left before.
        let _ = self.departures.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

/// The token of a packet. A copy of the packet has none.
#[derive(Debug, Default)]
pub(crate) struct OfOriginal(
    #[expect(dead_code, reason = "it acts when it is dropped")] pub Option<Departure>,
);

impl Clone for OfOriginal {
    fn clone(&self) -> Self {
        OfOriginal(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EtherType, MacAddr, Packet};
    use bytes::Bytes;

    fn packet(departure: Departure) -> Packet {
        let mut packet = Packet::from_link(MacAddr([2; 6]), MacAddr([4; 6]), EtherType::ARP, Bytes::new());
        packet.set_departure(Some(departure));
        packet
    }

    /// Breaks: a queued packet is not retransmitted though a copy of it was dropped; and a packet that has
    /// left or was dropped may be retransmitted, also after numbers have wrapped around.
    #[test]
    fn the_original_reports_its_departure() {
        let departures = Departures::default();
        let mut first = packet(departures.expect(1));
        drop(first.clone());
        assert_eq!(departures.latest(), 0, "a copy");
        first.depart();
        assert_eq!(departures.latest(), 1);
        let (second, third) = (packet(departures.expect(2)), packet(departures.expect(3)));
        drop(third);
        assert_eq!(departures.latest(), 3, "dropped, and out of order");
        drop(second);
        assert_eq!(departures.latest(), 3);
        drop(departures.expect((1 << 30) - 1));
        drop(departures.expect((1 << 31) - 2));
        drop(departures.expect(5));
        assert_eq!(departures.latest(), 5, "after the wrap");
    }
}
