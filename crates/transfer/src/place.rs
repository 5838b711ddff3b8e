//! The directory that a receiver writes to, and nothing outside of it.
//!
//! Every name is opened from its parent's descriptor, and no symbolic link is followed: neither one that was there before nor one
//! that somebody puts there meanwhile. A file gets its name only when it is whole and verified; until then it is a
//! partial file beside it, which is locked while a transfer writes it.

use crate::fault::{Code, Fault};
use crate::limits::MAX_DATA;
use crate::line::Shared;
use crate::message::{Entry, FileTime, Kind, Verdict};
use crate::path::RelPath;
use crate::pipeline::{hash_prefix, result};
use rustix::fs::{
    self as sys, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a receiver lets senders do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Files that are there may be replaced.
    pub overwrite: bool,
    /// Files are on the disk, not only handed to the system, before they are acknowledged.
    pub sync: bool,
    /// The one name at the top is to be this one.
    pub rename: Option<OsString>,
}

/// The directory to write to.
pub struct Place {
    root: OwnedFd,
    policy: Policy,
    /// Permissions that new files do not get.
    umask: u16,
}

/// A file that was offered and is wanted.
pub(crate) struct Wanted {
    pub entry: Entry,
    pub resumed: Option<Resumed>,
}

/// The beginning of a file that is there.
pub(crate) struct Resumed {
    file: File,
    pub hasher: blake3::Hasher,
    pub offset: u64,
}

/// A file that is being written.
pub(crate) struct Partial {
    parent: OwnedFd,
    file: File,
    name: String,
    path: RelPath,
    mode: u16,
    modified: FileTime,
    size: u64,
    at: u64,
}

fn os(errno: Errno, what: &str) -> Fault {
    Fault::of(&errno.into(), what)
}

impl Place {
    /// A place in the directory `dir`, which must be there.
    ///
    /// # Errors
    /// It is not there, no directory, or may not be opened.
    pub fn new(dir: &Path, policy: Policy) -> Result<Place, Fault> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = sys::open(dir, flags, Mode::empty()).map_err(|errno| os(errno, &dir.to_string_lossy()))?;
        Ok(Place { root, policy, umask: umask() })
    }

    /// The path that `path` gets here.
    fn here(&self, path: &RelPath) -> Result<RelPath, Fault> {
        match &self.policy.rename {
            Some(name) => path.renamed(name).map_err(|why| Fault::new(Code::Path, why)),
            None => Ok(path.clone()),
        }
    }

    /// The directory that `path` is in.
    fn parent(&self, path: &RelPath) -> Result<OwnedFd, Fault> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::PATH | OFlags::CLOEXEC;
        let mut at = self.root.try_clone().map_err(|error| Fault::of(&error, "cannot open the directory"))?;
        let names: Vec<_> = path.names().collect();
        for name in names.iter().take(names.len().saturating_sub(1)) {
            at = sys::openat(&at, *name, flags, Mode::empty()).map_err(|errno| match errno {
                Errno::LOOP | Errno::NOTDIR => Fault::new(
                    Code::Path,
                    "a directory on its way is a link or a file here; links are not followed",
                ),
                _ => os(errno, "cannot open its directory"),
            })?;
        }
        Ok(at)
    }

    /// What is to be done with `entry`. Directories and links are made at once. `meanwhile` is called while something is
    /// hashed; `may_resume` says whether a partial file may be kept open.
    pub(crate) fn judge(
        &self,
        entry: Entry,
        may_resume: bool,
        shared: &Shared,
        meanwhile: impl FnMut(),
    ) -> (Verdict, Option<Wanted>) {
        let verdict = self.here(&entry.path).and_then(|path| {
            let parent = self.parent(&path)?;
            match &entry.kind {
                Kind::Directory => make_directory(&parent, path.split().1, entry.mode),
                Kind::Link { target } => self.make_link(&parent, &path, target),
                Kind::File { size } => {
                    return self.judge_file(&parent, &path, *size, may_resume, shared, meanwhile);
                }
            }
            .map(|()| (Verdict::Made, None))
        });
        match verdict {
            Ok((verdict, resumed)) => {
                let wanted = !matches!(
                    verdict,
                    Verdict::Made | Verdict::Refused(_) | Verdict::Have { replace: false, .. }
                );
                (verdict, wanted.then_some(Wanted { entry, resumed }))
            }
            Err(fault) => (Verdict::Refused(fault), None),
        }
    }

    fn judge_file(
        &self,
        parent: &OwnedFd,
        path: &RelPath,
        size: u64,
        may_resume: bool,
        shared: &Shared,
        mut meanwhile: impl FnMut(),
    ) -> Result<(Verdict, Option<Resumed>), Fault> {
        let name = path.split().1;
        let exists = || {
            Fault::new(Code::Exists, "there is another file of this name; the receiver does not overwrite")
        };
        match sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(os(errno, "cannot look at it")),
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if u64::try_from(stat.st_size).ok() == Some(size) => {
                    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                    let file = sys::openat(parent, name, flags, Mode::empty()).map(File::from);
                    let hasher = file
                        .ok()
                        .and_then(|file| hash_prefix(&file, size, shared, &mut meanwhile).ok().flatten());
                    if let Some(hasher) = hasher {
                        return Ok((
                            Verdict::Have { hash: result(&hasher), replace: self.policy.overwrite },
                            None,
                        ));
                    }
                    if !self.policy.overwrite {
                        return Err(exists());
                    }
                }
                FileType::Directory => {
                    return Err(Fault::new(Code::Exists, "there is a directory of this name"));
                }
                _ if self.policy.overwrite => {}
                _ => return Err(exists()),
            },
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match sys::openat(parent, path.partial_name(), flags, Mode::empty()) {
            Ok(file) if may_resume => File::from(file),
            // It will be told when it is written.
            _ => return Ok((Verdict::Send, None)),
        };
        lock(&file)?;
        let metadata =
            file.metadata().map_err(|error| Fault::of(&error, "cannot look at its partial file"))?;
        let offset = metadata.len().min(size);
        if !metadata.is_file() || offset == 0 {
            return Ok((Verdict::Send, None));
        }
        let hasher = hash_prefix(&file, offset, shared, meanwhile);
        match hasher.map_err(|error| Fault::of(&error, "cannot read its partial file"))? {
            Some(hasher) => {
                let verdict = Verdict::Resume { offset, hash: result(&hasher) };
                Ok((verdict, Some(Resumed { file, hasher, offset })))
            }
            None => Ok((Verdict::Send, None)),
        }
    }

    fn make_link(&self, parent: &OwnedFd, path: &RelPath, target: &[u8]) -> Result<(), Fault> {
        if !path.may_link_to(target) {
            return Err(Fault::new(Code::Path, "the link leads out of the directory"));
        }
        let (name, target) = (path.split().1, OsStr::from_bytes(target));
        match sys::symlinkat(target, parent, name) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => {
                let there = sys::readlinkat(parent, name, Vec::new());
                if there.as_ref().is_ok_and(|there| there.as_bytes() == target.as_bytes()) {
                    return Ok(());
                }
                if !self.policy.overwrite {
                    return Err(Fault::new(
                        Code::Exists,
                        "there is another file of this name; the receiver does not overwrite",
                    ));
                }
                let partial = path.partial_name();
                let _ = sys::unlinkat(parent, partial.as_str(), AtFlags::empty());
                sys::symlinkat(target, parent, partial.as_str())
                    .map_err(|errno| os(errno, "cannot make the link"))?;
                sys::renameat(parent, partial.as_str(), parent, name)
                    .map_err(|errno| os(errno, "cannot replace it"))
            }
            Err(errno) => Err(os(errno, "cannot make the link")),
        }
    }

    /// Opens the partial file of a file that was wanted, at `offset`: 0, or where it is to be resumed.
    pub(crate) fn open(&self, wanted: Wanted, offset: u64) -> Result<Partial, Fault> {
        let Wanted { entry, resumed } = wanted;
        let path = self.here(&entry.path)?;
        let parent = self.parent(&path)?;
        let name = path.partial_name();
        let file = match resumed {
            Some(resumed) => resumed.file,
            None => {
                let flags =
                    OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = sys::openat(&parent, name.as_str(), flags, Mode::RUSR | Mode::WUSR);
                let file = File::from(file.map_err(|errno| os(errno, "cannot create it"))?);
                lock(&file)?;
                file
            }
        };
        let metadata =
            file.metadata().map_err(|error| Fault::of(&error, "cannot look at its partial file"))?;
        if !metadata.is_file() {
            return Err(Fault::new(Code::Exists, "its partial file is no file"));
        }
        file.set_len(offset).map_err(|error| Fault::of(&error, "cannot shorten its partial file"))?;
        let size = if let Kind::File { size } = entry.kind { size } else { 0 };
        Ok(Partial {
            parent,
            file,
            name,
            path,
            mode: entry.mode & !self.umask,
            modified: entry.modified,
            size,
            at: offset,
        })
    }

    /// Gives a whole and verified file its name.
    pub(crate) fn keep(&self, partial: Partial) -> Result<(), Fault> {
        let Partial { parent, file, name, path, mode, modified, size, .. } = partial;
        // A hole at the end has not been written.
        let fault = |error: &io::Error, what| Fault::of(error, what);
        file.set_len(size).map_err(|error| fault(&error, "cannot write it"))?;
        sys::fchmod(&file, Mode::from_raw_mode(mode.into()))
            .map_err(|errno| os(errno, "cannot set its permissions"))?;
        sys::futimens(&file, &times(modified)).map_err(|errno| os(errno, "cannot set its time"))?;
        if self.policy.sync {
            file.sync_all().map_err(|error| fault(&error, "cannot bring it to the disk"))?;
        }
        let last = path.split().1;
        let renamed = if self.policy.overwrite {
            sys::renameat(&parent, name.as_str(), &parent, last)
        } else {
            match sys::renameat_with(&parent, name.as_str(), &parent, last, RenameFlags::NOREPLACE) {
                // The file system does not know it.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    sys::linkat(&parent, name.as_str(), &parent, last, AtFlags::empty())
                        .and_then(|()| sys::unlinkat(&parent, name.as_str(), AtFlags::empty()))
                }
                other => other,
            }
        };
        renamed.map_err(|errno| os(errno, "cannot give it its name"))
    }

    /// Sets permissions and time of a directory that is complete. What cannot be set is left as it is.
    pub(crate) fn seal(&self, path: &RelPath, mode: u16, modified: FileTime) {
        let sealed = self.here(path).and_then(|path| {
            let parent = self.parent(&path)?;
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            let dir = sys::openat(&parent, path.split().1, flags, Mode::empty())
                .map_err(|errno| os(errno, "cannot open it"))?;
            let mode = Mode::from_raw_mode((mode & !self.umask).into());
            sys::futimens(&dir, &times(modified))
                .and_then(|()| sys::fchmod(&dir, mode))
                .map_err(|errno| os(errno, "cannot set its time"))
        });
        drop(sealed);
    }
}

impl Partial {
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        debug_assert!(bytes.len() <= MAX_DATA);
        self.file.write_all_at(bytes, self.at).map_err(|error| {
            let mut fault = Fault::of(&error, "cannot write it");
            if fault.code == Code::NoSpace {
                fault.text = format!(
                    "the disk is full: {} of {} bytes of {} are there",
                    self.at, self.size, self.path
                );
            }
            fault
        })?;
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }
    pub fn skip(&mut self, len: u64) {
        self.at = self.at.saturating_add(len);
    }
    /// It is of no use: nobody will want to resume it.
    pub fn discard(self) {
        let _ = sys::unlinkat(&self.parent, self.name.as_str(), AtFlags::empty());
    }
    /// The transfer ends here. What has been written stays to be resumed; holes at its end are written, too.
    pub fn leave(self) {
        if self.at == 0 {
            return self.discard();
        }
        let _ = self.file.set_len(self.at);
    }
}

fn make_directory(parent: &OwnedFd, name: &OsStr, mode: u16) -> Result<(), Fault> {
    // Ours until it is sealed, or nothing could be put into one that its owner may only read.
    let mode = Mode::from_raw_mode(mode.into()) | Mode::RWXU;
    match sys::mkdirat(parent, name, mode) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => {
            let stat = sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
            let is_directory =
                stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            if is_directory {
                Ok(())
            } else {
                Err(Fault::new(Code::Exists, "there is something else of this name"))
            }
        }
        Err(errno) => Err(os(errno, "cannot make the directory")),
    }
}

fn lock(file: &impl AsFd) -> Result<(), Fault> {
    sys::flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
        Errno::WOULDBLOCK => Fault::new(Code::Busy, "another transfer is writing it"),
        _ => os(errno, "cannot lock it"),
    })
}

fn times(modified: FileTime) -> Timestamps {
    let last_modification = Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanos.into() };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: sys::UTIME_OMIT }, last_modification }
}

/// The mask of this process. It can only be read by setting it, or from here.
fn umask() -> u16 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u16::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022) & 0o777
}
