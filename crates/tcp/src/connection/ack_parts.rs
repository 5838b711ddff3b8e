//! Acknowledgments of segments that arrived as one.

use super::Connection;
use crate::segment::OutgoingSegment;
use bytes::Bytes;
use farpace_events::Cause;
use farpace_units::{ByteCount, Instant};
use farpace_wire::tcp::TcpFlags;

/// So many bytes from the beginning of a connection are acknowledged in parts. The sender learns the rate of
/// the path from the ACKs of its first flights (160 segments in control `farpace`): one ACK for each of them
/// tells no rate, and each further round trip only doubles the window. Later one ACK for many segments costs
/// nothing, and many ACKs cost both hosts their processor.
const IN_PARTS: ByteCount = ByteCount::new(512 << 10);

impl Connection {
    /// Acknowledges each part that the policy acknowledges, where a device has put many segments together: at
    /// least every second full-size segment has an ACK (RFC 9293 §3.8.6.3). The last part is left to the ACK
    /// that is due.
    pub(super) fn send_acks_of_parts(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, full: usize) {
        let is_early = self.counters.bytes_received <= IN_PARTS;
        if !self.ack.joined || !is_early || self.ack.due != Some(Cause::AckNow) || self.rcv.sack_blocks.any()
        {
            return;
        }
        let Some(part) = self.ack.policy.part() else { return };
        let (next, due) = (self.rcv.nxt, self.ack.due);
        let mut at = self.ack.last_sent + part;
        while at.before(next) && out.len() + 1 < full {
            self.rcv.nxt = at;
            self.emit(now, out, self.snd.nxt, TcpFlags::ACK, Bytes::new(), Cause::AckNow);
            at += part;
        }
        (self.rcv.nxt, self.ack.due) = (next, due);
    }
}
