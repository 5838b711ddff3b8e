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

/// What a connection knows of the transmit queue. None, as of most hosts: it always takes everything.
pub(super) type KnownTransmitQueue = Option<Box<TransmitQueueState>>;

/// The transmit queue of a host that says what room it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransmitQueueState {
    room: TransmitRoom,
    /// How often it had no room.
    full: u64,
    /// It has refused a segment since the host said what room it has.
    refused: bool,
    /// When to try again, if no ACK would make that happen.
    retry: Option<Instant>,
}

impl Connection {
    /// Says what room the transmit queue of the host has, before
    /// [`poll_transmit`](Connection::poll_transmit). None: whatever is sent finds room, or is lost.
    pub fn set_transmit_room(&mut self, room: Option<TransmitRoom>) {
        match (room, &mut self.transmit_queue) {
            (Some(room), Some(queue)) => (queue.room, queue.refused) = (room, false),
            (Some(room), unknown) => {
                *unknown = Some(Box::new(TransmitQueueState { room, full: 0, refused: false, retry: None }));
            }
            (None, known) => *known = None,
        }
    }

    /// How often the transmit queue of the host had no room for a segment that was due.
    pub fn transmit_queue_full(&self) -> u64 {
        self.transmit_queue.as_ref().map_or(0, |queue| queue.full)
    }

    /// The transmit queue takes a segment of `len` bytes of payload. If not, the window comes down.
    pub(super) fn queue_takes(&mut self, now: Instant, len: u32) -> bool {
        self.queue_takes_of(now, u64::from(len), len) == u64::from(len)
    }

    /// How much payload of `len` bytes in segments of `size` the transmit queue takes: whole segments. If it
    /// takes none, the window comes down.
    pub(super) fn queue_takes_of(&mut self, now: Instant, len: u64, size: u32) -> u64 {
        let Some(TransmitQueueState { room, .. }) = self.transmit_queue.as_deref().copied() else {
            return len;
        };
        let size = u64::from(size.max(1));
        let one = self.frame(len.min(size), room.below);
        let segments = room.packets.min(room.bytes / one.max(1));
        if segments > 0 {
            return len.min(segments.saturating_mul(size));
        }
        if let Some(queue) = self.transmit_queue.as_deref_mut().filter(|queue| !queue.refused) {
            queue.refused = true;
            queue.full += 1;
        }
        let (snd_una, snd_nxt) = (self.snd.una, self.snd.nxt);
        let (recovery, mut cx) = self.flight.recovery(self.sack);
        recovery.on_transmit_queue_full(now, snd_una, snd_nxt, &mut cx);
        if self.flight.segments.in_flight().is_zero()
            && let Some(queue) = &mut self.transmit_queue
        {
            queue.retry.get_or_insert(now + RETRY);
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
        let Some(TransmitQueueState { room, .. }) = self.transmit_queue.as_deref().copied() else { return };
        let frame = self.frame(len as u64, room.below);
        if let Some(queue) = &mut self.transmit_queue {
            queue.retry = None;
            queue.room.packets = room.packets.saturating_sub(1);
            queue.room.bytes = room.bytes.saturating_sub(frame);
        }
    }

    /// When a segment that the transmit queue refused is tried again.
    pub(super) fn retry_deadline(&self) -> Option<Instant> {
        self.transmit_queue.as_ref()?.retry
    }

    /// That time has come.
    pub(super) fn on_retry(&mut self) {
        if let Some(queue) = &mut self.transmit_queue {
            queue.retry = None;
        }
        self.linux.looks_again();
    }

    /// Something is known of the transmit queue, so that segments leave one by one.
    pub(super) fn asks_queue(&self) -> bool {
        self.transmit_queue.is_some()
    }
}
