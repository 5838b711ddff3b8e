//! The loop of every command in real time.

use anyhow::{Context, Result};
use farpace_live::Driver;
use farpace_process::interrupt;
use farpace_units::{Instant, Span};

/// So often signals, figures and ends are looked for.
const LOOK: Span = Span::from_millis(20);

/// Shows lines as they change.
pub trait LiveFigures {
    /// True if it is time for a reading.
    fn is_due(&self, now: Instant) -> bool;
    /// Shows a reading.
    fn show(&mut self, now: Instant, lines: &[String]);
    /// Takes the lines away.
    fn clear(&self);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFigures;

impl LiveFigures for NoFigures {
    fn is_due(&self, _: Instant) -> bool {
        false
    }
    fn show(&mut self, _: Instant, _: &[String]) {}
    fn clear(&self) {}
}

/// What a command does while its station runs.
pub trait DriveObserver {
    /// The figures of now, a line each.
    fn lines(&mut self, driver: &mut Driver, now: Instant) -> Vec<String>;
    /// Asked a few times a second at least; true: the run is over.
    ///
    /// # Errors
    /// The run cannot go on.
    fn look(&mut self, _driver: &mut Driver) -> Result<bool> {
        Ok(false)
    }
}

/// Runs a station in this thread until a signal comes, `lasts` is over, or the onlooker says so.
///
/// # Errors
/// A device that is gone, or what the onlooker says.
pub fn drive(
    driver: &mut Driver,
    lasts: Option<Span>,
    figures: &mut dyn LiveFigures,
    observer: &mut dyn DriveObserver,
) -> Result<()> {
    farpace_live::sharpen_timers();
    let begun = driver.now();
    let end = lasts.map_or(Instant::FAR_FUTURE, |lasts| begun + lasts);
    let mut look = begun;
    while driver.run_round().context("the network has stopped")? {
        let now = driver.now();
        if now < look {
            continue;
        }
        look = now + LOOK;
        if now >= end || interrupt::asked() || observer.look(driver)? {
            break;
        }
        if figures.is_due(now) {
            let lines = observer.lines(driver, now);
            figures.show(now, &lines);
        }
    }
    figures.clear();
    Ok(())
}

/// The line that says how late packets leave.
pub fn lateness_line(driver: &Driver) -> String {
    let late = driver.lateness();
    let us = |share| late.quantile(share).as_nanos() as f64 / 1e3;
    format!(
        "packets leave late by: median {:.1} us, 99 % {:.1} us, most {:.0} us",
        us(0.5),
        us(0.99),
        late.max().as_nanos() as f64 / 1e3
    )
}
