//! How much of a file system a receiver leaves free.

use farpace_units::ByteCount;

/// Minimum free space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinFree {
    /// In bytes.
    Bytes(ByteCount),
    /// In percent of its bytes, and of its inodes; at most 100.
    Percent(u8),
}

impl MinFree {
    /// Bytes and inodes that stay free on a file system that has `bytes` and `inodes` in all.
    pub(crate) fn of(self, bytes: u64, inodes: u64) -> (u64, u64) {
        match self {
            MinFree::Bytes(bytes) => (bytes.get(), 0),
            MinFree::Percent(percent) => {
                let of = |all: u64| all / 100 * u64::from(percent.min(100));
                (of(bytes), of(inodes))
            }
        }
    }
}
