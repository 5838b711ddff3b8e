//! ACKs of data ahead of its turn that profile `linux` holds back (`tcp_sack_compress_send_ack`).

use super::{Connection, ConnectionState};
use crate::segment::OutgoingSegment;
use bytes::Bytes;
use farpace_events::Cause;
use farpace_units::{Instant, Seq};
use farpace_wire::tcp::TcpFlags;

impl Connection {
    /// Data ahead of its turn is to be reported. If the ACK that waits would not tell of the block that
    /// changed before, because there are too many, it does not wait any longer.
    pub(super) fn add_block(&mut self, start: Seq, end: Seq) {
        if self.ack.policy.holds_sacks() && self.rcv.sack_blocks.is_crowded_by(start, end) {
            self.ack.blocks_before = Some(Box::new(self.rcv.sack_blocks.clone()));
            self.rcv.sack_blocks.forget_duplicate();
        }
        self.rcv.sack_blocks.add(start, end);
    }

    /// Sends the ACK that waited until a further block came, with the blocks of that time. It counts as the
    /// answer to the segment that brought the block, too, although it does not tell of it.
    pub(super) fn send_before_block(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) {
        let Some(before) = self.ack.blocks_before.take() else { return };
        if self.state == ConnectionState::Closed {
            return;
        }
        let blocks = std::mem::replace(&mut self.rcv.sack_blocks, *before);
        let number = self.acceptable_number();
        self.emit(now, out, number, TcpFlags::ACK, Bytes::new(), Cause::AckOutOfOrder);
        self.rcv.sack_blocks = blocks;
    }
}
