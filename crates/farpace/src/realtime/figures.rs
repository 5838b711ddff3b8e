//! Live figures: lines on a terminal that change in place. On standard error; elsewhere nothing is shown.

use farpace_units::{Instant, Span};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Between two readings.
const REDRAW: Span = Span::from_millis(500);

/// Shows lines as they change.
pub struct RealtimeFigures {
    bar: Option<ProgressBar>,
    next: Instant,
}

impl RealtimeFigures {
    /// Nothing is shown yet; nothing ever, if `quiet`, or if there is no terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        RealtimeFigures { bar, next: Instant::ZERO }
    }
    /// True if it is time for a reading.
    pub fn is_due(&self, now: Instant) -> bool {
        self.bar.is_some() && now >= self.next
    }
    /// Shows a reading.
    pub fn show(&mut self, now: Instant, lines: &[String]) {
        self.next = now + REDRAW;
        if let Some(bar) = &self.bar {
            bar.set_message(lines.join("\n"));
            bar.tick();
        }
    }
    /// Takes the lines away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
