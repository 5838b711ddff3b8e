//! State of a class, and its copies in the calendar and the other structures.

use super::super::classes::{ClassState, PacketAt, Tag};
use super::super::{ClassId, MAX_CLASSES, layer_2};
use farpace_units::ByteCount;

/// The next frame of a class, in bytes on the wire: it may begin at `start` and should begin before
/// `deadline`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassEntry {
    pub start: u64,
    pub deadline: u64,
    class: u32,
    /// Position of its packet, for prefetching.
    pub packet: PacketAt,
}

/// Flag beside the class number: the class [follows](crate::pacing::ClassKind::Follows) a connection.
const FOLLOWS: u32 = 1 << 31;
const _: () = assert!(MAX_CLASSES <= FOLLOWS as usize && size_of::<ClassEntry>() == 24);

impl ClassEntry {
    pub const fn new(start: u64, deadline: u64, class: ClassId, packet: PacketAt, follows: bool) -> Self {
        let class = if follows { class.0 | FOLLOWS } else { class.0 };
        ClassEntry { start, deadline, class, packet }
    }
    /// The class.
    pub const fn class(&self) -> ClassId {
        ClassId(self.class & !FOLLOWS)
    }
    /// True if the class follows a connection.
    pub const fn follows(&self) -> bool {
        self.class & FOLLOWS != 0
    }
    /// True if the interval is at most `max`. Entries of normal classes have no interval.
    #[inline]
    pub fn is_short(&self, max: u64, tag: Tag) -> bool {
        tag != Tag::Normal && self.deadline - self.start <= max
    }
}

/// The state of a class, in bytes on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EdfState {
    /// Its clock: when its next frame may begin.
    pub start: u64,
    /// When the frame after that may begin.
    pub deadline: u64,
    /// Remainder of the division that yields the interval.
    pub rest: u64,
    /// It has packets and an entry in one of the structures.
    pub active: bool,
    /// It is active, and its interval is too short for timers.
    pub short: bool,
}

impl EdfState {
    pub fn is_current(&self, entry: &ClassEntry) -> bool {
        self.active && self.start == entry.start && self.deadline == entry.deadline
    }
    /// Updates the number of active classes with short intervals.
    #[inline]
    pub fn set_short(&mut self, short: bool, count: &mut usize) {
        if self.short != short {
            self.short = short;
            *count = if short { *count + 1 } else { count.saturating_sub(1) };
        }
    }
}

impl ClassState<EdfState> {
    /// The current entry of the class.
    pub fn entry(&self, id: ClassId) -> ClassEntry {
        let EdfState { start, deadline, .. } = self.state;
        ClassEntry::new(start, deadline, id, self.first_packet(), self.tag == Tag::Follows)
    }
    /// Computes the deadline of the first packet, of `len` bytes in memory, and returns the new entry.
    #[inline]
    pub fn next_entry(&mut self, id: ClassId, len: ByteCount) -> ClassEntry {
        if self.tag != Tag::Normal {
            let interval = self.interval.after(layer_2(len), &mut self.state.rest);
            self.state.deadline = self.state.start.saturating_add(interval);
        }
        self.entry(id)
    }
}
