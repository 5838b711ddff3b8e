//! One program at a time carries the frames of an interface: two would each send every frame.

use anyhow::{Context, Result, bail};
use farpace_live::system::state_folder;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An interface that this process carries frames of, until this is dropped. The kernel lets go of it if the
/// process is killed.
#[derive(Debug)]
pub struct InterfaceLock {
    path: PathBuf,
    _file: File,
}

impl InterfaceLock {
    /// Takes all of these interfaces, of the network namespace of this thread. Where the folder of the state
    /// cannot be written, without root, nothing is taken.
    ///
    /// # Errors
    /// An interface that is not there, or that another process has; the error names it.
    pub fn take_all<'a>(interfaces: impl Iterator<Item = &'a str>) -> Result<Vec<InterfaceLock>> {
        let namespace =
            fs::metadata("/proc/thread-self/ns/net").context("cannot tell the network namespace")?;
        let mut locks = Vec::new();
        for name in interfaces {
            let index = nix::net::if_::if_nametoindex(name);
            let index = index.with_context(|| format!("there is no interface `{name}`"))?;
            let file = format!("{}-{index}.lock", namespace.ino());
            locks.extend(InterfaceLock::take(&state_folder().join("interfaces"), &file, name)?);
        }
        Ok(locks)
    }

    fn take(folder: &Path, file: &str, interface: &str) -> Result<Option<InterfaceLock>> {
        let path = folder.join(file);
        let open = || {
            fs::create_dir_all(folder)?;
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)
        };
        loop {
            let mut file = match open() {
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                    ) =>
                {
                    return Ok(None);
                }
                opened => opened.with_context(|| format!("cannot open `{}`", path.display()))?,
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => bail!(
                    "`{interface}` is in use by {}: both would carry its frames, and each would arrive twice",
                    holder(&mut file)
                ),
                locked => locked.with_context(|| format!("cannot lock `{}`", path.display()))?,
            }
            // Whoever had it may have removed the file after it was opened here.
            let same = |there: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == there.ino());
            if fs::metadata(&path).is_ok_and(same) {
                let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
                written.with_context(|| format!("cannot write `{}`", path.display()))?;
                return Ok(Some(InterfaceLock { path, _file: file }));
            }
        }
    }
}

impl Drop for InterfaceLock {
    fn drop(&mut self) {
        // The lock goes with the file, which is closed after this.
        let _ = fs::remove_file(&self.path);
    }
}

/// The process that has the lock, in words.
fn holder(file: &mut File) -> String {
    let mut pid = String::new();
    // It may not have been written yet.
    let _ = file.read_to_string(&mut pid);
    let Ok(pid) = pid.trim().parse::<u32>() else { return "another process".to_owned() };
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ").trim().to_owned();
    if line.is_empty() { format!("process {pid}") } else { format!("process {pid} ({line})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: two emulators on one interface, which duplicate every frame; or an interface that stays taken.
    #[test]
    fn an_interface_has_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("interfaces");
        let first = InterfaceLock::take(&folder, "1-2.lock", "eth1").unwrap().unwrap();
        let error = InterfaceLock::take(&folder, "1-2.lock", "eth1").unwrap_err().to_string();
        assert!(error.contains(&format!("`eth1` is in use by process {} (", std::process::id())), "{error}");
        let other = InterfaceLock::take(&folder, "1-3.lock", "eth2").unwrap().unwrap();
        drop(first);
        let again = InterfaceLock::take(&folder, "1-2.lock", "eth1").unwrap().unwrap();
        drop((other, again));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        assert!(InterfaceLock::take_all(["no-such-if0"].into_iter()).is_err());
    }
}
