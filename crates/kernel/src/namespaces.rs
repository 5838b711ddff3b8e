//! The network namespaces of this machine: the kernel shows sockets one namespace at a time.

use crate::KernelError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

/// The namespace of this thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// What a visit of all namespaces gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Visited<T> {
    /// The results by the number of the namespace.
    pub results: BTreeMap<u64, T>,
    /// Namespaces that this process may not enter.
    pub closed: usize,
}

fn number(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.ino())
}

/// Those that can be found: those of processes, and those with a name. By number.
fn all() -> BTreeMap<u64, PathBuf> {
    let entries =
        |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_processes = entries("/proc").map(|path| path.join("ns/net"));
    let all = of_processes.chain(entries("/run/netns"));
    all.filter_map(|path| Some((number(&path)?, path))).collect()
}

/// Calls `work` in each network namespace that can be found, with the number of the namespace. This thread's
/// own comes first; it needs no right. A namespace that ends meanwhile is none.
///
/// # Errors
/// The first error of `work`, or a namespace that cannot be entered for another reason than missing rights.
pub(crate) fn visit<T: Send>(
    mut work: impl FnMut(u64) -> Result<T, KernelError> + Send,
) -> Result<Visited<T>, KernelError> {
    let mut visited = Visited { results: BTreeMap::new(), closed: 0 };
    // A thread of its own: it stays in the namespace that it enters.
    let walk = || {
        let own = number(Path::new(OWN));
        if let Some(own) = own {
            visited.results.insert(own, work(own)?);
        }
        for (number, path) in all().into_iter().filter(|(number, _)| Some(*number) != own) {
            let Ok(namespace) = File::open(&path) else { continue };
            match move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)) {
                Ok(()) => {
                    visited.results.insert(number, work(number)?);
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => visited.closed += 1,
                Err(error) => {
                    let what = format!("enter the network namespace {}", path.display());
                    return Err(KernelError::System { what, error: error.into() });
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| scope.spawn(walk).join().unwrap_or_else(|panic| resume_unwind(panic)))?;
    Ok(visited)
}
