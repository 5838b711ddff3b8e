//! The directory that a run writes to: complete files or none, and never over files of somebody else.

use crate::interrupt::Litter;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Lists the files that farpace wrote to a directory, one name a line: these may be replaced.
const MANIFEST: &str = ".farpace";

/// Why files cannot be written to a directory.
#[derive(Debug, thiserror::Error)]
pub enum OutDirError {
    /// The directory cannot be made, read or written to.
    #[error("cannot write to `{}`", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written, or not be moved to its place.
    #[error("cannot write `{}`", file.display())]
    File {
        /// The place of the file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of somebody else is in the way.
    #[error(
        "`{}` is there already and was not written by farpace: it is not overwritten; choose another \
         directory with --out",
        _0.display()
    )]
    Foreign(PathBuf),
}

impl OutDirError {
    fn directory(dir: &Path) -> impl FnOnce(io::Error) -> Self {
        let dir = dir.to_owned();
        move |source| OutDirError::Directory { dir, source }
    }
    fn file(file: PathBuf) -> impl FnOnce(io::Error) -> Self {
        move |source| OutDirError::File { file, source }
    }
}

/// A directory being filled.
///
/// Files are written to a hidden directory inside it ([`staging`](OutDir::staging)) and moved to their places
/// by [`commit`](OutDir::commit), when all of them are complete. Without a commit nothing of them remains.
/// Files that an earlier commit has written are replaced or removed; any other file is left alone, and if one
/// of the same name stands in the way, that is an error.
#[derive(Debug)]
pub struct OutDir {
    dir: PathBuf,
    staging: PathBuf,
    /// Written by earlier runs.
    former: BTreeSet<String>,
    /// The directory was made here.
    made: bool,
    _litter: Litter,
}

impl OutDir {
    /// Makes the directory if need be. `planned` names files that are going to be written, relative to it: if
    /// one of these belongs to somebody else, it is better said now than after a long run.
    ///
    /// # Errors
    /// A directory that cannot be made or written to, or a foreign file in the way.
    pub fn open(dir: &Path, planned: &[String]) -> Result<OutDir, OutDirError> {
        let made = !dir.exists();
        fs::create_dir_all(dir).map_err(OutDirError::directory(dir))?;
        let manifest = fs::read_to_string(dir.join(MANIFEST)).unwrap_or_default();
        // A manifest from elsewhere must not lead out of the directory.
        let inside = |name: &&str| {
            !name.is_empty()
                && Path::new(name).components().all(|c| matches!(c, std::path::Component::Normal(_)))
        };
        let former = manifest.lines().filter(inside).map(str::to_owned).collect();
        let staging = dir.join(format!(".farpace-unfinished-{}", std::process::id()));
        let litter = Litter::watch(&staging);
        let out = OutDir { dir: dir.to_owned(), staging, former, made, _litter: litter };
        out.refuse_foreign(planned)?;
        fs::create_dir(&out.staging).map_err(OutDirError::directory(dir))?;
        Ok(out)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where files are written until [`commit`](OutDir::commit).
    pub fn staging(&self) -> &Path {
        &self.staging
    }

    /// The place that a file in [`staging`](OutDir::staging) will have.
    pub fn place(&self, staged: &Path) -> PathBuf {
        staged.strip_prefix(&self.staging).map_or_else(|_| staged.to_owned(), |name| self.dir.join(name))
    }

    /// Writes a whole file; `name` may have directories in front.
    ///
    /// # Errors
    /// The file cannot be written, with its name.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<(), OutDirError> {
        let staged = self.staging.join(name);
        let write = || {
            if let Some(parent) = staged.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&staged, contents)
        };
        write().map_err(OutDirError::file(self.place(&staged)))
    }

    fn refuse_foreign(&self, names: &[String]) -> Result<(), OutDirError> {
        let foreign = |name: &&String| !self.former.contains(*name) && self.dir.join(name).exists();
        if let Some(name) = names.iter().find(foreign) {
            return Err(OutDirError::Foreign(self.dir.join(name)));
        }
        Ok(())
    }

    /// The names of the files written so far, sorted.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn staged(&self) -> Result<Vec<String>, OutDirError> {
        let mut names = Vec::new();
        list(&self.staging, "", &mut names).map_err(OutDirError::directory(&self.dir))?;
        names.sort();
        Ok(names)
    }

    /// Moves all files to their places, removes those of earlier runs that this one does not have, and
    /// returns the names, sorted.
    ///
    /// # Errors
    /// A foreign file in the way: then nothing is moved. Or a file that cannot be moved.
    pub fn commit(self) -> Result<Vec<String>, OutDirError> {
        let names = self.staged()?;
        self.refuse_foreign(&names)?;
        for name in self.former.iter().filter(|name| !names.contains(name)) {
            let _ = fs::remove_file(self.dir.join(name));
        }
        // The manifest comes first: whatever happens then, no file of ours is taken for a foreign one.
        let manifest: String = names.iter().map(|name| format!("{name}\n")).collect();
        fs::write(self.dir.join(MANIFEST), manifest).map_err(OutDirError::directory(&self.dir))?;
        for name in &names {
            let place = self.dir.join(name);
            let moved = place.parent().map_or(Ok(()), fs::create_dir_all);
            moved
                .and_then(|()| fs::rename(self.staging.join(name), &place))
                .map_err(OutDirError::file(place))?;
        }
        Ok(names)
    }
}

impl Drop for OutDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.staging);
        if self.made {
            // Goes only if it is empty.
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// The names of all files below `dir`, relative to it.
fn list(dir: &Path, prefix: &str, names: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, files: &[(&str, &str)]) -> Result<Vec<String>, OutDirError> {
        let out = OutDir::open(dir, &[])?;
        for (name, contents) in files {
            out.write(name, contents.as_bytes())?;
        }
        out.commit()
    }

    /// Breaks: a second run into the same directory fails, or leaves files of the first that are not its own.
    #[test]
    fn our_own_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("deep/er");
        assert_eq!(write(&at, &[("a", "1"), ("sub/b", "1")]).unwrap(), ["a", "sub/b"]);
        assert_eq!(write(&at, &[("a", "2")]).unwrap(), ["a"]);
        assert_eq!(fs::read_to_string(at.join("a")).unwrap(), "2");
        assert!(!at.join("sub/b").exists());
        let left: Vec<_> = fs::read_dir(&at).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!left.iter().any(|n| n.to_string_lossy().contains("unfinished")), "{left:?}");
    }

    /// Breaks: `--out .` replaces the user's own scenario.toml.
    #[test]
    fn foreign_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "mine").unwrap();
        assert!(OutDir::open(dir.path(), &["a".to_owned()]).is_err());
        let error = write(dir.path(), &[("b", "x"), ("a", "x")]).unwrap_err();
        assert!(error.to_string().contains("not overwritten"), "{error}");
        assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "mine");
        assert!(!dir.path().join("b").exists(), "all or nothing");
    }

    /// Breaks: a run that fails leaves files that look complete, or an empty directory.
    #[test]
    fn without_a_commit_nothing_remains() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("out");
        let out = OutDir::open(&at, &[]).unwrap();
        out.write("a", b"1").unwrap();
        drop(out);
        assert!(!at.exists());
    }

    /// Breaks: a prepared manifest makes a run remove files elsewhere.
    #[test]
    fn a_manifest_does_not_lead_out_of_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (at, victim) = (dir.path().join("out"), dir.path().join("victim"));
        fs::create_dir(&at).unwrap();
        fs::write(&victim, "mine").unwrap();
        fs::write(at.join(MANIFEST), format!("../victim\n{}\n", victim.display())).unwrap();
        write(&at, &[("a", "1")]).unwrap();
        assert!(victim.exists());
    }
}
