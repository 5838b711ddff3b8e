//! Segments in the order of their times: files of several interfaces are a little out of order, and single
//! packets may have a wrong time.

use crate::frame::CapturedSegment;
use farpace_units::{Instant, Span};
use std::collections::VecDeque;

/// Segments that are held back to be put in order.
const HELD: usize = 32;
/// A segment that lies so far from both neighbours, which follow each other, has a wrong time.
const WRONG_BY: Span = Span::from_secs(1);

/// Puts segments in order.
#[derive(Default)]
pub(super) struct InOrder {
    /// In order of time.
    held: VecDeque<CapturedSegment>,
    /// Times of the two newest segments, as they came, and the frame of the newest.
    before: Option<Instant>,
    newest: Option<(Instant, u64)>,
    /// The time of the last one that was taken.
    last: Instant,
    /// Segments that got another time.
    pub misdated: u64,
}

impl InOrder {
    /// The next segment of the file.
    pub fn put(&mut self, segment: CapturedSegment) {
        let mut newest = self.newest.map(|(time, _)| time);
        if let (Some(before), Some((time, frame))) = (self.before, self.newest)
            && (time > segment.time + WRONG_BY || time + WRONG_BY < before)
            && before <= segment.time
        {
            self.redate(frame, before);
            newest = Some(before);
        }
        self.before = newest;
        self.newest = Some((segment.time, segment.frame));
        self.insert(segment);
    }

    /// A segment that has its place; none: more must come first.
    pub fn take(&mut self) -> Option<CapturedSegment> {
        if self.held.len() <= HELD {
            return None;
        }
        // Whether the time of the newest is right is told by the next.
        let newest = self.newest.map(|(_, frame)| frame);
        let at = usize::from(self.held.front().map(|first| first.frame) == newest);
        let taken = self.held.remove(at)?;
        Some(self.dated(taken))
    }

    /// The same when nothing follows.
    pub fn take_rest(&mut self) -> Option<CapturedSegment> {
        let taken = self.held.pop_front()?;
        Some(self.dated(taken))
    }

    fn insert(&mut self, segment: CapturedSegment) {
        let later = self.held.iter().rev().take_while(|other| other.time > segment.time).count();
        self.held.insert(self.held.len() - later, segment);
    }

    fn redate(&mut self, frame: u64, time: Instant) {
        let Some(at) = self.held.iter().position(|held| held.frame == frame) else { return };
        let Some(mut segment) = self.held.remove(at) else { return };
        self.misdated += 1;
        segment.time = time;
        self.insert(segment);
    }

    /// Time does not go back.
    fn dated(&mut self, mut segment: CapturedSegment) -> CapturedSegment {
        if segment.time < self.last {
            self.misdated += 1;
            segment.time = self.last;
        }
        self.last = segment.time;
        segment
    }
}
