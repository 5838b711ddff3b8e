//! Finished measurements on disk, so that an interrupted experiment goes on where it ended.
//!
//! The file has an entry for each measurement, written when it is finished: what identifies it and the length
//! of its encoding, as CBOR (RFC 8949), then the encoding, CBOR as well. What follows an entry that is cut
//! off or damaged is not used.

use crate::experiment::{CaseRun, MeasureError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A larger file is not read.
const MAX_FILE: u64 = 1 << 30;

/// What identifies a measurement: program and options, case, number.
fn identity<C: Debug>(inputs: &str, run: &CaseRun<C>) -> String {
    format!("{inputs} {:?} {}", run.case, run.number)
}

/// The measurements that a file had.
#[derive(Default)]
pub(crate) struct KeptRuns {
    inputs: String,
    encoded: BTreeMap<String, Vec<u8>>,
}

impl KeptRuns {
    pub(crate) fn has<C: Debug>(&self, run: &CaseRun<C>) -> bool {
        !self.encoded.is_empty() && self.encoded.contains_key(&identity(&self.inputs, run))
    }
    pub(crate) fn get<C: Debug, M: DeserializeOwned>(&self, run: &CaseRun<C>) -> Option<M> {
        if self.encoded.is_empty() {
            return None;
        }
        let bytes = self.encoded.get(&identity(&self.inputs, run))?;
        ciborium::from_reader(bytes.as_slice()).ok()
    }
}

/// The file to which measurements are added.
#[derive(Default)]
pub(crate) struct Kept {
    path: Option<PathBuf>,
    inputs: String,
    file: Mutex<Option<File>>,
}

impl Kept {
    /// Reads what `path` has. A file that cannot be read has nothing.
    pub(crate) fn open(path: &Path, inputs: &str) -> (Kept, KeptRuns) {
        let inputs = inputs.to_owned();
        let readable = std::fs::metadata(path).is_ok_and(|file| file.len() <= MAX_FILE);
        let bytes = if readable { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
        let (mut rest, mut encoded) = (bytes.as_slice(), BTreeMap::new());
        let mut whole = 0;
        while let Ok((key, len)) = ciborium::from_reader::<(String, usize), _>(&mut rest)
            && let Some((value, more)) = rest.split_at_checked(len)
        {
            encoded.insert(key, value.to_vec());
            rest = more;
            whole = bytes.len() - rest.len();
        }
        if whole < bytes.len() || !readable {
            // What is added must stand behind whole entries.
            let cut = OpenOptions::new().write(true).open(path);
            let _ = cut.and_then(|file| file.set_len(whole as u64));
        }
        let kept = Kept { path: Some(path.to_owned()), inputs: inputs.clone(), file: Mutex::new(None) };
        (kept, KeptRuns { inputs, encoded })
    }

    /// Adds a measurement.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn add<C: Debug, M: Serialize>(
        &self,
        run: &CaseRun<C>,
        measured: &M,
    ) -> Result<(), MeasureError> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = entry(&identity(&self.inputs, run), measured).and_then(|entry| {
            let file = match &mut *file {
                Some(file) => file,
                none => none.insert(OpenOptions::new().create(true).append(true).open(path)?),
            };
            file.write_all(&entry)
        });
        written.map_err(|error| MeasureError::Keep { path: path.display().to_string(), error })
    }
}

fn entry<M: Serialize>(key: &str, measured: &M) -> std::io::Result<Vec<u8>> {
    let (mut value, mut entry) = (Vec::new(), Vec::new());
    ciborium::into_writer(measured, &mut value).map_err(std::io::Error::other)?;
    ciborium::into_writer(&(key, value.len()), &mut entry).map_err(std::io::Error::other)?;
    entry.extend(value);
    Ok(entry)
}
