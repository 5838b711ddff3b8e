//! The same on devices: how close virtual time and reality are, for each combination of cures.

use super::cures::{Era, Sender};
use super::plan::{Job, Plan, senders};
use super::results::{Results, identity};
use crate::grid::run_all_or_end;
use crate::interrupt;
use crate::lab_compare::{self, BackendRun};
use farpace_report::{ComparedEstimate, ComparisonRow, Figure, Sides, Table, TableColumn, comparison_of};
use serde_json::{Value, json};
use std::process::ExitCode;

/// A run on devices.
#[derive(Clone, Debug)]
pub struct Device {
    sender: Sender,
    trial: BackendRun,
}

/// Runs the cures of today and outsiders with the first seed, one after another: they share the machine.
///
/// # Errors
/// The exit code, if not all runs were made; standard error says why.
pub fn measure(plan: &Plan) -> Result<Vec<Device>, ExitCode> {
    let today = |sender: &Sender| !matches!(sender, Sender::Cured(Era::Printed, _));
    let jobs: Vec<Job> = senders().into_iter().filter(today).map(|sender| Job { sender, seed: 1 }).collect();
    run_all_or_end(&jobs, Some(1), |job| {
        let trial = lab_compare::on_devices(plan.scenario(*job)?, plan.meeting.file)?;
        Ok((!interrupt::asked()).then_some(Device { sender: job.sender, trial }))
    })
}

/// Beside virtual time.
pub fn table(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("cures of today, and outsiders"),
        TableColumn::number("virtual time", "Mbit/s"),
        TableColumn::number("least to most", "Mbit/s"),
        TableColumn::number("devices", "Mbit/s"),
        TableColumn::number("devices / virtual", ""),
        TableColumn::number("99 % of packets late by less than", "ms"),
    ];
    let (name, time, seeds) = (results.plan.meeting.name, results.plan.time, results.plan.seeds);
    let title = format!("{name}: in virtual time ({seeds} runs) and on devices (one run), {time} each");
    let mut table = Table::new(&title, columns);
    for Device { sender, trial } in &results.devices {
        let Some(line) = results.line(*sender) else { continue };
        let late = trial.accuracy.as_ref().map_or(f64::NAN, |accuracy| accuracy.p99_us / 1e3);
        table.row(vec![
            sender.to_string().into(),
            format!("{:.2}", line.goodput.mean).into(),
            format!("{:.2}-{:.2}", line.range.0, line.range.1).into(),
            format!("{:.2}", trial.goodput_mbit_s).into(),
            format!("{:.3}", trial.goodput_mbit_s / line.goodput.mean).into(),
            format!("{late:.2}").into(),
        ]);
    }
    table
}

/// The same as a picture.
pub fn figure(results: &Results) -> Figure {
    let path = results.plan.meeting.name;
    let names: Vec<String> = results.devices.iter().map(|device| device.sender.to_string()).collect();
    let virtual_time = |sender| {
        let line = results.line(sender)?;
        Some(ComparedEstimate { mean: line.goodput.mean, range: Some(line.range) })
    };
    let rows: Vec<ComparisonRow<'_>> = results
        .devices
        .iter()
        .zip(&names)
        .map(|(device, label)| {
            let on_devices = ComparedEstimate { mean: device.trial.goodput_mbit_s, range: None };
            ComparisonRow { label, values: [virtual_time(device.sender), Some(on_devices)] }
        })
        .collect();
    let sides = Sides { names: ["in virtual time", "on devices"], missing: ["", ""] };
    comparison_of(&format!("Lab and reality ({path})"), "goodput (Mbit/s)", sides, &rows).figure(
        &format!("figures/{path}-devices.svg"),
        "The same TCP, the same pacing and the same elements. On devices other packets meet bit errors, and packets leave as late as the \
         machine lets them.",
    )
}

/// For programs.
pub fn json(devices: &[Device]) -> Value {
    let line = |device: &Device| {
        let mut line = identity(device.sender);
        line["run"] = json!(device.trial);
        line
    };
    devices.iter().map(line).collect()
}
