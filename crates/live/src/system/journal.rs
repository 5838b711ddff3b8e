//! Journals of changes to the machine, in files: later processes can revert the changes of a killed one.

use super::undo::SystemUndo;
use super::{SystemError, SystemInterface, namespace};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Directory of the journals. Like the changes, it does not survive a restart of the machine.
const STATE: &str = "/run/farpace";
/// Environment variable with another directory than [`STATE`].
const STATE_VARIABLE: &str = "FARPACE_STATE";
/// Maximum length of a journal, in bytes; longer files are ignored.
const LONGEST: u64 = 1 << 20;

/// The directory of the journals.
pub fn state_folder() -> PathBuf {
    std::env::var_os(STATE_VARIABLE).map_or_else(|| STATE.into(), PathBuf::from)
}

/// The changes of one setup of one process, the first first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// Its purpose, such as `up`.
    pub name: String,
    /// Process ID.
    pub pid: u32,
    /// Start time of the process, in ticks since boot: another process may get the same PID later.
    pub began: u64,
    /// The inode number of its network namespace.
    pub home: u64,
    /// The setup stays after the process has ended.
    pub kept: bool,
    /// How to revert each change.
    pub steps: Vec<SystemUndo>,
    /// Path of the journal.
    #[serde(skip)]
    pub path: PathBuf,
}

impl Journal {
    /// Creates a journal for this process in `folder`.
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self, SystemError> {
        let failed = |what: &str, path: &Path| {
            let what = format!("{what} {}", path.display());
            |error| SystemError::System { what, error }
        };
        let pid = std::process::id();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed("make the folder", folder))?;
        let home = namespace::here().and_then(|here| namespace::number(&here));
        let home = home.map_err(failed("read", Path::new("/proc/thread-self/ns/net")))?;
        let began = began(pid).unwrap_or(0);
        let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        // A process may have several setups with the same name.
        for number in 0..u32::MAX {
            let number = if number == 0 { String::new() } else { format!("-{number}") };
            let path = folder.join(format!("{pid}-{safe}{number}.json"));
            match File::options().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => {
                    let journal = Journal {
                        name: name.to_owned(),
                        pid,
                        began,
                        home,
                        kept: false,
                        steps: Vec::new(),
                        path,
                    };
                    journal.write()?;
                    return Ok(journal);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("make", &path)(error)),
            }
        }
        Err(failed("make a file in", folder)(io::ErrorKind::AlreadyExists.into()))
    }

    /// Writes the file atomically: it is never incomplete.
    pub(super) fn write(&self) -> Result<(), SystemError> {
        let new = self.path.with_extension("new");
        let write = || {
            fs::write(&new, serde_json::to_vec_pretty(self)?)?;
            fs::rename(&new, &self.path)
        };
        write().map_err(|error| SystemError::System { what: format!("write {}", self.path.display()), error })
    }

    /// True if its process still runs.
    pub fn is_alive(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// True if the process has ended and the setup is not to be kept.
    pub fn is_left_over(&self) -> bool {
        !self.kept && !self.is_alive()
    }

    /// Reverts all changes, the last first, except interfaces in `spared`. Changes that cannot be reverted
    /// stay in the file.
    pub(super) fn undo(&mut self, spared: &[SystemInterface]) -> Result<(), Vec<SystemError>> {
        let mut errors = Vec::new();
        let mut stay = Vec::new();
        let here = namespace::here().and_then(|here| namespace::number(&here)).ok();
        let elsewhere = (here != Some(self.home)).then(|| namespace::find(self.home));
        while let Some(step) = self.steps.pop() {
            if step.removes().is_some_and(|interface| spared.contains(interface)) {
                continue;
            }
            let done = match &elsewhere {
                None => step.run(),
                Some(Some(home)) => {
                    let entering =
                        |error| SystemError::System { what: "enter its network namespace".into(), error };
                    namespace::within(home, || step.run()).map_err(entering).and_then(|done| done)
                }
                // The removal of a namespace removed everything in it; named namespaces are visible from
                // everywhere.
                Some(None) if step.namespace().is_some() => step.run(),
                Some(None) => Ok(()),
            };
            if let Err(error) = done {
                errors.push(error);
                stay.insert(0, step);
            }
        }
        self.steps = stay;
        let file = if self.steps.is_empty() { remove(&self.path) } else { self.write() };
        errors.extend(file.err());
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

fn remove(path: &Path) -> Result<(), SystemError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(SystemError::System { what: format!("remove {}", path.display()), error })
        }
        _ => Ok(()),
    }
}

/// Start time of a process, in ticks since boot; none: there is no such process.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain blanks and parentheses. After it the state is the first field,
    // the start time the 20th.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// All journals in the directory, of running and ended processes, by name. Other files are skipped.
pub fn journals() -> Vec<Journal> {
    let mut paths: Vec<_> =
        fs::read_dir(state_folder()).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let small = fs::metadata(&path).is_ok_and(|about| about.len() <= LONGEST);
        let bytes = (small && path.extension()? == "json").then(|| fs::read(&path).ok()).flatten()?;
        let journal: Journal = serde_json::from_slice(&bytes).ok()?;
        Some(Journal { path, ..journal })
    };
    paths.into_iter().filter_map(read).collect()
}

/// Reverts the changes of an ended process. Things of the same name that a running process has created since
/// stay.
///
/// # Errors
/// Changes that could not be reverted; they stay in the journal.
pub fn clean(journal: &mut Journal) -> Result<(), Vec<SystemError>> {
    let others: Vec<_> =
        journals().into_iter().filter(|other| other.path != journal.path && other.is_alive()).collect();
    // An interface without a named namespace belongs to the namespace of its process.
    let same = |other: &Journal, interface: &SystemInterface| {
        interface.namespace.is_some() || other.home == journal.home
    };
    let removed = |other: &Journal| -> Vec<SystemInterface> {
        let all = other.steps.iter().filter_map(SystemUndo::removes);
        all.filter(|interface| same(other, interface)).cloned().collect()
    };
    let spared: Vec<_> = others.iter().flat_map(removed).collect();
    journal.undo(&spared)
}
