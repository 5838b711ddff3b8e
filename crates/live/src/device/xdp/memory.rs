//! The memory of frames, shared with the system and the NIC: a UMEM.
//!
//! Invariants of all blocks here: the mapping is `len` bytes long and lives as long as the value; each access
//! is first checked against `len`. No references into it exist, because the system may write at any time:
//! bytes are copied.

#![allow(unsafe_code, reason = "memory that is shared with the system; each block says why it is sound")]

use nix::errno::Errno;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};

/// Pages, anonymous or of a file.
#[derive(Debug)]
pub(super) struct XdpMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the pointer refers to pages of the process, not of a thread.
unsafe impl Send for XdpMemory {}

impl XdpMemory {
    /// Anonymous pages.
    pub fn new(len: usize) -> io::Result<Self> {
        Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0)
    }
    /// Maps `fd` at this offset.
    pub fn of(fd: BorrowedFd<'_>, len: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::map(len, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset)
    }

    fn map(len: usize, flags: libc::c_int, fd: libc::c_int, offset: libc::off_t) -> io::Result<Self> {
        // SAFETY: the system chooses the address; existing mappings are not affected.
        let start =
            unsafe { libc::mmap(null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(Errno::last().into());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(XdpMemory { start, len })
    }

    /// The start address.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }
    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// A pointer to this offset, if `len` bytes from there are within the mapping.
    pub fn at(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: within the mapping, as just checked.
        Some(unsafe { self.start.add(offset) })
    }
    /// Appends bytes from the mapping to `into`. False: the range is outside.
    pub fn read(&self, offset: usize, len: usize, into: &mut Vec<u8>) -> bool {
        let Some(from) = self.at(offset, len) else { return false };
        into.reserve(len);
        let room = into.spare_capacity_mut();
        debug_assert!(room.len() >= len);
        // SAFETY: `len` bytes within the mapping are copied to as many reserved bytes outside of it; all of
        // these are initialised then.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), room.as_mut_ptr().cast(), len);
            into.set_len(into.len() + len);
        }
        true
    }
    /// Copies bytes to the mapping. False: the range is outside.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: as many bytes within the mapping, to which no reference exists.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        true
    }
}

impl Drop for XdpMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no reference to it exists.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
