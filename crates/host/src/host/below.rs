//! What a host asks of what is below it: room in its transmit queue, and time of its processor.

use super::Host;
use farpace_path::{ProcessorWork, TransmitQueue};
use farpace_tcp::TransmitRoom;
use farpace_units::Instant;
use std::net::IpAddr;

/// Bytes of a frame before its TCP header: Ethernet and IP.
const BELOW_IPV4: u64 = 14 + 20;
const BELOW_IPV6: u64 = 14 + 40;

impl Host {
    /// From now on connections ask `queue` for room before they send. Without room they keep the segment, and
    /// their window comes down ([`set_transmit_room`](farpace_tcp::Connection::set_transmit_room)). What the
    /// queue is of has to tell it what it holds.
    pub fn ask_queue(&mut self, queue: TransmitQueue) {
        self.internet.transmit_queue = Some(queue);
    }

    /// From now on `work` is told what connections search for ACKs
    /// ([`take_visited`](farpace_tcp::Connection::take_visited)), so that the processor below takes its time
    /// for it.
    pub fn charge_processor(&mut self, work: ProcessorWork) {
        self.processor = Some(work);
    }
}

/// The room for segments from `local`.
pub(super) fn room(queue: &TransmitQueue, now: Instant, local: IpAddr) -> TransmitRoom {
    let (packets, bytes) = queue.room(now);
    let below = if local.is_ipv4() { BELOW_IPV4 } else { BELOW_IPV6 };
    TransmitRoom { packets, bytes: bytes.get(), below }
}
