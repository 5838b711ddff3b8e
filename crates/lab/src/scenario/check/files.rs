//! Files beside a scenario: steps of schedules, traces of Mahimahi, and start times and sizes of flows.

use super::super::document::DocumentStep;
use super::super::schedule::{MAX_TRACE, ScheduleSpec, from_csv, from_mahimahi};
use super::super::spec::Scenario;
use super::super::workload::{sizes_of, starts_of};
use super::super::{MAX_TEXT, ReadBeside};
use super::CheckFinding;
use farpace_units::ByteCount;

/// Replaces the names of files by what is in them.
pub(in super::super) fn read_files(scenario: &mut Scenario, beside: ReadBeside<'_>) -> Vec<CheckFinding> {
    let mut found = Vec::new();
    for (i, direction, schedule) in scenario.schedules() {
        for (key, read) in
            [("file", read_steps(schedule, beside)), ("mahimahi", read_trace(schedule, beside))]
        {
            let Err(message) = read else { continue };
            let direction = direction.map(DocumentStep::from);
            let path = [DocumentStep::from("links"), DocumentStep::from(i)].into_iter().chain(direction);
            let path = path.chain(["schedule".into(), key.into()]).collect();
            found.push(CheckFinding { path, at_key: false, message, hint: None });
        }
    }
    for (i, flow) in scenario.flows.iter_mut().enumerate() {
        let mut wrong = |table: &str, message: String| {
            let path = vec!["flows".into(), i.into(), table.into(), "file".into()];
            found.push(CheckFinding { path, at_key: false, message, hint: None });
        };
        if let Some(starts) = &mut flow.starts
            && let Some(file) = starts.file.clone().filter(|_| starts.at.is_empty())
        {
            match content(&file, beside, starts_of) {
                Ok(at) => (starts.file, starts.at) = (None, at),
                Err(message) => wrong("starts", message),
            }
        }
        if let Some(sizes) = &mut flow.sizes
            && let Some(file) = sizes.file.clone().filter(|_| sizes.cdf.is_empty())
        {
            match content(&file, beside, sizes_of) {
                Ok(cdf) => (sizes.file, sizes.cdf) = (None, cdf),
                Err(message) => wrong("sizes", message),
            }
        }
    }
    found
}

fn read_steps(schedule: &mut ScheduleSpec, beside: ReadBeside<'_>) -> Result<(), String> {
    let Some(file) = schedule.file.clone() else { return Ok(()) };
    if !schedule.steps.is_empty() {
        return Err("`file` and `steps` are two ways to say the same".to_owned());
    }
    let text = read(&file, MAX_TEXT, beside)?;
    schedule.steps = from_csv(&text).map_err(|why| format!("{file}: {why}"))?;
    schedule.file = None;
    Ok(())
}

fn read_trace(schedule: &mut ScheduleSpec, beside: ReadBeside<'_>) -> Result<(), String> {
    let Some(file) = schedule.mahimahi.clone() else { return Ok(()) };
    if !schedule.opportunities.is_empty() {
        return Err("`mahimahi` and `opportunities` are two ways to say the same".to_owned());
    }
    let text = read(&file, MAX_TRACE, beside)?;
    schedule.opportunities = from_mahimahi(&text).map_err(|why| format!("{file}: {why}"))?;
    schedule.mahimahi = None;
    Ok(())
}

/// The text of a file in the scenario's folder.
fn read(file: &str, most: ByteCount, beside: ReadBeside<'_>) -> Result<String, String> {
    if file.contains(['/', '\\']) || file.starts_with('.') {
        return Err(format!("`{file}` is not the name of a file in the scenario's folder"));
    }
    let text = beside(file).map_err(|why| format!("{file}: {why}"))?;
    if text.len() > most.as_len() {
        return Err(format!("{file}: it is longer than {} MiB", most.get() >> 20));
    }
    // The mark that spreadsheets put before UTF-8.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// What `parse` makes of a file in the scenario's folder.
fn content<T>(
    file: &str,
    beside: ReadBeside<'_>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    let text = read(file, MAX_TEXT, beside)?;
    parse(&text).map_err(|why| format!("{file}: {why}"))
}
