//! NICs, paths to neighbours, and arrival times.

use crate::multi_nic::MAX_NICS;
use farpace_units::{ByteCount, Instant, Rate, Serialiser, Span};
use farpace_wire::{MacAddr, NicKind};
use std::collections::BTreeSet;

/// Wire length of a full frame.
pub(super) const FULL_FRAME: ByteCount = ByteCount::new(1_538);

/// An own NIC, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicId(pub u8);

impl NicId {
    /// The index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A neighbour with its own paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeighbourId(pub u32);

impl NeighbourId {
    /// All neighbours without a list of NICs, and multicast groups. Frames for them use the first working NIC
    /// and keep the address that the stack wrote.
    pub const ORDINARY: NeighbourId = NeighbourId(0);
}

/// The static properties of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicSpec {
    /// Its MAC address. That of the first NIC is the address of the host.
    pub mac: MacAddr,
    /// The rate of its link.
    pub rate: Rate,
    /// The kind that is announced to neighbours.
    pub kind: NicKind,
}

/// An own NIC and its link.
#[derive(Clone, Debug)]
pub struct Nic {
    /// Its MAC address.
    pub mac: MacAddr,
    /// The kind that is announced to neighbours.
    pub kind: NicKind,
    /// True if it has a carrier.
    pub up: bool,
    /// Its transmitter.
    pub link: Serialiser,
    /// Wire length of the last frame.
    pub last: ByteCount,
}

impl Nic {
    fn send(&mut self, now: Instant, bytes: ByteCount) -> Instant {
        self.last = bytes;
        self.link.send(now, bytes)
    }
    /// Wire length of the last frame, less the bytes that could have been sent since. A frame that leaves now
    /// follows the last one that closely. Zero: a link of this rate would be idle.
    pub fn just_sent(&self, now: Instant) -> ByteCount {
        self.last - self.link.rate().bytes_in(now.since(self.link.busy_until())).min(self.last)
    }
}

/// Time per byte as a fixed-point number, with a resolution of a millionth of a nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerByte(u64);

impl PerByte {
    const FRACTION_BITS: u32 = 20;

    /// The time per byte at `rate`; the maximum for a rate of zero.
    pub fn of(rate: Rate) -> PerByte {
        let bits = u128::from(rate.bits_per_sec());
        let scaled = (8_000_000_000_u128 << Self::FRACTION_BITS).checked_div(bits);
        PerByte(scaled.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX))
    }
    /// Multiplied by `n`, for `n` store-and-forward links.
    #[must_use]
    pub const fn times(self, n: u64) -> PerByte {
        PerByte(self.0.saturating_mul(n))
    }
    /// The sum, for consecutive links.
    #[must_use]
    pub const fn and(self, other: PerByte) -> PerByte {
        PerByte(self.0.saturating_add(other.0))
    }
    /// Transmission time of `bytes`.
    #[inline]
    pub const fn span(self, bytes: ByteCount) -> Span {
        Span::from_nanos(self.0.saturating_mul(bytes.get()) >> Self::FRACTION_BITS)
    }
    /// Number of frames of `bytes` that are transmitted in `span`.
    #[inline]
    pub const fn frames_in(self, span: Span, bytes: ByteCount) -> u64 {
        // Spans above four hours are clamped.
        let nanos = if span.as_nanos() >> 44 == 0 { span.as_nanos() } else { (1 << 44) - 1 };
        match (nanos << Self::FRACTION_BITS).checked_div(self.0.saturating_mul(bytes.get())) {
            Some(frames) => frames,
            None => u64::MAX,
        }
    }
    /// In nanoseconds per byte.
    pub fn as_nanos_f64(self) -> f64 {
        self.0 as f64 / f64::from(1_u32 << Self::FRACTION_BITS)
    }
    /// From nanoseconds per byte. Negative values become zero.
    pub fn from_nanos_f64(nanos: f64) -> PerByte {
        PerByte((nanos * f64::from(1_u32 << Self::FRACTION_BITS)) as u64)
    }
}

/// One-way delay of a frame, from the first bit sent to the last bit received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathDelay {
    /// The part that does not depend on the length. Only differences between paths to the same neighbour
    /// matter, so a common offset may be missing.
    pub fixed: Span,
    /// Transmission time per byte on all store-and-forward links of the path, including the first.
    pub per_byte: PerByte,
}

impl PathDelay {
    /// The delay over `links` store-and-forward links of the same rate, without propagation delay.
    pub fn of_links(links: u8, rate: Rate) -> PathDelay {
        PathDelay { fixed: Span::ZERO, per_byte: PerByte::of(rate).times(links.into()) }
    }
    /// The delay of a frame with a wire length of `bytes`.
    #[inline]
    pub fn of(self, bytes: ByteCount) -> Span {
        self.fixed + self.per_byte.span(bytes)
    }
}

/// The path from an own NIC to one of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicPath {
    /// MAC address of the neighbour's NIC. None: the address that the stack wrote.
    pub to: Option<MacAddr>,
    /// True if frames arrive.
    pub up: bool,
    /// True if the path is not used because of its low rate: see [`NicPaths::disable_slow_short_paths`].
    pub disabled: bool,
    /// Rate of the whole path, at most that of the NIC.
    pub rate: Rate,
    /// Time per byte at that rate.
    pub pace: PerByte,
    /// One-way delay of frames.
    pub delay: PathDelay,
    /// Margin for frames with a higher delay: jitter, and what late frames have shown.
    pub guard: Span,
    /// How late a frame may be, if the neighbour puts frames in order: little compared with a round trip.
    pub slack: Span,
    /// Round trip time; zero: unknown.
    pub rtt: Span,
    /// When the frames sent so far have left the bottleneck of the path.
    pub free: Instant,
}

impl NicPath {
    /// An idle path of `rate`.
    pub fn new(to: Option<MacAddr>, rate: Rate, delay: PathDelay) -> NicPath {
        let pace = PerByte::of(rate);
        NicPath {
            to,
            up: true,
            disabled: false,
            rate,
            pace,
            delay,
            guard: Span::ZERO,
            slack: Span::ZERO,
            rtt: Span::ZERO,
            free: Instant::ZERO,
        }
    }
    /// True if frames use the path, provided its NIC works.
    #[inline]
    pub const fn is_used(&self) -> bool {
        self.up && !self.disabled
    }
    /// Sets the rate of the path.
    pub fn set_rate(&mut self, rate: Rate) {
        (self.rate, self.pace) = (rate, PerByte::of(rate));
    }
}

/// All NICs, and the paths of all neighbours: one slot per NIC, empty if the NIC does not send to that
/// neighbour.
#[derive(Clone, Debug)]
pub struct NicPaths {
    nics: Vec<Nic>,
    neighbours: Vec<[Option<NicPath>; MAX_NICS]>,
    /// When paths that are slower than their NIC become free.
    busy_paths: BTreeSet<Instant>,
}

impl NicPaths {
    /// NICs without neighbours. The path to [ordinary](NeighbourId::ORDINARY) ones uses the first NIC. NICs
    /// beyond [`MAX_NICS`] are ignored.
    pub fn new(nics: &[NicSpec]) -> NicPaths {
        let nic = |spec: &NicSpec| Nic {
            mac: spec.mac,
            kind: spec.kind,
            up: true,
            link: Serialiser::new(spec.rate),
            last: ByteCount::ZERO,
        };
        let mut paths = NicPaths {
            nics: nics.iter().take(MAX_NICS).map(nic).collect(),
            neighbours: Vec::new(),
            busy_paths: BTreeSet::new(),
        };
        paths.neighbours.push([None; MAX_NICS]);
        paths.elect_first();
        paths
    }
    /// The own NICs.
    pub fn nics(&self) -> &[Nic] {
        &self.nics
    }
    /// Their identifiers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NicId> + use<> {
        (0..self.nics.len() as u8).map(NicId)
    }
    /// A NIC; none if it does not exist.
    pub fn nic(&self, nic: NicId) -> Option<&Nic> {
        self.nics.get(nic.index())
    }
    /// The first working NIC, which sends to groups and ordinary neighbours.
    pub fn first_up(&self) -> Option<NicId> {
        self.ids().find(|nic| self.nics[nic.index()].up)
    }
    /// A NIC has lost or regained its carrier.
    pub fn set_carrier(&mut self, nic: NicId, up: bool) {
        if let Some(nic) = self.nics.get_mut(nic.index()) {
            nic.up = up;
        }
        self.elect_first();
    }
    /// Sets the paths of a neighbour. Without `id`, a new neighbour is added.
    pub fn set_neighbour(
        &mut self,
        id: Option<NeighbourId>,
        paths: [Option<NicPath>; MAX_NICS],
    ) -> NeighbourId {
        let id = id.unwrap_or(NeighbourId(self.neighbours.len() as u32));
        let at = id.0 as usize;
        if self.neighbours.len() <= at {
            self.neighbours.resize(at + 1, [None; MAX_NICS]);
        }
        self.neighbours[at] = paths;
        id
    }
    /// The path of `nic` to `neighbour`, if it is usable and the NIC works.
    #[inline]
    pub fn path(&self, neighbour: NeighbourId, nic: NicId) -> Option<&NicPath> {
        let path = self.neighbours.get(neighbour.0 as usize)?.get(nic.index())?.as_ref()?;
        (path.is_used() && self.nics.get(nic.index())?.up).then_some(path)
    }
    /// Like [`path`](Self::path), whether it works or not.
    pub fn any_path(&self, neighbour: NeighbourId, nic: NicId) -> Option<&NicPath> {
        self.neighbours.get(neighbour.0 as usize)?.get(nic.index())?.as_ref()
    }
    /// Like [`any_path`](Self::any_path), mutable.
    pub fn path_mut(&mut self, neighbour: NeighbourId, nic: NicId) -> Option<&mut NicPath> {
        self.neighbours.get_mut(neighbour.0 as usize)?.get_mut(nic.index())?.as_mut()
    }
    /// Disables paths to `neighbour` that have a lower delay than the fastest one but less than a quarter of
    /// its rate. To keep frames in order, a path with a high delay is used only for frames behind all those
    /// that paths with lower delays carry meanwhile. A connection whose losses keep its window small would
    /// never use it. A disabled path is used again at a third of the rate.
    pub fn disable_slow_short_paths(&mut self, neighbour: NeighbourId) {
        let Some(paths) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        let working =
            paths.iter().zip(&self.nics).filter_map(|(path, nic)| path.as_ref().filter(|l| l.up && nic.up));
        let fastest = working.max_by_key(|path| path.rate).map(|path| (path.rate, path.delay.of(FULL_FRAME)));
        for path in paths.iter_mut().flatten() {
            path.disabled = fastest.is_some_and(|(rate, delay)| {
                let fixed = path.delay.of(FULL_FRAME);
                let part = if path.disabled { 3 } else { 4 };
                fixed < delay && path.rate.bits_per_sec() < rate.bits_per_sec() / part
            });
        }
    }
    /// Number of neighbour identifiers: all are below.
    pub fn neighbours(&self) -> u32 {
        self.neighbours.len() as u32
    }
    /// NICs with a working path to `neighbour`, and the paths.
    #[inline]
    pub fn working(&self, neighbour: NeighbourId) -> impl Iterator<Item = (NicId, &NicPath)> {
        let paths = self.neighbours.get(neighbour.0 as usize);
        let of = paths.map_or(&[][..], |paths| &paths[..self.nics.len()]);
        of.iter().zip(&self.nics).enumerate().filter_map(|(at, (path, nic))| {
            let path = path.as_ref().filter(|path| path.is_used() && nic.up)?;
            Some((NicId(at as u8), path))
        })
    }
    /// True if `nic` can begin to send at `now`.
    #[inline]
    pub fn is_idle(&self, nic: NicId, now: Instant) -> bool {
        self.nics.get(nic.index()).is_some_and(|nic| nic.up && nic.link.busy_until() <= now)
    }
    /// The earliest time, from `now` on, at which a frame can be sent on a path of `nic`: both must be idle.
    #[inline]
    pub fn begins(&self, nic: NicId, path: &NicPath, now: Instant) -> Instant {
        let free = self.nics.get(nic.index()).map_or(Instant::FAR_FUTURE, |nic| nic.link.busy_until());
        now.max(free).max(path.free)
    }
    /// `nic` sends a frame with a wire length of `bytes` now. Returns when the NIC is idle again.
    pub fn send(&mut self, now: Instant, nic: NicId, neighbour: NeighbourId, bytes: ByteCount) -> Instant {
        let nic_free = self.nics.get_mut(nic.index()).map_or(now, |nic| nic.send(now, bytes));
        let mut free = nic_free;
        if let Some(path) = self.path_mut(neighbour, nic) {
            path.free = now.max(path.free) + path.pace.span(bytes);
            free = path.free;
        }
        if free > nic_free {
            self.busy_paths.insert(free);
            while self.busy_paths.first().is_some_and(|at| *at < now) {
                self.busy_paths.pop_first();
            }
        }
        nic_free
    }
    /// `nic` sends a frame outside of the known paths: a probe or a reply.
    pub fn send_own(&mut self, now: Instant, nic: NicId, bytes: ByteCount) {
        if let Some(nic) = self.nics.get_mut(nic.index()) {
            nic.send(now, bytes);
        }
    }
    /// When a NIC or a path becomes idle next, after `now`. Paths of failed NICs count too.
    pub fn next_free(&self, now: Instant) -> Option<Instant> {
        let nics = self.nics.iter().map(|nic| nic.link.busy_until()).filter(|at| *at > now);
        let after = (std::ops::Bound::Excluded(now), std::ops::Bound::Unbounded);
        nics.chain(self.busy_paths.range(after).next().copied()).min()
    }

    /// Assigns the path to ordinary neighbours to the first working NIC.
    fn elect_first(&mut self) {
        let mut paths = [None; MAX_NICS];
        if let Some(first) = self.first_up() {
            let rate = self.nics[first.index()].link.rate();
            paths[first.index()] = Some(NicPath::new(None, rate, PathDelay::of_links(2, rate)));
        }
        self.neighbours[NeighbourId::ORDINARY.0 as usize] = paths;
    }
}
