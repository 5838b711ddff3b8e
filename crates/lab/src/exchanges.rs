//! Requests and answers: the sending program asks, the receiving program answers, one exchange after the
//! other.

use crate::scenario::ExchangeSpec;
use farpace_units::{Instant, Span};
use std::sync::Arc;

/// Programs that think are woken at multiples of this time, so that a run does not depend on how far it is
/// advanced at once.
pub(crate) const EXCHANGE_GRID: Span = Span::from_micros(100);

/// The first point of the grid after a time.
pub(crate) fn after_on_grid(time: Instant) -> Instant {
    let grid = EXCHANGE_GRID.as_nanos();
    Instant::from_nanos((time.as_nanos() / grid + 1) * grid)
}

/// The end of a wait: a point of the grid.
fn over(now: Instant, takes: Span) -> Instant {
    let end = now + takes;
    if end.as_nanos().is_multiple_of(EXCHANGE_GRID.as_nanos()) { end } else { after_on_grid(end) }
}

/// One side of the exchanges: it waits for a number of bytes, then for a time, and then writes.
pub(crate) struct ExchangeSide {
    all: Arc<[ExchangeSpec]>,
    side: ExchangeRole,
    /// Exchanges in which it has written.
    done: usize,
    /// Bytes of the other side that it has read, and that it needs before it writes again.
    read: u64,
    needed: u64,
    /// Bytes that it may write, all together.
    allowed: u64,
    due: Option<Instant>,
}

/// Who it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExchangeRole {
    Asks,
    Answers,
}

impl ExchangeSide {
    /// The sending program. None where the flow has no exchanges.
    pub fn asking(all: &Arc<[ExchangeSpec]>) -> Option<Self> {
        Self::new(all, ExchangeRole::Asks)
    }

    /// The receiving program. None where the flow has no exchanges.
    pub fn answering(all: &Arc<[ExchangeSpec]>) -> Option<Self> {
        Self::new(all, ExchangeRole::Answers)
    }

    fn new(all: &Arc<[ExchangeSpec]>, side: ExchangeRole) -> Option<Self> {
        let first = all.first()?;
        let (allowed, needed, done) = match side {
            ExchangeRole::Asks => (first.request.get(), first.answer.get(), 1),
            ExchangeRole::Answers => (0, first.request.get(), 0),
        };
        Some(ExchangeSide { all: all.clone(), side, done, read: 0, needed, allowed, due: None })
    }

    /// Bytes that it may write, all together.
    pub const fn allowed(&self) -> u64 {
        self.allowed
    }

    /// When it writes again, if that is known.
    pub const fn wake_at(&self) -> Option<Instant> {
        self.due
    }

    /// It has read some bytes.
    pub fn on_read(&mut self, now: Instant, bytes: u64) {
        self.read += bytes;
        if self.due.is_none() && self.read >= self.needed {
            let takes = match self.side {
                // The answer belongs to the exchange in which it wrote last.
                ExchangeRole::Asks => self.exchange(self.done.saturating_sub(1)).map(|e| e.think),
                ExchangeRole::Answers => self.exchange(self.done).map(|e| e.work),
            };
            self.due = Some(over(now, takes.unwrap_or_default()));
        }
    }

    /// Its time may have come.
    pub fn wake(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.due = None;
        let Some(next) = self.exchange(self.done).copied() else { return };
        self.done += 1;
        match self.side {
            ExchangeRole::Asks => {
                self.allowed += next.request.get();
                self.needed += next.answer.get();
            }
            ExchangeRole::Answers => {
                self.allowed += next.answer.get();
                self.needed += self.exchange(self.done).map_or(0, |e| e.request.get());
            }
        }
    }

    fn exchange(&self, n: usize) -> Option<&ExchangeSpec> {
        self.all.get(n % self.all.len().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::ByteCount;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    fn two() -> Arc<[ExchangeSpec]> {
        let exchange = |request, answer, work, think| ExchangeSpec {
            request: ByteCount::new(request),
            answer: ByteCount::new(answer),
            work: Span::from_micros(work),
            think: Span::from_micros(think),
        };
        Arc::from([exchange(100, 10, 1_000, 5_000), exchange(200, 20, 0, 0)])
    }

    /// Breaks: a request is written before the last one was answered, or an answer before its request came.
    #[test]
    fn each_side_waits_for_the_other() {
        let mut asks = ExchangeSide::asking(&two()).unwrap();
        let mut answers = ExchangeSide::answering(&two()).unwrap();
        assert_eq!((asks.allowed(), answers.allowed()), (100, 0));
        answers.on_read(at(10_000), 99);
        assert_eq!(answers.wake_at(), None);
        answers.on_read(at(10_050), 1);
        // After its work, at the next point of the grid.
        assert_eq!(answers.wake_at(), Some(at(11_100)));
        answers.wake(at(11_000));
        assert_eq!(answers.allowed(), 0);
        answers.wake(at(11_100));
        assert_eq!((answers.allowed(), answers.wake_at()), (10, None));
        asks.on_read(at(20_000), 10);
        assert_eq!(asks.wake_at(), Some(at(25_000)));
        asks.wake(at(25_000));
        assert_eq!(asks.allowed(), 300);
        // The second exchange, and then the first again.
        answers.on_read(at(30_010), 200);
        answers.wake(at(30_100));
        assert_eq!(answers.allowed(), 30);
        asks.on_read(at(40_000), 20);
        asks.wake(at(40_000));
        assert_eq!(asks.allowed(), 400);
    }
}
