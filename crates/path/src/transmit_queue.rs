//! The transmit queue of a host, as its TCP sees it: how much it takes before it is full.

use crate::QueueLimit;
use farpace_units::{ByteCount, Instant};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a host and the queue of its NIC both know. The queue says what it holds; the host asks for room
/// before it sends, and says what it has sent, so that the queue never drops what there was room for.
#[derive(Clone, Debug)]
pub struct TransmitQueue(Arc<Mutex<TransmitQueueContents>>);

#[derive(Debug)]
struct TransmitQueueContents {
    max_bytes: u64,
    max_packets: u64,
    /// Of a queue whose departures are known: when each packet leaves, and its bytes, in order.
    leaving: VecDeque<(Instant, u64)>,
    packets: u64,
    bytes: u64,
    /// Sent by the host at `sent_at`, and not in the queue yet.
    sent_packets: u64,
    sent_bytes: u64,
    sent_at: Instant,
}

impl TransmitQueueContents {
    /// What was sent takes no time to come here. What has not come until later was dropped on the way.
    fn go_on(&mut self, now: Instant) {
        if self.sent_at != now {
            (self.sent_packets, self.sent_bytes, self.sent_at) = (0, 0, now);
        }
        while let Some((_, len)) = self.leaving.front().copied().filter(|(leaves, _)| *leaves <= now) {
            self.leaving.pop_front();
            self.packets = self.packets.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(len);
        }
    }
    fn came(&mut self, len: ByteCount) {
        self.sent_packets = self.sent_packets.saturating_sub(1);
        self.sent_bytes = self.sent_bytes.saturating_sub(len.get());
    }
}

impl TransmitQueue {
    /// An empty queue with this limit.
    pub fn new(limit: QueueLimit) -> Self {
        let (max_bytes, max_packets) = limit.bounds();
        TransmitQueue(Arc::new(Mutex::new(TransmitQueueContents {
            max_bytes,
            max_packets,
            leaving: VecDeque::new(),
            packets: 0,
            bytes: 0,
            sent_packets: 0,
            sent_bytes: 0,
            sent_at: Instant::ZERO,
        })))
    }
    fn contents(&self) -> MutexGuard<'_, TransmitQueueContents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the host: how many packets and bytes the queue takes now.
    pub fn room(&self, now: Instant) -> (u64, ByteCount) {
        let mut contents = self.contents();
        contents.go_on(now);
        let c = &*contents;
        let packets = c.max_packets.saturating_sub(c.packets.saturating_add(c.sent_packets));
        let bytes = c.max_bytes.saturating_sub(c.bytes.saturating_add(c.sent_bytes));
        (packets, ByteCount::new(bytes))
    }
    /// For the host: it has sent a frame.
    pub fn sent(&self, now: Instant, len: ByteCount) {
        let mut contents = self.contents();
        contents.go_on(now);
        contents.sent_packets += 1;
        contents.sent_bytes += len.get();
    }
    /// For a queue that knows when packets leave: it has taken one.
    pub fn took(&self, now: Instant, len: ByteCount, leaves: Instant) {
        let mut contents = self.contents();
        contents.go_on(now);
        contents.came(len);
        contents.leaving.push_back((leaves, len.get()));
        contents.packets += 1;
        contents.bytes += len.get();
    }
    /// For any other queue: a frame has come, and been taken or not.
    pub fn came(&self, len: ByteCount) {
        self.contents().came(len);
    }
    /// For any other queue: it holds so much.
    pub fn holds(&self, packets: u64, bytes: ByteCount) {
        let mut contents = self.contents();
        (contents.packets, contents.bytes) = (packets, bytes.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Packets;

    fn packets(queue: &TransmitQueue, at: u64) -> u64 {
        queue.room(Instant::from_nanos(at)).0
    }

    /// Breaks: a host sends more than its queue takes, or less: what is on the way counts twice or never, and
    /// what has left stays.
    #[test]
    fn room_is_what_neither_waits_nor_is_on_the_way() {
        let queue = TransmitQueue::new(QueueLimit::Packets(Packets::new(3)));
        let (len, at) = (ByteCount::new(100), Instant::from_nanos);
        queue.sent(at(5), len);
        queue.sent(at(5), len);
        assert_eq!(packets(&queue, 5), 1);
        queue.took(at(5), len, at(20));
        assert_eq!(packets(&queue, 5), 1);
        queue.took(at(5), len, at(30));
        assert_eq!([packets(&queue, 5), packets(&queue, 20), packets(&queue, 30)], [1, 2, 3]);
        // Something on the way has lost it.
        queue.sent(at(30), len);
        assert_eq!([packets(&queue, 30), packets(&queue, 31)], [2, 3]);
        queue.holds(2, len + len);
        assert_eq!(packets(&queue, 31), 1);
    }

    /// Breaks: a limit in bytes does not hold.
    #[test]
    fn bytes_are_limited() {
        let queue = TransmitQueue::new(QueueLimit::Bytes(ByteCount::new(250)));
        queue.took(Instant::ZERO, ByteCount::new(100), Instant::from_nanos(9));
        assert_eq!(queue.room(Instant::ZERO).1, ByteCount::new(150));
        assert_eq!(queue.room(Instant::from_nanos(9)).1, ByteCount::new(250));
    }
}
