//! A file in memory: the only unsafe code of this crate.
#![allow(unsafe_code)]

use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A whole file, mapped read-only; a clone is the same mapping.
///
/// Invariant: nobody changes the file while it is mapped. The user is responsible for this, as with any
/// program that maps files: other programs can write to it, and no lock would stop them. A changed file is a
/// changed payload, so that the verifier may fail or pass; a file cut short ends the process with SIGBUS.
/// Nothing in this process writes to the file, and no pointer is derived from its contents.
#[derive(Clone, Debug)]
pub(super) struct Map(Arc<Mmap>);

impl Map {
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the invariant above; the mapping is read-only and private to this type.
        unsafe { Mmap::map(file) }.map(|map| Map(Arc::new(map)))
    }
    /// Returns the memory of the bytes `from..to` to the system. It is only advice: errors do no harm.
    pub fn release(&self, from: u64, to: u64) {
        let len = self.0.len();
        let clamp = |offset: u64| usize::try_from(offset).unwrap_or(len).min(len);
        let (from, to) = (clamp(from), clamp(to));
        if from < to {
            // SAFETY: a page of a read-only file mapping that is dropped is read from the file again with the
            // same contents when it is next used (by the invariant), so references to it stay valid.
            let _ = unsafe { self.0.unchecked_advise_range(UncheckedAdvice::DontNeed, from, to - from) };
        }
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
