//! Labs that are up: found, and taken down.

pub use crate::state::{HostState, SiteState, check_name, log_file, make_folder};

use crate::state::logs;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::Duration;

/// So long a lab may take to end when it is asked to.
const TIMEOUT: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(20);

/// The lab of this name.
///
/// # Errors
/// There is no such lab; the error names those that there are.
pub fn named(name: &str) -> Result<SiteState> {
    if let Some(state) = SiteState::read(name)? {
        return Ok(state);
    }
    let names: Vec<String> = SiteState::all()?.into_iter().map(|state| state.name).collect();
    match names.is_empty() {
        true => bail!("there is no lab `{name}`; `farpace lab up SCENARIO` makes one"),
        false => bail!("there is no lab `{name}`; there are {}", names.join(", ")),
    }
}

/// Ends a lab and removes what is left of it.
///
/// # Errors
/// A namespace that the system does not let go.
pub fn take_down(lab: &SiteState) -> Result<()> {
    let process = lab.process();
    process.end(false);
    let mut waited = Duration::ZERO;
    while process.is_alive() && waited < TIMEOUT {
        pause();
        waited += STEP;
    }
    process.end(true);
    // If it ended by itself, it has done this.
    lab.clean()?;
    lab.remove_log();
    Ok(())
}

/// A lab, as others see it.
pub struct NamespaceStatus {
    /// Its name, and the process that runs it.
    pub what: String,
    /// Its namespaces.
    pub namespaces: Vec<String>,
    /// Its process was killed: nobody will take it down who is not told to.
    pub is_left_over: bool,
}

/// All labs, by name.
///
/// # Errors
/// Files that are not ours.
pub fn seen() -> Result<Vec<NamespaceStatus>> {
    let look = |lab: SiteState| NamespaceStatus {
        what: format!("lab {} of process {}", lab.name, lab.pid),
        is_left_over: !lab.process().is_alive(),
        namespaces: lab.hosts.into_iter().map(|host| host.namespace).collect(),
    };
    Ok(SiteState::all()?.into_iter().map(look).collect())
}

/// Labs that have gone by themselves and have left words: name and log.
///
/// # Errors
/// Files that are not ours.
pub fn lost() -> Result<Vec<(String, PathBuf)>> {
    let mut lost = Vec::new();
    for name in logs()? {
        let is_up = SiteState::read(&name)?.is_some_and(|lab| lab.process().is_alive());
        let log = log_file(&name);
        if !is_up && log.metadata().is_ok_and(|about| about.len() > 0) {
            lost.push((name, log));
        }
    }
    Ok(lost)
}

fn dead() -> Result<Vec<SiteState>> {
    Ok(SiteState::all()?.into_iter().filter(|lab| !lab.process().is_alive()).collect())
}

/// Removes what labs have left whose processes were killed; their names.
///
/// # Errors
/// A namespace that the system does not let go.
pub fn clean() -> Result<Vec<String>> {
    let dead = dead()?;
    dead.iter().try_for_each(SiteState::clean)?;
    dead.iter().for_each(SiteState::remove_log);
    for (_, log) in lost()? {
        // Whoever cannot remove it could not write it.
        let _ = std::fs::remove_file(log);
    }
    Ok(dead.into_iter().map(|lab| lab.name).collect())
}

#[allow(clippy::disallowed_methods, reason = "it waits for another process")]
/// Waits a moment for another process.
pub fn pause() {
    std::thread::sleep(STEP);
}
