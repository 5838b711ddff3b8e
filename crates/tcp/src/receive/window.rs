//! How large the receive window is: fixed, or autotuned from what the application reads in a round trip.

use super::opening::Opening;
use super::round_trip::ReceiverRtt;
use crate::config::{BufferSize, WindowGrowth};
use farpace_units::{ByteCount, Instant, Span};

/// Round trips shorter than this count as this: an application that shares its processor reads in bursts.
const MIN_ROUND: Span = Span::from_millis(4);
/// The round trip that is assumed while none is known. A longer one makes windows larger.
const UNKNOWN_ROUND: Span = Span::from_secs(1);
/// The window, in round trips of reading. Slow start doubles, so two are in flight when one has been read.
/// The third is what is sent until this is known, and what waits behind a hole while that is filled.
const ROUNDS: u64 = 3;
/// Where the sender starts faster than by doubling, what it sends in the next round trip is as many times
/// what was read in the last as that is of the one before; and so much more, because round trips are told
/// apart by parts of them, ...
const GROWTH_MARGIN: f64 = 1.25;
/// ... but not more round trips than this. A window is a promise, not memory, and nothing takes a promise
/// back.
const MAX_ROUNDS: f64 = 20.0;
/// Bytes that Linux announces of its initial receive buffer (half of tcp_rmem's 131,072), before they are
/// rounded down to whole segments.
pub const LINUX_INITIAL_WINDOW: u32 = 65_536;
/// Parts in which a round trip is measured.
const PARTS: usize = 4;

/// Bytes read in the last two round trips.
#[derive(Clone, Debug, Default)]
struct ReadRate {
    /// Of the parts before this one, the newest first.
    parts: [u64; 2 * PARTS],
    /// Of this part, which began then.
    current: u64,
    since: Option<Instant>,
    /// Parts since the first one.
    age: u64,
    /// Sums of the newer and of the older half of the parts.
    sums: [u64; 2],
}

impl ReadRate {
    fn advance(&mut self, now: Instant, rtt: Span) {
        let rtt = if rtt.is_zero() { UNKNOWN_ROUND } else { rtt.max(MIN_ROUND) };
        let part = rtt / PARTS as u64;
        let since = *self.since.get_or_insert(now);
        let elapsed = now.since(since);
        if elapsed < part {
            return;
        }
        let ended = elapsed.as_nanos() / part.as_nanos().max(1);
        for _ in 0..ended.min(2 * PARTS as u64) {
            self.parts.rotate_right(1);
            self.parts[0] = std::mem::take(&mut self.current);
        }
        self.since = Some(since + part * ended);
        self.age = self.age.saturating_add(ended);
        let sum = |parts: &[u64]| parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
        let (last, before) = self.parts.split_at(PARTS);
        self.sums = [sum(last), sum(before)];
    }
    /// Bytes read in the last round trip.
    fn last(&self) -> u64 {
        self.sums[0].saturating_add(self.current)
    }
    /// The window that lets the sender go on as it does: not more than `MAX_ROUNDS` times what was read last.
    fn wanted(&self) -> u64 {
        let (last, before) = (self.last(), self.sums[1]);
        let steady = last.saturating_mul(ROUNDS);
        // A round trip that was not a whole one says nothing of the growth.
        if before == 0 || self.age < 2 * PARTS as u64 {
            return steady;
        }
        let growth = last as f64 / before as f64 * GROWTH_MARGIN;
        steady.max((last as f64 * growth.min(MAX_ROUNDS)) as u64)
    }
}

/// Size of the receive window of one connection: the bytes that may wait unread, and those that may be in
/// flight.
#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    size: u32,
    /// What it began with.
    initial: u32,
    max: u32,
    fixed: bool,
    growth: WindowGrowth,
    rtt: ReceiverRtt,
    reads: ReadRate,
    /// When data came last, and the segment size then.
    last: (Instant, u32),
    /// Linux acknowledges what opens its window at once, so its ACK policy needs this even where the size is
    /// fixed.
    opening: Option<Opening>,
    /// The host is short of memory: the window does not grow.
    frozen: bool,
}

impl ReceiveWindow {
    /// A window for segments of at most `mss` bytes. `opens`: the ACK policy asks what opens it.
    pub fn new(buffer: BufferSize, growth: WindowGrowth, opens: bool, mss: u32) -> Self {
        let bytes = |n: ByteCount| u32::try_from(n.get()).unwrap_or(u32::MAX).max(1);
        let mut window = ReceiveWindow {
            size: bytes(buffer.initial),
            initial: bytes(buffer.initial),
            max: bytes(buffer.max),
            fixed: buffer.is_fixed(),
            growth,
            rtt: match growth {
                WindowGrowth::Ahead => ReceiverRtt::default(),
                WindowGrowth::Linux => ReceiverRtt::linux(),
            },
            reads: ReadRate::default(),
            last: (Instant::ZERO, mss),
            opening: None,
            frozen: false,
        };
        let linux = !window.fixed && growth == WindowGrowth::Linux;
        if opens || linux {
            window.opening = Some(Opening::new(LINUX_INITIAL_WINDOW));
        }
        window.size_for(mss);
        window
    }

    /// The segment size is known: Linux announces whole segments at first.
    pub fn size_for(&mut self, mss: u32) {
        let mss = mss.max(1);
        if self.opening.is_some() {
            self.opening = Some(Opening::new((LINUX_INITIAL_WINDOW / mss).max(1) * mss));
        }
        if !self.fixed && self.growth == WindowGrowth::Linux {
            self.size = (self.initial.min(self.max) / mss).max(1) * mss;
        }
    }

    /// Bytes of the window now.
    pub fn size(&self) -> u32 {
        self.size
    }
    /// Bytes that it may reach.
    pub fn max(&self) -> u32 {
        self.max
    }
    /// It is limited to `max` bytes from now on, as by a peer without window scaling.
    pub fn limit(&mut self, max: u32) {
        self.max = self.max.min(max);
        self.size = self.size.min(max);
    }
    /// The receiver's estimate of the round trip.
    pub fn rtt(&mut self) -> &mut ReceiverRtt {
        &mut self.rtt
    }
    /// The same, to read.
    pub fn rtt_estimate(&self) -> Span {
        self.rtt.get()
    }
    /// The host is short of memory, or no longer so.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }
    /// The host needs memory: the window comes down to `size` bytes, which a fixed one does not.
    pub fn shrink(&mut self, size: u32) {
        if !self.fixed {
            self.size = self.size.min(size);
            self.reads = ReadRate::default();
        }
    }

    /// `len` bytes of new payload have arrived, in segments of at most `mss` bytes. True if they open a
    /// window of Linux.
    pub fn on_data(&mut self, now: Instant, len: u32, mss: u32) -> bool {
        self.last = (now, mss);
        if !self.fixed {
            self.reads.advance(now, self.rtt.get());
        }
        let Some(opening) = &mut self.opening else { return false };
        let opens = opening.on_data(now, len, mss, self.max);
        if !self.fixed && self.growth == WindowGrowth::Linux && !self.frozen {
            self.size = self.size.max(opening.open());
        }
        opens
    }

    /// The application has read so much.
    pub fn on_read(&mut self, bytes: ByteCount) {
        let bytes = bytes.get();
        if let Some(opening) = &mut self.opening {
            let (now, mss) = self.last;
            opening.on_read(now, u32::try_from(bytes).unwrap_or(u32::MAX), mss, self.rtt.get());
        }
        if self.fixed {
            return;
        }
        self.reads.current = self.reads.current.saturating_add(bytes);
        let most = self.reads.last().saturating_mul(MAX_ROUNDS as u64);
        if self.growth == WindowGrowth::Ahead && !self.frozen && most > u64::from(self.size) {
            let wanted = self.reads.wanted().min(u64::from(self.max)) as u32;
            self.size = self.size.max(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1_448;

    fn ahead(initial: u64, max: u64) -> ReceiveWindow {
        let size = BufferSize::auto(ByteCount::new(initial), ByteCount::new(max));
        ReceiveWindow::new(size, WindowGrowth::Ahead, false, MSS)
    }

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::from_millis(n)
    }

    /// Breaks: the start on far paths: a sender that doubles its window each round trip meets the receiver's.
    #[test]
    fn the_window_stays_ahead_of_slow_start() {
        for (rtt, spread) in [(1_000, 1_000), (1_000, 100), (100, 100), (40, 1)] {
            let mut window = ahead(64 << 10, 1 << 30);
            window.rtt().on_handshake(Span::from_millis(rtt));
            let mut flight = 10 * u64::from(MSS);
            for round in 0..14 {
                // The flight arrives within `spread`, in 100 pieces, and each is read at once. An ACK of a
                // piece lets twice as much leave, so that at the end twice the flight is under way.
                for piece in 0..100 {
                    window.on_data(ms(round * rtt + piece * spread / 100), (flight / 100) as u32, MSS);
                    window.on_read(ByteCount::new(flight / 100));
                    let under_way = flight + (piece + 1) * flight / 100;
                    assert!(
                        u64::from(window.size()) >= under_way.min(1 << 30),
                        "round {round} of {rtt} ms: {} for {under_way}",
                        window.size()
                    );
                }
                flight *= 2;
            }
        }
    }

    /// Breaks: memory: a steady sender gets no more than four round trips of window, and an application that
    /// does not read gets none.
    #[test]
    fn a_steady_path_needs_a_steady_window() {
        let mut window = ahead(64 << 10, 1 << 30);
        window.rtt().on_handshake(Span::from_millis(100));
        let each = 12_500_u64; // 100 Mbit/s, every millisecond
        for now in 0..60_000 {
            window.on_data(ms(now), each as u32, MSS);
            window.on_read(ByteCount::new(each));
        }
        let bdp = 100 * each;
        assert!((3 * bdp..=4 * bdp).contains(&u64::from(window.size())), "{} of {bdp}", window.size());
        let mut unread = ahead(64 << 10, 1 << 30);
        unread.rtt().on_handshake(Span::from_millis(100));
        for now in 0..60_000 {
            unread.on_data(ms(now), each as u32, MSS);
        }
        assert_eq!(unread.size(), 64 << 10);
    }

    /// Breaks: the window of Linux: 64 kB in whole segments, then two segments for each that comes, up to a
    /// limit.
    #[test]
    fn linux_opens_by_two_segments() {
        let size = BufferSize::auto(ByteCount::new(65_536), ByteCount::new(6 << 20));
        let mut window = ReceiveWindow::new(size, WindowGrowth::Linux, true, MSS);
        assert_eq!(window.size(), 45 * MSS);
        assert!(window.on_data(ms(1), MSS, MSS));
        assert_eq!(window.size(), 47 * MSS);
        while window.on_data(ms(1), MSS, MSS) {}
        assert_eq!(window.size(), 80_896, "nothing was read");
        // 60 segments are read in a round trip of 10 ms: 2 · 60 + 2 · (2 · 60 · 50 / 10) segments.
        window.rtt().on_handshake(Span::from_millis(10));
        window.on_data(ms(11), MSS, MSS);
        window.on_read(ByteCount::new(60 * u64::from(MSS)));
        while window.on_data(ms(12), MSS, MSS) {}
        assert_eq!(window.size(), 1_320 * MSS);
    }

    /// Breaks: what a user has set: a fixed window neither grows nor shrinks.
    #[test]
    fn a_fixed_window_stays() {
        let mut window =
            ReceiveWindow::new(BufferSize::fixed(ByteCount::new(9_000)), WindowGrowth::Ahead, true, MSS);
        for now in 0..1_000 {
            window.on_data(ms(now), 9_000, MSS);
            window.on_read(ByteCount::new(9_000));
        }
        window.shrink(100);
        assert_eq!(window.size(), 9_000);
    }

    proptest! {
        /// Breaks: limits: whatever is read and whenever, the window is at most its maximum, and only the
        /// host's lack of memory makes it smaller.
        #[test]
        fn within_its_limits(
            reads in prop::collection::vec((0u64..10_000_000_000, 0u64..1 << 33, any::<bool>()), 1..50),
            max in 1u64..1 << 31,
        ) {
            let mut window = ahead(64 << 10, max);
            let (mut now, mut before) = (Instant::ZERO, window.size());
            for (gap, bytes, frozen) in reads {
                now += Span::from_nanos(gap);
                window.freeze(frozen);
                window.on_data(now, bytes.min(1 << 20) as u32, MSS);
                window.on_read(ByteCount::new(bytes));
                prop_assert!(window.size() >= before && u64::from(window.size()) <= max.max(64 << 10));
                prop_assert!(!frozen || window.size() == before);
                before = window.size();
            }
        }
    }
}
