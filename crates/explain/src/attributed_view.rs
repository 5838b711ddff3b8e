//! A transfer of which every stretch, stall and loss has its cause: where evidence is looked for.

use crate::attribution::{Attribution, attribute};
use crate::cause::Cause;
use crate::flow::{Flow, Side, Stall};
use crate::view::{Episode, View};
use farpace_units::{Instant, Span};

/// Stalls nearer to each other than this have no period.
const MIN_PERIOD: Span = Span::from_secs(2);

/// One direction of a connection, and where its time went.
pub struct AttributedView<'a> {
    /// The direction.
    pub view: View<'a>,
    /// Where the time went.
    pub time: Attribution,
}

impl<'a> AttributedView<'a> {
    /// Looks at what `side` sent.
    pub fn new(flow: &'a Flow, side: Side) -> Self {
        let view = View::new(flow, side);
        let time = attribute(&view);
        AttributedView { view, time }
    }

    /// True if a cause took enough time to be told.
    pub(crate) fn matters(&self, cause: Cause) -> bool {
        self.time.of(cause) * 100 >= self.view.duration() && !self.time.of(cause).is_zero()
    }

    /// Stalls of a cause.
    pub(crate) fn stalls_of(&self, cause: Cause) -> impl Iterator<Item = &Stall> {
        let stalls = self.view.half.stalls.kept().iter().zip(&self.time.stalls);
        stalls.filter(move |(_, c)| **c == cause).map(|(s, _)| s)
    }

    /// Episodes of a cause.
    pub(crate) fn episodes_of(&self, cause: Cause) -> impl Iterator<Item = &Episode> {
        self.view.episodes.iter().zip(&self.time.classes).filter(move |(_, c)| **c == cause).map(|(e, _)| e)
    }

    /// Frames before and after the longest stalls of a cause.
    pub(crate) fn stall_frames(&self, cause: Cause) -> Vec<u64> {
        let mut stalls: Vec<&Stall> = self.stalls_of(cause).collect();
        stalls.sort_by_key(|s| std::cmp::Reverse(s.duration()));
        let mut frames: Vec<u64> =
            stalls.iter().take(8).flat_map(|s| [s.first_frame, s.last_frame]).collect();
        frames.sort_unstable();
        frames
    }

    /// Frames of losses of a cause: as sent, and as sent again.
    pub(crate) fn loss_frames(&self, cause: Cause) -> Vec<u64> {
        let mut frames: Vec<u64> =
            self.episodes_of(cause).take(10).flat_map(|e| [e.frames.0, e.frames.1]).collect();
        frames.sort_unstable();
        frames
    }

    /// First and last frames of the stretches of a cause.
    pub(crate) fn stretch_frames(&self, cause: Cause) -> Vec<u64> {
        let of = self.view.stretches.iter().zip(&self.time.labels).filter(|(_, c)| **c == cause);
        let mut frames: Vec<u64> = of.take(8).map(|(s, _)| s.slice.first_frame).filter(|f| *f > 0).collect();
        frames.dedup();
        frames
    }

    /// When a cause first mattered.
    pub(crate) fn first_of(&self, cause: Cause) -> Option<Instant> {
        let stall = self.stalls_of(cause).map(|s| s.start).min();
        let episode = self.episodes_of(cause).map(|e| e.start).min();
        let label = self.view.stretches.iter().zip(&self.time.labels).find(|(_, c)| **c == cause);
        [stall, episode, label.map(|(s, _)| s.slice.start)].into_iter().flatten().min()
    }

    /// Longest of the stalls of a cause, and how many there were.
    pub(crate) fn stalled(&self, cause: Cause) -> (usize, Span) {
        self.stalls_of(cause).fold((0, Span::ZERO), |(n, most), s| (n + 1, most.max(s.duration())))
    }

    /// The period of a cause's stalls, if they come regularly.
    pub(crate) fn period_of(&self, cause: Cause) -> Option<Span> {
        let mut starts: Vec<Instant> = self.stalls_of(cause).map(|s| s.start).collect();
        starts.sort_unstable();
        let gaps: Vec<Span> =
            starts.windows(2).map(|w| w[1].since(w[0])).filter(|g| *g > MIN_PERIOD).collect();
        if gaps.len() < 2 {
            return None;
        }
        let mean = gaps.iter().fold(Span::ZERO, |sum, g| sum + *g) / gaps.len() as u64;
        gaps.iter().all(|g| g.abs_diff(mean) < mean / 6).then_some(mean)
    }
}
