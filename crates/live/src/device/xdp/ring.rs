//! A ring between us and the system: one side puts entries in, the other takes them out.
//!
//! Invariants of all blocks here: `producer`, `consumer`, `flags` and the entries lie in `memory`, as checked when the ring is
//! made; the number of an entry is masked with their power of two. We alone write our index; entries between the indices
//! belong to the taking side, the others to the putting side, and an index is published after (`Release`), and read before
//! (`Acquire`), the entries. What the system writes as its index is never believed beyond the size of the ring.

#![allow(unsafe_code, reason = "memory that is shared with the system; each block says why it is sound")]

use super::memory::XdpMemory;
use nix::libc;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A ring of `T`, of which all bit patterns are valid.
pub(super) struct XdpRing<T> {
    memory: XdpMemory,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    size: u32,
    kind: PhantomData<T>,
}

/// What a ring may hold: integers and structures of them.
pub(super) trait RingEntry: Copy {}
impl RingEntry for u64 {}
impl RingEntry for libc::xdp_desc {}

impl<T: RingEntry> XdpRing<T> {
    /// The ring of a socket at `page`, with its parts at `offsets`. `size` is a power of two.
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
        // SAFETY: four aligned bytes within the mapping, as checked in `map`; both sides access them as atomics only.
        unsafe { AtomicU32::from_ptr((self.memory.address() as *mut u8).add(at).cast()) }
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        let at = self.entries + (number & (self.size - 1)) as usize * size_of::<T>();
        // SAFETY: the masked number is below `size`, and so many entries are within the mapping, which is not at zero.
        unsafe { NonNull::new_unchecked((self.memory.address() as *mut u8).add(at).cast()) }
    }

    /// Takes up to `most` entries that the system has put in.
    pub fn take(&mut self, most: usize, mut each: impl FnMut(T)) -> usize {
        let from = self.number(self.consumer).load(Ordering::Relaxed);
        let ready = self.number(self.producer).load(Ordering::Acquire).wrapping_sub(from).min(self.size);
        let count = ready.min(u32::try_from(most).unwrap_or(u32::MAX));
        for n in 0..count {
            // SAFETY: an entry of the ring that belongs to us until the index is published.
            each(unsafe { self.entry(from.wrapping_add(n)).read() });
        }
        if count > 0 {
            self.number(self.consumer).store(from.wrapping_add(count), Ordering::Release);
        }
        count as usize
    }

    /// Entries that can be put in.
    pub fn room(&self) -> usize {
        self.size.saturating_sub(self.waiting()) as usize
    }

    /// Entries that were put in and not taken out.
    pub fn waiting(&self) -> u32 {
        let taken = self.number(self.consumer).load(Ordering::Acquire);
        self.number(self.producer).load(Ordering::Relaxed).wrapping_sub(taken).min(self.size)
    }

    /// Puts entries in, at most as many as there is [`room`](XdpRing::room) for; says how many.
    pub fn put(&mut self, entries: &[T]) -> usize {
        let from = self.number(self.producer).load(Ordering::Relaxed);
        let count = entries.len().min(self.room());
        for (n, entry) in entries.iter().take(count).enumerate() {
            // SAFETY: an entry of the ring that belongs to us until the index is published.
            unsafe { self.entry(from.wrapping_add(n as u32)).write(*entry) };
        }
        if count > 0 {
            self.number(self.producer).store(from.wrapping_add(count as u32), Ordering::Release);
        }
        count
    }

    /// The system sleeps and wants a call.
    pub fn wants_call(&self) -> bool {
        self.number(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}
