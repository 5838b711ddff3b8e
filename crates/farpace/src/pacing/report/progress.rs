//! How far the reading of a capture is: a bar on a terminal, otherwise a line every few seconds. On standard
//! error.

use crate::terminal;
use farpace_process::stopwatch::Stopwatch;
use farpace_units::grouped;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Between two readings on a terminal, and between two lines elsewhere.
const REDRAW: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(3);

/// The reading of one file.
pub struct ReadProgress {
    stopwatch: Stopwatch,
    bar: Option<ProgressBar>,
    quiet: bool,
    next: Duration,
    name: String,
    size: u64,
    read: Rc<Cell<u64>>,
}

impl ReadProgress {
    /// Nothing is shown yet; nothing ever, if `quiet`. `pass`: the file is read for the first or the second
    /// time.
    pub fn new(quiet: bool, file: &Path, pass: u32, size: u64) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:24} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let next = if bar.is_some() { REDRAW } else { LINE };
        let name: String = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        let name = format!("{name}, reading {pass} of 2");
        ReadProgress { stopwatch: Stopwatch::start(), bar, quiet, next, name, size, read: Rc::default() }
    }

    /// Counts what is read of `file`.
    pub fn count<R: Read>(&self, file: R) -> impl Read + use<R> {
        CountingReader { file, read: Rc::clone(&self.read) }
    }

    /// So many packets have been read.
    pub fn update(&mut self, packets: u64) {
        let elapsed = self.stopwatch.elapsed();
        if self.quiet || elapsed < self.next {
            return;
        }
        let read = self.read.get();
        let share = read as f64 / self.size.max(1) as f64 * 100.0;
        let text = format!("{}: {:3.0} %, {} packets", self.name, share.min(99.0), grouped(packets));
        match &self.bar {
            Some(bar) => {
                self.next = elapsed + REDRAW;
                bar.set_position(read);
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

struct CountingReader<R> {
    file: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read.set(self.read.get() + bytes as u64);
        Ok(bytes)
    }
}
