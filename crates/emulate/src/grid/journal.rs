//! The runs of a grid, kept in a file: a line of JSON each, after one that says what they have in common.

use super::record::GridRun;
use crate::compare::Backend;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file in the directory of a grid.
const NAME: &str = "runs.jsonl";

/// What all runs of a journal have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridHead {
    /// The version of farpace.
    pub farpace: String,
    /// The kernel's release.
    pub kernel: String,
    /// How long runs last, in seconds, before the minimum of round trips.
    pub seconds: u64,
}

impl GridHead {
    /// Of this program on this machine.
    pub fn here(seconds: u64) -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        GridHead { farpace: env!("CARGO_PKG_VERSION").to_owned(), kernel: release.trim().to_owned(), seconds }
    }
}

/// Which of the runs that are there count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridKept {
    /// None: there must not be any.
    Nothing,
    /// The kernel's, also those beside another version of farpace.
    Kernel,
    /// All.
    All,
}

/// The journal of a grid.
pub struct GridJournal {
    path: PathBuf,
    file: File,
    runs: Vec<GridRun>,
}

impl GridJournal {
    /// Opens the journal in `dir`, or begins it.
    ///
    /// # Errors
    /// Runs that are there and must not be, those of another version, kernel or length, or a file that
    /// cannot be read or written.
    pub fn open(dir: &Path, seconds: u64, kept: GridKept) -> Result<Self> {
        let path = dir.join(NAME);
        let cannot = || format!("cannot write to `{}`", path.display());
        fs::create_dir_all(dir).with_context(cannot)?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        if !text.is_empty() && kept == GridKept::Nothing {
            bail!(
                "`{}` has runs: go on with --resume, or choose another directory with --out",
                path.display()
            );
        }
        let head = GridHead::here(seconds);
        let (mut found, mut runs) = read(&text).with_context(|| format!("`{}`", path.display()))?;
        if let Some(found) = &mut found
            && kept == GridKept::Kernel
        {
            found.farpace.clone_from(&head.farpace);
        }
        if let Some(found) = &found
            && *found != head
        {
            bail!(
                "`{}` has runs of farpace {}, Linux {}, {} s; these are of farpace {}, Linux {}, {} s: \
                 choose another directory with --out",
                path.display(),
                found.farpace,
                found.kernel,
                found.seconds,
                head.farpace,
                head.kernel,
                head.seconds
            );
        }
        // What a killed process has written in part is cut off.
        let mut whole = text.rfind('\n').map_or(0, |end| end + 1);
        if kept == GridKept::Kernel && found.is_some() {
            runs.retain(|run| run.way == Backend::Kernel);
            let lines = runs.iter().map(serde_json::to_string).collect::<serde_json::Result<Vec<_>>>()?;
            let text = [serde_json::to_string(&head)?].into_iter().chain(lines).fold(String::new(), add_line);
            whole = text.len();
            // In one step: the runs took hours.
            let new = dir.join(format!("{NAME}.new"));
            fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).with_context(cannot)?;
        }
        let file = OpenOptions::new().append(true).create(true).open(&path).with_context(cannot)?;
        file.set_len(u64::try_from(whole)?).with_context(cannot)?;
        let mut journal = GridJournal { path, file, runs };
        if found.is_none() {
            journal.line(&head)?;
        }
        Ok(journal)
    }
    /// The runs so far.
    pub fn runs(&self) -> &[GridRun] {
        &self.runs
    }
    /// Adds a run, and keeps it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, run: GridRun) -> Result<()> {
        self.line(&run)?;
        self.runs.push(run);
        Ok(())
    }
    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let line = add_line(String::new(), serde_json::to_string(value)?);
        let cannot = || format!("cannot write to `{}`", self.path.display());
        self.file.write_all(line.as_bytes()).with_context(cannot)
    }
}

fn add_line(text: String, line: String) -> String {
    text + &line + "\n"
}

/// Head and runs of a journal. A last line without its end is left out, and so are runs that failed: they are
/// tried again.
fn read(text: &str) -> Result<(Option<GridHead>, Vec<GridRun>)> {
    let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    let mut lines = whole.lines();
    let Some(first) = lines.next() else { return Ok((None, Vec::new())) };
    let head = serde_json::from_str(first).context("line 1 is no head of a grid's runs")?;
    let mut runs = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let run: GridRun = serde_json::from_str(line).with_context(|| format!("line {number} is no run"))?;
        if run.error.is_none() {
            runs.push(run);
        }
    }
    Ok((Some(head), runs))
}

#[cfg(test)]
mod tests {
    use super::GridKept::{All, Kernel, Nothing};
    use super::*;
    use crate::compare::BackendRun;

    /// Breaks: an interrupted grid loses runs, counts one that was written in part, or mixes runs that are
    /// not of one kind.
    #[test]
    fn runs_outlive_the_process() {
        let dir = std::env::temp_dir().join(format!("farpace-grid-journal-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let run = |seed| {
            let run =
                BackendRun { seed, goodput_mbit_s: 0.1 + 0.2, ..BackendRun::of(Backend::Lab, vec![], 0) };
            GridRun::of("here".to_owned(), &run, 1.25)
        };
        let mut journal = GridJournal::open(&dir, 10, Nothing).unwrap();
        journal.add(run(1)).unwrap();
        journal.add(GridRun::failed("here".to_owned(), Backend::Kernel, 1, &anyhow::anyhow!("no"))).unwrap();
        assert_eq!(journal.runs().len(), 2);
        drop(journal);
        // Killed within a line.
        let path = dir.join(NAME);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"point\":\"he")).unwrap();
        let refused = |seconds, kept, why: &str| {
            let error = GridJournal::open(&dir, seconds, kept).map(|_| ()).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        };
        refused(10, Nothing, "--resume");
        refused(20, All, "another directory");
        refused(20, Kernel, "another directory");
        let mut journal = GridJournal::open(&dir, 10, All).unwrap();
        assert_eq!(journal.runs(), [run(1)]);
        journal.add(run(2)).unwrap();
        drop(journal);
        let mut journal = GridJournal::open(&dir, 10, All).unwrap();
        assert_eq!(journal.runs(), [run(1), run(2)]);
        // Another version makes farpace's runs again, and keeps the kernel's.
        let kernel = GridRun { way: Backend::Kernel, ..run(2) };
        journal.add(kernel.clone()).unwrap();
        journal.add(GridRun { way: Backend::Farpace, ..run(2) }).unwrap();
        drop(journal);
        let other = fs::read_to_string(&path).unwrap().replacen(env!("CARGO_PKG_VERSION"), "0.0.1", 1);
        fs::write(&path, other).unwrap();
        refused(10, All, "another directory");
        let mut journal = GridJournal::open(&dir, 10, Kernel).unwrap();
        assert_eq!(journal.runs(), std::slice::from_ref(&kernel));
        journal.add(run(2)).unwrap();
        drop(journal);
        assert_eq!(GridJournal::open(&dir, 10, All).unwrap().runs(), [kernel, run(2)]);
        fs::write(&path, text.replacen("sent", "send", 1)).unwrap();
        refused(10, All, "line 2 is no run");
        fs::remove_dir_all(&dir).unwrap();
    }
}
