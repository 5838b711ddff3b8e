//! The transmit queue of the host: a full one is no loss. The segment stays where it is, the window comes
//! down as for a congestion mark, and the segment leaves with the next ACK, or after a while if none will
//! come (Linux: NET_XMIT_DROP and `tcp_enter_cwr` in `__tcp_transmit_skb`, TCP_RESOURCE_PROBE_INTERVAL).

use super::Connection;
use farpace_units::{Instant, Span};

/// With nothing outstanding that would be acknowledged, the queue is tried again after this.
const RETRY: Span = Span::from_millis(500);
/// A TCP header without options, and most bytes of options.
const HEADER: u64 = 20;
const MAX_OPTIONS: u64 = 40;

/// Room in the transmit queue of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitRoom {
    /// Packets that it takes.
    pub packets: u64,
    /// Bytes of frames that it takes.
    pub bytes: u64,
    /// Bytes of a frame before its TCP header.
    pub below: u64,
}

/// What a connection knows of the transmit queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransmitQueueState {
    /// None: it always takes everything.
    room: Option<TransmitRoom>,
    /// It has refused a segment since the host said what room it has.
    refused: bool,
    /// When to try again, if no ACK would make that happen.
    retry: Option<Instant>,
}

impl Connection {
    /// Says what room the transmit queue of the host has, before
    /// [`poll_transmit`](Connection::poll_transmit). None: whatever is sent finds room, or is lost.
    pub fn set_transmit_room(&mut self, room: Option<TransmitRoom>) {
        (self.transmit_queue.room, self.transmit_queue.refused) = (room, false);
    }

    /// The transmit queue takes a segment of `len` bytes of payload. If not, the window comes down.
    pub(super) fn queue_takes(&mut self, now: Instant, len: u32) -> bool {
        self.queue_takes_of(now, u64::from(len), len) == u64::from(len)
    }

    /// How much payload of `len` bytes in segments of `size` the transmit queue takes: whole segments. If it
    /// takes none, the window comes down.
    pub(super) fn queue_takes_of(&mut self, now: Instant, len: u64, size: u32) -> u64 {
        let Some(room) = self.transmit_queue.room else { return len };
        let size = u64::from(size.max(1));
        let one = self.frame(len.min(size), room.below);
        let segments = room.packets.min(room.bytes / one.max(1));
        if segments > 0 {
            return len.min(segments.saturating_mul(size));
        }
        if !self.transmit_queue.refused {
            self.transmit_queue.refused = true;
            self.counters.transmit_queue_full += 1;
        }
        let (snd_una, snd_nxt) = (self.snd.una, self.snd.nxt);
        let (recovery, mut cx) = self.flight.recovery(self.sack);
        recovery.on_transmit_queue_full(now, snd_una, snd_nxt, &mut cx);
        if self.flight.segments.in_flight().is_zero() {
            self.transmit_queue.retry.get_or_insert(now + RETRY);
        }
        0
    }

    /// Most bytes of the frame of a segment with `len` bytes of payload. What has all of its options has
    /// no more than a full one.
    fn frame(&self, len: u64, below: u64) -> u64 {
        let full = u64::from(self.snd.mss) + u64::from(self.ts.option_bytes());
        below + HEADER + (len + MAX_OPTIONS).min(full.max(len))
    }

    /// A segment with `len` bytes of payload goes into the transmit queue.
    pub(super) fn use_queue(&mut self, len: usize) {
        self.transmit_queue.retry = None;
        let Some(mut room) = self.transmit_queue.room else { return };
        room.packets = room.packets.saturating_sub(1);
        room.bytes = room.bytes.saturating_sub(self.frame(len as u64, room.below));
        self.transmit_queue.room = Some(room);
    }

    /// When a segment that the transmit queue refused is tried again.
    pub(super) fn retry_deadline(&self) -> Option<Instant> {
        self.transmit_queue.retry
    }

    /// That time has come.
    pub(super) fn on_retry(&mut self) {
        self.transmit_queue.retry = None;
        self.linux.looks_again();
    }

    /// Something is known of the transmit queue, so that segments leave one by one.
    pub(super) fn asks_queue(&self) -> bool {
        self.transmit_queue.room.is_some()
    }
}
