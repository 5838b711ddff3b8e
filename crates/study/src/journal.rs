//! Finished runs that are not in the data set yet: a line of JSON each, appended as they finish.
//!
//! A process that is killed loses at most the line that it was writing. Such a rest of a line is skipped.

use crate::error::StudyError;
use crate::record::RunRecord;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Longest line that is read.
const MAX_LINE: u64 = 256 << 20;

/// Appends finished runs.
pub(crate) struct RunJournal<W> {
    path: PathBuf,
    out: W,
}

impl RunJournal<File> {
    /// Opens the file for more. A rest of a line gets its end first.
    pub fn open(path: &Path) -> Result<Self, StudyError> {
        let open = || {
            let out = OpenOptions::new().create(true).append(true).open(path)?;
            let mut journal = RunJournal { path: path.to_owned(), out };
            if journal.out.metadata()?.len() > 0 {
                journal.out.write_all(b"\n")?;
            }
            Ok(journal)
        };
        open().map_err(|error| StudyError::write(path, error))
    }
}

impl<W: Write> RunJournal<W> {
    /// Adds a run.
    pub fn add(&mut self, record: &RunRecord) -> Result<(), StudyError> {
        let line = serde_json::to_vec(record).map_err(std::io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.out.write_all(&line)?;
            self.out.flush()
        });
        line.map_err(|error| StudyError::write(&self.path, error))
    }
}

/// The runs of a journal; none if there is no file. Lines that are not whole are skipped.
pub(crate) fn read(path: &Path) -> Result<Vec<RunRecord>, StudyError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StudyError::read(path, error)),
    };
    let (mut reader, mut records, mut line) = (BufReader::new(file), Vec::new(), Vec::new());
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| StudyError::read(path, error))? == 0 {
            return Ok(records);
        }
        records.extend(serde_json::from_slice::<RunRecord>(&line).ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measurement, RunStatus};

    fn run(seed: u64) -> RunRecord {
        RunRecord {
            run: format!("{seed:032x}"),
            seed,
            values: vec![("a.b".into(), "1".into())],
            status: RunStatus::Crashed,
            reason: Some("because\nof it".into()),
            measured: Measurement::default(),
        }
    }

    /// Breaks: runs that were finished before a process was killed.
    #[test]
    fn whole_lines_survive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        assert_eq!(read(&path).unwrap(), []);
        let mut journal = RunJournal::open(&path).unwrap();
        journal.add(&run(1)).unwrap();
        journal.add(&run(2)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert_eq!(read(&path).unwrap(), [run(1)]);
        RunJournal::open(&path).unwrap().add(&run(3)).unwrap();
        assert_eq!(read(&path).unwrap(), [run(1), run(3)]);
        std::fs::write(&path, [0xff; 100]).unwrap();
        assert_eq!(read(&path).unwrap(), []);
    }

    /// Breaks: a run that could not be kept passes for a finished one.
    #[test]
    fn a_full_disk_is_reported() {
        let out = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = RunJournal { path: "study/journal".into(), out }.add(&run(1)).unwrap_err().to_string();
        assert!(error.contains("cannot write `study/journal`: No space left"), "{error}");
    }
}
