//! Named network namespaces, and work in them.

use super::{SystemError, sysctl, tool};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directory of the named namespaces of `ip netns`.
const NAMED: &str = "/run/netns";

/// A named network namespace. Dropping it removes the namespace with all its interfaces, and terminates the
/// programs in it.
///
/// It is not recorded in a journal. [`Setup::namespace`](super::Setup::namespace) creates namespaces that
/// must not survive a killed process.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// Dropping it has no effect.
    kept: bool,
}

impl Namespace {
    /// Creates a namespace with only `lo`, up. Interfaces that it gets have their IPv6 addresses at once,
    /// without duplicate address detection (RFC 4862 section 5.4).
    ///
    /// Nobody else can have them there, and a router without a link-local address sends no neighbour
    /// solicitation: what it forwards within the first seconds would get "no route to host".
    ///
    /// # Errors
    /// Missing privilege, a name in use, or no `ip` command.
    pub fn create(name: &str) -> Result<Self, SystemError> {
        make(name)?;
        let namespace = Namespace { name: name.to_owned(), kept: false };
        namespace.configure("link set dev lo up\n")?;
        in_namespace(Some(name), || {
            let has_ipv6 = Path::new("/proc/sys/net/ipv6").exists();
            let mut of = ["all", "default"].into_iter().filter(|_| has_ipv6);
            of.try_for_each(|of| sysctl::write(&format!("net.ipv6.conf.{of}.accept_dad"), "0"))
        })?;
        Ok(namespace)
    }
    /// An existing namespace; it is not checked.
    pub fn existing(name: &str) -> Self {
        Namespace { name: name.to_owned(), kept: true }
    }
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// True if it exists.
    pub fn exists(&self) -> bool {
        path(&self.name).exists()
    }
    /// Runs several `ip` commands in it, one per line.
    ///
    /// # Errors
    /// The first command that fails.
    pub fn configure(&self, lines: &str) -> Result<(), SystemError> {
        tool::feed(&tool::line("ip", Some(&self.name), "-batch -"), lines).map(drop)
    }
    /// Runs `act` in it: devices that it opens belong to the namespace, and remain usable outside.
    ///
    /// # Errors
    /// It does not exist, or must not be entered.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, SystemError> {
        in_namespace(Some(&self.name), || Ok(act()))
    }
    /// Processes in it.
    pub fn processes(&self) -> Vec<i32> {
        let text =
            tool::run(&tool::line("ip", None, &format!("netns pids {}", self.name))).unwrap_or_default();
        let own = std::process::id() as i32;
        text.split_whitespace().filter_map(|word| word.parse().ok()).filter(|pid| *pid != own).collect()
    }
    /// Terminates the programs in it, and removes it.
    ///
    /// # Errors
    /// The system refuses the removal.
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

/// Creates a namespace of this name.
pub(super) fn make(name: &str) -> Result<(), SystemError> {
    tool::run(&tool::line("ip", None, &format!("netns add {name}"))).map(drop)
}

/// Removes the namespace of this name, if it exists.
pub(super) fn delete(name: &str) -> Result<(), SystemError> {
    if !path(name).exists() {
        return Ok(());
    }
    let done = tool::run(&tool::line("ip", None, &format!("netns delete {name}"))).map(drop);
    // Another process may have removed it meanwhile.
    done.or_else(|error| if path(name).exists() { Err(error) } else { Ok(()) })
}

/// Runs `work` in the network namespace of this name, or in the current one. Files and sockets that it opens
/// belong to that namespace, as do threads and programs that it starts.
///
/// # Errors
/// There is no such namespace, the privilege to enter it is missing, or the error of `work`.
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

/// The file that represents a named namespace.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new(NAMED).join(name)
}

/// Runs `work` in this namespace in a thread of its own, because a thread does not leave a namespace again.
pub(super) fn within<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The namespace of this thread.
pub(super) fn here() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// The inode number of a namespace, unique while it exists.
pub(super) fn number(namespace: &File) -> io::Result<u64> {
    Ok(namespace.metadata()?.ino())
}

/// The namespace with this inode number, if it has a name or a process.
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
