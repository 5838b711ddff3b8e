//! How far a transfer is: a bar with rate and remaining time on a terminal, otherwise a line now and then.

use crate::terminal;
use farpace_process::interrupt;
use farpace_transfer::LineProgress;
use farpace_tunnel::{size, speed};
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
                    bar.set_message(reading(progress) + &more());
                }
                None => {
                    *next = progress.elapsed + LINE;
                    let (done, total) = (size(progress.bytes), size(progress.total_bytes));
                    terminal::note(&format!("{done} of {total} {}{}", reading(progress), more()));
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

fn reading(progress: &LineProgress) -> String {
    let moved = progress.bytes.saturating_sub(progress.spared);
    let left = progress.total_bytes.saturating_sub(progress.bytes);
    let seconds = progress.elapsed.as_secs_f64() * left as f64 / moved.max(1) as f64;
    let remaining = match seconds as u64 {
        _ if moved == 0 => "?".to_owned(),
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    };
    let files = format!("{}/{} files", progress.files, progress.total_entries);
    format!("{}, {remaining} left, {files}, {}", speed(moved, progress.elapsed), progress.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the remaining time is reckoned with what was there before.
    #[test]
    fn remaining_time_follows_the_rate() {
        let progress = LineProgress {
            total_bytes: 3_000_000,
            bytes: 2_000_000,
            spared: 1_000_000,
            work: 1_000_000,
            total_entries: 4,
            files: 1,
            name: "film".to_owned(),
            elapsed: Duration::from_secs(8),
        };
        assert_eq!(reading(&progress), "1 Mbit/s, 8 s left, 1/4 files, film");
    }
}
