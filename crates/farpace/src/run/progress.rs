//! How far a run is: a bar on a terminal, otherwise a line every few seconds. On standard error.

use crate::terminal;
use farpace_lab::RunProgress;
use farpace_process::stopwatch::Stopwatch;
use farpace_report::number;
use farpace_units::{Instant, Rate};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Between two readings on a terminal, and between two lines elsewhere.
const REDRAW: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(3);
/// Steps of the bar.
const STEPS: u64 = 1_000;

/// Tells how far a run is.
pub struct ProgressLine {
    stopwatch: Stopwatch,
    bar: Option<ProgressBar>,
    quiet: bool,
    next: Duration,
}

impl ProgressLine {
    /// Nothing is shown yet; nothing ever, if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:24} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let next = if bar.is_some() { REDRAW } else { LINE };
        ProgressLine { stopwatch: Stopwatch::start(), bar, quiet, next }
    }

    /// Takes a reading.
    pub fn update(&mut self, progress: &RunProgress) {
        if self.quiet {
            return;
        }
        let elapsed = self.stopwatch.elapsed();
        if elapsed < self.next {
            return;
        }
        let text = reading(progress, elapsed);
        match &self.bar {
            Some(bar) => {
                self.next = elapsed + REDRAW;
                bar.set_position((share(progress) * STEPS as f64) as u64);
                bar.set_message(text);
            }
            None => {
                self.next = elapsed + LINE;
                terminal::note(&text);
            }
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn share(progress: &RunProgress) -> f64 {
    progress.delivered.get() as f64 / progress.total.get().max(1) as f64
}

fn reading(progress: &RunProgress, wall: Duration) -> String {
    let virtual_time = progress.now.as_secs_f64();
    format!(
        "{:3.0} % delivered at {virtual_time:.2} s of virtual time, {} Mbit/s so far, {}x real time",
        // Never 100 % before it is.
        (share(progress) * 100.0).floor(),
        number(Rate::of(progress.delivered, progress.now.since(Instant::ZERO)).as_mbit_f64()),
        number(virtual_time / wall.as_secs_f64().max(1e-9)),
    )
}
