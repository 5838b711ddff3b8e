//! The directory that a receiver writes to, and nothing outside of it.
//!
//! Every name is opened from a descriptor of its directory, which is looked up below the root in the tree as
//! it is; no symbolic link is followed: neither one that was there before nor one that somebody puts there
//! meanwhile. A file gets its name only when it is whole and verified; until then it is a partial file, which
//! is locked while a transfer writes it.

mod budget;
mod incoming;
mod mark;
mod partial;
mod remove;
mod tree;

use crate::exclude::ExcludePatterns;
use crate::fault::{Code, TransferFault};
use crate::limits::MAX_PARTIALS;
use crate::line::LineState;
use crate::message::{EntryKind, FileEntry, FileTime, FileVerdict};
use crate::min_free::MinFree;
use crate::path::RelPath;
use crate::pipeline::{PartialPrefix, hash_prefix};
use budget::{BudgetAccount, StorageBudget};
use farpace_units::ByteCount;
use rustix::fs::{self as sys, AtFlags, FileType, FlockOperation, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a partial file is opened again that has got its final name meanwhile.
const MAX_REOPENED: usize = 8;

pub(crate) use mark::Stranger;
pub(crate) use partial::Partial;

/// What a receiver lets senders do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePolicy {
    /// Files that are there may be replaced.
    pub overwrite: bool,
    /// Files are on the disk, not only handed to the system, before they are acknowledged.
    pub sync: bool,
    /// The one name at the top is to be this one.
    pub rename: Option<OsString>,
    /// What is in the one directory at the top goes into the place itself, which has no name of its own: `/`.
    pub inside: bool,
    /// Senders without token may use names that begin with a dot.
    pub hidden: bool,
    /// Bytes that all transfers together may store, in blocks of 4,096; a directory, a link and a file take
    /// one more.
    pub max_bytes: Option<ByteCount>,
    /// What must stay free; none: what [`limits`](crate::limits::MIN_FREE_FOR_STRANGERS) says of senders
    /// without token, and nothing of others.
    pub min_free: Option<MinFree>,
    /// How long a partial file of a sender without token is kept after it was last written.
    pub keep_partial: Duration,
    /// What is in a directory that was sent, and the sender does not have, is removed; not for senders
    /// without token.
    pub delete: bool,
    /// But not this.
    pub protect: ExcludePatterns,
    /// Nothing is written or removed.
    pub dry_run: bool,
}

impl Default for WritePolicy {
    /// Replaces nothing, takes no hidden names from strangers, and keeps their partial files for a day.
    fn default() -> Self {
        WritePolicy {
            overwrite: false,
            sync: false,
            rename: None,
            inside: false,
            hidden: false,
            max_bytes: None,
            min_free: None,
            keep_partial: Duration::from_secs(86_400),
            delete: false,
            protect: ExcludePatterns::default(),
            dry_run: false,
        }
    }
}

/// The directory to write to.
pub struct Destination {
    root: OwnedFd,
    device: u64,
    policy: WritePolicy,
    budget: StorageBudget,
    /// Permissions that new files do not get.
    umask: u16,
    /// Partial files of strangers, roughly: those that others have left are counted now and then.
    left: AtomicUsize,
    /// Directories that were brought to the disk.
    #[cfg(test)]
    settled: AtomicUsize,
}

/// Who sends.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// It has proved the token.
    Proved,
    /// It has proved nothing.
    Stranger(Stranger),
}

impl Peer {
    fn is_stranger(&self) -> bool {
        matches!(self, Peer::Stranger(_))
    }
}

/// What is to be done with an entry.
pub(crate) struct Judged {
    pub verdict: FileVerdict,
    /// The file is to come.
    pub wanted: Option<Wanted>,
    /// Of a directory: what this sender may set when it is complete.
    pub seal: DirectorySeal,
    /// Bytes of a file here whose hash the sender has to compare with its own.
    pub hashed: u64,
}

/// What a sender may set of a directory when it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectorySeal {
    Nothing,
    /// Permissions and time.
    All,
    /// The time. It is the target that its user has named, whose permissions stay these.
    Time(u32),
}

/// A file that was offered and is wanted.
pub(crate) struct Wanted {
    pub entry: FileEntry,
    pub resumed: Option<Box<ResumedFile>>,
}

/// The beginning of a file that is there.
pub(crate) struct ResumedFile {
    file: File,
    pub prefix: PartialPrefix,
    pub offset: u64,
}

fn os(errno: Errno, what: &str) -> TransferFault {
    TransferFault::of(&errno.into(), what)
}

impl Destination {
    /// A place in the directory `dir`, which must be there.
    ///
    /// # Errors
    /// It is not there, no directory, or may not be opened.
    pub fn new(dir: &Path, policy: WritePolicy) -> Result<Destination, TransferFault> {
        // A directory like /home need not be readable for one in it.
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let about = |errno| os(errno, &dir.to_string_lossy());
        let root = sys::open(dir, flags, Mode::empty()).map_err(about)?;
        let device = sys::fstat(&root).map_err(about)?.st_dev;
        let budget = StorageBudget::new(policy.max_bytes, policy.min_free);
        let place = Destination {
            root,
            device,
            policy,
            budget,
            umask: umask(),
            left: AtomicUsize::new(0),
            #[cfg(test)]
            settled: AtomicUsize::new(0),
        };
        place.expire();
        Ok(place)
    }

    /// Removes partial files of senders without token whose time is over. Whoever keeps a place for long
    /// calls it now and then.
    pub fn expire(&self) {
        self.left.store(incoming::expire(&self.root, self.policy.keep_partial), Ordering::Relaxed);
    }
    /// A partial file of a stranger stays.
    fn one_left(&self) {
        if self.left.fetch_add(1, Ordering::Relaxed) >= MAX_PARTIALS {
            self.expire();
        }
    }

    /// What is sent gets one name: there can be one root only.
    pub(crate) fn has_one_name(&self) -> bool {
        self.policy.rename.is_some() || self.policy.inside
    }

    /// True if directories lose what the sender does not have.
    pub(crate) fn deletes(&self) -> bool {
        self.policy.delete
    }
    /// True if nothing is written.
    pub(crate) fn is_dry(&self) -> bool {
        self.policy.dry_run
    }

    /// Brings the names in a directory to the disk, if that is wanted: a file is lost with its name.
    fn settle(&self, dir: &OwnedFd) -> Result<(), TransferFault> {
        if !self.policy.sync {
            return Ok(());
        }
        #[cfg(test)]
        self.settled.fetch_add(1, Ordering::Relaxed);
        // A descriptor of its own, which may be read.
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        sys::openat(dir, ".", flags, Mode::empty())
            .and_then(|own| sys::fsync(&own))
            .map_err(|errno| os(errno, "cannot bring its directory to the disk"))
    }

    /// The path that `path` gets here.
    fn here(&self, path: &RelPath, peer: &Peer) -> Result<RelPath, TransferFault> {
        if peer.is_stranger() && !self.policy.hidden && path.is_hidden() {
            let text = "names that begin with a dot are only taken with a token, or if the receiver has \
                        --allow-hidden";
            return Err(TransferFault::new(Code::Path, text));
        }
        if self.policy.inside {
            let text = "only what is in a directory can go there";
            return path.below().ok_or_else(|| TransferFault::new(Code::Path, text));
        }
        match &self.policy.rename {
            Some(name) => path.renamed(name).map_err(|why| TransferFault::new(Code::Path, why)),
            None => Ok(path.clone()),
        }
    }

    /// The directory that `path` is in.
    fn parent(&self, path: &RelPath, peer: &Peer) -> Result<OwnedFd, TransferFault> {
        let parent = tree::directory(&self.root, path.split().0)?;
        // Their partial files are elsewhere, and get their names by a rename.
        if peer.is_stranger() && path.split().0.is_some() {
            let stat = sys::fstat(&parent).map_err(|errno| os(errno, "cannot look at its directory"))?;
            if stat.st_dev != self.device {
                let text = "its directory is on another file system, which is only written to with a token";
                return Err(TransferFault::new(Code::Path, text));
            }
        }
        Ok(parent)
    }

    /// What is to be done with `entry`. Directories and links are made at once. `meanwhile` is called while
    /// something is hashed, and says whether to go on; `may_resume` says whether a partial file may be kept
    /// open.
    pub(crate) fn judge(
        &self,
        entry: FileEntry,
        peer: &Peer,
        may_resume: bool,
        shared: &LineState,
        meanwhile: impl FnMut() -> bool,
    ) -> Judged {
        if self.is_place(&entry) {
            let (verdict, seal) = (FileVerdict::Made, DirectorySeal::Nothing);
            return Judged { verdict, wanted: None, seal, hashed: 0 };
        }
        let judged = self.here(&entry.path, peer).and_then(|path| {
            let parent = match self.parent(&path, peer) {
                // It would have been made. What is refused in its place is refused in a dry run, too.
                Err(fault) if self.policy.dry_run && fault.code == Code::Vanished => {
                    if let EntryKind::Link { target } = &entry.kind {
                        tree::may_link(&self.root, &path, target, true)?;
                    }
                    let verdict = if matches!(entry.kind, EntryKind::File { .. }) {
                        FileVerdict::Send
                    } else {
                        FileVerdict::Made
                    };
                    return Ok((verdict, None, DirectorySeal::All));
                }
                parent => parent?,
            };
            match &entry.kind {
                EntryKind::Directory | EntryKind::Link { .. } if self.policy.dry_run => self
                    .foresee(&parent, &path, &entry.kind, peer)
                    .map(|verdict| (verdict, None, DirectorySeal::All)),
                EntryKind::Directory => self
                    .make_directory(&parent, &path, entry.mode, peer)
                    .map(|seal| (FileVerdict::Made, None, seal)),
                EntryKind::Link { target } => self
                    .make_link(&parent, &path, target, peer)
                    .map(|()| (FileVerdict::Made, None, DirectorySeal::Nothing)),
                EntryKind::File { size } => {
                    self.budget.allows(*size)?;
                    let file = (&parent, &path, *size);
                    let (verdict, prefix) = self.judge_file(file, peer, may_resume, shared, meanwhile)?;
                    Ok((verdict, prefix, DirectorySeal::Nothing))
                }
            }
        });
        let (verdict, prefix, seal) =
            judged.unwrap_or_else(|fault| (FileVerdict::Refused(fault), None, DirectorySeal::Nothing));
        let hashed = prefix.as_ref().map_or(0, |(_, prefix)| prefix.data);
        let wanted = match &verdict {
            FileVerdict::Resume { offset, .. } => prefix.map(|(file, prefix)| {
                let resumed = Some(Box::new(ResumedFile { file, prefix, offset: *offset }));
                Wanted { entry, resumed }
            }),
            FileVerdict::Send | FileVerdict::Have { replace: true, .. } => {
                Some(Wanted { entry, resumed: None })
            }
            _ => None,
        };
        Judged { verdict, wanted, seal, hashed }
    }

    /// It stands for the place itself, which stays as it is.
    fn is_place(&self, entry: &FileEntry) -> bool {
        self.policy.inside && entry.kind == EntryKind::Directory && entry.path.split().0.is_none()
    }

    /// What would be done with a directory or a link, if it were not a dry run.
    fn foresee(
        &self,
        parent: &OwnedFd,
        path: &RelPath,
        kind: &EntryKind,
        peer: &Peer,
    ) -> Result<FileVerdict, TransferFault> {
        let name = path.split().1;
        let there = match sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(os(errno, "cannot look at it")),
            Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
        };
        let EntryKind::Link { target } = kind else {
            return match there {
                None => Ok(FileVerdict::Made),
                Some(FileType::Directory) => Ok(FileVerdict::There),
                Some(_) => Err(no_directory(peer)),
            };
        };
        tree::may_link(&self.root, path, target, true)?;
        match there {
            None => Ok(FileVerdict::Made),
            Some(FileType::Symlink)
                if sys::readlinkat(parent, name, Vec::new()).is_ok_and(|is| is.as_bytes() == target) =>
            {
                Ok(FileVerdict::There)
            }
            Some(kind) if kind == FileType::Directory || !self.policy.overwrite => Err(exists(kind, peer)),
            Some(_) => Ok(FileVerdict::Made),
        }
    }

    /// What of a file is there. A hash of it goes only to who has proved the token, or has sent that before.
    fn judge_file(
        &self,
        (parent, path, size): (&OwnedFd, &RelPath, u64),
        peer: &Peer,
        may_resume: bool,
        shared: &LineState,
        mut meanwhile: impl FnMut() -> bool,
    ) -> Result<(FileVerdict, Option<(File, PartialPrefix)>), TransferFault> {
        match sys::statat(parent, path.split().1, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(os(errno, "cannot look at it")),
            Ok(stat) => {
                let kind = FileType::from_raw_mode(stat.st_mode);
                if kind == FileType::RegularFile && u64::try_from(stat.st_size) == Ok(size) {
                    let there = self.content(parent, path, size, peer, shared, &mut meanwhile);
                    if let Some((file, prefix)) = there {
                        let hash = prefix.hasher.result();
                        let verdict = FileVerdict::Have { hash, replace: self.policy.overwrite };
                        return Ok((verdict, Some((file, prefix))));
                    }
                }
                if kind == FileType::Directory || !self.policy.overwrite {
                    return Err(exists(kind, peer));
                }
            }
        }
        let (dir, name) = match peer {
            Peer::Proved => (None, path.partial_name()),
            Peer::Stranger(stranger) => match incoming::existing(&self.root)? {
                Some(dir) => (Some(dir), stranger.partial_name(path)),
                None => return Ok((FileVerdict::Send, None)),
            },
        };
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let dir = dir.as_ref().unwrap_or(parent);
        let file = match sys::openat(dir, name.as_str(), flags, Mode::empty()) {
            Ok(file) if may_resume => File::from(file),
            // It will be told when it is written.
            _ => return Ok((FileVerdict::Send, None)),
        };
        lock(&file)?;
        if !is_named(&file, dir, &name) {
            return Ok((FileVerdict::Send, None));
        }
        let offset = own(&file).map_or(0, |len| len.min(size));
        if offset == 0 {
            return Ok((FileVerdict::Send, None));
        }
        let prefix = hash_prefix(&file, offset, shared, meanwhile);
        match prefix.map_err(|error| TransferFault::of(&error, "cannot read its partial file"))? {
            Some(prefix) => {
                let verdict = FileVerdict::Resume { offset, hash: prefix.hasher.result() };
                Ok((verdict, Some((file, prefix))))
            }
            None => Ok((FileVerdict::Send, None)),
        }
    }

    /// The content of a file that is there, if this peer may know it.
    fn content(
        &self,
        parent: &OwnedFd,
        path: &RelPath,
        size: u64,
        peer: &Peer,
        shared: &LineState,
        meanwhile: &mut impl FnMut() -> bool,
    ) -> Option<(File, PartialPrefix)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(sys::openat(parent, path.split().1, flags, Mode::empty()).ok()?);
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return None;
        }
        // Before the work, and then again with the content.
        if let Peer::Stranger(stranger) = peer
            && !stranger.has_brought(&file)
        {
            return None;
        }
        let prefix = hash_prefix(&file, size, shared, meanwhile).ok().flatten()?;
        if let Peer::Stranger(stranger) = peer
            && !stranger.has_brought_content(&file, &prefix.hasher.result())
        {
            return None;
        }
        Some((file, prefix))
    }

    /// Makes a directory; what of it may be set later.
    fn make_directory(
        &self,
        parent: &OwnedFd,
        path: &RelPath,
        mode: u16,
        peer: &Peer,
    ) -> Result<DirectorySeal, TransferFault> {
        let name = path.split().1;
        self.budget.name(parent, peer.is_stranger())?;
        let open = || {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            sys::openat(parent, name, flags, Mode::empty()).ok()
        };
        // Ours until it is sealed, or nothing could be put into one that its owner may only read.
        let mode = Mode::from_raw_mode(mode.into()) | Mode::RWXU;
        let made = sys::mkdirat(parent, name, mode);
        if made.is_ok() {
            self.settle(parent)?;
        }
        match (made, peer) {
            (Ok(()), Peer::Proved) => Ok(DirectorySeal::All),
            (Ok(()), Peer::Stranger(stranger)) => {
                if let Some(dir) = open() {
                    stranger.mark(dir, None);
                }
                Ok(DirectorySeal::All)
            }
            (Err(Errno::EXIST), _) => {
                let stat = sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|errno| os(errno, "cannot look at it"))?;
                let kind = FileType::from_raw_mode(stat.st_mode);
                let mode = stat.st_mode & 0o7777;
                match peer {
                    _ if kind != FileType::Directory => Err(no_directory(peer)),
                    Peer::Proved => {
                        // As one that was made: an earlier transfer may have sealed it against its owner.
                        if mode & 0o700 != 0o700
                            && let Some(dir) = open()
                        {
                            // Whatever cannot be done without it is told where it fails.
                            let _ = sys::fchmod(dir, Mode::from_raw_mode(mode | 0o700));
                        }
                        let is_target = self.has_one_name() && path.split().0.is_none();
                        Ok(if is_target { DirectorySeal::Time(mode) } else { DirectorySeal::All })
                    }
                    Peer::Stranger(stranger) if open().is_some_and(|dir| stranger.has_brought(dir)) => {
                        Ok(DirectorySeal::All)
                    }
                    Peer::Stranger(_) => Ok(DirectorySeal::Nothing),
                }
            }
            (Err(errno), _) => Err(os(errno, "cannot make the directory")),
        }
    }

    fn make_link(
        &self,
        parent: &OwnedFd,
        path: &RelPath,
        target: &[u8],
        peer: &Peer,
    ) -> Result<(), TransferFault> {
        tree::may_link(&self.root, path, target, false)?;
        self.budget.name(parent, peer.is_stranger())?;
        let (name, target) = (path.split().1, OsStr::from_bytes(target));
        match sys::symlinkat(target, parent, name) {
            Ok(()) => self.settle(parent),
            Err(Errno::EXIST) => {
                let there = sys::readlinkat(parent, name, Vec::new());
                if there.as_ref().is_ok_and(|there| there.as_bytes() == target.as_bytes()) {
                    return Ok(());
                }
                if !self.policy.overwrite {
                    return Err(exists(FileType::Unknown, peer));
                }
                let partial = path.partial_link_name();
                clear(parent, &partial)?;
                sys::symlinkat(target, parent, partial.as_str())
                    .map_err(|errno| os(errno, "cannot make the link"))?;
                sys::renameat(parent, partial.as_str(), parent, name).map_err(|errno| {
                    let _ = sys::unlinkat(parent, partial.as_str(), AtFlags::empty());
                    match errno {
                        Errno::ISDIR => exists(FileType::Directory, peer),
                        _ => os(errno, "cannot replace it"),
                    }
                })?;
                self.settle(parent)
            }
            Err(errno) => Err(os(errno, "cannot make the link")),
        }
    }

    /// Opens the partial file of a file that was wanted, at `offset`: 0, or where it is to be resumed.
    pub(crate) fn open(&self, wanted: Wanted, peer: &Peer, offset: u64) -> Result<Partial, TransferFault> {
        let Wanted { entry, resumed } = wanted;
        let path = self.here(&entry.path, peer)?;
        let parent = self.parent(&path, peer)?;
        let (dir, name) = match peer {
            Peer::Proved => {
                let dir = parent.try_clone();
                (
                    dir.map_err(|error| TransferFault::of(&error, "cannot open its directory"))?,
                    path.partial_name(),
                )
            }
            Peer::Stranger(stranger) => (incoming::open(&self.root)?, stranger.partial_name(&path)),
        };
        let file = match resumed {
            Some(resumed) => resumed.file,
            None => create(&dir, &name)?,
        };
        let begin = || {
            file.set_len(offset)
                .map_err(|error| TransferFault::of(&error, "cannot shorten its partial file"))?;
            BudgetAccount::begin(&self.budget, &file, offset, peer.is_stranger())
        };
        let account = begin().inspect_err(|_| {
            if offset == 0 {
                let _ = sys::unlinkat(&dir, name.as_str(), AtFlags::empty());
            }
        })?;
        let size = if let EntryKind::File { size } = entry.kind { size } else { 0 };
        Ok(Partial {
            parent,
            path,
            dir,
            name,
            file,
            peer: peer.clone(),
            account,
            mode: entry.mode & !self.umask,
            modified: entry.modified,
            size,
            at: offset,
        })
    }

    /// Sets permissions and time of a file whose content is that of `entry`, where files may be replaced.
    /// What cannot be set is left as it is. Strangers set none: the file need not be theirs.
    pub(crate) fn touch(&self, entry: &FileEntry, peer: &Peer) {
        if self.policy.dry_run || !self.policy.overwrite || peer.is_stranger() {
            return;
        }
        let touched = self.here(&entry.path, peer).and_then(|path| {
            let parent = self.parent(&path, peer)?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = sys::openat(&parent, path.split().1, flags, Mode::empty());
            let file = File::from(file.map_err(|errno| os(errno, "cannot open it"))?);
            let is = sys::fstat(&file).map_err(|errno| os(errno, "cannot look at it"))?;
            if FileType::from_raw_mode(is.st_mode) != FileType::RegularFile {
                return Ok(());
            }
            // Other bits are the receiver's.
            let mode = u32::from(entry.mode & !self.umask) | (is.st_mode & 0o7000);
            let set = |done: Result<(), Errno>| done.map_err(|errno| os(errno, "cannot set it"));
            if mode != is.st_mode & 0o7777 {
                set(sys::fchmod(&file, Mode::from_raw_mode(mode)))?;
            }
            set(sys::futimens(&file, &times(entry.modified)))
        });
        drop(touched);
    }

    /// Sets permissions and time of a directory that is complete, as far as `seal` allows. What cannot be set
    /// is left as it is.
    pub(crate) fn seal(
        &self,
        path: &RelPath,
        peer: &Peer,
        seal: DirectorySeal,
        (mode, modified): (u16, FileTime),
    ) {
        if self.policy.dry_run {
            return;
        }
        let sealed = self.here(path, peer).and_then(|path| {
            let parent = self.parent(&path, peer)?;
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            let dir = sys::openat(&parent, path.split().1, flags, Mode::empty())
                .map_err(|errno| os(errno, "cannot open it"))?;
            // Set-group-ID and sticky bits are the receiver's: a shared directory stays one.
            let kept = sys::fstat(&dir).map_err(|errno| os(errno, "cannot look at it"))?.st_mode & 0o7000;
            let mode = match seal {
                DirectorySeal::Nothing => return Ok(()),
                DirectorySeal::All => u32::from(mode & !self.umask) | kept,
                DirectorySeal::Time(mode) => mode,
            };
            let mode = Mode::from_raw_mode(mode);
            sys::futimens(&dir, &times(modified))
                .and_then(|()| sys::fchmod(&dir, mode))
                .map_err(|errno| os(errno, "cannot set its time"))
        });
        drop(sealed);
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // The directory of partial files goes if it is empty.
        self.expire();
    }
}

/// There is something else of this name. What it is, strangers need not know.
fn exists(kind: FileType, peer: &Peer) -> TransferFault {
    let text = match (kind, peer) {
        (_, Peer::Stranger(_)) => {
            "there is something of this name, which is not compared without a token; the receiver does not \
             overwrite"
        }
        (FileType::Directory, _) => "there is a directory of this name",
        _ => "there is another file of this name; the receiver does not overwrite",
    };
    TransferFault::new(Code::Exists, text)
}

/// There is something that is no directory in the place of one. It stays also where files are replaced.
fn no_directory(peer: &Peer) -> TransferFault {
    if peer.is_stranger() {
        return exists(FileType::Unknown, peer);
    }
    TransferFault::new(Code::Exists, "there is something of this name that is no directory")
}

/// Makes a partial file, or takes one of ours that is there. It is locked.
fn create(dir: &OwnedFd, name: &str) -> Result<File, TransferFault> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let new = || {
        let flags = flags | OFlags::CREATE | OFlags::EXCL;
        sys::openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    };
    let cannot = |errno| match errno {
        Errno::NOSPC => {
            TransferFault::new(Code::NoSpace, "the disk has no room, or no inode (`df -i`), for another file")
        }
        errno => os(errno, "cannot create it"),
    };
    for _ in 0..MAX_REOPENED {
        let file = match new() {
            Err(Errno::EXIST) => match sys::openat(dir, name, flags, Mode::empty()).map(File::from) {
                Ok(file) if own(&file).is_some() => file,
                Err(Errno::NOENT) => continue,
                _ => {
                    clear(dir, name)?;
                    new().map_err(cannot)?
                }
            },
            file => file.map_err(cannot)?,
        };
        lock(&file)?;
        if is_named(&file, dir, name) {
            return Ok(file);
        }
    }
    Err(TransferFault::new(Code::Busy, "other transfers write it again and again"))
}

/// Removes what has the name of a partial file and is none: it is of no use to anybody, unless it is a
/// directory that has something in it.
fn clear(dir: &OwnedFd, name: &str) -> Result<(), TransferFault> {
    let gone = match sys::unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => sys::unlinkat(dir, name, AtFlags::REMOVEDIR),
        gone => gone,
    };
    match gone {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            let text = format!("a directory has the name of its partial file, {name}: remove it");
            Err(TransferFault::new(Code::Exists, text))
        }
        // If it is still there, whoever needs the name is told.
        _ => Ok(()),
    }
}

/// The name still leads to this file. Who held the lock before may have completed the file and given it its
/// final name: what is written to it then would be written to a file that was verified.
fn is_named(file: &File, dir: &OwnedFd, name: &str) -> bool {
    let there = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    sys::fstat(file)
        .is_ok_and(|own| there.is_ok_and(|there| (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)))
}

/// How long a partial file is, if it is one of ours. In a directory where others may write, one could put a
/// file of somebody else in its place.
fn own(file: &File) -> Option<u64> {
    let metadata = file.metadata().ok()?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.nlink() == 1;
    (metadata.is_file() && is_ours).then_some(metadata.len())
}

fn lock(file: &impl AsFd) -> Result<(), TransferFault> {
    sys::flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
        Errno::WOULDBLOCK => TransferFault::new(Code::Busy, "another transfer is writing it"),
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

#[cfg(test)]
mod tests;
