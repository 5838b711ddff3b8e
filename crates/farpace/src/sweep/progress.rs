//! How far a sweep is, on standard error.

use crate::terminal;
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_study::{RunRecord, RunVerdict, StudySink};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where there is no terminal, a line at this interval.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// A bar with the remaining time on a terminal, elsewhere a line now and then.
pub(super) struct SweepProgress {
    bar: ProgressBar,
    quiet: bool,
    /// The longest time of a run.
    limit: Duration,
    watch: Stopwatch,
    total: AtomicU64,
    /// Runs that were there, or will not be made.
    before: AtomicU64,
    made: AtomicU64,
    bad: AtomicU64,
    lines: AtomicU64,
}

impl SweepProgress {
    pub fn new(quiet: bool, limit: Duration) -> Self {
        let none = AtomicU64::default;
        SweepProgress {
            bar: ProgressBar::hidden(),
            quiet,
            limit,
            watch: Stopwatch::start(),
            total: none(),
            before: none(),
            made: none(),
            bad: none(),
            lines: none(),
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl StudySink for SweepProgress {
    fn begin(&self, total: u64, finished: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.before.store(finished, Ordering::Relaxed);
        if self.quiet {
            return;
        }
        if finished > 0 {
            terminal::note(&format!("{finished} of {total} runs are there already."));
        }
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {eta} left  {msg}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_length(total);
        self.bar.set_position(finished);
        self.bar.reset_eta();
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
    }

    fn finished(&self, record: &RunRecord) {
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        self.bar.inc(1);
        if record.status.is_bad() {
            let bad = self.bad.fetch_add(1, Ordering::Relaxed) + 1;
            self.bar.set_message(format!("{bad} without a result"));
        }
        let elapsed = self.watch.elapsed();
        let line = elapsed.as_secs() / LINE_EVERY.as_secs();
        if !self.quiet
            && !std::io::stderr().is_terminal()
            && line > self.lines.fetch_max(line, Ordering::Relaxed)
        {
            let (total, before) = (self.total.load(Ordering::Relaxed), self.before.load(Ordering::Relaxed));
            let left = total.saturating_sub(before + made);
            let time = elapsed.as_secs_f64() / made as f64 * left as f64;
            terminal::note(&format!("{} of {total} runs, about {} left", before + made, duration(time)));
        }
    }

    fn spared(&self, runs: u64) {
        self.before.fetch_add(runs, Ordering::Relaxed);
        self.bar.inc(runs);
    }

    fn clock(&self) -> Box<dyn Fn() -> RunVerdict + '_> {
        let started = Stopwatch::start();
        Box::new(move || match () {
            () if interrupt::asked() => RunVerdict::Stop,
            () if started.elapsed() > self.limit => RunVerdict::Overdue,
            () => RunVerdict::GoOn,
        })
    }
}

/// A time in the largest unit that fits, with about three digits.
pub(crate) fn duration(seconds: f64) -> String {
    const UNITS: [(f64, &str); 6] = [
        (365.25 * 86_400.0, "years"),
        (86_400.0, "days"),
        (3_600.0, "h"),
        (60.0, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
    ];
    let (size, unit) = UNITS.into_iter().find(|(size, _)| seconds >= 2.0 * size).unwrap_or((1e-3, "ms"));
    format!("{} {unit}", farpace_units::number(seconds / size))
}

#[cfg(test)]
mod tests {
    use super::duration;

    /// Breaks: how long a sweep is said to take.
    #[test]
    fn times_are_said_in_fitting_units() {
        let said = [0.05, 90.0, 5_400.0, 2.5e7, 1e10].map(duration);
        assert_eq!(said, ["50 ms", "90 s", "90 min", "289 days", "317 years"]);
    }
}
