//! The memory that frames are in, which the system and the card write, too: an UMEM.
//!
//! Invariants of all blocks here: the mapping is as long as `len` and lives as long as the value; each access is checked
//! against `len` first. References into it are never made, since the system may write at any time: bytes are copied.

#![allow(unsafe_code, reason = "memory that is shared with the system; each block says why it is sound")]

use nix::errno::Errno;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};

/// Pages, of our own or of a file.
#[derive(Debug)]
pub(super) struct XdpMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is a pointer to pages that belong to the process, not to a thread.
unsafe impl Send for XdpMemory {}

impl XdpMemory {
    /// Fresh pages.
    pub fn new(len: usize) -> io::Result<Self> {
        Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0)
    }
    /// What `fd` has at this offset.
    pub fn of(fd: BorrowedFd<'_>, len: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::map(len, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset)
    }

    fn map(len: usize, flags: libc::c_int, fd: libc::c_int, offset: libc::off_t) -> io::Result<Self> {
        // SAFETY: the system chooses where; nothing that is mapped already is touched.
        let start =
            unsafe { libc::mmap(null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(Errno::last().into());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(XdpMemory { start, len })
    }

    /// Where it begins.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }
    /// Bytes of it.
    pub fn len(&self) -> usize {
        self.len
    }
    /// The place at this offset, if `len` bytes from there on are within.
    pub fn at(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: within the mapping, as just checked.
        Some(unsafe { self.start.add(offset) })
    }
    /// Appends bytes from it to `into`. False: there are not so many.
    pub fn read(&self, offset: usize, len: usize, into: &mut Vec<u8>) -> bool {
        let Some(from) = self.at(offset, len) else { return false };
        into.reserve(len);
        let room = into.spare_capacity_mut();
        debug_assert!(room.len() >= len);
        // SAFETY: `len` bytes within the mapping go to as many reserved ones, which are no part of it; all of these are
        // written then.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), room.as_mut_ptr().cast(), len);
            into.set_len(into.len() + len);
        }
        true
    }
    /// Puts bytes there. False: they do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: as many bytes within the mapping, to which there is no reference.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        true
    }
}

impl Drop for XdpMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody has a reference to it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
