//! The network namespaces of this machine: the kernel shows sockets one namespace at a time.

use crate::KernelError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::PathBuf;

/// What a visit of all namespaces gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visited<T> {
    /// The results by the number of the namespace.
    pub results: BTreeMap<u64, T>,
    /// Processes whose namespace this one may not know (ptrace(2), PTRACE_MODE_READ): it may be one that was
    /// not visited.
    pub hidden_processes: usize,
}

/// Those that can be found, by number: those of processes, and those with a name. And how many processes hide
/// theirs.
fn all() -> (BTreeMap<u64, PathBuf>, usize) {
    let entries =
        |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_processes = entries("/proc").map(|path| path.join("ns/net"));
    let (mut found, mut hidden) = (BTreeMap::new(), 0);
    for path in of_processes.chain(entries("/run/netns")) {
        match fs::metadata(&path) {
            Ok(metadata) => _ = found.insert(metadata.ino(), path),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => hidden += 1,
            // A process that has ended, or a file that is none.
            Err(_) => {}
        }
    }
    (found, hidden)
}

/// Calls `work` in each network namespace that can be found. A namespace that ends meanwhile is none.
///
/// # Errors
/// The first error of `work`, or a namespace that cannot be entered.
pub(crate) fn visit<T: Send>(
    mut work: impl FnMut() -> Result<T, KernelError> + Send,
) -> Result<Visited<T>, KernelError> {
    let (found, hidden_processes) = all();
    let mut results = BTreeMap::new();
    // A thread of its own: it stays in the namespace that it enters.
    let walk = || {
        for (number, path) in found {
            let Ok(namespace) = File::open(&path) else { continue };
            let entered = move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
            entered.map_err(|error| KernelError::System {
                what: format!("enter the network namespace {}", path.display()),
                error: error.into(),
            })?;
            results.insert(number, work()?);
        }
        Ok(())
    };
    std::thread::scope(|scope| scope.spawn(walk).join().unwrap_or_else(|panic| resume_unwind(panic)))?;
    Ok(Visited { results, hidden_processes })
}
