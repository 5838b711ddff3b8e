//! What both sides' pipelines are made of: hashing of holes and of what is there already.

use crate::limits::MAX_DATA;
use crate::line::Shared;
use crate::message::Hash;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// Zeros, as a hole of a file reads.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// Hashes `len` zeros. Stops early if the transfer is to stop.
pub(crate) fn hash_zeros(hasher: &mut blake3::Hasher, len: u64, shared: &Shared) {
    let mut left = len;
    while left > 0 && !shared.stopped() {
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
        hasher.update(ZEROS.get(..n).unwrap_or_default());
        left -= n as u64;
        shared.alive.fetch_add(1, Ordering::Relaxed);
    }
}

/// Hashes the first `len` bytes of `file`; `meanwhile` is called again and again. `None`: the file is shorter, or the transfer
/// is to stop.
pub(crate) fn hash_prefix(
    file: &File,
    len: u64,
    shared: &Shared,
    mut meanwhile: impl FnMut(),
) -> io::Result<Option<blake3::Hasher>> {
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; usize::try_from(len).unwrap_or(MAX_DATA).min(MAX_DATA)];
    let mut at = 0;
    while at < len {
        if shared.stopped() {
            return Ok(None);
        }
        let want = usize::try_from(len - at).unwrap_or(MAX_DATA).min(MAX_DATA);
        let into = block.get_mut(..want).unwrap_or_default();
        let got = shared.disk.on(|| file.read_at(into, at))?;
        if got == 0 {
            return Ok(None);
        }
        shared.hash.on(|| hasher.update(block.get(..got).unwrap_or_default()));
        at += got as u64;
        shared.alive.fetch_add(1, Ordering::Relaxed);
        meanwhile();
    }
    Ok(Some(hasher))
}

/// The hash of what was put in.
pub(crate) fn result(hasher: &blake3::Hasher) -> Hash {
    *hasher.finalize().as_bytes()
}
