//! The most that waited in a queue since its last reading.

use farpace_units::{ByteCount, Span};

/// What waited in a queue between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueReading {
    /// Most packets at one time.
    pub packets: u64,
    /// Most bytes at one time.
    pub bytes: ByteCount,
    /// The longest wait of a packet: of those that came, or, where a wait is known only at its end, of those
    /// that left. None: there was no such packet, and others wait.
    pub wait: Option<Span>,
}

/// Collects the next [`QueueReading`] of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueuePeak {
    packets: u64,
    bytes: ByteCount,
    wait: Option<Span>,
}

impl QueuePeak {
    /// So much is in the queue, with the packet that has just come.
    pub fn holds(&mut self, packets: u64, bytes: ByteCount) {
        self.packets = self.packets.max(packets);
        self.bytes = self.bytes.max(bytes);
    }
    /// The wait of a packet is known.
    pub fn waited(&mut self, wait: Span) {
        self.wait = Some(self.wait.map_or(wait, |longest| longest.max(wait)));
    }
    /// The reading. The next one begins with what the queue holds now.
    pub fn take(&mut self, packets: u64, bytes: ByteCount) -> QueueReading {
        let past = std::mem::take(self);
        self.holds(packets, bytes);
        let idle = past.packets == 0 && packets == 0;
        QueueReading {
            packets: past.packets.max(packets),
            bytes: past.bytes.max(bytes),
            wait: past.wait.or(idle.then_some(Span::ZERO)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a peak between two readings is hidden, a queue that stands while nothing comes shows as empty,
    /// or an empty queue keeps its last delay.
    #[test]
    fn a_reading_has_the_most_since_the_last_one() {
        let bytes = ByteCount::new;
        let mut peak = QueuePeak::default();
        peak.holds(3, bytes(300));
        peak.waited(Span::from_micros(7));
        peak.holds(2, bytes(200));
        peak.waited(Span::from_micros(5));
        let reading = |packets, b, wait: Option<u64>| QueueReading {
            packets,
            bytes: bytes(b),
            wait: wait.map(Span::from_micros),
        };
        assert_eq!(peak.take(1, bytes(100)), reading(3, 300, Some(7)));
        assert_eq!(peak.take(1, bytes(100)), reading(1, 100, None), "one still waits");
        assert_eq!(peak.take(0, bytes(0)), reading(1, 100, None), "it has left, unseen");
        assert_eq!(peak.take(0, bytes(0)), reading(0, 0, Some(0)), "idle");
    }
}
