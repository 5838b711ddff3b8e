//! How far a transfer is: a bar with rate and remaining time on a terminal, otherwise a line now and then.

use crate::terminal;
use farpace_process::interrupt;
use farpace_transfer::LineProgress;
use farpace_tunnel::{going, size};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const REDRAW: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(5);

/// Shows progress, and says when to stop because of a signal.
pub struct Display {
    bar: Option<ProgressBar>,
    quiet: bool,
    next: Mutex<Duration>,
}

impl Display {
    /// Nothing is shown yet; nothing ever, if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:24} {decimal_bytes}/{decimal_total_bytes} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let next = if bar.is_some() { REDRAW } else { LINE };
        Display { bar, quiet, next: Mutex::new(next) }
    }

    /// Takes a reading; true: somebody wants it to stop.
    pub fn tick(&self, progress: &LineProgress) -> bool {
        self.tick_with(progress, &|| String::new())
    }

    /// The same, with more to be said behind.
    pub fn tick_with(&self, progress: &LineProgress, more: &dyn Fn() -> String) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.quiet && progress.elapsed >= *next {
            match &self.bar {
                Some(bar) => {
                    *next = progress.elapsed + REDRAW;
                    bar.set_length(progress.total_bytes);
                    bar.set_position(progress.bytes);
                    bar.set_message(going(progress) + &more());
                }
                None => {
                    *next = progress.elapsed + LINE;
                    let (done, total) = (size(progress.bytes), size(progress.total_bytes));
                    terminal::note(&format!("{done} of {total} {}{}", going(progress), more()));
                }
            }
        }
        interrupt::asked()
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
