//! Storage limits: total bytes of all transfers, and free space on the file system.

use super::os;
use crate::fault::{Code, TransferFault};
use crate::limits::{LOOK_AT_DISK, MIN_FREE_FOR_STRANGERS, MIN_FREE_LIMIT};
use crate::min_free::MinFree;
use farpace_units::ByteCount;
use rustix::fs as sys;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum cost of an object on disk: one block, or the name of a directory, link or empty file.
const UNIT: u64 = 4_096;
/// Shorter holes count as data.
const SHORT_HOLE: u64 = 65_536;

/// The rest of a budget.
#[derive(Debug, Default)]
pub(super) struct StorageBudget {
    max: Option<ByteCount>,
    min_free: Option<MinFree>,
    used: AtomicU64,
}

impl StorageBudget {
    pub fn new(max: Option<ByteCount>, min_free: Option<MinFree>) -> Self {
        StorageBudget { max, min_free, used: AtomicU64::new(0) }
    }
    fn left(&self) -> u64 {
        self.max.map_or(u64::MAX, |max| max.get().saturating_sub(self.used.load(Ordering::Relaxed)))
    }
    fn exceeded(&self) -> TransferFault {
        let max = self.max.map_or(0, ByteCount::get);
        TransferFault::new(
            Code::Limit,
            format_args!("the receiver takes {max} bytes in all (its --max-bytes)"),
        )
    }
    /// Whether a file of this size is allowed.
    pub fn allows(&self, size: u64) -> Result<(), TransferFault> {
        if size > self.left() { Err(self.exceeded()) } else { Ok(()) }
    }
    /// Charges for one name.
    pub fn name(&self, on: impl AsFd, stranger: bool) -> Result<(), TransferFault> {
        self.take(UNIT)?;
        self.look(on, 0, stranger)
    }
    fn take(&self, bytes: u64) -> Result<(), TransferFault> {
        if self.max.is_none() {
            return Ok(());
        }
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.max.map_or(u64::MAX, ByteCount::get) {
            self.give_back(bytes);
            return Err(self.exceeded());
        }
        Ok(())
    }
    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
    /// Whether the file system has enough free space after `more` bytes.
    pub fn look(&self, on: impl AsFd, more: u64, stranger: bool) -> Result<(), TransferFault> {
        if self.min_free.is_none() && !stranger {
            return Ok(());
        }
        let disk = sys::fstatvfs(on).map_err(|errno| os(errno, "cannot see how much is free"))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize).saturating_sub(more);
        let (bytes, names) = self.min_free(disk.f_blocks.saturating_mul(disk.f_frsize), disk.f_files);
        // Some file systems do not count inodes.
        if free < bytes || (disk.f_files > 0 && disk.f_favail < names) {
            return Err(TransferFault::new(
                Code::NoSpace,
                format_args!(
                    "the receiver keeps {} of its disk free (its --min-free)",
                    ByteCount::new(bytes)
                ),
            ));
        }
        Ok(())
    }
    /// Bytes and inodes that stay free on a file system that has `bytes` and `inodes` in all.
    fn min_free(&self, bytes: u64, inodes: u64) -> (u64, u64) {
        match self.min_free {
            Some(given) => given.of(bytes, inodes),
            None => {
                let (bytes, inodes) = MIN_FREE_FOR_STRANGERS.of(bytes, inodes);
                (bytes.min(MIN_FREE_LIMIT.get()), inodes)
            }
        }
    }
}

/// The use of a budget by one file.
#[derive(Debug, Default)]
pub(super) struct BudgetAccount {
    /// Bytes charged to the budget.
    taken: u64,
    /// All blocks before this offset are charged.
    paid_to: u64,
    /// Bytes written since the last check of the free space.
    unseen: u64,
    /// Whether the file system supports holes, once known.
    has_holes: Option<bool>,
}

impl BudgetAccount {
    /// The account of a file that exists up to `at`.
    pub fn begin(
        budget: &StorageBudget,
        file: &File,
        at: u64,
        stranger: bool,
    ) -> Result<BudgetAccount, TransferFault> {
        budget.name(file, stranger)?;
        Ok(BudgetAccount { taken: UNIT, paid_to: at.next_multiple_of(UNIT), ..BudgetAccount::default() })
    }
    /// Charges for data at `at`.
    pub fn data(
        &mut self,
        budget: &StorageBudget,
        file: &File,
        at: u64,
        len: u64,
        stranger: bool,
    ) -> Result<(), TransferFault> {
        let from = (at - at % UNIT).max(self.paid_to);
        let to = at.saturating_add(len).saturating_add(UNIT - 1) / UNIT * UNIT;
        let bytes = to.saturating_sub(from);
        budget.take(bytes)?;
        (self.taken, self.paid_to) = (self.taken.saturating_add(bytes), to.max(self.paid_to));
        self.unseen = self.unseen.saturating_add(bytes);
        if self.unseen >= LOOK_AT_DISK {
            self.unseen = 0;
            budget.look(file, 0, stranger)?;
        }
        Ok(())
    }
    /// Charges for a hole at `at`, which is free if the file system supports holes.
    pub fn hole(
        &mut self,
        budget: &StorageBudget,
        file: &File,
        at: u64,
        len: u64,
        stranger: bool,
    ) -> Result<(), TransferFault> {
        if len >= SHORT_HOLE && self.has_holes.is_none() {
            self.has_holes = Some(has_holes(file, at));
        }
        if len >= SHORT_HOLE && self.has_holes == Some(true) {
            return Ok(());
        }
        budget.look(file, len, stranger)?;
        self.data(budget, file, at, len, stranger)
    }
    /// Releases the use of a removed file.
    pub fn close(self, budget: &StorageBudget) {
        if budget.max.is_some() {
            budget.give_back(self.taken);
        }
    }
}

/// Creates a short hole at `at`, and checks whether it occupies space.
fn has_holes(file: &File, at: u64) -> bool {
    let blocks = || file.metadata().map(|metadata| metadata.blocks().saturating_mul(512));
    let probe = || {
        let before = blocks()?;
        file.set_len(at.saturating_add(SHORT_HOLE))?;
        Ok::<bool, std::io::Error>(blocks()?.saturating_sub(before) < SHORT_HOLE / 2)
    };
    probe().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: `--max-bytes` counts blocks of sparse data once, does not count holes, and releases removed
    /// files.
    #[test]
    fn blocks_are_counted_once_and_given_back() {
        let file = tempfile::tempfile().unwrap();
        let budget = StorageBudget::new(Some(ByteCount::new(10 * UNIT)), None);
        let mut account = BudgetAccount::begin(&budget, &file, 0, false).unwrap();
        let mut data = |at, len| account.data(&budget, &file, at, len, false).is_ok();
        assert!(data(0, 1) && data(1, 4_095) && data(4_096, 1));
        assert_eq!(budget.left(), 7 * UNIT);
        assert!(data(100 * UNIT, 5_000), "two blocks");
        assert_eq!(budget.left(), 5 * UNIT);
        assert!(!data(200 * UNIT, 6 * UNIT));
        assert_eq!(budget.left(), 5 * UNIT, "what was refused takes nothing");
        account.hole(&budget, &file, 300 * UNIT, 1 << 40, false).unwrap();
        assert_eq!(budget.left(), 5 * UNIT);
        assert!(budget.allows(5 * UNIT).is_ok() && budget.allows(5 * UNIT + 1).is_err());
        account.close(&budget);
        assert_eq!(budget.left(), 10 * UNIT);
    }

    /// Breaks: strangers leave 5 % of a file system free, but a large one with some space left still takes
    /// files.
    #[test]
    fn strangers_leave_a_share_that_is_bounded() {
        let budget = StorageBudget::new(None, None);
        assert_eq!(budget.min_free(2_000_000_000, 1_000), (100_000_000, 50));
        assert_eq!(budget.min_free(270_000_000_000, 1_000), (1_000_000_000, 50));
        let given = StorageBudget::new(None, Some(MinFree::Percent(10)));
        assert_eq!(
            given.min_free(270_000_000_000, 1_000),
            (27_000_000_000, 100),
            "what is given is not bounded"
        );
    }

    /// Breaks: `--min-free` is respected, also by strangers.
    #[test]
    fn some_of_a_disk_stays_free() {
        let file = tempfile::tempfile().unwrap();
        let look = |min_free, stranger| StorageBudget::new(None, min_free).look(&file, 0, stranger);
        assert!(look(None, false).is_ok());
        assert!(look(Some(MinFree::Bytes(ByteCount::new(1))), false).is_ok());
        let fault = look(Some(MinFree::Bytes(ByteCount::new(u64::MAX))), false).unwrap_err();
        assert_eq!(fault.code, Code::NoSpace);
        assert!(look(Some(MinFree::Percent(100)), false).is_err());
        let more =
            StorageBudget::new(None, Some(MinFree::Bytes(ByteCount::new(1)))).look(&file, u64::MAX, false);
        assert!(more.is_err(), "what is about to be written counts");
    }
}
