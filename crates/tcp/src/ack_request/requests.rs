//! Segments that asked and are not acknowledged, and which ACK answers which of them.

use farpace_units::{Instant, Seq};
use farpace_wire::tcp;
use std::collections::VecDeque;

/// Requests that are remembered; a window with more of them outstanding asks no further.
const MAX_REQUESTS: usize = 4096;

/// How a segment asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// By the CDL bit in place of ACK (CDL-only).
    Bare,
    /// By the bit beside ACK.
    Flag,
    /// By an option.
    Option(tcp::AckControl),
    /// By an old byte that follows it.
    Probe,
}

impl Mark {
    /// Bytes that it takes from the payload of the segment that it marks.
    pub fn cost(self) -> u32 {
        match self {
            Mark::Option(control) => control.to_wire().len() as u32,
            Mark::Bare | Mark::Flag | Mark::Probe => 0,
        }
    }
}

/// A segment that asked; or would have, if it had not been left out to see what that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// First number after it.
    pub end: Seq,
    pub sent_at: Instant,
    /// The TSval it carries.
    pub timestamp: u32,
    /// None: it did not ask.
    pub mark: Option<Mark>,
}

/// What an ACK covers for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Covered {
    /// The newest that asked: the only one whose round trip the ACK can tell.
    pub newest: Option<Request>,
    /// The newest that did not ask, if none that asked came after it.
    pub silent: Option<Request>,
}

/// In the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    all: VecDeque<Request>,
    /// Of them, those that asked.
    asked: usize,
}

impl Requests {
    pub fn is_full(&self) -> bool {
        self.all.len() >= MAX_REQUESTS
    }

    /// Those that asked.
    pub fn asked(&self) -> usize {
        self.asked
    }

    pub fn push(&mut self, request: Request) {
        if !self.is_full() {
            self.asked += usize::from(request.mark.is_some());
            self.all.push_back(request);
        }
    }

    /// Takes everything up to `ack` off.
    pub fn on_ack(&mut self, ack: Seq) -> Covered {
        let mut covered = Covered::default();
        while self.all.front().is_some_and(|r| !r.end.after(ack))
            && let Some(request) = self.all.pop_front()
        {
            if request.mark.is_some() {
                self.asked -= 1;
                covered = Covered { newest: Some(request), silent: None };
            } else {
                covered.silent = Some(request);
            }
        }
        covered
    }

    fn find(&self, end: Seq) -> Option<usize> {
        let at = self.all.partition_point(|r| r.end.before(end));
        (self.all.get(at)?.end == end).then_some(at)
    }

    /// The one that ends before `end`.
    pub fn get(&self, end: Seq) -> Option<&Request> {
        self.all.get(self.find(end)?)
    }

    /// The newest that went without ACK.
    pub fn last_bare(&self) -> Option<&Request> {
        self.all.iter().rev().find(|r| r.mark == Some(Mark::Bare))
    }

    /// Takes it off.
    pub fn forget(&mut self, end: Seq) -> Option<Request> {
        let request = self.all.remove(self.find(end)?)?;
        self.asked -= usize::from(request.mark.is_some());
        Some(request)
    }

    pub fn clear(&mut self) {
        *self = Requests::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(end: u32, asks: bool) -> Request {
        let mark = asks.then_some(Mark::Bare);
        Request { end: Seq::new(end), sent_at: Instant::from_nanos(u64::from(end)), timestamp: end, mark }
    }

    fn ends(covered: Covered) -> (Option<u32>, Option<u32>) {
        (covered.newest.map(|r| r.end.get()), covered.silent.map(|r| r.end.get()))
    }

    /// Breaks: which request an ACK may measure: the newest it covers, once, and none that was sent again.
    /// The numbers pass zero.
    #[test]
    fn the_newest_that_is_covered_once() {
        let mut requests = Requests::default();
        for (end, asks) in [(u32::MAX - 1, true), (10, true), (20, false), (30, true), (40, false)] {
            requests.push(request(end, asks));
        }
        assert_eq!(ends(requests.on_ack(Seq::new(u32::MAX - 9))), (None, None));
        assert_eq!(ends(requests.on_ack(Seq::new(25))), (Some(10), Some(20)));
        assert_eq!(ends(requests.on_ack(Seq::new(25))), (None, None));
        assert_eq!(requests.asked(), 1);
        assert_eq!(requests.forget(Seq::new(29)), None);
        assert!(requests.forget(Seq::new(30)).is_some());
        assert_eq!(requests.asked(), 0);
        assert_eq!(ends(requests.on_ack(Seq::new(50))), (None, Some(40)));
    }

    /// Breaks: the limit on what is remembered of a large window in which every segment asks.
    #[test]
    fn no_more_than_the_limit() {
        let mut requests = Requests::default();
        (1..=MAX_REQUESTS as u32 + 10).for_each(|end| requests.push(request(end, true)));
        assert!(requests.is_full());
        assert_eq!(requests.asked(), MAX_REQUESTS);
    }
}
