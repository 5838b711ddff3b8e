//! Hashing of existing data on both sides, without reading holes.

use crate::content::ContentHasher;
use crate::limits::MAX_DATA;
use crate::line::LineState;
use rustix::fs::{self as sys, SeekFrom};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::Ordering;

/// The hash of the beginning of a file.
pub(crate) struct PartialPrefix {
    pub hasher: ContentHasher,
    /// Number of bytes that had to be read.
    pub data: u64,
}

/// An extent of data from `at` with its end, or the end of a hole.
pub(crate) enum Extent {
    Data(u64),
    Hole(u64),
}

/// The extent at `at` of a file of length `size`. `sparse`: it may have holes, whose search costs a call.
pub(crate) fn extent(file: &File, sparse: bool, at: u64, size: u64) -> Extent {
    if !sparse {
        return Extent::Data(size);
    }
    let data = match sys::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.clamp(at, size),
        Err(rustix::io::Errno::NXIO) => size,
        Err(_) => at,
    };
    if data > at {
        return Extent::Hole(data);
    }
    Extent::Data(sys::seek(file, SeekFrom::Hole(at)).map_or(size, |hole| hole.clamp(at + 1, size)))
}

/// True if a file occupies less space on disk than its size.
pub(crate) fn is_sparse(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.blocks().saturating_mul(512) < metadata.len())
}

/// Hashes the first `len` bytes of `file`. `meanwhile` is called repeatedly, and returns whether to continue.
/// `None`: the file is shorter, or the transfer is cancelled.
pub(crate) fn hash_prefix(
    file: &File,
    len: u64,
    shared: &LineState,
    mut meanwhile: impl FnMut() -> bool,
) -> io::Result<Option<PartialPrefix>> {
    let mut prefix = PartialPrefix { hasher: ContentHasher::default(), data: 0 };
    if file.metadata()?.len() < len {
        return Ok(None);
    }
    let sparse = is_sparse(file);
    let mut block = Vec::new();
    let mut at = 0;
    while at < len {
        if shared.is_cancelled() || !meanwhile() {
            return Ok(None);
        }
        let until = match extent(file, sparse, at, len) {
            Extent::Hole(until) => {
                prefix.hasher.zeros(until - at);
                at = until;
                continue;
            }
            Extent::Data(until) => until,
        };
        let want = usize::try_from(until - at).unwrap_or(MAX_DATA).min(MAX_DATA);
        if block.len() < want {
            block.resize(want, 0);
        }
        let into = block.get_mut(..want).unwrap_or_default();
        let got = shared.disk.on(|| file.read_at(into, at))?;
        if got == 0 {
            return Ok(None);
        }
        shared.hash.on(|| prefix.hasher.update(block.get(..got).unwrap_or_default()));
        at += got as u64;
        prefix.data += got as u64;
        shared.alive.fetch_add(got as u64, Ordering::Relaxed);
    }
    Ok(Some(prefix))
}
