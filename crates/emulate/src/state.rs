//! What is known of labs that are up: a file for each, which outlives a process that is killed.

use anyhow::{Context, Result, bail};
use farpace_live::system::state_folder;
use farpace_live::{Namespace, Process};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// Longest name of a lab.
const LONGEST_NAME: usize = 32;

/// A lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteState {
    /// Its name.
    pub name: String,
    /// The file that it was made of.
    pub scenario: String,
    /// The process that runs it.
    pub pid: i32,
    /// When that started, in the system's count.
    pub started: u64,
    /// All is made.
    pub ready: bool,
    /// Its hosts. They are written down before they are made.
    pub hosts: Vec<HostState>,
}

/// A host of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    /// Its name.
    pub host: String,
    /// Its namespace.
    pub namespace: String,
    /// Its interface.
    pub interface: String,
    /// Its address.
    pub address: String,
}

/// Checks the name of a lab.
///
/// # Errors
/// A name that would be no part of a file name.
pub fn check_name(name: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(good) || name.starts_with('-') {
        bail!(
            "`{name}` cannot be the name of a lab: letters, digits, `-` and `_`, {LONGEST_NAME} at most; use \
             --name"
        );
    }
    Ok(())
}

/// Where the files are: beside those of other setups. It is empty after a restart of the machine, as are the
/// namespaces.
fn folder() -> PathBuf {
    state_folder().join("lab")
}

fn file(name: &str) -> PathBuf {
    folder().join(format!("{name}.json"))
}

/// Where a lab in the background writes what it has to say.
pub fn log_file(name: &str) -> PathBuf {
    folder().join(format!("{name}.log"))
}

/// Makes the folder.
///
/// # Errors
/// No right to.
pub fn make_folder() -> Result<()> {
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| format!("cannot make `{}`; labs need root", folder.display()))
}

/// Names of labs that have a log.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn logs() -> Result<Vec<String>> {
    names(".log")
}

/// Names of labs that have a file with this ending, in order.
fn names(ending: &str) -> Result<Vec<String>> {
    let folder = folder();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", folder.display())),
    };
    let files = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.strip_suffix(ending)?.to_owned())).collect();
    names.sort_unstable();
    Ok(names)
}

impl SiteState {
    /// The process that runs it.
    pub const fn process(&self) -> Process {
        Process { pid: self.pid, started: self.started }
    }
    /// Takes the name: nobody else has it until [`remove`](SiteState::remove). What a lab of this name has
    /// left is removed.
    ///
    /// # Errors
    /// There is a lab of this name, or no right to make one.
    pub fn claim(&self) -> Result<()> {
        make_folder()?;
        if let Some(old) = SiteState::read(&self.name)? {
            if old.process().is_alive() {
                bail!("lab `{0}` is up; take it down with `farpace lab down {0}`, or use --name", self.name);
            }
            old.clean()?;
        }
        let path = file(&self.name);
        let mut file =
            File::create_new(&path).with_context(|| format!("cannot make `{}`", path.display()))?;
        let written =
            serde_json::to_string(self).map_err(io::Error::other).and_then(|t| file.write_all(t.as_bytes()));
        written.with_context(|| format!("cannot write `{}`", path.display()))
    }
    /// Writes it anew.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self) -> Result<()> {
        let (path, new) = (file(&self.name), folder().join(format!(".{}.partial", self.name)));
        let write = || fs::write(&new, serde_json::to_string(self)?).and_then(|()| fs::rename(&new, &path));
        write().with_context(|| format!("cannot write `{}`", path.display()))
    }
    /// The lab of this name.
    ///
    /// # Errors
    /// A file that is not what we write.
    pub fn read(name: &str) -> Result<Option<SiteState>> {
        let path = file(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        let state = serde_json::from_str(&text);
        state
            .map(Some)
            .with_context(|| format!("`{}` is not of this version; remove it by hand", path.display()))
    }
    /// All labs, by name.
    ///
    /// # Errors
    /// As [`read`](SiteState::read).
    pub fn all() -> Result<Vec<SiteState>> {
        let names = names(".json")?;
        let states: Result<Vec<Option<SiteState>>> = names.iter().map(|name| SiteState::read(name)).collect();
        Ok(states?.into_iter().flatten().collect())
    }
    /// Removes its namespaces, with all that is in them, and the file.
    ///
    /// # Errors
    /// A namespace that the system does not let go.
    pub fn clean(&self) -> Result<()> {
        for host in &self.hosts {
            Namespace::existing(&host.namespace).remove()?;
        }
        self.remove();
        Ok(())
    }
    /// Forgets it. What it has said stays.
    pub fn remove(&self) {
        // Whoever cannot remove it could not write it.
        let _ = fs::remove_file(file(&self.name));
    }
    /// Forgets what it has said.
    pub fn remove_log(&self) {
        let _ = fs::remove_file(log_file(&self.name));
    }
}
