//! From the arguments of a command to what will be sent.

use crate::exclude::ExcludePatterns;
use crate::fault::{Code, TransferFault, TransferProblem, clean};
use crate::limits::MAX_ENTRIES;
use crate::message::{EntryKind, FileEntry, FileTime};
use crate::path::RelPath;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One step of a sender's way through its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceTree {
    /// Something to send.
    Entry {
        /// What the receiver is told.
        entry: FileEntry,
        /// Where it is here.
        from: PathBuf,
    },
    /// All of a directory has been sent.
    Seal {
        /// Its path within the transfer.
        path: RelPath,
        /// Permissions.
        mode: u16,
        /// Time of its last change.
        modified: FileTime,
        /// All that is in it could be looked at.
        whole: bool,
    },
}

/// What there is to send, in order.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The steps.
    pub sources: Vec<SourceTree>,
    /// Files, directories and links among them.
    pub entries: u64,
    /// Bytes in all files.
    pub bytes: u64,
    /// Arguments: names at the top.
    pub roots: u32,
    /// What cannot be sent.
    pub problems: Vec<TransferProblem>,
    excludes: ExcludePatterns,
}

/// Looks at files, directories and all that is in them. A link that is itself an argument is followed; links
/// further down are sent as links. What is neither file, directory nor link is a problem.
///
/// # Errors
/// An argument is not there, has no name (`/`), or two have the same name: nothing would be sent then.
pub fn walk(paths: &[PathBuf]) -> Result<Walk, TransferFault> {
    walk_with(paths, &ExcludePatterns::default())
}

/// The same without what patterns leave out. They do not apply to the arguments that are directories.
///
/// # Errors
/// As [`walk`].
pub fn walk_with(paths: &[PathBuf], excludes: &ExcludePatterns) -> Result<Walk, TransferFault> {
    let mut walk = Walk { excludes: excludes.clone(), ..Walk::default() };
    let mut found = BTreeMap::new();
    for path in paths {
        // `.` and `dir/..` get the names that they stand for, and links are followed.
        let full =
            fs::canonicalize(path).map_err(|error| TransferFault::of(&error, &path.to_string_lossy()))?;
        let named = path.file_name().or_else(|| full.file_name());
        let name = named
            .ok_or_else(|| TransferFault::new(Code::Path, "the root directory has no name to send it by"))?;
        let at = RelPath::new(name.as_bytes())
            .map_err(|why| TransferFault::new(Code::Path, format_args!("{}: {why}", path.display())))?;
        if found.contains_key(&at) {
            return Err(TransferFault::new(
                Code::Exists,
                format_args!("two arguments have the name `{at}`; send them one by one"),
            ));
        }
        walk.roots = walk.roots.saturating_add(1);
        found.insert(at, full);
    }
    // In the order of names, as within directories: receivers ask for that.
    for (at, full) in found {
        walk.visit(at, &full);
    }
    Ok(walk)
}

/// The time of the last change.
pub(crate) fn modified(metadata: &Metadata) -> FileTime {
    FileTime {
        seconds: metadata.mtime(),
        nanos: u32::try_from(metadata.mtime_nsec()).unwrap_or(0).min(999_999_999),
    }
}

impl Walk {
    /// The path is the one within the transfer: where it is here is not told to the other side.
    fn problem(&mut self, at: &RelPath, fault: TransferFault) -> bool {
        self.problems.push(TransferProblem { path: at.to_string(), fault });
        false
    }

    /// False: something of it cannot be sent.
    fn visit(&mut self, at: RelPath, from: &Path) -> bool {
        let metadata = match fs::symlink_metadata(from) {
            Ok(metadata) => metadata,
            Err(error) => return self.problem(&at, TransferFault::of(&error, "cannot look at it")),
        };
        if self.entries >= MAX_ENTRIES {
            return self.problem(&at, TransferFault::new(Code::Limit, "too many files for one transfer"));
        }
        // Who names a directory wants it, and names what is not wanted of it.
        let is_root_directory = metadata.is_dir() && at.split().0.is_none();
        if !is_root_directory && self.excludes.leaves_out(&at, metadata.is_dir()) {
            return true;
        }
        let mode = (metadata.mode() & 0o777) as u16;
        let modified = modified(&metadata);
        let kind = match metadata.file_type() {
            t if t.is_file() => EntryKind::File { size: metadata.len() },
            t if t.is_dir() => EntryKind::Directory,
            t if t.is_symlink() => match fs::read_link(from) {
                Ok(target) => EntryKind::Link { target: target.as_os_str().as_bytes().to_owned() },
                Err(error) => return self.problem(&at, TransferFault::of(&error, "cannot read the link")),
            },
            _ => {
                return self.problem(
                    &at,
                    TransferFault::new(Code::Special, "neither file, directory nor link: not sent"),
                );
            }
        };
        let listed = match &kind {
            EntryKind::Directory => match fs::read_dir(from).and_then(Iterator::collect::<Result<Vec<_>, _>>)
            {
                Ok(listed) => listed,
                Err(error) => {
                    return self.problem(&at, TransferFault::of(&error, "cannot read the directory"));
                }
            },
            _ => Vec::new(),
        };
        let is_directory = kind == EntryKind::Directory;
        if let EntryKind::File { size } = kind {
            self.bytes = self.bytes.saturating_add(size);
        }
        self.entries += 1;
        let entry = FileEntry { path: at.clone(), kind, mode, modified };
        self.sources.push(SourceTree::Entry { entry, from: from.to_owned() });
        let mut listed: Vec<_> = listed.iter().map(fs::DirEntry::file_name).collect();
        listed.sort();
        let mut whole = true;
        for name in listed {
            match at.join(&name) {
                Ok(below) => whole &= self.visit(below, &from.join(&name)),
                Err(why) => {
                    let path = clean(&format!("{at}/{}", name.to_string_lossy()));
                    self.problems.push(TransferProblem { path, fault: TransferFault::new(Code::Path, why) });
                    whole = false;
                }
            }
        }
        if is_directory {
            self.sources.push(SourceTree::Seal { path: at, mode, modified, whole });
        }
        // What is missing deeper down is missing there alone.
        true
    }
}
