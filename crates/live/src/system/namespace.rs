//! Network namespaces with names, and work in them.

use super::{SystemError, tool};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where `ip netns` keeps those with a name.
const NAMED: &str = "/run/netns";

/// A network namespace with a name, of whoever made it. It is gone when this is dropped, with all interfaces that are in it;
/// programs in it are told to end.
///
/// Nothing is written down of it: [`Setup::namespace`](super::Setup::namespace) makes those that must not outlive a process
/// that was killed.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// Dropping it does nothing.
    kept: bool,
}

impl Namespace {
    /// Makes one in which only `lo` is, and up.
    ///
    /// # Errors
    /// No right to do so, a name that is taken, or no `ip`.
    pub fn create(name: &str) -> Result<Self, SystemError> {
        make(name)?;
        let namespace = Namespace { name: name.to_owned(), kept: false };
        namespace.configure("link set dev lo up\n")?;
        Ok(namespace)
    }
    /// One that is there, or was.
    pub fn existing(name: &str) -> Self {
        Namespace { name: name.to_owned(), kept: true }
    }
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// True if the system knows it.
    pub fn exists(&self) -> bool {
        path(&self.name).exists()
    }
    /// Lets `ip` do several things in it, one a line.
    ///
    /// # Errors
    /// The first that cannot be done.
    pub fn configure(&self, lines: &str) -> Result<(), SystemError> {
        tool::feed(&tool::line("ip", Some(&self.name), "-batch -"), lines).map(drop)
    }
    /// Does `act` in it: devices that it opens are there, and stay open outside.
    ///
    /// # Errors
    /// It is not there, or must not be entered.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, SystemError> {
        in_namespace(Some(&self.name), || Ok(act()))
    }
    /// Processes that are in it.
    pub fn processes(&self) -> Vec<i32> {
        let text =
            tool::run(&tool::line("ip", None, &format!("netns pids {}", self.name))).unwrap_or_default();
        let own = std::process::id() as i32;
        text.split_whitespace().filter_map(|word| word.parse().ok()).filter(|pid| *pid != own).collect()
    }
    /// Tells programs in it to end, and removes it.
    ///
    /// # Errors
    /// The system does not let it go.
    pub fn remove(mut self) -> Result<(), SystemError> {
        self.kept = true;
        self.clear()
    }
    fn clear(&self) -> Result<(), SystemError> {
        for pid in if self.exists() { self.processes() } else { Vec::new() } {
            let _: Result<(), Errno> = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        delete(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.kept {
            let _ = self.clear();
        }
    }
}

/// A new namespace with this name.
pub(super) fn make(name: &str) -> Result<(), SystemError> {
    tool::run(&tool::line("ip", None, &format!("netns add {name}"))).map(drop)
}

/// Removes the namespace with this name, if it is there.
pub(super) fn delete(name: &str) -> Result<(), SystemError> {
    if !path(name).exists() {
        return Ok(());
    }
    let done = tool::run(&tool::line("ip", None, &format!("netns delete {name}"))).map(drop);
    // Somebody else may have been quicker.
    done.or_else(|error| if path(name).exists() { Err(error) } else { Ok(()) })
}

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
