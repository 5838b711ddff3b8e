//! What the scheduler knows of a class, and the copies of it that stand in the calendar and elsewhere.

use super::super::classes::{ClassState, PacketAt, Tag};
use super::super::{ClassId, MAX_CLASSES, layer_2};
use farpace_units::ByteCount;

/// One frame-to-be of a class, in bytes of the line: it may begin at `start` and should have begun before `deadline`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassEntry {
    pub start: u64,
    pub deadline: u64,
    class: u32,
    /// Where its packet is, to have it fetched.
    pub packet: PacketAt,
}

/// Beside the number of a class: it [follows](crate::pacing::ClassKind::Follows) a connection.
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
    /// The class follows a connection.
    pub const fn follows(&self) -> bool {
        self.class & FOLLOWS != 0
    }
    /// Its interval is at most so long; those of normal classes have none.
    #[inline]
    pub fn is_short(&self, most: u64, tag: Tag) -> bool {
        tag != Tag::Normal && self.deadline - self.start <= most
    }
}

/// The state of a class, in bytes of the line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EdfState {
    /// Its clock: when its next frame may begin.
    pub start: u64,
    /// When the frame after that may begin.
    pub deadline: u64,
    /// What the division of its interval has left over.
    pub rest: u64,
    /// It has packets, and stands in the calendar, among the deadlines, or in turn.
    pub stands: bool,
    /// Moreover timers are too late for its interval.
    pub fine: bool,
}

impl EdfState {
    pub fn is_meant_by(&self, entry: &ClassEntry) -> bool {
        self.stands && self.start == entry.start && self.deadline == entry.deadline
    }
    /// Keeps the count of classes for whose intervals timers are too late.
    #[inline]
    pub fn count_fine(&mut self, fine: bool, count: &mut usize) {
        if self.fine != fine {
            self.fine = fine;
            *count = if fine { *count + 1 } else { count.saturating_sub(1) };
        }
    }
}

impl ClassState<EdfState> {
    /// Where the class stands.
    pub fn entry(&self, id: ClassId) -> ClassEntry {
        let EdfState { start, deadline, .. } = self.state;
        ClassEntry::new(start, deadline, id, self.first_packet(), self.tag == Tag::Follows)
    }
    /// The class's place for its first packet, of `len` bytes in memory.
    #[inline]
    pub fn next_entry(&mut self, id: ClassId, len: ByteCount) -> ClassEntry {
        if self.tag != Tag::Normal {
            let interval = self.interval.after(layer_2(len), &mut self.state.rest);
            self.state.deadline = self.state.start.saturating_add(interval);
        }
        self.entry(id)
    }
}
