//! `farpace kernel status`.

use super::StatusArgs;
use crate::terminal;
use anyhow::Result;
use farpace_kernel_service::{ClassLooks, KernelStatus};
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_units::Span;
use std::process::ExitCode;

/// Between two looks of `--watch`.
const AGAIN: Span = Span::from_secs(1);

/// Between the two looks of one that is no `--watch`, for the rates of classes.
const LOOK: Span = Span::from_millis(250);

/// Reads and prints.
pub fn run(args: &StatusArgs) -> Result<ExitCode> {
    if args.watch {
        return watch();
    }
    let mut classes = ClassLooks::default();
    classes.look();
    if !classes.devices().is_empty() && !args.prometheus {
        Stopwatch::start().wait_until(LOOK.as_nanos(), interrupt::asked);
        classes.look();
    }
    let status = KernelStatus::look(&classes)?;
    if args.json {
        terminal::print_json(&status.json(&classes))?;
    } else if args.prometheus {
        terminal::print(&status.metrics(&classes))?;
    } else {
        terminal::print(&status.text(&classes, terminal::width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn watch() -> Result<ExitCode> {
    interrupt::install();
    let mut classes = ClassLooks::default();
    while !interrupt::asked() {
        classes.look();
        let text = KernelStatus::look(&classes)?.text(&classes, terminal::width());
        // To the upper left, and nothing below.
        terminal::print(&format!("\x1b[H\x1b[J{text}"))?;
        Stopwatch::start().wait_until(AGAIN.as_nanos(), interrupt::asked);
    }
    Ok(ExitCode::SUCCESS)
}
