//! `farpace run` as a function, for programs that want its numbers and no files.

use crate::RunInput;
use crate::summarize::summarize;
use crate::summary::RunSummary;
use crate::watch::RunWatch;
use anyhow::{Result, bail};
use farpace_events::{Record, RecordSink};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunProgress};
use std::path::Path;

/// What came of a run.
#[derive(Debug)]
pub struct RunResult {
    /// What `farpace run --json` prints, without files and wall time.
    pub summary: RunSummary,
    /// A record for each segment and ACK of the senders, if asked for; flows are connections 0, 1, ...
    pub records: Vec<Record>,
}

/// Collects records.
struct KeptRecords(Vec<Record>);

impl RecordSink for KeptRecords {
    fn record(&mut self, record: &Record) {
        self.0.push(record.clone());
    }
}

/// Runs a scenario to its end. `file` is its name in the summary, `set` what was replaced in it. After every
/// bin of virtual time `go_on` says whether the run goes on.
///
/// # Errors
/// A network that cannot be built, a defect of the lab, or `go_on` said no.
pub fn run_scenario(
    scenario: &Scenario,
    file: &Path,
    set: &[(String, String)],
    records: bool,
    mut go_on: impl FnMut(RunProgress) -> bool,
) -> Result<RunResult> {
    let scenario = scenario.drawn(scenario.seed);
    let mut run = Run::new(&scenario, Inputs { records, ..Inputs::default() })?;
    let mut watch = RunWatch::new(&scenario, false);
    let mut kept = KeptRecords(Vec::new());
    loop {
        let start = run.now();
        let progress = if records { run.advance(Some(&mut kept))? } else { run.advance(None)? };
        watch.bin(&mut run, start);
        if progress.finished {
            break;
        }
        if !go_on(progress) {
            bail!("interrupted at {} of virtual time", progress.now);
        }
    }
    watch.finish(&mut run)?;
    let outcome = run.finish()?;
    let input = RunInput { scenario, file: file.to_owned(), set: set.to_vec(), command: String::new() };
    Ok(RunResult { summary: summarize(&input, &outcome, &watch, false), records: kept.0 })
}
