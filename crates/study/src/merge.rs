//! Several folders with parts of one study become one, and what is missing then.

use crate::error::StudyError;
use crate::folder::{self, SHARD_PREFIX, StoredStudy};
use crate::queue::MIN_SEEDS;
use crate::record::RunRecord;
use crate::statistics::{Metric, PointSummary, summarize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The folder of a shard below that of its study.
pub fn shard_folder(study: &Path, shard: crate::Shard) -> PathBuf {
    study.join(format!("{SHARD_PREFIX}{}-of-{}", shard.number, shard.of))
}

/// Writes the runs of all `parts` to the study `out`. A part that has folders of shards stands for these. If
/// `out` is a study already, its runs stay.
///
/// # Errors
/// Parts of different studies, runs that disagree, or files that cannot be read or written.
pub fn merge(parts: &[PathBuf], out: &Path) -> Result<StoredStudy, StudyError> {
    let mut studies = Vec::new();
    for part in parts {
        let shards = shards(part)?;
        if shards.is_empty() || part.join("study.json").exists() {
            studies.push((part.clone(), StoredStudy::read(part)?));
        }
        for shard in shards {
            studies.push((shard.clone(), StoredStudy::read(&shard)?));
        }
    }
    if out.join("study.json").exists() && !studies.iter().any(|(path, _)| path == out) {
        studies.push((out.to_owned(), StoredStudy::read(out)?));
    }
    let Some((first_path, first)) = studies.first() else {
        return Err(StudyError::Merge("there is nothing to merge".into()));
    };
    let mut provenance = first.provenance.clone();
    provenance.shard = None;
    let mut records = BTreeMap::new();
    for (path, study) in &studies {
        let p = &study.provenance;
        for (differs, what) in [
            (p.farpace != provenance.farpace, "by another version of farpace"),
            (p.scenario_digest != provenance.scenario_digest, "from another scenario"),
            (p.plan != provenance.plan, "from another plan"),
        ] {
            if differs {
                let (a, b) = (first_path.display(), path.display());
                return Err(StudyError::Merge(format!("`{b}` was made {what} than `{a}`")));
            }
        }
        for record in &study.records {
            let other = records.insert(record.run.clone(), record.clone());
            let same = |other: &RunRecord| other.status == record.status && other.measured == record.measured;
            if other.is_some_and(|other| !same(&other)) {
                return Err(StudyError::Merge(format!(
                    "run {} of `{}` came out otherwise elsewhere: the machines do not run the same \
                     program, or one of the runs crashed or was overdue; make it again with --retry",
                    record.run,
                    path.display()
                )));
            }
        }
    }
    refuse_doubles(records.values())?;
    let records: Vec<_> = records.into_values().collect();
    provenance.runs = records.len() as u64;
    provenance.digest = folder::digest(records.iter());
    let scenario = folder::read_scenario(first_path)?;
    let merged = StoredStudy::of(provenance, records)?;
    merged.write(out, &scenario)?;
    Ok(merged)
}

/// Two runs with the same values and the same seed are of different controls, or of different files that a
/// value names: their mean would be of neither.
fn refuse_doubles<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Result<(), StudyError> {
    let mut seen = BTreeSet::new();
    for record in records {
        if !seen.insert((&record.values, record.seed)) {
            let values = record.values.iter().map(|(path, value)| format!("{path}={value}"));
            return Err(StudyError::Merge(format!(
                "seed {} of {} was run with different controls or files: make the older parts again",
                record.seed,
                values.collect::<Vec<_>>().join(", ")
            )));
        }
    }
    Ok(())
}

/// The folders of shards in a folder, in order.
fn shards(path: &Path) -> Result<Vec<PathBuf>, StudyError> {
    let entries = std::fs::read_dir(path).map_err(|error| StudyError::read(path, error))?;
    let is_shard = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with(SHARD_PREFIX) && path.join("study.json").exists()
    };
    let mut shards: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_shard).collect();
    shards.sort();
    Ok(shards)
}

impl StoredStudy {
    /// Runs that the plan has.
    pub fn planned_runs(&self) -> u64 {
        let spec = &self.provenance.plan;
        spec.grid().map_or(0, |grid| grid.len().saturating_mul(spec.seeds))
    }

    /// Runs of the plan that are not there. With early stopping a point that is exact enough lacks none.
    pub fn missing_runs(&self) -> u64 {
        let missing = self.planned_runs().saturating_sub(self.planned as u64);
        if self.provenance.plan.stop_at.is_none() {
            return missing;
        }
        let spared = summarize(self, None).iter().map(|point| self.spared(point)).sum();
        missing.saturating_sub(spared)
    }

    /// Checks that a run of the study has a flow or a class of this name.
    ///
    /// # Errors
    /// No run has.
    pub fn check_flow(&self, name: &str) -> Result<(), StudyError> {
        let mut flows = self.records.iter().flat_map(|run| &run.measured.flows);
        match flows.any(|f| f.flow == name || f.class == name) {
            true => Ok(()),
            false => Err(StudyError::Invalid(format!("no run of the study has a flow `{name}`"))),
        }
    }

    /// Says that runs are missing. Those of other shards were not asked for.
    pub fn lacks(&self) -> Option<String> {
        let missing = self.missing_runs();
        (missing > 0 && self.provenance.shard.is_none())
            .then(|| format!("{missing} of the plan's {} runs are not there.", self.planned_runs()))
    }

    /// Says that there are runs outside of the plan.
    pub fn exceeds(&self) -> Option<String> {
        let outside = self.records.len() - self.planned;
        (outside > 0).then(|| format!("{outside} runs of earlier plans are in the data set, too."))
    }

    /// Runs of a point that early stopping has left out.
    fn spared(&self, point: &PointSummary) -> u64 {
        let spec = &self.provenance.plan;
        let is_exact = |width: f64| {
            let goodput = point.metric(Metric::Goodput);
            goodput.is_some_and(|g| g.runs as u64 >= MIN_SEEDS && g.ci95 <= width * g.mean.abs())
        };
        let left_out = spec.seeds.saturating_sub((point.runs + point.unmeasured) as u64);
        if spec.stop_at.is_some_and(is_exact) { left_out } else { 0 }
    }
}
