//! Directories and links below the root, always resolved in the current tree and never through a link.

use super::os;
use crate::fault::{Code, TransferFault};
use crate::limits::MAX_PATH;
use crate::path::RelPath;
use rustix::fs::{self as sys, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::PATH).union(OFlags::CLOEXEC);

/// Opens the directory `path` below `root`; none: `root` itself. Fails at a link on the path.
pub(super) fn directory(root: &OwnedFd, path: Option<&[u8]>) -> Result<OwnedFd, TransferFault> {
    let Some(path) = path else {
        return root.try_clone().map_err(|error| TransferFault::of(&error, "cannot open the directory"));
    };
    beneath(root, path).map_err(|errno| match errno {
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV => TransferFault::new(
            Code::Path,
            "a directory on its way is a link or a file here; links are not followed",
        ),
        _ => os(errno, "cannot open its directory"),
    })
}

fn beneath(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match sys::openat2(root, path, DIRECTORY, Mode::empty(), resolve) {
        // Before Linux 5.6, or in a sandbox without the call.
        Err(Errno::NOSYS | Errno::PERM) => name_by_name(root, path),
        other => other,
    }
}

/// Fallback without openat2: opens each name from the descriptor of its parent.
fn name_by_name(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut at: Option<OwnedFd> = None;
    for name in path.split(|byte| *byte == b'/') {
        if matches!(name, b"" | b"." | b"..") {
            return Err(Errno::XDEV);
        }
        let from = at.as_ref().map_or(root.as_fd(), AsFd::as_fd);
        at = Some(sys::openat(from, OsStr::from_bytes(name), DIRECTORY, Mode::empty())?);
    }
    at.ok_or(Errno::NOENT)
}

/// Whether a link at `path` may have this target: not if it leads out of `root`, now or after other links are
/// created.
///
/// A target may go up to the root, and then down. `..` after a name is accepted only if that name is an
/// existing directory: a link in its place could be changed by its creator later, a directory cannot. The
/// kernel resolves the current target, follows all links and reports whether one leads out.
///
/// `is_dry`: a name that is not there may become a directory of this transfer.
pub(super) fn may_link(
    root: &OwnedFd,
    path: &RelPath,
    target: &[u8],
    is_dry: bool,
) -> Result<(), TransferFault> {
    let refuse = |why: &str| Err(TransferFault::new(Code::Path, why));
    if target.is_empty() || target.len() > MAX_PATH || target.contains(&0) {
        return refuse("the link has no target that can be");
    }
    let out = "the link leads out of the directory";
    if target.first() == Some(&b'/') {
        return refuse(out);
    }
    let mut at: Vec<&[u8]> =
        path.split().0.map_or(Vec::new(), |parent| parent.split(|b| *b == b'/').collect());
    // True if `at` is known to be a directory and not a link.
    let mut is_real = true;
    for name in target.split(|b| *b == b'/') {
        match name {
            b"" | b"." => {}
            b".." => {
                let is_directory = || match beneath(root, &at.join(&b'/')) {
                    Err(Errno::NOENT) => is_dry,
                    found => found.is_ok(),
                };
                if !is_real && !is_directory() {
                    return refuse("the link goes up from what is no directory here");
                }
                is_real = true;
                if at.pop().is_none() {
                    return refuse(out);
                }
            }
            name => {
                at.push(name);
                is_real = false;
            }
        }
    }
    let whole = match path.split().0 {
        Some(parent) => [parent, b"/", target].concat(),
        None => target.to_vec(),
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match sys::openat2(root, whole.as_slice(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
        // A missing target, a loop, or a path through a file leads nowhere.
        Ok(_) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(()),
        Err(Errno::XDEV) => refuse(out),
        Err(Errno::NOSYS | Errno::PERM) => {
            refuse("this system cannot say where a link leads (openat2, Linux 5.6)")
        }
        Err(errno) => Err(os(errno, "cannot see where the link leads")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    /// Breaks: links on the path to a file cannot lead a transfer out of its directory, with and without
    /// openat2.
    #[test]
    fn directories_are_opened_without_following_links() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        let fd: OwnedFd = fs::File::open(&root).unwrap().into();
        for open in [beneath, name_by_name] {
            assert!(open(&fd, b"a/b").is_ok());
            for bad in ["link/b", "out", "file", "missing", "..", "a/../..", "/", "/etc"] {
                assert!(open(&fd, bad.as_bytes()).is_err(), "{bad}");
            }
        }
        assert!(directory(&fd, Some(b"link/b")).unwrap_err().text.contains("links are not followed"));
    }

    /// Breaks: links out of the tree are refused: direct ones, through existing links, and through links
    /// created later.
    #[test]
    fn links_stay_within_the_tree() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        fs::create_dir_all(root.join("tree/sub/deep")).unwrap();
        symlink("../../..", root.join("tree/sub/deep/up")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("tree/sub", root.join("in")).unwrap();
        let fd: OwnedFd = fs::File::open(&root).unwrap().into();
        for (at, target, may) in [
            ("tree/sub/link", "x", true),
            ("tree/sub/link", "../x", true),
            ("tree/sub/link", "../../tree/x", true),
            ("tree/sub/link", "../..", true),
            ("tree/sub/link", "deep/../x", true),
            ("link", "in/deep", true),
            ("link", "tree/sub/deep/up/tree", true),
            ("link", "link", true),
            ("tree/sub/link", "../../../x", false),
            ("link", "/etc/passwd", false),
            ("link", "..", false),
            ("link", "a/../../../../x", false),
            ("link", "", false),
            // Through existing links.
            ("link", "tree/sub/deep/up/../x", false),
            ("link", "etc/passwd", false),
            ("link", "in/../../x", false),
            // Through a link created later: `later` could become a link to the root.
            ("link", "later/../x", false),
        ] {
            assert_eq!(may_link(&fd, &path(at), target.as_bytes(), false).is_ok(), may, "{at} -> {target}");
        }
        let dry = |target: &str| may_link(&fd, &path("link"), target.as_bytes(), true).is_ok();
        assert!(dry("later/../x") && !dry("in/../x") && !dry("/etc/passwd") && !dry("later/../../x"));
    }
}
