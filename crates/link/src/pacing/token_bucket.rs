//! A token bucket per class: how hosts limited rates before pacing, and the baseline of the paper (§2). With
//! one class it is TBF of Linux on a periodic timer.
//!
//! Tokens are bytes in memory, as the kernel counts them, without check sequences. So full frames leave
//! faster than the layer 2 rate by a factor of 1518/1514. All tokens that a tick has added may be used at
//! once, at the rate of the link: at 500 Mbit/s and 1 ms these are 62.5 kB, 42 packets.

use super::classes::{Classes, Tag};
use super::{ClassId, ClassSpec, ClassStats, Next, PacedFrame, PacingError, Refused, Scheduler};
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::ethernet::MAX_ETHERNET_LEN;
use std::collections::{BTreeSet, VecDeque};

/// One byte in tokens. Tokens are counted in bit/s x ns, so that a tick adds a whole number at any rate.
const BYTE: u128 = 8 * 1_000_000_000;

/// Token buckets, refilled at ticks counted from the start of time.
///
/// Paced classes with enough tokens for their next packet send in round robin, one packet each. Then normal
/// and following classes send in round robin. If no class may send, the scheduler waits for the tick that
/// suffices for a packet. A new bucket is full.
#[derive(Debug)]
pub struct TokenBucket<P> {
    classes: Classes<P, ClassBucket>,
    tick: u64,
    burst: Option<ByteCount>,
    /// Minimum depth of a bucket, so that each packet fits.
    longest: ByteCount,
    /// The latest time that a caller passed.
    now: Instant,
    /// Paced classes with packets, in round robin.
    paced: VecDeque<ClassId>,
    /// Other classes with packets, in round robin.
    rest: VecDeque<ClassId>,
    /// Classes without enough tokens for their first packet, by the time at which they will have enough.
    waiting: BTreeSet<(Instant, ClassId)>,
}

#[derive(Debug, Default)]
struct ClassBucket {
    /// Tokens missing from a full bucket.
    missing: u128,
    /// The last tick that was added.
    filled: u64,
    /// Since when the tokens suffice for the first packet.
    covered: Instant,
    waits: Option<Instant>,
}

impl ClassBucket {
    /// The tick whose tokens suffice for a packet; none if the current tokens do.
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
    /// A scheduler for a link of `link_rate` that carries IP packets of up to `mtu` bytes, with a refill
    /// every `tick`. `burst` is the depth of a bucket, at least the longest frame. It defaults to the tokens
    /// of a tick plus a frame, so that the remainder at a tick is not lost.
    ///
    /// # Errors
    /// The rate or the MTU is out of range, or `tick` is zero.
    pub fn new(
        link_rate: Rate,
        mtu: ByteCount,
        tick: Span,
        burst: Option<ByteCount>,
    ) -> Result<Self, PacingError> {
        if tick.is_zero() {
            return Err(PacingError::Parameter("the interval between two ticks must be above 0 s"));
        }
        Ok(TokenBucket {
            classes: Classes::new(link_rate, mtu)?,
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

    /// Depth of a bucket in tokens.
    fn holds(&self, rate: Rate) -> u128 {
        let longest = u128::from(self.longest.get()) * BYTE;
        match self.burst {
            Some(burst) => longest.max(u128::from(burst.get()) * BYTE),
            None => longest + self.per_tick(rate),
        }
    }

    /// Number of the last tick.
    fn ticks(&self) -> u64 {
        self.now.as_nanos() / self.tick
    }

    /// Whether the first packet of a class may leave now; if not, the time at which it may.
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
        let (link_rate, limited, now) = (self.classes.link_rate(), self.classes.rate(id).is_some(), self.now);
        let class = self.classes.get_mut(id)?;
        if limited {
            class.state.missing += u128::from(packet.len().get()) * BYTE;
            class.was_late(link_rate.bytes_in(now.since(class.state.covered)));
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

    /// Applies a `change` of the rate of a class. Tokens are kept as far as the new depth allows.
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
        let was_empty = self.classes.push(class, packet)?;
        self.now = self.now.max(now);
        self.change_rate(class, |classes| classes.follow(class, hint));
        if was_empty {
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
