//! Cards, lanes to neighbours, and when a frame would arrive.

use crate::multi_nic::MAX_NICS;
use farpace_units::{ByteCount, Instant, Rate, Serialiser, Span};
use farpace_wire::{MacAddr, NicKind};
use std::collections::BTreeSet;

/// A full frame on the line.
pub(super) const FULL_FRAME: ByteCount = ByteCount::new(1_538);

/// One of our cards, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicId(pub u8);

impl NicId {
    /// As the place in a list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A neighbour that lanes lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeighbourId(pub u32);

impl NeighbourId {
    /// All neighbours that have not told of several cards, and groups: they are sent to by the first card that works, and
    /// frames keep the address that the stack wrote.
    pub const ORDINARY: NeighbourId = NeighbourId(0);
}

/// What a card is, before anything is known of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicSpec {
    /// Its address; that of the first card is the machine's.
    pub mac: MacAddr,
    /// The rate of its line.
    pub rate: Rate,
    /// What neighbours are told.
    pub kind: NicKind,
}

/// One of our cards and its line.
#[derive(Clone, Debug)]
pub struct Nic {
    /// Its address.
    pub mac: MacAddr,
    /// What neighbours are told.
    pub kind: NicKind,
    /// There is a carrier.
    pub up: bool,
    /// What is being sent.
    pub line: Serialiser,
    /// Bytes of the line that the last frame took.
    pub last: ByteCount,
}

impl Nic {
    fn send(&mut self, now: Instant, bytes: ByteCount) -> Instant {
        self.last = bytes;
        self.line.send(now, bytes)
    }
    /// Bytes of the line of the frame that was sent last, less those that could have been sent since: what leaves now follows it so
    /// closely. Zero: it has a line like this one to itself.
    pub fn just_sent(&self, now: Instant) -> ByteCount {
        self.last - self.line.rate().bytes_in(now.since(self.line.busy_until())).min(self.last)
    }
}

/// Time per byte, as a fixed-point number: exact to a millionth of a nanosecond, and cheap to multiply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerByte(u64);

impl PerByte {
    const FRACTION_BITS: u32 = 20;

    /// Of a line of `rate`. A rate of zero takes for ever.
    pub fn of(rate: Rate) -> PerByte {
        let bits = u128::from(rate.bits_per_sec());
        let scaled = (8_000_000_000_u128 << Self::FRACTION_BITS).checked_div(bits);
        PerByte(scaled.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX))
    }
    /// So many times as long: for lines one after the other, each of which sends a frame when it has it whole.
    #[must_use]
    pub const fn times(self, n: u64) -> PerByte {
        PerByte(self.0.saturating_mul(n))
    }
    /// One after the other.
    #[must_use]
    pub const fn and(self, other: PerByte) -> PerByte {
        PerByte(self.0.saturating_add(other.0))
    }
    /// The time that `bytes` take.
    #[inline]
    pub const fn span(self, bytes: ByteCount) -> Span {
        Span::from_nanos(self.0.saturating_mul(bytes.get()) >> Self::FRACTION_BITS)
    }
    /// How many frames of `bytes` pass in `span`.
    #[inline]
    pub const fn frames_in(self, span: Span, bytes: ByteCount) -> u64 {
        // Longer than four hours is not looked at more closely.
        let nanos = if span.as_nanos() >> 44 == 0 { span.as_nanos() } else { (1 << 44) - 1 };
        match (nanos << Self::FRACTION_BITS).checked_div(self.0.saturating_mul(bytes.get())) {
            Some(frames) => frames,
            None => u64::MAX,
        }
    }
    /// As nanoseconds per byte.
    pub fn as_nanos_f64(self) -> f64 {
        self.0 as f64 / f64::from(1_u32 << Self::FRACTION_BITS)
    }
    /// From nanoseconds per byte; negative ones are none.
    pub fn from_nanos_f64(nanos: f64) -> PerByte {
        PerByte((nanos * f64::from(1_u32 << Self::FRACTION_BITS)) as u64)
    }
}

/// How long a frame is under way, from the first bit that leaves our card to the last that arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathDelay {
    /// Whatever its length. Only differences between the lanes to one neighbour matter: it may lack what all have in common.
    pub fixed: Span,
    /// On all lines of the way, ours included, each of which sends it when it has it whole.
    pub per_byte: PerByte,
}

impl PathDelay {
    /// Over so many lines of one rate, without anything else.
    pub fn of_lines(lines: u8, rate: Rate) -> PathDelay {
        PathDelay { fixed: Span::ZERO, per_byte: PerByte::of(rate).times(lines.into()) }
    }
    /// For a frame that takes `bytes` of the line.
    #[inline]
    pub fn of(self, bytes: ByteCount) -> Span {
        self.fixed + self.per_byte.span(bytes)
    }
}

/// The way from one of our cards to one of a neighbour's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicPath {
    /// The address of the neighbour's card. None: what the stack wrote.
    pub to: Option<MacAddr>,
    /// Frames arrive.
    pub up: bool,
    /// It is left alone: see [`NicPaths::leave_thin_ones`].
    pub thin: bool,
    /// What the whole way carries: not more than our card sends.
    pub rate: Rate,
    /// Time per byte at that rate.
    pub pace: PerByte,
    /// How long frames are under way.
    pub delay: PathDelay,
    /// By how much they may come later than that: jitter, and what has been learned from frames that came too late.
    pub guard: Span,
    /// By how much a frame may come after its turn: the neighbour puts frames in order, and so little is nothing beside a round trip.
    pub slack: Span,
    /// There and back; zero: unknown.
    pub rtt: Span,
    /// What the way carries has been sent, until then.
    pub free: Instant,
}

impl NicPath {
    /// A lane of `rate` with nothing on it.
    pub fn new(to: Option<MacAddr>, rate: Rate, delay: PathDelay) -> NicPath {
        let pace = PerByte::of(rate);
        NicPath {
            to,
            up: true,
            thin: false,
            rate,
            pace,
            delay,
            guard: Span::ZERO,
            slack: Span::ZERO,
            rtt: Span::ZERO,
            free: Instant::ZERO,
        }
    }
    /// Frames go by it, if its card works.
    #[inline]
    pub const fn is_used(&self) -> bool {
        self.up && !self.thin
    }
    /// The way carries more, or less, from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        (self.rate, self.pace) = (rate, PerByte::of(rate));
    }
}

/// All cards, and the lanes of all neighbours: one place per card, empty if the card does not send to that neighbour.
#[derive(Clone, Debug)]
pub struct NicPaths {
    nics: Vec<Nic>,
    neighbours: Vec<[Option<NicPath>; MAX_NICS]>,
    /// When lanes are free again that carry less than their card.
    narrow: BTreeSet<Instant>,
}

impl NicPaths {
    /// Cards without neighbours; the lane to [ordinary](NeighbourId::ORDINARY) ones is the first card's. Of more than
    /// [`MAX_NICS`] cards the rest is left out.
    pub fn new(nics: &[NicSpec]) -> NicPaths {
        let nic = |spec: &NicSpec| Nic {
            mac: spec.mac,
            kind: spec.kind,
            up: true,
            line: Serialiser::new(spec.rate),
            last: ByteCount::ZERO,
        };
        let mut lanes = NicPaths {
            nics: nics.iter().take(MAX_NICS).map(nic).collect(),
            neighbours: Vec::new(),
            narrow: BTreeSet::new(),
        };
        lanes.neighbours.push([None; MAX_NICS]);
        lanes.elect_first();
        lanes
    }
    /// Our cards.
    pub fn nics(&self) -> &[Nic] {
        &self.nics
    }
    /// Their numbers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NicId> + use<> {
        (0..self.nics.len() as u8).map(NicId)
    }
    /// A card; none if there is no such card.
    pub fn nic(&self, nic: NicId) -> Option<&Nic> {
        self.nics.get(nic.index())
    }
    /// The first card that works: what groups and ordinary neighbours are sent to by.
    pub fn first_up(&self) -> Option<NicId> {
        self.ids().find(|nic| self.nics[nic.index()].up)
    }
    /// A card has lost its carrier, or has it again.
    pub fn set_carrier(&mut self, nic: NicId, up: bool) {
        if let Some(nic) = self.nics.get_mut(nic.index()) {
            nic.up = up;
        }
        self.elect_first();
    }
    /// Gives a neighbour these lanes. Its number is a new one unless `id` says which it has.
    pub fn set_neighbour(
        &mut self,
        id: Option<NeighbourId>,
        lanes: [Option<NicPath>; MAX_NICS],
    ) -> NeighbourId {
        let id = id.unwrap_or(NeighbourId(self.neighbours.len() as u32));
        let at = id.0 as usize;
        if self.neighbours.len() <= at {
            self.neighbours.resize(at + 1, [None; MAX_NICS]);
        }
        self.neighbours[at] = lanes;
        id
    }
    /// The lane of `nic` to `neighbour`, if both work.
    #[inline]
    pub fn path(&self, neighbour: NeighbourId, nic: NicId) -> Option<&NicPath> {
        let lane = self.neighbours.get(neighbour.0 as usize)?.get(nic.index())?.as_ref()?;
        (lane.is_used() && self.nics.get(nic.index())?.up).then_some(lane)
    }
    /// The same, whether it works or not.
    pub fn any_lane(&self, neighbour: NeighbourId, nic: NicId) -> Option<&NicPath> {
        self.neighbours.get(neighbour.0 as usize)?.get(nic.index())?.as_ref()
    }
    /// The same, to be changed.
    pub fn path_mut(&mut self, neighbour: NeighbourId, nic: NicId) -> Option<&mut NicPath> {
        self.neighbours.get_mut(neighbour.0 as usize)?.get_mut(nic.index())?.as_mut()
    }
    /// Leaves those lanes to `neighbour` alone that are shorter than the widest but carry less than a quarter of it. In order, a long way
    /// is used only by what waits behind all that the shorter ones carry meanwhile; a connection whose window is kept small by losses
    /// would never get there, and have the short and thin way only. Once left alone, it must carry a third to be used again.
    pub fn leave_thin_ones(&mut self, neighbour: NeighbourId) {
        let Some(lanes) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        let works =
            lanes.iter().zip(&self.nics).filter_map(|(lane, nic)| lane.as_ref().filter(|l| l.up && nic.up));
        let widest = works.max_by_key(|lane| lane.rate).map(|lane| (lane.rate, lane.delay.of(FULL_FRAME)));
        for lane in lanes.iter_mut().flatten() {
            lane.thin = widest.is_some_and(|(rate, delay)| {
                let fixed = lane.delay.of(FULL_FRAME);
                let part = if lane.thin { 3 } else { 4 };
                fixed < delay && lane.rate.bits_per_sec() < rate.bits_per_sec() / part
            });
        }
    }
    /// How many numbers neighbours have: every number is below.
    pub fn neighbours(&self) -> u32 {
        self.neighbours.len() as u32
    }
    /// Cards whose lanes to `neighbour` work, with them.
    #[inline]
    pub fn working(&self, neighbour: NeighbourId) -> impl Iterator<Item = (NicId, &NicPath)> {
        let lanes = self.neighbours.get(neighbour.0 as usize);
        let of = lanes.map_or(&[][..], |lanes| &lanes[..self.nics.len()]);
        of.iter().zip(&self.nics).enumerate().filter_map(|(at, (lane, nic))| {
            let lane = lane.as_ref().filter(|lane| lane.is_used() && nic.up)?;
            Some((NicId(at as u8), lane))
        })
    }
    /// True if `nic` can begin to send at `now`.
    #[inline]
    pub fn is_idle(&self, nic: NicId, now: Instant) -> bool {
        self.nics.get(nic.index()).is_some_and(|nic| nic.up && nic.line.busy_until() <= now)
    }
    /// When a frame for `neighbour` could begin to leave by `nic`, at `now` at the earliest: the card is free, and the lane
    /// behind it too.
    #[inline]
    pub fn begins(&self, nic: NicId, lane: &NicPath, now: Instant) -> Instant {
        let free = self.nics.get(nic.index()).map_or(Instant::FAR_FUTURE, |nic| nic.line.busy_until());
        now.max(free).max(lane.free)
    }
    /// A frame that takes `bytes` of the line leaves by `nic` now. Returns when the card is free again.
    pub fn send(&mut self, now: Instant, nic: NicId, neighbour: NeighbourId, bytes: ByteCount) -> Instant {
        let card = self.nics.get_mut(nic.index()).map_or(now, |nic| nic.send(now, bytes));
        let mut free = card;
        if let Some(lane) = self.path_mut(neighbour, nic) {
            lane.free = now.max(lane.free) + lane.pace.span(bytes);
            free = lane.free;
        }
        if free > card {
            self.narrow.insert(free);
            while self.narrow.first().is_some_and(|at| *at < now) {
                self.narrow.pop_first();
            }
        }
        card
    }
    /// A frame that belongs to no lane leaves by `nic` now: a probe, an answer.
    pub fn send_own(&mut self, now: Instant, nic: NicId, bytes: ByteCount) {
        if let Some(nic) = self.nics.get_mut(nic.index()) {
            nic.send(now, bytes);
        }
    }
    /// When a card or a lane falls idle next, after `now`. Lanes of cards that have failed count too.
    pub fn next_free(&self, now: Instant) -> Option<Instant> {
        let cards = self.nics.iter().map(|nic| nic.line.busy_until()).filter(|at| *at > now);
        let after = (std::ops::Bound::Excluded(now), std::ops::Bound::Unbounded);
        cards.chain(self.narrow.range(after).next().copied()).min()
    }

    /// The lane to ordinary neighbours belongs to the first card that works.
    fn elect_first(&mut self) {
        let mut lanes = [None; MAX_NICS];
        if let Some(first) = self.first_up() {
            let rate = self.nics[first.index()].line.rate();
            lanes[first.index()] = Some(NicPath::new(None, rate, PathDelay::of_lines(2, rate)));
        }
        self.neighbours[NeighbourId::ORDINARY.0 as usize] = lanes;
    }
}
