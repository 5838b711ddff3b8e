//! Named network namespaces, and what is in them.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use thiserror::Error;

/// Where the system keeps names of namespaces.
const FOLDER: &str = "/run/netns";

/// Why something cannot be done with a namespace.
#[derive(Debug, Error)]
pub enum NamespaceError {
    /// The system says no.
    #[error("cannot {what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What it said.
        error: io::Error,
    },
    /// The tool `ip` is not there.
    #[error("the command `ip` is missing: install iproute2")]
    NoIp,
    /// `ip` says no.
    #[error("cannot {what}: {said}")]
    Refused {
        /// What was tried.
        what: String,
        /// What `ip` said.
        said: String,
    },
}

/// A named network namespace. It is gone when this is dropped, with all interfaces that are in it; programs in it are told to
/// end.
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
    pub fn create(name: &str) -> Result<Self, NamespaceError> {
        ip(&["netns", "add", name], "", || format!("make the network namespace `{name}`"))?;
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
        self.path().exists()
    }
    fn path(&self) -> PathBuf {
        PathBuf::from(FOLDER).join(&self.name)
    }
    /// Lets `ip` do several things in it, one a line.
    ///
    /// # Errors
    /// The first that cannot be done.
    pub fn configure(&self, lines: &str) -> Result<(), NamespaceError> {
        ip(&["-n", &self.name, "-batch", "-"], lines, || {
            format!("set up the network namespace `{}`", self.name)
        })
    }
    /// Does `act` in it: devices that it opens are there, and stay open outside.
    ///
    /// # Errors
    /// It is not there, or must not be entered.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        let cannot = |error: io::Error| NamespaceError::System {
            what: format!("enter the network namespace `{}`", self.name),
            error,
        };
        let file = File::open(self.path()).map_err(cannot)?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(&file, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
                Ok(act())
            });
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has panicked"))).map_err(cannot)
        })
    }
    /// Processes that are in it.
    pub fn processes(&self) -> Vec<i32> {
        let output = Command::new("ip").args(["netns", "pids", &self.name]).output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let own = std::process::id() as i32;
        text.split_whitespace().filter_map(|word| word.parse().ok()).filter(|pid| *pid != own).collect()
    }
    /// Tells programs in it to end, and removes it.
    ///
    /// # Errors
    /// The system does not let it go.
    pub fn remove(mut self) -> Result<(), NamespaceError> {
        self.kept = true;
        self.clear()
    }
    fn clear(&self) -> Result<(), NamespaceError> {
        if !self.exists() {
            return Ok(());
        }
        for pid in self.processes() {
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM);
        }
        ip(&["netns", "delete", &self.name], "", || format!("remove the network namespace `{}`", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.kept {
            let _ = self.clear();
        }
    }
}

/// Runs `ip`.
fn ip(arguments: &[&str], input: &str, what: impl Fn() -> String) -> Result<(), NamespaceError> {
    let system = |error| NamespaceError::System { what: what(), error };
    let mut command = Command::new("ip");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NamespaceError::NoIp,
        _ => system(error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may end before it has read all: then it says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(system)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(NamespaceError::Refused { what: what(), said })
}
