//! What is in a directory that the sender does not have, removed from it.

use super::{Destination, Peer, os, tree};
use crate::fault::TransferFault;
use crate::limits::MAX_DEPTH;
use crate::path::RelPath;
use rustix::fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

impl Destination {
    /// Removes from the directory `path` what is not in `keep`, but for partial files and what patterns
    /// protect. `told` hears of each path. In a dry run nothing is removed. Only senders that have proved
    /// themselves may have this done.
    ///
    /// # Errors
    /// The directory cannot be read, or something cannot be removed: the rest is still tried.
    pub(crate) fn remove_others(
        &self,
        path: &RelPath,
        peer: &Peer,
        keep: &BTreeSet<OsString>,
        told: &mut dyn FnMut(&RelPath),
    ) -> Result<(), TransferFault> {
        if peer.is_stranger() || !self.policy.delete {
            return Ok(());
        }
        let here = self.here(path, peer)?;
        let dir = match tree::directory(&self.root, Some(here.as_bytes())) {
            // In a dry run it has not been made.
            Err(_) if self.policy.dry_run => return Ok(()),
            dir => dir?,
        };
        let mut failed = None;
        for (name, kind) in list(&dir)? {
            if keep.contains(&name) || name.as_bytes().ends_with(b".farpace-part") {
                continue;
            }
            let Ok(at) = path.join(&name) else { continue };
            let is_directory = kind == FileType::Directory;
            if self.policy.protect.leaves_out(&at, is_directory) {
                continue;
            }
            if !self.policy.dry_run
                && let Err(fault) = remove(&dir, &name, is_directory, 0)
            {
                failed = Some(fault);
                continue;
            }
            told(&at);
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Names in a directory, and what they are.
fn list(dir: &OwnedFd) -> Result<Vec<(OsString, FileType)>, TransferFault> {
    let read = || -> Result<Vec<(OsString, FileType)>, Errno> {
        // A descriptor of its own, which may be read.
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = sys::openat(dir, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&own)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    FileType::from_raw_mode(sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
                }
                kind => kind,
            };
            names.push((name.to_owned(), kind));
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    };
    read().map_err(|errno| os(errno, "cannot read the directory"))
}

/// Removes one name; of a directory all that is in it. No link is followed.
fn remove(dir: &OwnedFd, name: &OsStr, is_directory: bool, depth: usize) -> Result<(), TransferFault> {
    let cannot = |errno| os(errno, &format!("cannot remove {}", name.to_string_lossy()));
    if !is_directory {
        return sys::unlinkat(dir, name, AtFlags::empty()).map_err(cannot);
    }
    if depth > MAX_DEPTH {
        return Err(cannot(Errno::LOOP));
    }
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let below = sys::openat(dir, name, flags, Mode::empty()).map_err(cannot)?;
    for (name, kind) in list(&below)? {
        remove(&below, &name, kind == FileType::Directory, depth + 1)?;
    }
    sys::unlinkat(dir, name, AtFlags::REMOVEDIR).map_err(cannot)
}
