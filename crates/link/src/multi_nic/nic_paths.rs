//! NICs, paths to neighbours, and arrival times.

use crate::multi_nic::MAX_NICS;
use farpace_units::{ByteCount, Instant, Rate, Serialiser, Span};
use farpace_wire::{MacAddr, NicKind};
use std::collections::BTreeSet;

/// Wire length of a full frame.
pub(super) const FULL_FRAME: ByteCount = ByteCount::new(1_538);

/// What stands in the queues of paths and of the host while all paths are used, at least, and as a fraction
/// of the round trip: probes keep about 2 ms on each path, and a NIC that falls idle has to find a frame.
const MIN_STANDING_QUEUE: Span = Span::from_millis(5);
const STANDING_QUEUE_DIVISOR: u64 = 32;

/// A path that comes after the widest one comes so much later.
const MIN_ADDED_DELAY: Span = Span::from_micros(100);
/// What takes less than one part in so many of a short and thin path takes it first, and again below one part
/// in so many.
const LITTLE: u64 = 2;
const LITTLE_AGAIN: u64 = 4;
/// Without order at the receiver, round trips of paths may differ by so much besides half of the longest.
const MAX_LONGER: Span = Span::from_millis(10);
/// So much jitter, or a 16th of its round trip, may a path have that is used beside others without order at
/// the receiver.
const MAX_SPREAD: Span = Span::from_millis(1);
/// Acknowledgments are at most so small a part of the data that they answer, on the widest path.
const MAX_ACK_DIVISOR: u64 = 16;
/// Another path takes the place of one in use if it is so many times better.
const MIN_BETTER: f64 = 1.25;
/// A loss rate below is hardly any.
const MIN_LOSS: f64 = 1e-5;

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NicPath {
    /// MAC address of the neighbour's NIC. None: the address that the stack wrote.
    pub to: Option<MacAddr>,
    /// True if frames arrive.
    pub up: bool,
    /// True if the path is not used, because it would do more harm than good: see [`NicPaths::select`].
    pub disabled: bool,
    /// Frames take the path as if its delay were so much longer: see [`NicPaths::select`].
    pub added_delay: Span,
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
    /// Round trip time without queues; zero: unknown.
    pub base_rtt: Span,
    /// The longest round trip that the own clock has measured of late; zero: unknown.
    pub longest_rtt: Span,
    /// By how much frames may come later than by `delay`, all but one in twenty: jitter.
    pub spread: Span,
    /// Loss rate, 0 to 1.
    pub loss: f64,
    /// When the frames sent so far have left the bottleneck of the path.
    pub free: Instant,
}

/// What transports send to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Hardly anything but acknowledgments.
    Acks,
    /// Data of transports that take losses for congestion.
    LossSensitive,
    /// Data of others, or nothing yet.
    LossTolerant,
}

/// A path that a transport could have whose peer does not put frames in order.
#[derive(Clone, Copy)]
struct PathCandidate {
    /// Its index.
    at: usize,
    path: NicPath,
    /// It is in use.
    in_use: bool,
}

/// The candidates, by index, that the transport should have: beginning with the best alone, each that adds
/// something and is about as long, because jitter and what waits for its turn look like losses and queues
/// there.
///
/// Frames that move to a shorter path overtake those before, and rates are estimates. So a path that is in
/// use stays unless another one is better by [`MIN_BETTER`].
fn worth_it(paths: &[PathCandidate], sends: Sends) -> Vec<usize> {
    if sends == Sends::Acks {
        return shortest(paths).into_iter().collect();
    }
    let loss_tolerant = sends == Sends::LossTolerant;
    let mut kept: Vec<PathCandidate> = Vec::new();
    let (mut best, mut shortest, mut longest) = (0.0, Span::ZERO, Span::MAX);
    loop {
        let more = paths.iter().filter(|PathCandidate { at, path, .. }| {
            let steady = path.spread <= MAX_SPREAD.max(path.base_rtt / 16);
            let alike = (shortest..=longest).contains(&path.base_rtt) && (kept.is_empty() || steady);
            alike && kept.iter().all(|other| other.at != *at)
        });
        let with = more
            .map(|one| (carried(kept.iter().chain([one]).map(|one| &one.path), loss_tolerant), one))
            .map(|(rate, one)| (rate, if one.in_use { rate * MIN_BETTER } else { rate }, one));
        match with.max_by(|(_, a, _), (_, b, _)| a.total_cmp(b)) {
            Some((rate, _, one)) if rate > best => {
                best = rate;
                kept.push(*one);
                let rtt = kept.iter().map(|one| one.path.base_rtt).max().unwrap_or_default();
                longest = longest.min(rtt + rtt / 2 + MAX_LONGER);
                shortest = shortest.max(rtt / 2 - MAX_LONGER.min(rtt / 2));
            }
            _ => return kept.into_iter().map(|one| one.at).collect(),
        }
    }
}

/// The path with the shortest round trip that carries acknowledgments easily: the window of who waits for
/// them brings most in a short round trip.
fn shortest(paths: &[PathCandidate]) -> Option<usize> {
    let widest = paths.iter().map(|one| one.path.rate.bits_per_sec()).max()?;
    let wide = paths.iter().filter(|one| one.path.rate.bits_per_sec() >= widest / MAX_ACK_DIVISOR);
    let rtt = |one: &PathCandidate| match one.path.base_rtt {
        Span::ZERO => f64::INFINITY,
        rtt => rtt.as_secs_f64() / if one.in_use { MIN_BETTER } else { 1.0 },
    };
    wide.min_by(|a, b| rtt(a).total_cmp(&rtt(b))).map(|one| one.at)
}

/// Bytes per second that a transport gets of these paths together: their rates, or what its window carries
/// with their losses in a round trip of the longest (RFC 9438 section 5, which includes the window of Reno).
fn carried<'a>(paths: impl Iterator<Item = &'a NicPath>, loss_tolerant: bool) -> f64 {
    let (mut rate, mut lost, mut rtt) = (0.0, 0.0, Span::ZERO);
    for path in paths {
        let of_path = path.rate.as_bytes_per_sec_f64();
        rate += of_path;
        lost += of_path * path.loss;
        rtt = rtt.max(path.base_rtt);
    }
    let (loss, rtt) = (lost / f64::max(rate, 1.0), rtt.as_secs_f64());
    if loss_tolerant || loss < MIN_LOSS || rtt <= 0.0 {
        return rate;
    }
    let reno = (1.5 / loss).sqrt();
    // To the power of 3/4, exact on every machine.
    let root = (rtt / loss).sqrt();
    let cubic = 1.054 * root * root.sqrt();
    rate.min(reno.max(cubic) * FULL_FRAME.get() as f64 / rtt)
}

impl NicPath {
    /// An idle path of `rate`.
    pub fn new(to: Option<MacAddr>, rate: Rate, delay: PathDelay) -> NicPath {
        let pace = PerByte::of(rate);
        NicPath {
            to,
            up: true,
            disabled: false,
            added_delay: Span::ZERO,
            rate,
            pace,
            delay,
            guard: Span::ZERO,
            slack: Span::ZERO,
            rtt: Span::ZERO,
            base_rtt: Span::ZERO,
            longest_rtt: Span::ZERO,
            spread: Span::ZERO,
            loss: 0.0,
            free: Instant::ZERO,
        }
    }
    /// True if frames use the path, provided its NIC works.
    #[inline]
    pub const fn is_used(&self) -> bool {
        self.up && !self.disabled
    }
    /// True if it is not used, or only for what would wait behind wider paths: see [`NicPaths::select`].
    pub const fn comes_after(&self) -> bool {
        self.disabled || !self.added_delay.is_zero()
    }
    /// How long a frame with a wire length of `bytes` is under way, for its place in the order of frames.
    #[inline]
    pub fn in_order_delay(&self, bytes: ByteCount) -> Span {
        self.delay.of(bytes) + self.added_delay
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
    /// Decides how paths to `neighbour` are used.
    ///
    /// To keep frames in order, a path with a high delay is used only for frames behind all those that paths
    /// with lower delays carry meanwhile. A connection whose window is small would never use it. So a path
    /// that has a lower delay than the widest one, but less than a quarter of its rate, comes after it:
    /// frames take it as if its delay were as long (its [added delay](NicPath::added_delay)). Where the
    /// neighbour does not hold frames for so long (`resequence_time`), it is disabled, and is used again at a
    /// third of the rate.
    ///
    /// As long as TCP sends little, less than half of what such a path carries (`demand`), no window is too
    /// small for it, and short transfers are over sooner: the path is used as it is. It comes after the
    /// widest one until `demand` is below a quarter. This applies only to neighbours that put frames in
    /// order. Returns the demand at which such a path would no longer be used first; none: there is none.
    ///
    /// Where the neighbour does not put frames in order, losses are not repaired. If the transport takes them
    /// for congestion, paths are disabled with which its window would carry less. If it sends only
    /// acknowledgments, they take the shortest path.
    pub fn select(
        &mut self,
        neighbour: NeighbourId,
        resequence_time: Option<Span>,
        sends: Sends,
        demand: Rate,
    ) -> Option<Rate> {
        let paths = self.neighbours.get_mut(neighbour.0 as usize)?;
        let nics = &self.nics;
        let working = |at: usize, path: &NicPath| path.up && nics.get(at).is_some_and(|nic| nic.up);
        let each = || paths.iter().enumerate().filter_map(|(at, path)| Some((at, path.as_ref()?)));
        let widest = each().filter(|(at, path)| working(*at, path)).max_by_key(|(_, path)| path.rate);
        let widest = widest.map(|(_, path)| (path.rate, path.delay.of(FULL_FRAME)));
        let disabled = paths.map(|path| path.is_some_and(|path| path.disabled));
        let mut suffices: Option<Rate> = None;
        for path in paths.iter_mut().flatten() {
            let own = path.delay.of(FULL_FRAME);
            let comes_after = path.comes_after();
            let thin = widest.filter(|(rate, delay)| {
                let part = if comes_after { 3 } else { 4 };
                own < *delay && path.rate.bits_per_sec() < rate.bits_per_sec() / part
            });
            let little = path.rate.bits_per_sec() / if comes_after { LITTLE_AGAIN } else { LITTLE };
            let is_thin = thin.is_some() && path.up;
            let thin = thin.filter(|_| resequence_time.is_none() || demand.bits_per_sec() >= little);
            if thin.is_none() && is_thin {
                let limit = Rate::from_bits_per_sec(path.rate.bits_per_sec() / LITTLE);
                suffices = Some(suffices.map_or(limit, |known| known.min(limit)));
            }
            let added = thin.map_or(Span::ZERO, |(_, delay)| delay - own + MIN_ADDED_DELAY);
            let held = resequence_time.is_some_and(|time| added <= time / 2);
            (path.disabled, path.added_delay) =
                if held { (false, added) } else { (!added.is_zero(), Span::ZERO) };
        }
        if resequence_time.is_none() {
            let candidate = |(at, path): (usize, &Option<NicPath>)| {
                let path = (*path).filter(|path| working(at, path) && !path.disabled)?;
                Some(PathCandidate { at, path, in_use: !disabled.get(at).copied().unwrap_or(false) })
            };
            let used: Vec<PathCandidate> = paths.iter().enumerate().filter_map(candidate).collect();
            let kept = worth_it(&used, sends);
            for PathCandidate { at, .. } in used {
                if let Some(Some(path)) = paths.get_mut(at) {
                    path.disabled = !kept.contains(&at);
                }
            }
        }
        suffices
    }
    /// The longest smoothed round trip of the paths to all neighbours that work, used or not; none: none was
    /// measured.
    pub fn longest_rtt(&self) -> Option<Span> {
        let paths = self.neighbours.iter().flatten().flatten();
        paths.filter(|path| path.up && !path.rtt.is_zero()).map(|path| path.rtt).max()
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
    /// The path to `neighbour` that delivers first, if all are idle.
    pub fn first(&self, neighbour: NeighbourId) -> Option<NicId> {
        let each = self.working(neighbour).map(|(nic, path)| (path.in_order_delay(FULL_FRAME), nic));
        each.min().map(|(_, nic)| nic)
    }
    /// What the paths to `neighbour` in use carry together, their number, and which carries most; none: no
    /// path is in use.
    pub fn carried(&self, neighbour: NeighbourId) -> Option<(Rate, usize, NicId)> {
        let (widest, _) = self.working(neighbour).max_by_key(|(_, path)| path.rate)?;
        let each = || self.working(neighbour).map(|(_, path)| path.rate.bits_per_sec());
        Some((Rate::from_bits_per_sec(each().fold(0, u64::saturating_add)), each().count(), widest))
    }
    /// The round trip of the paths to `neighbour` in use, without queues, as a transport sees it whose frames
    /// arrive in order, or are put in order: that of the longest path. What the clock of the neighbour says
    /// makes it no longer than round trips that the own clock has measured. Some time for queues that stand
    /// while several paths are used is included. None: fewer than two paths work, used or not, or none that
    /// is used has been measured.
    pub fn base_rtt(&self, neighbour: NeighbourId) -> Option<Span> {
        let paths = self.neighbours.get(neighbour.0 as usize)?;
        let works = |(at, path): (usize, &Option<NicPath>)| {
            (*path).filter(|path| path.up && self.nics.get(at).is_some_and(|nic| nic.up))
        };
        let working = || paths.iter().enumerate().filter_map(works);
        let known = || working().filter(|path| !path.base_rtt.is_zero());
        let used = || known().filter(NicPath::is_used);
        let delay = |path: &NicPath| path.delay.of(FULL_FRAME);
        // The way back is that of the shortest path, whichever NIC a frame left by.
        let common = known().map(|path| path.base_rtt - delay(&path).min(path.base_rtt)).min()?;
        let several = used().count() > 1;
        let spread = |path: &NicPath| if several { path.spread } else { Span::ZERO };
        let longest = used().map(|path| delay(&path) + spread(&path)).max()?;
        let base = (common + longest).min(used().map(|path| path.longest_rtt).max()?);
        let queue = if several { MIN_STANDING_QUEUE + base / STANDING_QUEUE_DIVISOR } else { Span::ZERO };
        (working().count() > 1).then(|| base + queue)
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

#[cfg(test)]
mod tests {
    use super::*;

    const ID: NeighbourId = NeighbourId(1);

    /// Idle paths of Mbit/s, ms of round trip, us of jitter, and loss.
    fn paths_of(list: &[(u64, u64, u64, f64)]) -> NicPaths {
        let nic = |at: usize| NicSpec {
            mac: MacAddr([2, 0, 0, 0, 0, at as u8]),
            rate: Rate::from_mbit(1_000),
            kind: NicKind::UNKNOWN,
        };
        let mut paths = NicPaths::new(&(0..list.len()).map(nic).collect::<Vec<_>>());
        let mut to = [None; MAX_NICS];
        for (slot, (mbit, ms, jitter, loss)) in to.iter_mut().zip(list) {
            let (rate, base_rtt) = (Rate::from_mbit(*mbit), Span::from_millis(*ms));
            let delay = PathDelay { fixed: base_rtt / 2, per_byte: PerByte::of(rate) };
            let spread = Span::from_micros(*jitter);
            let longest_rtt = base_rtt + spread;
            let new = NicPath::new(None, rate, delay);
            *slot = Some(NicPath { base_rtt, longest_rtt, spread, loss: *loss, ..new });
        }
        assert_eq!(paths.set_neighbour(None, to), ID);
        paths
    }
    fn used(paths: &NicPaths) -> Vec<u8> {
        paths.working(ID).map(|(nic, _)| nic.0).collect()
    }

    /// Breaks: where the receiver does not put frames in order, paths are used together that carry less than
    /// the best one, or paths that are alike are left alone.
    #[test]
    fn without_order_at_the_receiver_only_like_and_steady_paths_are_used() {
        // What is used if the transport takes losses for congestion, and if it tolerates them.
        type Row = (&'static str, &'static [(u64, u64, u64, f64)], &'static [u8], &'static [u8]);
        let table: [Row; 10] = [
            ("one", &[(100, 20, 0, 0.0)], &[0], &[0]),
            ("alike", &[(100, 20, 0, 0.0), (100, 20, 0, 0.0)], &[0, 1], &[0, 1]),
            ("near and thin", &[(10, 10, 0, 0.0), (100, 20, 0, 0.0)], &[1], &[1]),
            ("far and thin", &[(10, 20, 0, 0.0), (100, 10, 0, 0.0)], &[0, 1], &[0, 1]),
            ("half and 10 ms longer", &[(100, 20, 0, 0.0), (50, 40, 0, 0.0)], &[0, 1], &[0, 1]),
            ("longer", &[(100, 20, 0, 0.0), (50, 41, 0, 0.0)], &[0], &[0]),
            ("jitter", &[(100, 20, 0, 0.0), (50, 20, 1_300, 0.0)], &[0], &[0]),
            ("jitter of the best", &[(100, 20, 1_300, 0.0), (50, 20, 1_200, 0.0)], &[0, 1], &[0, 1]),
            ("losses", &[(100, 20, 0, 0.0), (50, 20, 0, 0.01)], &[0], &[0, 1]),
            ("few losses", &[(100, 20, 0, 0.0), (50, 20, 0, 1e-5)], &[0, 1], &[0, 1]),
        ];
        for (name, list, takes, tolerates) in table {
            for (sends, expected) in [(Sends::LossSensitive, takes), (Sends::LossTolerant, tolerates)] {
                let mut paths = paths_of(list);
                paths.select(ID, None, sends, Rate::default());
                assert_eq!(used(&paths), expected, "{name}, {sends:?}");
                paths.select(ID, None, sends, Rate::default());
                assert_eq!(used(&paths), expected, "{name}, again");
            }
        }
        // A path that is not used is used again from a third of the widest one's rate.
        let mut paths = paths_of(&[(30, 20, 0, 0.0), (100, 30, 0, 0.0)]);
        for (mbit, expected) in [(30, &[0, 1][..]), (24, &[1]), (30, &[1]), (34, &[0, 1])] {
            paths.path_mut(ID, NicId(0)).expect("there is one").set_rate(Rate::from_mbit(mbit));
            paths.select(ID, None, Sends::LossTolerant, Rate::default());
            assert_eq!(used(&paths), expected, "{mbit} Mbit/s");
        }
        // If the best path fails, the next one counts.
        let mut paths = paths_of(&[(100, 20, 0, 0.0), (50, 80, 0, 0.0)]);
        paths.path_mut(ID, NicId(0)).expect("there is one").up = false;
        paths.select(ID, None, Sends::LossTolerant, Rate::default());
        assert_eq!(used(&paths), [1]);
    }

    /// Breaks: requests and small objects wait for the round trip of the widest path though a shorter one has
    /// room for them; or a bulk transfer stays on a thin path; or frames move to and fro at its limit.
    #[test]
    fn a_little_takes_the_shortest_path_first() {
        let kbit = |kbit: u64| Rate::from_bits_per_sec(kbit * 1_000);
        for (list, hold_ms) in [
            // The path is as long as the widest one, or is not used at all, while there is much to send.
            (&[(2, 30, 0, 0.0), (20, 60, 0, 0.0)], 100),
            (&[(2, 30, 0, 0.0), (50, 560, 0, 0.0)], 100),
        ] {
            let mut paths = paths_of(list);
            let hold = Some(Span::from_millis(hold_ms));
            for (demand, first) in [(0, 0), (999, 0), (1_000, 1), (500, 1), (499, 0), (999, 0)] {
                let limit = paths.select(ID, hold, Sends::LossTolerant, kbit(demand));
                assert_eq!(paths.first(ID), Some(NicId(first)), "{demand} kbit/s of {list:?}");
                assert_eq!(limit, (first == 0).then(|| kbit(1_000)), "{demand} kbit/s");
            }
            // Where nothing is thin, or frames are not put in order, it does not matter.
            assert_eq!(paths.select(ID, None, Sends::LossTolerant, kbit(0)), None);
            assert_eq!(used(&paths), [1]);
            paths.path_mut(ID, NicId(0)).expect("there is one").set_rate(Rate::from_mbit(40));
            assert_eq!(paths.select(ID, hold, Sends::LossTolerant, kbit(0)), None);
        }
    }

    /// Breaks: frames go to and fro between paths whose estimates move, each time out of order; or never to a
    /// path that is better.
    #[test]
    fn a_path_in_use_stays_unless_another_is_better_by_a_quarter() {
        let mut paths = paths_of(&[(100, 20, 0, 0.0), (90, 200, 0, 0.0)]);
        for (mbit, expected) in [(90, &[0][..]), (120, &[0]), (130, &[1]), (90, &[1]), (79, &[0])] {
            paths.path_mut(ID, NicId(1)).expect("there is one").set_rate(Rate::from_mbit(mbit));
            paths.select(ID, None, Sends::LossSensitive, Rate::default());
            assert_eq!(used(&paths), expected, "{mbit} Mbit/s");
        }
    }

    /// Breaks: acknowledgments take the widest path, and the round trip is that of a longer path than the
    /// data takes; or a path that they fill.
    #[test]
    fn acknowledgments_take_the_shortest_path_that_carries_them() {
        for (list, expected) in [
            (&[(172, 39, 0, 0.0), (75, 9, 0, 0.001), (10, 11, 0, 0.0)][..], &[1][..]),
            (&[(172, 39, 0, 0.0), (10, 9, 0, 0.0)], &[0]),
            (&[(172, 39, 0, 0.0), (75, 0, 0, 0.0)], &[0]),
        ] {
            let mut paths = paths_of(list);
            paths.select(ID, None, Sends::Acks, Rate::default());
            assert_eq!(used(&paths), expected, "{list:?}");
            paths.select(ID, None, Sends::LossTolerant, Rate::default());
            assert!(used(&paths).contains(&0), "{list:?}");
        }
    }

    /// Breaks: a transport is told the wrong round trip of all paths, or the clock of a hostile neighbour can
    /// make it any number.
    #[test]
    fn the_round_trip_of_all_paths_is_bounded_by_the_own_clock() {
        let allowance = |base: Span| MIN_STANDING_QUEUE + base / STANDING_QUEUE_DIVISOR;
        let mut paths = paths_of(&[(100, 20, 0, 0.0), (100, 40, 2_000, 0.0)]);
        // There by the longer path, with its jitter, and back by the shorter one.
        let honest = Span::from_millis(20 + 2 + 10);
        let told = paths.base_rtt(ID).expect("two paths work");
        assert!(told.abs_diff(honest + allowance(honest)) < Span::from_micros(300), "{told}");
        for (fixed, spread) in [(Span::from_secs(1_000_000), Span::ZERO), (Span::ZERO, Span::from_secs(77))] {
            for nic in [0, 1] {
                let path = paths.path_mut(ID, NicId(nic)).expect("there is one");
                (path.delay.fixed, path.spread) = (fixed, spread);
                let most = Span::from_millis(42);
                assert_eq!(paths.base_rtt(ID), Some(most + allowance(most)), "{fixed} {spread} {nic}");
            }
        }
        let mut one = paths_of(&[(100, 20, 0, 0.0)]);
        assert_eq!(one.base_rtt(ID), None);
        one.path_mut(ID, NicId(0)).expect("there is one").base_rtt = Span::ZERO;
        assert_eq!(one.base_rtt(ID), None);
    }
}
