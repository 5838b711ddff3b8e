//! What commands in real time share: how they wait, as a word, and live figures.

use farpace_emulate::LiveFigures;
use farpace_live::Wait;
use farpace_units::{Instant, Span};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Between two readings.
const REDRAW: Span = Span::from_millis(500);

/// How a command waits for the next packet, as a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LateTolerance {
    /// Sleeps: least work, packets are tens of microseconds late
    Sleep,
    /// Sleeps, but spins shortly before a packet is due
    #[default]
    Hybrid,
    /// Never sleeps: most precise, takes a core
    Spin,
}

impl LateTolerance {
    /// So long before a deadline sleeping ends: a sleep is seldom longer by more than this.
    const MARGIN: Span = Span::from_micros(60);

    /// As the station takes it.
    pub const fn wait(self) -> Wait {
        match self {
            LateTolerance::Sleep => Wait::Sleep,
            LateTolerance::Hybrid => Wait::SpinBefore(Self::MARGIN),
            LateTolerance::Spin => Wait::Spin,
        }
    }
}

/// How long a command runs, in words.
pub fn until(lasts: Option<Span>) -> String {
    lasts.map_or("until Ctrl-C".to_owned(), |lasts| format!("for {lasts}"))
}

/// Lines on a terminal that change in place. On standard error; elsewhere nothing is shown.
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
}

impl LiveFigures for RealtimeFigures {
    fn is_due(&self, now: Instant) -> bool {
        self.bar.is_some() && now >= self.next
    }
    fn show(&mut self, now: Instant, lines: &[String]) {
        self.next = now + REDRAW;
        if let Some(bar) = &self.bar {
            bar.set_message(lines.join("\n"));
            bar.tick();
        }
    }
    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
