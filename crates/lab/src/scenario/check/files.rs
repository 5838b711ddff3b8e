//! Files beside a scenario: the steps of schedules, and traces of Mahimahi.

use super::super::document::DocumentStep;
use super::super::schedule::{MAX_TRACE, ScheduleSpec, from_csv, from_mahimahi};
use super::super::spec::Scenario;
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
    Ok(text)
}
