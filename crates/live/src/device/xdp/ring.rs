//! A ring shared with the system: one side produces entries, the other consumes them.
//!
//! Invariants of all blocks here: `producer`, `consumer`, `flags` and the entries lie in `memory`, as checked
//! on creation; the index of an entry is masked with the power of two of the size. Only this side writes its
//! index; entries between the indices belong to the consumer, the others to the producer. An index is
//! published after (`Release`), and read before (`Acquire`), the entries. The index of the system is never
//! trusted beyond the size of the ring.

#![allow(unsafe_code, reason = "memory that is shared with the system; each block says why it is sound")]

use super::memory::XdpMemory;
use nix::libc;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A ring of `T`, which has no invalid bit patterns.
pub(super) struct XdpRing<T> {
    memory: XdpMemory,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    size: u32,
    kind: PhantomData<T>,
}

/// Valid entries of a ring: integers and structures of them.
pub(super) trait RingEntry: Copy {}
impl RingEntry for u64 {}
impl RingEntry for libc::xdp_desc {}

impl<T: RingEntry> XdpRing<T> {
    /// Maps the ring of a socket at `page`, with its parts at `offsets`. `size` is a power of two.
    pub fn map(
        fd: BorrowedFd<'_>,
        offsets: &libc::xdp_ring_offset,
        size: u32,
        page: libc::off_t,
    ) -> io::Result<Self> {
        let place = |offset: u64| usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidData);
        let entries = place(offsets.desc)?;
        let bytes = size as usize * size_of::<T>();
        let memory = XdpMemory::of(fd, entries.checked_add(bytes).ok_or(io::ErrorKind::InvalidData)?, page)?;
        let ring = XdpRing {
            producer: place(offsets.producer)?,
            consumer: place(offsets.consumer)?,
            flags: place(offsets.flags)?,
            entries,
            size,
            memory,
            kind: PhantomData,
        };
        let numbers = [ring.producer, ring.consumer, ring.flags];
        let whole = numbers.iter().all(|at| at % 4 == 0 && ring.memory.at(*at, 4).is_some());
        if !whole || entries % align_of::<T>() != 0 || !size.is_power_of_two() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(ring)
    }

    fn number(&self, at: usize) -> &AtomicU32 {
        // SAFETY: four aligned bytes within the mapping, as checked in `map`; both sides access them only as
        // atomics.
        unsafe { AtomicU32::from_ptr((self.memory.address() as *mut u8).add(at).cast()) }
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        let at = self.entries + (number & (self.size - 1)) as usize * size_of::<T>();
        // SAFETY: the masked index is below `size`; that many entries are within the mapping, which is not at
        // address zero.
        unsafe { NonNull::new_unchecked((self.memory.address() as *mut u8).add(at).cast()) }
    }

    /// Consumes up to `max` entries of the system.
    pub fn take(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        let from = self.number(self.consumer).load(Ordering::Relaxed);
        let ready = self.number(self.producer).load(Ordering::Acquire).wrapping_sub(from).min(self.size);
        let count = ready.min(u32::try_from(max).unwrap_or(u32::MAX));
        for n in 0..count {
            // SAFETY: an entry that belongs to this side until the index is published.
            each(unsafe { self.entry(from.wrapping_add(n)).read() });
        }
        if count > 0 {
            self.number(self.consumer).store(from.wrapping_add(count), Ordering::Release);
        }
        count as usize
    }

    /// Number of entries that can be produced.
    pub fn room(&self) -> usize {
        self.size.saturating_sub(self.waiting()) as usize
    }

    /// Number of entries that the system has not consumed.
    pub fn waiting(&self) -> u32 {
        let taken = self.number(self.consumer).load(Ordering::Acquire);
        self.number(self.producer).load(Ordering::Relaxed).wrapping_sub(taken).min(self.size)
    }

    /// Produces entries, at most [`room`](XdpRing::room); returns their number.
    pub fn put(&mut self, entries: &[T]) -> usize {
        let from = self.number(self.producer).load(Ordering::Relaxed);
        let count = entries.len().min(self.room());
        for (n, entry) in entries.iter().take(count).enumerate() {
            // SAFETY: an entry that belongs to this side until the index is published.
            unsafe { self.entry(from.wrapping_add(n as u32)).write(*entry) };
        }
        if count > 0 {
            self.number(self.producer).store(from.wrapping_add(count as u32), Ordering::Release);
        }
        count
    }

    /// True if the system sleeps and requires a call.
    pub fn wants_call(&self) -> bool {
        self.number(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}
