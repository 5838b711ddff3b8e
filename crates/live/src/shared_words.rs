//! Memory that outlives this process, as long as another one has its file open.
//!
//! Invariants of all blocks here: the mapping is `count` words long, begins at a page, and lives as long as
//! the value; words are only accessed as atomics.

#![allow(unsafe_code, reason = "memory that is shared with another process; each block says why it is sound")]

use nix::errno::Errno;
use nix::libc;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of 64 bits in a file without a name. They are zero at first, and take memory when they are written.
#[derive(Clone, Debug)]
pub struct SharedWords(Arc<MappedWords>);

#[derive(Debug)]
struct MappedWords {
    file: File,
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the pointer refers to pages of the process, not of a thread, and words are atomics.
unsafe impl Send for MappedWords {}
// SAFETY: as above.
unsafe impl Sync for MappedWords {}

impl SharedWords {
    /// So many words.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(count: usize) -> io::Result<Self> {
        let bytes = count.checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the name is a string that ends with zero.
        let fd = unsafe { libc::memfd_create(c"farpace".as_ptr(), libc::MFD_CLOEXEC) };
        Errno::result(fd)?;
        // SAFETY: the descriptor was just made, and belongs to nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes as u64)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the system chooses the address; existing mappings are not affected. The file has this
        // length.
        let start = unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(Errno::last().into());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedWords(Arc::new(MappedWords { file, start, count })))
    }

    /// Writes a word. What is written before is there when this is. Nothing happens beyond the end.
    pub fn store(&self, at: usize, word: u64) {
        if at < self.0.count {
            // SAFETY: within the mapping, which lives as long as `self`, and aligned: it begins at a page.
            unsafe { self.0.start.add(at).as_ref() }.store(word, Ordering::Release);
        }
    }

    /// The file, for another process.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn file(&self) -> io::Result<File> {
        self.0.file.try_clone()
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nobody has a reference to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// Breaks: what was written is not in the file, lies elsewhere, or a word beyond the end is written.
    #[test]
    fn words_are_in_the_file() {
        let words = SharedWords::new(1_000).unwrap();
        let file = words.file().unwrap();
        let other = words.clone();
        words.store(999, 7);
        other.store(1, u64::MAX);
        other.store(1_000, 9);
        drop((words, other));
        let mut bytes = vec![0; 8_001];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 8_000);
        let read: Vec<u64> =
            bytes[..8_000].as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        assert_eq!(read.iter().filter(|word| **word != 0).count(), 2);
        assert_eq!((read[999], read[1]), (7, u64::MAX));
    }
}
