//! Limits on everything that a peer controls.

use crate::min_free::MinFree;
use farpace_units::ByteCount;
use std::time::Duration;

/// Maximum length of a data frame.
pub const MAX_DATA: usize = 1 << 20;
/// Maximum number of bytes that a sender hands to the line at once. They count as progress when the line has
/// taken them, so that a slow line is not taken for a silent one.
pub const MAX_WRITE: usize = 64 << 10;
/// Maximum length of a control frame.
pub const MAX_CONTROL: usize = 1 << 20;
/// Maximum length of a path within a transfer.
pub const MAX_PATH: usize = 4_096;
/// Maximum length of a name in a path; the limit of Linux's file systems.
pub const MAX_NAME: usize = 255;
/// Maximum number of names in a path.
pub const MAX_DEPTH: usize = 128;
/// Maximum length of an error text.
pub const MAX_TEXT: usize = 1_000;
/// Maximum number of problems that a side keeps in words, and tells the other; more are counted.
pub const MAX_PROBLEMS: usize = 1_000;
/// Maximum number of entries in an offer.
pub const MAX_OFFER: usize = 1_024;
/// Maximum number of entries in a transfer.
pub const MAX_ENTRIES: u64 = 16_000_000;
/// Maximum number of bytes of a file that are sent before the receiver's verdict is known. They fill the
/// first flight of a connection; if the verdict is another one, they were sent for nothing.
pub const MAX_AHEAD: u64 = 128 << 10;
/// Number of open offers: the one whose files are being sent, and the next.
pub const OPEN_OFFERS: usize = 2;
/// Maximum number of incomplete directories: those of the open offers, and the parents of the first one.
pub const MAX_UNSEALED: usize = OPEN_OFFERS * MAX_OFFER + MAX_DEPTH;
/// Maximum number of resumed partial files of an offer; each needs an open file. Others are sent from the
/// beginning.
pub const MAX_RESUMED: usize = 32;
/// Maximum size of a file: the limit of file systems.
pub const MAX_SIZE: u64 = i64::MAX as u64;
/// Maximum number of blocks between disk and network.
pub const BLOCKS: usize = 6;
/// Maximum number of messages between two threads, in addition to blocks.
pub const QUEUE: usize = 64;
/// Minimum number of bytes that a stranger (a peer without token) must send within
/// [`Timeouts::idle`](crate::Timeouts); in 60 s, 2.2 kbit/s.
pub const MIN_MOVED: u64 = 16 << 10;
/// Minimum hash rate, in byte/s, that a busy peer is assumed to have. A peer that takes longer is treated as
/// silent.
pub const MIN_HASH_RATE: u64 = 10_000_000;
/// Default space that strangers must leave free on a file system, at most [`MIN_FREE_LIMIT`].
pub const MIN_FREE_FOR_STRANGERS: MinFree = MinFree::Percent(5);
/// On a large file system, a share is more than a machine needs in order to go on.
pub const MIN_FREE_LIMIT: ByteCount = ByteCount::new(1_000_000_000);
/// Number of bytes written between two checks of the free space.
pub const LOOK_AT_DISK: u64 = 16 << 20;
/// Maximum number of partial files of strangers; the oldest is removed first.
pub const MAX_PARTIALS: usize = 4_096;
/// Maximum number of unproven connections; the oldest is closed first.
pub const MAX_UNPROVEN: usize = 64;
/// Maximum number of them from one address (IPv6: one /64 network).
pub const MAX_UNPROVEN_EACH: usize = 8;
/// Minimum rate of a stranger, in byte/s, if others wait for its slot.
pub const MIN_RATE_OF_STRANGERS: u64 = 8_000;
/// Minimum time before the rate is checked.
pub const MIN_TIME_OF_STRANGERS: Duration = Duration::from_secs(10);
