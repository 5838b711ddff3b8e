//! A token bucket per class: what hosts did before pacing, and what the paper compares with (§2). With one class it is
//! the kernel's TBF on a timer that ticks.
//!
//! Tokens are bytes in memory, as the kernel counts them: a frame's check sequence is not among them, so that full
//! frames leave 1518/1514 faster than a rate of layer 2 says. All that has been added at a tick may leave at once, at the
//! speed of the line: at 500 Mbit/s and 1 ms that is 62.5 kB, 42 packets.

use super::classes::{Classes, Tag};
use super::{ClassId, ClassSpec, ClassStats, Next, PacedFrame, PacingError, Refused, Scheduler};
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::ethernet::MAX_ETHERNET_LEN;
use std::collections::{BTreeSet, VecDeque};

/// Tokens are counted in bit/s x ns, so that a tick of any rate adds a whole number: so many are a byte.
const BYTE: u128 = 8 * 1_000_000_000;

/// Token buckets, refilled at ticks counted from the start of time.
///
/// Paced classes whose tokens cover their next packet send in turn, packet by packet; then normal classes and those
/// that follow, also in turn. If nothing may leave, it waits for the tick that covers a packet. A new bucket is full.
#[derive(Debug)]
pub struct TokenBucket<P> {
    classes: Classes<P, ClassBucket>,
    tick: u64,
    burst: Option<ByteCount>,
    /// No bucket is smaller: each packet must fit.
    longest: ByteCount,
    /// The latest time it was told.
    now: Instant,
    /// Classes with packets, in turn: paced ones, and the others.
    paced: VecDeque<ClassId>,
    rest: VecDeque<ClassId>,
    /// Classes whose packets are not covered, and when they will be.
    waiting: BTreeSet<(Instant, ClassId)>,
}

#[derive(Debug, Default)]
struct ClassBucket {
    /// Tokens missing: none in a full one.
    missing: u128,
    /// The tick that was the last to be added.
    filled: u64,
    /// Since when the tokens cover what is next.
    covered: Instant,
    waits: Option<Instant>,
}

impl ClassBucket {
    /// The tick whose tokens cover a packet, if one that has not been added yet has to.
    fn tick_for(&self, len: ByteCount, holds: u128, per_tick: u128) -> Option<u64> {
        let short = (self.missing + u128::from(len.get()) * BYTE).saturating_sub(holds);
        let ticks = short.div_ceil(per_tick);
        (ticks > 0).then(|| u64::try_from(u128::from(self.filled) + ticks).unwrap_or(u64::MAX))
    }
    fn fill(&mut self, tick: u64, per_tick: u128) {
        let ticks = tick.saturating_sub(self.filled);
        self.missing = self.missing.saturating_sub(u128::from(ticks).saturating_mul(per_tick));
        self.filled = self.filled.max(tick);
    }
}

impl<P: PacedFrame> TokenBucket<P> {
    /// On a line of this rate that carries IP packets of up to `mtu` bytes, refilled every `tick`. A bucket holds `burst`;
    /// if that is not given, what a tick adds and one frame, so that nothing is lost of what is left over at a tick;
    /// in any case the longest frame there is.
    ///
    /// # Errors
    /// A line or an MTU that cannot be; no time between ticks.
    pub fn new(
        line: Rate,
        mtu: ByteCount,
        tick: Span,
        burst: Option<ByteCount>,
    ) -> Result<Self, PacingError> {
        if tick.is_zero() {
            return Err(PacingError::Parameter("the time between two ticks must be above 0 s"));
        }
        Ok(TokenBucket {
            classes: Classes::new(line, mtu)?,
            tick: tick.as_nanos(),
            burst,
            longest: mtu + ByteCount::of_len(MAX_ETHERNET_LEN),
            now: Instant::ZERO,
            paced: VecDeque::new(),
            rest: VecDeque::new(),
            waiting: BTreeSet::new(),
        })
    }

    fn per_tick(&self, rate: Rate) -> u128 {
        u128::from(rate.bits_per_sec()).max(1) * u128::from(self.tick)
    }

    /// Tokens that a full bucket has.
    fn holds(&self, rate: Rate) -> u128 {
        let longest = u128::from(self.longest.get()) * BYTE;
        match self.burst {
            Some(burst) => longest.max(u128::from(burst.get()) * BYTE),
            None => longest + self.per_tick(rate),
        }
    }

    /// The tick that is the last at the latest time it knows.
    fn ticks(&self) -> u64 {
        self.now.as_nanos() / self.tick
    }

    /// Whether the first packet of a class may leave now; if not, when.
    fn covers(&mut self, id: ClassId) -> Result<(), Instant> {
        let Some(rate) = self.classes.rate(id) else { return Ok(()) };
        let (per_tick, holds) = (self.per_tick(rate), self.holds(rate));
        let (ticks, tick) = (self.ticks(), self.tick);
        let Some(class) = self.classes.get_mut(id) else { return Ok(()) };
        let needs = class.head().and_then(|len| class.state.tick_for(len, holds, per_tick));
        if let Some(needs) = needs {
            let at = Instant::from_nanos(needs.saturating_mul(tick));
            if needs > ticks {
                return Err(at);
            }
            class.state.covered = class.state.covered.max(at);
        }
        class.state.fill(ticks, per_tick);
        Ok(())
    }

    fn send(&mut self, id: ClassId) -> Option<P> {
        let packet = self.classes.pop_to_send(id)?;
        let (line, limited, now) = (self.classes.line(), self.classes.rate(id).is_some(), self.now);
        let class = self.classes.get_mut(id)?;
        if limited {
            class.state.missing += u128::from(packet.len().get()) * BYTE;
            class.was_late(line.bytes_in(now.since(class.state.covered)));
        }
        if class.head().is_some() {
            self.list(id);
        }
        Some(packet)
    }

    fn list(&mut self, id: ClassId) {
        match self.classes.get(id).map(|class| class.tag) {
            Some(Tag::Paced) => self.paced.push_back(id),
            _ => self.rest.push_back(id),
        }
    }

    fn stop_waiting(&mut self, id: ClassId) -> bool {
        let waits = self.classes.get_mut(id).and_then(|class| class.state.waits.take());
        waits.is_some_and(|at| self.waiting.remove(&(at, id)))
    }

    /// The rate of a class changes by `change`: its tokens stay, as far as its bucket holds them then.
    fn change_rate<T>(&mut self, id: ClassId, change: impl FnOnce(&mut Classes<P, ClassBucket>) -> T) -> T {
        let before = self.classes.rate(id);
        let done = change(&mut self.classes);
        let after = self.classes.rate(id);
        if before == after {
            return done;
        }
        let [before, after] = [before, after].map(|rate| rate.map(|r| (self.per_tick(r), self.holds(r))));
        let ticks = self.ticks();
        if let Some(class) = self.classes.get_mut(id) {
            class.state.missing = match (before, after) {
                (Some((per_tick, held)), Some((_, holds))) => {
                    class.state.fill(ticks, per_tick);
                    (class.state.missing + holds).saturating_sub(held)
                }
                _ => 0,
            };
            class.state.filled = ticks;
        }
        if self.stop_waiting(id) {
            self.list(id);
        }
        done
    }
}

impl<P: PacedFrame> Scheduler<P> for TokenBucket<P> {
    fn add_class(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError> {
        self.classes.add(spec)
    }

    fn set_rate(&mut self, class: ClassId, rate: Rate) -> Result<(), PacingError> {
        self.change_rate(class, |classes| classes.set_rate(class, rate).map(drop))
    }

    fn remove_class(&mut self, class: ClassId) -> Result<Vec<P>, PacingError> {
        self.stop_waiting(class);
        let packets = self.classes.remove(class)?;
        if !packets.is_empty() {
            self.paced.retain(|other| *other != class);
            self.rest.retain(|other| *other != class);
        }
        Ok(packets)
    }

    fn enqueue(&mut self, now: Instant, class: ClassId, packet: P) -> Result<(), Refused<P>> {
        let hint = packet.rate_hint();
        let alone = self.classes.push(class, packet)?;
        self.now = self.now.max(now);
        self.change_rate(class, |classes| classes.follow(class, hint));
        if alone {
            self.list(class);
            if let Some(class) = self.classes.get_mut(class) {
                class.state.covered = now;
            }
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant) -> Next<P> {
        self.now = self.now.max(now);
        while let Some((at, id)) = self.waiting.first().copied().filter(|(at, _)| *at <= self.now) {
            self.waiting.remove(&(at, id));
            self.list(id);
            if let Some(class) = self.classes.get_mut(id) {
                class.state.waits = None;
            }
        }
        while let Some(class) = self.paced.pop_front().or_else(|| self.rest.pop_front()) {
            match self.covers(class) {
                Ok(()) => {
                    if let Some(packet) = self.send(class) {
                        return Next::Packet { class, packet };
                    }
                }
                Err(at) => {
                    self.waiting.insert((at, class));
                    if let Some(class) = self.classes.get_mut(class) {
                        class.state.waits = Some(at);
                    }
                }
            }
        }
        self.waiting.first().map_or(Next::Empty, |(at, _)| Next::Wait(*at))
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }

    fn stats(&self, class: ClassId) -> Option<ClassStats> {
        self.classes.stats(class)
    }
}

#[cfg(test)]
mod tests;
