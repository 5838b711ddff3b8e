//! The program's limit of what waits to be sent for the first time (TCP_NOTSENT_LOWAT).

use super::{Connection, ConnectionEvent};
use bytes::Bytes;
use farpace_units::ByteCount;

impl Connection {
    /// Takes as much of the front of `data` as send buffer and limit have room for.
    pub(super) fn write_limited(&mut self, data: &mut Bytes) -> ByteCount {
        let limit = self.config.tuning.unsent_limit;
        let share = self.writable_share().get();
        if limit.is_none() && share >= data.len() as u64 {
            return self.snd.buffer.write(data);
        }
        let unsent_room = limit.map_or(u64::MAX, |limit| limit.get().saturating_sub(self.snd.unsent()));
        // As in Linux, what is written into an empty place may be as long as a piece of the send queue.
        let unsent_room = match limit {
            Some(limit) if self.config.is_linux() && self.snd.unsent() < limit.get() => self.piece(),
            _ => unsent_room,
        };
        let room = unsent_room.min(share);
        let mut part = data.split_to(data.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
        self.snd.unsent_refused |= limit.is_some() && !data.is_empty();
        self.snd.buffer.write(&mut part)
    }

    /// Less is unsent than the limit again, after something was not taken because of it: the program should
    /// know.
    pub(super) fn tell_of_unsent(&mut self) {
        let below = |limit: ByteCount| self.snd.unsent() < limit.get();
        if self.snd.unsent_refused && self.config.tuning.unsent_limit.is_none_or(below) {
            self.snd.unsent_refused = false;
            if !self.snd.fin_queued && !self.snd.buffer.room().is_zero() {
                self.tell(ConnectionEvent::Writable);
            }
        }
    }
}
