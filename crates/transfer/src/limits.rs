//! Limits on everything that a peer controls.

use crate::place::MinFree;
use std::time::Duration;

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
/// Directories that were offered and are not complete: all of the open offers, and those that the first one is in.
pub const MAX_UNSEALED: usize = OPEN_OFFERS * MAX_OFFER + MAX_DEPTH;
/// Partial files of one offer that are resumed; each costs an open file. Others begin anew.
pub const MAX_RESUMED: usize = 32;
/// A file's size: what file systems take.
pub const MAX_SIZE: u64 = i64::MAX as u64;
/// Blocks that are between disk and network at most.
pub const BLOCKS: usize = 6;
/// Messages that wait between two threads, beside blocks.
pub const QUEUE: usize = 64;
/// Bytes that a stranger (a peer without token) must bring within [`Timeouts::idle`](crate::Timeouts); in 60 s, 2.2 kbit/s.
pub const MIN_MOVED: u64 = 16 << 10;
/// Byte/s at which a peer that says it is busy is believed to hash what it has to: after that, it is silent.
pub const MIN_HASH_RATE: u64 = 10_000_000;
/// What strangers leave free of a file system if nothing else is said.
pub const MIN_FREE_FOR_STRANGERS: MinFree = MinFree::Percent(5);
/// Bytes that are written between two looks at how much is free.
pub const LOOK_AT_DISK: u64 = 16 << 20;
/// Partial files of strangers that are kept at once; the oldest goes first.
pub const MAX_PARTIALS: usize = 4_096;
/// Connections that have proved nothing yet, at once; the oldest goes first.
pub const MAX_UNPROVEN: usize = 64;
/// Of them, from one address (IPv6: one network of 64 bits).
pub const MAX_UNPROVEN_EACH: usize = 8;
/// A stranger that has been slower than this loses its place to somebody who waits for one.
pub const MIN_RATE_OF_STRANGERS: u64 = 8_000;
/// But not before this time.
pub const MIN_TIME_OF_STRANGERS: Duration = Duration::from_secs(10);
