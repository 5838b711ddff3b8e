//! Files beside a scenario: the steps of schedules.

use super::super::document::DocumentStep;
use super::super::schedule::from_csv;
use super::super::spec::Scenario;
use super::super::{MAX_TEXT, ReadBeside};
use super::CheckFinding;

/// Replaces the names of files by the steps in them.
pub(in super::super) fn read_files(scenario: &mut Scenario, beside: ReadBeside<'_>) -> Vec<CheckFinding> {
    let mut found = Vec::new();
    for (i, direction, schedule) in scenario.schedules() {
        let Some(file) = schedule.file.clone() else { continue };
        let steps = if !schedule.steps.is_empty() {
            Err("`file` and `steps` are two ways to say the same".to_owned())
        } else if file.contains(['/', '\\']) || file.starts_with('.') {
            Err(format!("`{file}` is not the name of a file in the scenario's folder"))
        } else {
            beside(&file)
                .and_then(|text| match text.len() > MAX_TEXT.as_len() {
                    true => Err("it is longer than 1 MiB".to_owned()),
                    false => from_csv(&text),
                })
                .map_err(|why| format!("{file}: {why}"))
        };
        match steps {
            Ok(steps) => (schedule.file, schedule.steps) = (None, steps),
            Err(message) => {
                let direction = direction.map(DocumentStep::from);
                let path = [DocumentStep::from("links"), DocumentStep::from(i)].into_iter().chain(direction);
                let path = path.chain(["schedule".into(), "file".into()]).collect();
                found.push(CheckFinding { path, at_key: false, message, hint: None });
            }
        }
    }
    found
}
