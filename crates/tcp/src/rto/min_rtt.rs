//! The least round trip of late: what the path takes when its queues are empty.

use farpace_units::{Instant, Span};
use farpace_wire::MultipathInfo;

/// How long a sample counts. Long, so that queues of our own making do not hide the path (RFC 8985 §6.2 step
/// 1 leaves the choice open; Linux takes five minutes).
const WINDOW: Span = Span::from_secs(300);

/// A windowed minimum in three samples: the least of the window, and the least since each of the other two,
/// so that one takes over when the first one is too old.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt {
    best: [(Instant, Span); 3],
    /// What a layer with several paths has told: see [`MinRtt::set_paths`]. In microseconds: with the flags
    /// these are eight bytes of each connection.
    base_us: u32,
    reordering_us: u16,
    moves: u8,
    flags: u8,
}

/// There was a sample.
const ANY: u8 = 1;
/// Packets go by more than one path.
const SEVERAL: u8 = 2;
/// Packets have moved to another path, and nobody has asked since; it holds more than the window.
const MOVED: u8 = 4;
const HOLDS_MORE: u8 = 8;

/// Packets have moved to another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMove {
    /// The path holds more than the window, when it is empty.
    pub holds_more: bool,
}

impl MinRtt {
    /// Takes a sample in.
    pub fn sample(&mut self, now: Instant, rtt: Span) {
        let new = (now, rtt);
        if !self.has(ANY) || rtt <= self.best[0].1 || now.since(self.best[2].0) > WINDOW {
            self.set(ANY, true);
            self.best = [new; 3];
            return;
        }
        if rtt <= self.best[1].1 {
            self.best[1] = new;
            self.best[2] = new;
        } else if rtt <= self.best[2].1 {
            self.best[2] = new;
        }
        if now.since(self.best[0].0) > WINDOW {
            self.best = [self.best[1], self.best[2], new];
        } else if self.best[1].0 == self.best[0].0 && now.since(self.best[0].0) > WINDOW / 4 {
            // A quarter of the window without anything better: remember a younger one.
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].0 == self.best[1].0 && now.since(self.best[0].0) > WINDOW / 2 {
            self.best[2] = new;
        }
    }

    /// Raises shorter samples to `least`: a path that is longer than the others has been added. With zero
    /// nothing changes.
    pub fn raise(&mut self, least: Span) {
        for (_, rtt) in &mut self.best {
            *rtt = (*rtt).max(least);
        }
    }

    /// Packets go over several paths, whose round trip together is that of the longest, and which reorder.
    /// None: they do not. `window`: the congestion window in bytes.
    #[inline]
    pub fn set_paths(&mut self, info: Option<MultipathInfo>, window: u64) {
        let Some(info) = info else {
            (self.base_us, self.reordering_us) = (0, 0);
            self.set(SEVERAL, false);
            return;
        };
        self.base_us = u32::try_from(info.base_rtt().as_micros()).unwrap_or(u32::MAX);
        self.reordering_us = u16::try_from(info.reordering().as_micros()).unwrap_or(u16::MAX);
        self.set(SEVERAL, info.is_several());
        if info.moves() != self.moves {
            self.moves = info.moves();
            self.set(MOVED, true);
            self.set(HOLDS_MORE, info.rate().bytes_in(info.base_rtt()).get() > window);
        }
    }

    /// The last move to another path, once.
    pub fn take_move(&mut self) -> Option<PathMove> {
        let moved = self.has(MOVED).then(|| PathMove { holds_more: self.has(HOLDS_MORE) });
        self.set(MOVED, false);
        moved
    }

    /// Packets go by more than one path.
    pub const fn is_several(&self) -> bool {
        self.has(SEVERAL)
    }

    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }

    /// A shorter round trip is that of some of several paths, and not that of all; zero: there is one path.
    pub const fn base_of_paths(&self) -> Span {
        Span::from_micros(self.base_us as u64)
    }

    /// By how much several paths reorder; zero: there is one path, or the peer puts packets in order.
    pub const fn reordering(&self) -> Span {
        Span::from_micros(self.reordering_us as u64)
    }

    /// The minimum; none before the first sample.
    pub fn get(&self) -> Option<Span> {
        self.has(ANY).then_some(self.best[0].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Rate;

    /// Breaks: what counts as an empty queue, and that a path that has become longer is learned in the end.
    #[test]
    fn the_minimum_ages() {
        let at = |s: u64| Instant::ZERO + Span::from_secs(s);
        let ms = Span::from_millis;
        let mut m = MinRtt::default();
        assert_eq!(m.get(), None);
        m.sample(at(0), ms(50));
        m.sample(at(10), ms(80));
        assert_eq!(m.get(), Some(ms(50)));
        m.sample(at(20), ms(40));
        assert_eq!(m.get(), Some(ms(40)), "less counts at once");
        for s in 21..320 {
            m.sample(at(s), ms(90));
            assert_eq!(m.get(), Some(ms(40)), "at {s} s");
        }
        m.sample(at(321), ms(95));
        assert_eq!(m.get(), Some(ms(90)), "the old minimum is five minutes old");
    }

    /// Breaks: round trips that were measured on the shortest of several paths count as those of all, or for
    /// longer than there are several.
    #[test]
    fn a_longer_path_raises_the_minimum() {
        let ms = Span::from_millis;
        let mut m = MinRtt::default();
        m.raise(ms(70));
        assert_eq!(m.get(), None, "nothing was measured");
        m.sample(Instant::ZERO, ms(50));
        m.raise(Span::ZERO);
        assert_eq!(m.get(), Some(ms(50)));
        m.raise(ms(70));
        m.sample(Instant::ZERO, ms(75));
        assert_eq!(m.get(), Some(ms(70)));
        m.sample(Instant::ZERO, ms(55));
        assert_eq!(m.get(), Some(ms(55)), "the longer path is gone");
    }

    /// Breaks: connections grow by what a layer with several paths tells.
    #[test]
    fn it_is_small() {
        assert!(size_of::<MinRtt>() <= 56, "{} bytes", size_of::<MinRtt>());
    }

    /// Breaks: a move to another path is missed, or seen twice; or the window counts as too small for a path
    /// that holds no more.
    #[test]
    fn a_move_is_told_once() {
        let info = |mbit, moves| {
            let info = MultipathInfo::new(Span::from_millis(80), Span::ZERO);
            Some(info.with_paths(1, Rate::from_mbit(mbit), moves))
        };
        let mut m = MinRtt::default();
        m.set_paths(info(10, 0), 50_000);
        assert_eq!(m.take_move(), None);
        m.set_paths(info(10, 1), 50_000);
        m.set_paths(info(10, 1), 200_000);
        m.set_paths(None, 50_000);
        assert_eq!(m.take_move(), Some(PathMove { holds_more: true }), "100 kB, at the move");
        assert_eq!(m.take_move(), None);
        m.set_paths(info(10, 2), 100_000);
        assert_eq!(m.take_move(), Some(PathMove { holds_more: false }));
    }
}
