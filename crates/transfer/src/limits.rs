//! Limits on everything that a peer controls.

/// Bytes of one data frame at most.
pub const MAX_DATA: usize = 1 << 20;
/// Bytes of one control frame at most.
pub const MAX_CONTROL: usize = 1 << 20;
/// Bytes of a path within a transfer.
pub const MAX_PATH: usize = 4_096;
/// Bytes of one name of a path; what Linux's file systems take.
pub const MAX_NAME: usize = 255;
/// Names in a path.
pub const MAX_DEPTH: usize = 128;
/// Bytes of a text that tells what is wrong.
pub const MAX_TEXT: usize = 1_000;
/// Entries of one offer.
pub const MAX_OFFER: usize = 1_024;
/// Entries of a transfer.
pub const MAX_ENTRIES: u64 = 16_000_000;
/// Offers that are open at once: the one whose files are being sent, and the next.
pub const OPEN_OFFERS: usize = 2;
/// Partial files of one offer that are resumed; each costs an open file. Others begin anew.
pub const MAX_RESUMED: usize = 32;
/// A file's size: what file systems take.
pub const MAX_SIZE: u64 = i64::MAX as u64;
/// Blocks that are between disk and network at most.
pub const BLOCKS: usize = 6;
/// Messages that wait between two threads, beside blocks.
pub const QUEUE: usize = 64;
