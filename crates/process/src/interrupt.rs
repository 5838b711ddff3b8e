//! Ctrl-C: the first one asks for an orderly end, the second one ends the process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// The exit code of a process that was interrupted: that of shells, 128 and the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

/// Signals belong to the process, so this does too.
static ASKED: AtomicUsize = AtomicUsize::new(0);
static INSTALL: Once = Once::new();
/// Unfinished files, removed when the process ends at once.
static LITTER: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From now on SIGINT, SIGTERM and SIGHUP only set [`asked`]; a second one ends the process with
/// [`EXIT_CODE`] and removes what was given to [`Litter`]. In a program that handles these signals itself,
/// and under nohup, nothing changes. May be called again: what was asked before is forgotten.
pub fn install() {
    ASKED.store(0, Ordering::Relaxed);
    INSTALL.call_once(|| {
        // A shell script ignores SIGINT for what it starts in the background: whoever sends it nevertheless
        // means it.
        if ctrlc::try_set_handler(on_signal).is_err() && ignored() & (SIGHUP | SIGINT) == SIGINT {
            let _ = ctrlc::set_handler(on_signal);
        }
    });
}

fn on_signal() {
    if ASKED.fetch_add(1, Ordering::Relaxed) == 0 {
        return;
    }
    let litter = std::mem::take(&mut *LITTER.lock().unwrap_or_else(PoisonError::into_inner));
    for path in litter {
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    farpace_live::system::undo_all();
    let _ = writeln!(std::io::stderr().lock(), "\nInterrupted twice: ended at once, nothing written.");
    std::process::exit(i32::from(EXIT_CODE));
}

/// Bits of the signals in the mask of `/proc/self/status`.
const SIGHUP: u64 = 1;
const SIGINT: u64 = 1 << 1;

/// The signals that this process ignores; none where the system does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether an orderly end has been asked for.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed) > 0
}

/// An unfinished file or directory of our own, removed if the process is ended at once.
#[derive(Debug)]
pub struct Litter(PathBuf);

impl Litter {
    /// Watches over `path` for as long as this lives.
    pub fn watch(path: &Path) -> Litter {
        LITTER.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Litter(path.to_owned())
    }
}

impl Drop for Litter {
    fn drop(&mut self) {
        LITTER.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}
