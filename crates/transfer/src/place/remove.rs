//! What is in a directory that the sender does not have, removed from it.

use super::{Destination, Peer, os, tree};
use crate::fault::{Code, TransferFault};
use crate::path::{PARTIAL, RelPath};
use crate::sender::MAX_PLANNED;
use rustix::fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// What is in a directory that the sender does not have.
struct OtherEntries {
    dir: OwnedFd,
    /// Paths, and true for directories.
    entries: Vec<(RelPath, bool)>,
}

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
        let Some(others) = self.others(path, peer, keep)? else { return Ok(()) };
        let mut failed = None;
        for (at, is_directory) in others.entries {
            if let Err(fault) = self.remove(&others.dir, &at, is_directory, told) {
                failed = Some(fault);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// True if [`Destination::remove_others`] would find something to remove.
    pub(crate) fn has_others(&self, path: &RelPath, peer: &Peer, keep: &BTreeSet<OsString>) -> bool {
        matches!(self.others(path, peer, keep), Ok(Some(others)) if !others.entries.is_empty())
    }

    /// What is in the directory `path` beside `keep`. None: nothing of it may be removed, or it is not there.
    fn others(
        &self,
        path: &RelPath,
        peer: &Peer,
        keep: &BTreeSet<OsString>,
    ) -> Result<Option<OtherEntries>, TransferFault> {
        if peer.is_stranger() || !self.policy.delete {
            return Ok(None);
        }
        let is_place = self.policy.inside && path.split().0.is_none();
        let here = if is_place { None } else { Some(self.here(path, peer)?) };
        let dir = match tree::directory(&self.root, here.as_ref().map(RelPath::as_bytes)) {
            // In a dry run it has not been made.
            Err(_) if self.policy.dry_run => return Ok(None),
            dir => dir?,
        };
        let mut entries = Vec::new();
        for (name, kind) in list(&dir)? {
            if keep.contains(&name) || name.as_bytes().ends_with(PARTIAL.as_bytes()) {
                continue;
            }
            let Ok(at) = path.join(&name) else { continue };
            let is_directory = kind == FileType::Directory;
            if !self.policy.protect.leaves_out(&at, is_directory) {
                entries.push((at, is_directory));
            }
        }
        Ok(Some(OtherEntries { dir, entries }))
    }

    /// Removes one thing; of a directory all that is in it, unless patterns protect some of it: then the
    /// directory stays. No link is followed. True if nothing of it is left. In a dry run nothing is removed.
    fn remove(
        &self,
        dir: &OwnedFd,
        at: &RelPath,
        is_directory: bool,
        told: &mut dyn FnMut(&RelPath),
    ) -> Result<bool, TransferFault> {
        let name = at.split().1;
        let cannot = |errno| os(errno, &format!("cannot remove {}", name.to_string_lossy()));
        let unlink = |flags| match self.policy.dry_run {
            true => Ok(()),
            false => sys::unlinkat(dir, name, flags).map_err(cannot),
        };
        if !is_directory {
            unlink(AtFlags::empty())?;
            told(at);
            return Ok(true);
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = sys::openat(dir, name, flags, Mode::empty()).map_err(cannot)?;
        // What is told of a directory that goes as a whole is its name alone; of others so many names.
        let mut parts = Vec::new();
        let mut whole = true;
        let mut failed = None;
        for (name, kind) in list(&below)? {
            if name.as_bytes().ends_with(PARTIAL.as_bytes()) {
                // Nobody asks for the rest of it. A directory of that name stays if something is in it.
                let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                whole &= self.policy.dry_run || sys::unlinkat(&below, &name, flags).is_ok();
                continue;
            }
            // A path that is too deep or too long is none that was sent: it is not removed either.
            let path = match at.join(&name) {
                Ok(path) => path,
                Err(why) => {
                    failed = Some(TransferFault::new(Code::Path, format_args!("cannot remove {at}: {why}")));
                    continue;
                }
            };
            let is_directory = kind == FileType::Directory;
            if self.policy.protect.leaves_out(&path, is_directory) {
                whole = false;
                continue;
            }
            let removed = self.remove(&below, &path, is_directory, &mut |gone| {
                if parts.len() < MAX_PLANNED {
                    parts.push(gone.clone());
                }
            });
            match removed {
                Ok(is_gone) => whole &= is_gone,
                Err(fault) => failed = Some(fault),
            }
        }
        if let Some(fault) = failed {
            parts.iter().for_each(told);
            return Err(fault);
        }
        if whole {
            unlink(AtFlags::REMOVEDIR)?;
            told(at);
        } else {
            parts.iter().for_each(told);
        }
        Ok(whole)
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
