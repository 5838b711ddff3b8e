//! Work in other network namespaces.

use super::SystemError;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where `ip netns` keeps those with a name.
const NAMED: &str = "/run/netns";

/// Does `work` in the network namespace with this name, or here if there is none. What it opens there stays there; threads
/// and programs that it starts are there, too.
///
/// # Errors
/// There is no such namespace, no right to enter it, or what `work` returns.
pub fn in_namespace<T: Send>(
    name: Option<&str>,
    work: impl FnOnce() -> Result<T, SystemError> + Send,
) -> Result<T, SystemError> {
    let Some(name) = name else { return work() };
    let entering =
        |error| SystemError::System { what: format!("enter the network namespace `{name}`"), error };
    let namespace = File::open(path(name)).map_err(entering)?;
    within(&namespace, work).map_err(entering)?
}

/// The file that stands for a namespace with a name.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new(NAMED).join(name)
}

/// Does `work` in a thread of its own in this namespace: what a thread enters, it does not leave again.
pub(super) fn within<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The namespace that this thread is in.
pub(super) fn here() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// A number that no other namespace has as long as this one is there.
pub(super) fn number(namespace: &File) -> io::Result<u64> {
    Ok(namespace.metadata()?.ino())
}

/// The namespace with this number, if it has a name or a process in it.
pub(super) fn find(wanted: u64) -> Option<File> {
    let list =
        |folder: &str| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = list(NAMED);
    let of_processes = list("/proc").map(|process| process.join("ns/net"));
    let own = std::iter::once(PathBuf::from("/proc/thread-self/ns/net"));
    let matching = |path: PathBuf| {
        let is_it = std::fs::metadata(&path).is_ok_and(|about| about.ino() == wanted);
        is_it.then(|| File::open(path).ok()).flatten()
    };
    own.chain(named).chain(of_processes).find_map(matching)
}
