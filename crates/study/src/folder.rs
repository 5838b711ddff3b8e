//! The folder of a study: `study.json` (plan and provenance), `scenario.toml`, `runs.parquet` (the data set),
//! and while runs are made `journal` (finished runs that are not in the data set yet).
//!
//! Every file appears whole, under its name, or not at all. One process at a time writes to a folder.

use crate::dataset;
use crate::error::StudyError;
use crate::journal::{self, RunJournal};
use crate::keys::short_digest;
use crate::plan::{PlanSpec, StudyPlan};
use crate::record::RunRecord;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The form of `study.json`; another number when a key changes its meaning or goes.
pub const FORMAT: &str = "farpace-study/1";
/// The name of the data set.
pub const DATA_SET: &str = "runs.parquet";

const STUDY: &str = "study.json";
const SCENARIO: &str = "scenario.toml";
const JOURNAL: &str = "journal";
const LOCK: &str = ".lock";
/// Folders of shards below that of their study begin so.
pub const SHARD_PREFIX: &str = "shard-";

/// Plan and provenance, as in `study.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// [`FORMAT`].
    pub format: String,
    /// Version and commit of farpace.
    pub farpace: String,
    /// The scenario's file.
    pub scenario: String,
    /// `--set`.
    pub set: Vec<(String, String)>,
    /// Identifies the scenario with `--set`, whatever its words and comments.
    pub scenario_digest: String,
    /// The plan of the last sweep.
    pub plan: PlanSpec,
    /// The shard, as in `3/16`; none: all runs.
    pub shard: Option<String>,
    /// Runs in the data set.
    pub runs: u64,
    /// Identifies the runs in the data set and what came of them, in whatever order they were made.
    pub digest: String,
}

/// A study's folder that is open for writing.
pub struct StudyFolder {
    path: PathBuf,
    provenance: Provenance,
    records: BTreeMap<String, RunRecord>,
    journal: RunJournal<File>,
    /// Held for as long as the folder is open.
    _lock: File,
}

impl StudyFolder {
    /// Opens the folder of a plan, and makes it if need be. `restart` forgets all runs that are in it.
    ///
    /// # Errors
    /// A folder of other files, of another scenario or version, or in use.
    pub fn open(
        path: &Path,
        plan: &StudyPlan,
        version: &str,
        shard: Option<String>,
        restart: bool,
    ) -> Result<StudyFolder, StudyError> {
        refuse_foreign(path)?;
        fs::create_dir_all(path).map_err(|error| StudyError::write(path, error))?;
        let lock = lock(path)?;
        let wanted = Provenance {
            format: FORMAT.to_owned(),
            farpace: version.to_owned(),
            scenario: plan.source.name.clone(),
            set: plan.source.set.clone(),
            scenario_digest: plan.digest(),
            plan: plan.spec.clone(),
            shard,
            runs: 0,
            digest: short_digest(b""),
        };
        if restart {
            for name in [DATA_SET, JOURNAL] {
                match fs::remove_file(path.join(name)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(StudyError::write(&path.join(name), error));
                    }
                    _ => {}
                }
            }
        }
        if !restart && path.join(STUDY).exists() {
            let found = read_provenance(path)?;
            if found.farpace != version {
                let (path, own) = (path.to_owned(), version.to_owned());
                return Err(StudyError::OtherVersion { path, found: found.farpace, own });
            }
            if found.scenario_digest != wanted.scenario_digest {
                return Err(StudyError::OtherScenario { path: path.to_owned(), found: found.scenario });
            }
        }
        let records = read_records(path)?;
        // It comes first: from then on the folder is known as a study.
        write_provenance(path, &wanted)?;
        write_whole(path, SCENARIO, plan.base().as_bytes())?;
        let journal = RunJournal::open(&path.join(JOURNAL))?;
        let mut folder =
            StudyFolder { path: path.to_owned(), provenance: wanted, records, journal, _lock: lock };
        folder.write_provenance()?;
        Ok(folder)
    }

    /// Version and commit of farpace that its runs are made with.
    pub fn version(&self) -> &str {
        &self.provenance.farpace
    }

    /// The run of this key; none if it is not made.
    pub fn get(&self, run: &str) -> Option<&RunRecord> {
        self.records.get(run)
    }

    /// Forgets the run of this key.
    pub(crate) fn forget(&mut self, run: &str) {
        self.records.remove(run);
    }

    /// Forgets runs of the plan that are none of `keys`: they stand for a planned run and are of another
    /// control, or of another file that a value names.
    pub(crate) fn forget_superseded(&mut self, plan: &StudyPlan, keys: &BTreeSet<String>) {
        let paths: Vec<&str> = plan.grid().paths().collect();
        let index = plan.grid().index();
        self.records
            .retain(|key, record| keys.contains(key) || !is_planned(&plan.spec, record, &paths, &index));
    }

    /// All runs, by key.
    pub fn records(&self) -> impl Iterator<Item = &RunRecord> {
        self.records.values()
    }

    /// Gives a run the values of the plan's point.
    pub(crate) fn relabel(&mut self, run: &str, values: &[(String, String)]) {
        if let Some(record) = self.records.get_mut(run) {
            record.values = values.to_vec();
        }
    }

    /// Keeps a run, on disk too.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, record: RunRecord) -> Result<(), StudyError> {
        self.journal.add(&record)?;
        self.records.insert(record.run.clone(), record);
        Ok(())
    }

    /// Writes the data set with all runs, and removes the journal.
    ///
    /// # Errors
    /// A file cannot be written. Then the runs are still in the journal.
    pub fn commit(mut self) -> Result<(), StudyError> {
        let grid = self.provenance.plan.grid()?;
        let paths: Vec<&str> = grid.paths().collect();
        let records = sorted(self.records.values().cloned().collect(), &paths, &grid.index());
        write_data_set(&self.path, &paths, &records)?;
        self.write_provenance()?;
        let journal = self.path.join(JOURNAL);
        fs::remove_file(&journal).map_err(|error| StudyError::write(&journal, error))
    }

    fn write_provenance(&mut self) -> Result<(), StudyError> {
        self.provenance.runs = self.records.len() as u64;
        self.provenance.digest = digest(self.records.values());
        write_provenance(&self.path, &self.provenance)
    }
}

/// A study as it stands in its folder.
#[derive(Clone, Debug)]
pub struct StoredStudy {
    /// Plan and provenance.
    pub provenance: Provenance,
    /// The runs, in the order of the plan; those outside of it last.
    pub records: Vec<RunRecord>,
    /// How many of them belong to the plan.
    pub planned: usize,
}

impl StoredStudy {
    /// Reads a study. Runs that a sweep is making are read as far as they are finished.
    ///
    /// # Errors
    /// No study, or a damaged one.
    pub fn read(path: &Path) -> Result<StoredStudy, StudyError> {
        if !path.join(STUDY).exists() {
            return Err(StudyError::Missing(path.to_owned()));
        }
        let provenance = read_provenance(path)?;
        let records = read_records(path)?.into_values().collect();
        StoredStudy::of(provenance, records)
    }

    /// A study of these runs.
    pub(crate) fn of(provenance: Provenance, records: Vec<RunRecord>) -> Result<StoredStudy, StudyError> {
        let grid = provenance.plan.grid()?;
        let paths: Vec<&str> = grid.paths().collect();
        let index = grid.index();
        let records = sorted(records, &paths, &index);
        let spec = &provenance.plan;
        let planned = records.iter().filter(|record| is_planned(spec, record, &paths, &index)).count();
        Ok(StoredStudy { provenance, records, planned })
    }

    /// Writes the study to a folder that has none.
    pub(crate) fn write(&self, path: &Path, scenario: &str) -> Result<(), StudyError> {
        refuse_foreign(path)?;
        fs::create_dir_all(path).map_err(|error| StudyError::write(path, error))?;
        let _lock = lock(path)?;
        let grid = self.provenance.plan.grid()?;
        let paths: Vec<&str> = grid.paths().collect();
        write_provenance(path, &self.provenance)?;
        write_whole(path, SCENARIO, scenario.as_bytes())?;
        write_data_set(path, &paths, &self.records)
    }
}

/// A run has values and a seed of the plan.
fn is_planned(spec: &PlanSpec, record: &RunRecord, paths: &[&str], index: &crate::grid::GridIndex) -> bool {
    record.seed.wrapping_sub(spec.first_seed) < spec.seeds
        && point_of(record, paths).is_some_and(|point| index.find(&point).is_some())
}

/// The values of the plan's paths; none if the run has not all of them, or was made with further ones.
pub(crate) fn point_of(record: &RunRecord, paths: &[&str]) -> Option<Vec<String>> {
    if record.values.len() != paths.len() {
        return None;
    }
    let value = |path: &&str| record.values.iter().find(|(p, _)| p == path).map(|(_, value)| value.clone());
    paths.iter().map(value).collect()
}

/// Identifies runs and what came of them.
pub(crate) fn digest<'a>(records: impl Iterator<Item = &'a RunRecord>) -> String {
    let mut all: Vec<String> = records.map(RunRecord::digest).collect();
    all.sort_unstable();
    short_digest(all.concat().as_bytes())
}

fn sorted(mut records: Vec<RunRecord>, paths: &[&str], index: &crate::grid::GridIndex) -> Vec<RunRecord> {
    records.sort_by_cached_key(|record| {
        let point = point_of(record, paths).and_then(|point| index.find(&point));
        (point.unwrap_or(u64::MAX), record.values.clone(), record.seed, record.run.clone())
    });
    records
}

/// The runs of the data set and of the journal, by key.
fn read_records(path: &Path) -> Result<BTreeMap<String, RunRecord>, StudyError> {
    let all = dataset::read(&path.join(DATA_SET))?.into_iter().chain(journal::read(&path.join(JOURNAL))?);
    Ok(all.map(|record| (record.run.clone(), record)).collect())
}

/// The text of a study's scenario.
pub(crate) fn read_scenario(path: &Path) -> Result<String, StudyError> {
    let path = path.join(SCENARIO);
    fs::read_to_string(&path).map_err(|error| StudyError::read(&path, error))
}

fn read_provenance(path: &Path) -> Result<Provenance, StudyError> {
    let path = path.join(STUDY);
    let text = fs::read_to_string(&path).map_err(|error| StudyError::read(&path, error))?;
    let damaged = |problem: String| StudyError::Damaged { path: path.clone(), problem };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    let format = value["format"].as_str().unwrap_or_default();
    if format != FORMAT {
        return Err(damaged(format!("its format is `{format}`, and this version reads `{FORMAT}`")));
    }
    serde_json::from_value(value).map_err(|error| damaged(error.to_string()))
}

fn write_provenance(path: &Path, provenance: &Provenance) -> Result<(), StudyError> {
    let text = serde_json::to_string_pretty(provenance)
        .map_err(|error| StudyError::write(&path.join(STUDY), error.into()))?;
    write_whole(path, STUDY, (text + "\n").as_bytes())
}

fn write_data_set(path: &Path, paths: &[&str], records: &[RunRecord]) -> Result<(), StudyError> {
    let unfinished = path.join(format!(".{DATA_SET}.unfinished"));
    let written = dataset::write(&unfinished, paths, records).and_then(|()| {
        let place = path.join(DATA_SET);
        fs::rename(&unfinished, &place).map_err(|error| StudyError::write(&place, error))
    });
    if written.is_err() {
        // What is left of it has no use; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Writes a file that appears when it is complete.
fn write_whole(path: &Path, name: &str, contents: &[u8]) -> Result<(), StudyError> {
    let (unfinished, place) = (path.join(format!(".{name}.unfinished")), path.join(name));
    let written = fs::write(&unfinished, contents).and_then(|()| fs::rename(&unfinished, &place));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(|error| StudyError::write(&place, error))
}

fn lock(path: &Path) -> Result<File, StudyError> {
    let place = path.join(LOCK);
    let file = File::create(&place).map_err(|error| StudyError::write(&place, error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(StudyError::Busy(path.to_owned())),
        Err(error) => Err(StudyError::write(&place, error.into())),
    }
}

/// A folder with other files and no study is somebody else's. Folders of shards may be there.
fn refuse_foreign(path: &Path) -> Result<(), StudyError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StudyError::read(path, error)),
    };
    let foreign = |name: std::ffi::OsString| {
        let name = name.to_string_lossy().into_owned();
        !name.starts_with('.') && !name.starts_with(SHARD_PREFIX)
    };
    let any_foreign = entries.flatten().any(|entry| foreign(entry.file_name()));
    match any_foreign && !path.join(STUDY).exists() {
        true => Err(StudyError::NoStudy(path.to_owned())),
        false => Ok(()),
    }
}
