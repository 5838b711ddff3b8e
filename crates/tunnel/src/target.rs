//! Where what is received goes, in the manner of cp: into a directory that is there, or under a new name.
//! With a slash behind the source it is that directory itself, in the manner of rsync, so that the same
//! command twice has one target.

use anyhow::{Context, Result, bail};
use farpace_transfer::{Destination, WritePolicy};
use std::path::Path;

/// The place for one transfer to `target`: a directory that is there, or a name for the one thing that is
/// sent. `contents`: what is in the directory that is sent goes into `target`, whether that is there or not.
///
/// # Errors
/// Neither it nor the directory it would be in is there, or they may not be opened.
pub fn place(target: &Path, contents: bool, policy: WritePolicy) -> Result<Destination> {
    let is_there = target.is_dir();
    if is_there && !contents {
        return directory(target, policy);
    }
    // One that is there may be named by `.` or by a link.
    let resolved = if is_there { target.canonicalize() } else { Ok(target.to_owned()) };
    let target = &resolved.with_context(|| format!("cannot find {}", target.display()))?;
    let name = target.file_name().map(std::ffi::OsStr::to_owned);
    if contents && is_there && name.is_none() {
        return directory(target, WritePolicy { inside: true, ..policy });
    }
    let Some(name) = name else { bail!("there is no directory {}", target.display()) };
    // A name with a slash at its end is meant as a directory.
    if !contents && target.as_os_str().as_encoded_bytes().ends_with(b"/") {
        bail!("there is no directory {}", target.display());
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    directory(parent, WritePolicy { rename: Some(name), ..policy })
}

/// The place in a directory.
///
/// # Errors
/// It is not there, or may not be opened.
pub fn directory(dir: &Path, policy: WritePolicy) -> Result<Destination> {
    Destination::new(dir, policy).with_context(|| format!("cannot write to {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: what is in a directory cannot go to `/`, or a directory goes where there is none.
    #[test]
    fn contents_can_go_to_the_root() {
        let place = |target: &str, contents| {
            let policy = WritePolicy { dry_run: true, ..WritePolicy::default() };
            super::place(Path::new(target), contents, policy).is_ok()
        };
        assert!(place("/", true) && place("/", false) && place("/tmp/", true) && place("/tmp/new", true));
        assert!(!place("/no/such", true) && !place("/tmp/no-such/", false));
    }
}
