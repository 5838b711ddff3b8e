//! What a host that is short of memory asks of a connection.
//!
//! As in Linux (tcp_try_rmem_schedule, tcp_prune_ofo_queue): segments that it has no memory for are dropped
//! without being acknowledged, data beyond a hole is dropped before data in order, and a window of zero is
//! announced until there is memory again. What was acknowledged stays, and nothing ends the connection.

use super::Connection;
use farpace_events::Cause;
use farpace_units::{ByteCount, Seq};

/// How short of memory a host is, as one connection hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// Autotuned buffers do not grow.
    pub frozen: bool,
    /// Most payload that may wait in each direction, besides what waits already. [`ByteCount::MAX`]: as much
    /// as buffers hold.
    pub share: ByteCount,
}

impl Pressure {
    /// There is memory enough.
    pub const NONE: Pressure = Pressure { frozen: false, share: ByteCount::MAX };
}

/// State of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortage {
    pub asked: Pressure,
    /// A segment was dropped for want of memory, and a window of zero is announced since.
    pub closed: bool,
}

impl Default for Shortage {
    fn default() -> Self {
        Shortage { asked: Pressure::NONE, closed: false }
    }
}

impl Connection {
    /// The host is short of memory, or no longer so.
    pub fn set_pressure(&mut self, pressure: Pressure) {
        if pressure == self.rcv.shortage.asked {
            return;
        }
        self.rcv.shortage.asked = pressure;
        self.rcv.window.freeze(pressure.frozen);
        if let Some(memory) = &mut self.rcv.memory {
            memory.freeze(pressure.frozen);
        }
        self.reopen();
    }

    /// Most bytes that its program should take from it to keep while the host is short of memory.
    pub fn share(&self) -> ByteCount {
        self.rcv.shortage.asked.share
    }

    /// A window of zero is announced because the host was short of memory.
    pub fn is_closed_for_memory(&self) -> bool {
        self.rcv.shortage.closed
    }

    /// Bytes that may be written without more memory than the connection's share. One with nothing to send
    /// may always write.
    pub(super) fn writable_share(&self) -> ByteCount {
        let room = self.snd.buffer.room().get();
        let share = self.rcv.shortage.asked.share.get().max(1);
        ByteCount::new(room.min(share.saturating_sub(self.snd.buffer.len().get())))
    }

    /// There is no memory for `len` bytes more, which are next `in_order` or not. Those that are push out
    /// what waits beyond a hole: without them nothing of it could ever be read.
    pub(super) fn lacks_memory(&mut self, len: usize, in_order: bool) -> bool {
        let share = self.rcv.shortage.asked.share.get();
        let len = len as u64;
        if share == u64::MAX || self.rcv.received().saturating_add(len) <= share {
            return false;
        }
        // What is refused or pushed out comes again. A peer whose window is closed says nothing newer until
        // then, and the window that it tells has to count.
        self.snd.wl1 = self.snd.wl1.earlier(self.rcv.nxt);
        if in_order {
            let allowed = share.saturating_sub(self.rcv.reassembly.readable().get() + len);
            if let Some(from) = self.rcv.reassembly.prune(ByteCount::new(allowed)) {
                let ahead = from - self.rcv.reassembly.next();
                self.rcv.sack_blocks.forget_from(self.rcv.nxt + ahead as u32);
                self.counters.pruned += 1;
            }
            let readable = self.rcv.reassembly.readable().get();
            if readable == 0 || readable.saturating_add(len) <= share {
                return false;
            }
        }
        self.counters.refused_for_memory += 1;
        self.rcv.shortage.closed = true;
        self.ack.due = Some(Cause::AckWindow);
        true
    }

    /// After a read, or when the host has memory again: the peer hears that the window is open.
    pub(super) fn reopen(&mut self) {
        if self.rcv.shortage.closed && self.rcv.received() <= self.rcv.shortage.asked.share.get() / 2 {
            self.rcv.shortage.closed = false;
            if self.state.receives() {
                self.ack.due.get_or_insert(Cause::AckWindow);
            }
        }
    }

    /// Bytes of the receive window that nothing waits in, and that there is memory for.
    pub(super) fn free(&self) -> u32 {
        let size = u64::from(self.first_window()).min(self.rcv.shortage.asked.share.get());
        let unread = self.rcv.reassembly.readable().get();
        size.saturating_sub(unread) as u32
    }

    /// RCV.NXT and the window: what would be promised now.
    pub(super) fn right_edge(&self) -> Seq {
        (self.rcv.nxt + self.free()).later(self.rcv.adv)
    }
}
