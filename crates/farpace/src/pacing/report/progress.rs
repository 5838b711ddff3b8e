//! How far the reading of a capture is: a bar on a terminal, otherwise a line every few seconds. On standard
//! error.

use crate::terminal;
use farpace_inspect::pacing::ReadSink;
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_units::grouped;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// Between two readings on a terminal, and between two lines elsewhere.
const REDRAW: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(3);

/// The reading of captures.
pub struct ReadProgress {
    stopwatch: Stopwatch,
    bar: Option<ProgressBar>,
    quiet: bool,
    next: Duration,
    name: String,
    size: u64,
}

impl ReadProgress {
    /// Nothing is shown yet; nothing ever, if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let (stopwatch, next) = (Stopwatch::start(), Duration::ZERO);
        ReadProgress { stopwatch, bar: None, quiet, next, name: String::new(), size: 0 }
    }

    fn show(&mut self, bytes: u64, packets: u64) {
        let elapsed = self.stopwatch.elapsed();
        if self.quiet || elapsed < self.next {
            return;
        }
        let share = bytes as f64 / self.size.max(1) as f64 * 100.0;
        let text = format!("{}: {:3.0} %, {} packets", self.name, share.min(99.0), grouped(packets));
        match &self.bar {
            Some(bar) => {
                self.next = elapsed + REDRAW;
                bar.set_position(bytes);
                bar.set_message(text);
            }
            None => {
                self.next = elapsed + LINE;
                terminal::note(&text);
            }
        }
    }
}

impl ReadSink for ReadProgress {
    fn begin(&mut self, file: &Path, pass: u32, size: u64) {
        self.bar = (!self.quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:24} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        self.next = if self.bar.is_some() { REDRAW } else { LINE };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        self.name = format!("{name}, reading {pass} of 2");
        (self.stopwatch, self.size) = (Stopwatch::start(), size);
    }
    fn update(&mut self, bytes: u64, packets: u64) -> bool {
        if interrupt::asked() {
            return true;
        }
        self.show(bytes, packets);
        false
    }
    fn clear(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
