//! Partial files of senders without token: they are in one directory below the root, which lists them all,
//! and have a maximum age.

use super::{lock, os};
use crate::fault::{Code, TransferFault};
use crate::limits::MAX_PARTIALS;
use crate::path::PARTIAL;
use rustix::fs::{self as sys, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

/// Name of the directory. No sender can use it, because it has the suffix of partial files.
pub(super) const NAME: &str = ".strangers.farpace-part";

/// Opens the directory, and creates it if it is missing.
pub(super) fn open(root: &OwnedFd) -> Result<OwnedFd, TransferFault> {
    // A transfer that ends at the same moment may remove it again.
    for _ in 0..3 {
        if let Some(dir) = existing(root)? {
            return Ok(dir);
        }
        match sys::mkdirat(root, NAME, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(os(errno, "cannot make the directory for partial files")),
        }
    }
    Err(TransferFault::new(Code::Busy, "the directory for partial files comes and goes"))
}

/// Opens the directory if it exists and only this user can access it.
pub(super) fn existing(root: &OwnedFd) -> Result<Option<OwnedFd>, TransferFault> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let dir = match sys::openat(root, NAME, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(os(errno, "cannot open the directory for partial files")),
    };
    let stat =
        sys::fstat(&dir).map_err(|errno| os(errno, "cannot look at the directory for partial files"))?;
    let is_open_to_others = Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH);
    if stat.st_uid != rustix::process::geteuid().as_raw() || is_open_to_others {
        return Err(TransferFault::new(
            Code::Permission,
            format_args!("{NAME} belongs to others or lets them write"),
        ));
    }
    Ok(Some(dir))
}

/// Removes partial files that were not written for `keep`, and the oldest quarter of them if there are too
/// many; then the directory, if it is empty. Files that a transfer is writing stay. Returns the number of
/// remaining files.
pub(super) fn expire(root: &OwnedFd, keep: Duration) -> usize {
    let Ok(Some(dir)) = existing(root) else { return 0 };
    let mut partials = list(&dir);
    partials.sort();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let too_many = if partials.len() > MAX_PARTIALS { partials.len() - MAX_PARTIALS / 4 * 3 } else { 0 };
    let mut left = 0;
    for (n, (changed, name)) in partials.iter().enumerate() {
        // A time in the future counts as old, because no clock says how long the file would stay.
        let is_old = now.checked_sub(*changed).is_none_or(|age| age >= keep);
        if (is_old || n < too_many) && is_free(&dir, name) {
            let _ = sys::unlinkat(&dir, name, AtFlags::empty());
        } else {
            left += 1;
        }
    }
    let _ = sys::unlinkat(root, NAME, AtFlags::REMOVEDIR);
    left
}

/// Name and time of the last change of each file. Senders cannot set that time.
fn list(dir: &OwnedFd) -> Vec<(Duration, CString)> {
    let Ok(entries) = sys::Dir::read_from(dir) else { return Vec::new() };
    let partials = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().to_owned();
        let stat = sys::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let seconds = u64::try_from(stat.st_ctime).unwrap_or(0);
        name.to_bytes().ends_with(PARTIAL.as_bytes()).then_some((Duration::from_secs(seconds), name))
    });
    partials.collect()
}

fn is_free(dir: &OwnedFd, name: &CString) -> bool {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    sys::openat(dir, name, flags, Mode::empty()).is_ok_and(|file| lock(&file).is_ok())
}
