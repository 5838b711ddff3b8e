//! Urgent data (RFC 9293 §3.8.5, RFC 6093): a pointer into the stream, whose bytes stay in line.

use super::{Connection, ConnectionEvent, ConnectionState};
use bytes::Bytes;
use farpace_units::{ByteCount, Seq};
use farpace_wire::tcp::TcpFlags;

/// Both urgent pointers, as offsets of their streams: the first byte that is not urgent. Zero: nothing is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Urgent {
    /// SND.UP
    sent: u64,
    /// RCV.UP
    received: u64,
}

impl Connection {
    /// As [`write`](Connection::write); all that is written up to here is urgent. The peer is told at once,
    /// even where its window is closed.
    pub fn write_urgent(&mut self, data: &mut Bytes) -> ByteCount {
        let taken = self.write(data);
        if !taken.is_zero() {
            self.mark_urgent(ByteCount::ZERO);
        }
        taken
    }

    /// All that was written is urgent but for the last `behind` bytes, as after
    /// [`write_urgent`](Connection::write_urgent).
    pub fn mark_urgent(&mut self, behind: ByteCount) {
        self.urgent.sent = self.snd.buffer.end().saturating_sub(behind.get());
        if self.config.is_linux() {
            // It is told with the data alone.
            self.linux.queue().mark_urgent();
        } else if self.is_open() {
            self.ack.due.get_or_insert(farpace_events::Cause::AckNow);
        }
    }

    /// Bytes up to the end of the peer's urgent data, of those that were not read yet; none if nothing is
    /// urgent. Some of them may still be on their way.
    pub fn urgent_ahead(&self) -> Option<ByteCount> {
        let read = self.rcv.reassembly.next() - self.rcv.reassembly.readable().get();
        self.urgent.received.checked_sub(read).filter(|n| *n > 0).map(ByteCount::new)
    }

    /// URG and the urgent pointer of a segment that begins with `seq`: the distance to the first byte that is
    /// not urgent (RFC 6093 §3), as far as 16 bits tell.
    #[inline]
    pub(super) fn urgent_pointer(&self, seq: Seq) -> Option<u16> {
        if self.urgent.sent <= self.snd.una_offset {
            return None;
        }
        // A probe may begin before SND.UNA.
        let ahead = (self.urgent.sent - self.snd.una_offset) as i64 - i64::from(seq.distance(self.snd.una));
        u64::try_from(ahead).ok().filter(|n| *n > 0).map(|n| n.min(u64::from(u16::MAX)) as u16)
    }

    /// RFC 9293 §3.10.7.4, sixth check.
    pub(super) fn on_urgent(&mut self, flags: TcpFlags, seq: Seq, pointer: u16) {
        let may = matches!(
            self.state,
            ConnectionState::Established | ConnectionState::FinWait1 | ConnectionState::FinWait2
        );
        if !flags.contains(TcpFlags::URG) || !may {
            return;
        }
        // To Linux a pointer of zero is the first byte, too.
        let pointer = if self.config.is_linux() { pointer.max(1) } else { pointer };
        let ahead = (seq + u32::from(pointer)).bytes_since(self.rcv.nxt);
        let up = self.rcv.reassembly.next() + u64::from(ahead);
        if ahead > 0 && up > self.urgent.received {
            self.urgent.received = up;
            self.tell(ConnectionEvent::Urgent);
        }
    }
}
