//! Delivery opportunities: the moments at which a recorded link could send 1500 bytes, as in the traces of
//! Mahimahi (Netravali et al., USENIX ATC 2015).

use farpace_units::{ByteCount, Instant, Rate, Span};
use thiserror::Error;

/// What one opportunity delivers: bytes of IP packets.
const ROOM: u64 = 1_500;

/// Why a list of opportunities is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpportunityError {
    /// The list is empty, or ends at 0: it could not repeat.
    #[error("the last delivery opportunity must be later than 0 ms")]
    NoEnd,
    /// One before another that comes earlier in the list.
    #[error("the delivery opportunity at {0} is earlier than the one before it")]
    OutOfOrder(Span),
    /// More than [`Opportunities::MAX`].
    #[error("{0} delivery opportunities are more than the {max} allowed", max = Opportunities::MAX)]
    TooMany(usize),
}

/// The opportunities of a link in the order of time. They begin anew after the last one.
///
/// A packet that is longer than what an opportunity has left takes the rest from the next ones; several short
/// ones share one. What nobody uses at its moment is lost.
#[derive(Clone, Debug)]
pub struct Opportunities {
    at: Vec<Span>,
    period: Span,
    /// Start of the present period, and the next opportunity in it.
    start: Instant,
    next: usize,
    /// The opportunity that was used last, and what it has left.
    last: Instant,
    left: u64,
}

impl Opportunities {
    /// Most opportunities of a list: an hour and a half of 4 Mbit/s.
    pub const MAX: usize = 2_000_000;

    /// Opportunities at these times from the start of the run; the last one is the period.
    ///
    /// # Errors
    /// A list that is empty, too long, ends at 0 s, or is not in order.
    pub fn new(at: Vec<Span>) -> Result<Self, OpportunityError> {
        if at.len() > Self::MAX {
            return Err(OpportunityError::TooMany(at.len()));
        }
        let Some(period) = at.last().copied().filter(|last| !last.is_zero()) else {
            return Err(OpportunityError::NoEnd);
        };
        if let Some((_, early)) = at.iter().zip(at.iter().skip(1)).find(|(a, b)| b < a) {
            return Err(OpportunityError::OutOfOrder(*early));
        }
        Ok(Opportunities { at, period, start: Instant::ZERO, next: 0, last: Instant::ZERO, left: 0 })
    }

    /// What they deliver at most, in the mean over a period.
    pub fn mean(&self) -> Rate {
        Rate::of(ByteCount::new(ROOM * self.at.len() as u64), self.period)
    }

    /// A packet of `len` bytes begins to leave at `now`. Returns when it has left. Time must not go back.
    pub fn send(&mut self, now: Instant, len: ByteCount) -> Instant {
        if self.last != now {
            self.left = 0;
        }
        let mut need = len.get().max(1);
        while need > self.left {
            need -= self.left;
            self.last = self.following(now.max(self.last));
            self.left = ROOM;
        }
        self.left -= need;
        self.last
    }

    /// When `bytes` that begin to leave at `from` have left; nothing changes.
    pub fn end_of(&self, from: Instant, bytes: ByteCount) -> Instant {
        let left = if self.last == from { self.left } else { 0 };
        let Some(need) = bytes.get().checked_sub(left).filter(|need| *need > 0) else { return from };
        let (start, first) = self.place(from.max(self.last));
        let last = first as u64 + need.div_ceil(ROOM) - 1;
        let count = self.at.len() as u64;
        let at = self.at.get((last % count) as usize).copied().unwrap_or_default();
        start + self.period * (last / count) + at
    }

    /// The start of a period, and the first opportunity of it that is not before `now` and not used; the
    /// number of all is the first one of the next period.
    fn place(&self, now: Instant) -> (Instant, usize) {
        let (mut start, mut next) = (self.start, self.next);
        let into = now.since(start);
        if into > self.period {
            // One of this very instant may be the last of a period.
            let whole = (into.as_nanos() - 1) / self.period.as_nanos();
            start += self.period * whole;
            next = 0;
        }
        let into = now.since(start);
        if self.at.get(next).is_some_and(|at| *at < into) {
            next += self.at.get(next..).map_or(0, |rest| rest.partition_point(|at| *at < into));
        }
        (start, next)
    }

    /// The next opportunity that is not before `now`.
    fn following(&mut self, now: Instant) -> Instant {
        (self.start, self.next) = self.place(now);
        match self.at.get(self.next) {
            Some(at) => {
                self.next += 1;
                self.start + *at
            }
            None => {
                self.start += self.period;
                self.next = 1;
                self.start + self.at.first().copied().unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ms: &[u64]) -> Opportunities {
        Opportunities::new(ms.iter().map(|ms| Span::from_millis(*ms)).collect()).unwrap()
    }
    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }
    fn bytes(n: u64) -> ByteCount {
        ByteCount::new(n)
    }

    /// Breaks: the times at which packets leave a recorded link: a packet an opportunity, several at one
    /// moment, short ones together, long ones over several, and anew after the last.
    #[test]
    fn packets_leave_at_opportunities() {
        let mut link = of(&[0, 2, 2, 5]);
        assert_eq!(link.send(at(0), bytes(1_500)), at(0));
        assert_eq!(link.send(at(0), bytes(1_000)), at(2));
        assert_eq!(link.send(at(2), bytes(500)), at(2), "what is left");
        assert_eq!(link.send(at(2), bytes(1_500)), at(2), "the second of this moment");
        assert_eq!(
            link.send(at(2), bytes(1_501)),
            at(5),
            "one byte in the first of the next period, at the same moment"
        );
        assert_eq!(link.send(at(5), bytes(1_499)), at(5));
        assert_eq!(link.send(at(5), bytes(1)), at(7));
        assert_eq!(link.mean(), Rate::of(bytes(6_000), Span::from_millis(5)));
    }

    /// Breaks: how long a queue takes to drain on a recorded link: by its mean, not by what follows.
    #[test]
    fn the_end_of_bytes_is_known() {
        let mut link = of(&[0, 2, 2, 5, 400]);
        for (now, len) in [(0, 1_500), (0, 4_000), (1, 700), (1, 9_000), (3, 1), (3, 20_000), (2_000, 300)] {
            let end = link.end_of(at(now).max(link.last), bytes(len));
            assert_eq!(end, link.clone().send(at(now).max(link.last), bytes(len)), "{len} B at {now} ms");
            assert_eq!(end, link.send(at(now).max(link.last), bytes(len)));
        }
        assert_eq!(link.end_of(at(9_000), bytes(0)), at(9_000));
    }

    /// Breaks: opportunities that nobody used are used later, or a long silence costs work or shifts the
    /// periods.
    #[test]
    fn unused_ones_are_lost() {
        let mut link = of(&[1, 3]);
        assert_eq!(link.send(at(0), bytes(100)), at(1));
        assert_eq!(link.send(at(2), bytes(100)), at(3), "1,400 bytes at 1 ms are lost");
        assert_eq!(link.send(at(3_000_000_001), bytes(100)), at(3_000_000_001));
        assert_eq!(link.send(at(3_000_000_002), bytes(100)), at(3_000_000_003));
        assert_eq!(link.send(at(3_000_000_005), bytes(100)), at(3_000_000_006));
    }

    /// Breaks: a list that cannot repeat hangs the run.
    #[test]
    fn impossible_lists_are_refused() {
        let new =
            |ms: &[u64]| Opportunities::new(ms.iter().map(|ms| Span::from_millis(*ms)).collect()).map(drop);
        assert_eq!(new(&[]), Err(OpportunityError::NoEnd));
        assert_eq!(new(&[0, 0]), Err(OpportunityError::NoEnd));
        assert_eq!(new(&[3, 2]), Err(OpportunityError::OutOfOrder(Span::from_millis(2))));
        let many = vec![Span::from_millis(1); Opportunities::MAX + 1];
        assert_eq!(Opportunities::new(many).map(drop), Err(OpportunityError::TooMany(2_000_001)));
    }
}
