//! The receive buffer of Linux 6.x, which counts memory: what a packet occupies, not what it carries. The
//! window that is announced, whether an ACK may wait, and whether a segment takes the kernel's fast path
//! follow from it.
//!
//! A packet occupies what one occupies that a TUN device has made (`tun_alloc_skb`): it has room for its
//! headers in front, and stands in a buffer of the size that the kernel's allocator gives. Data that fits
//! into the rest of the buffer before it is copied there (`skb_try_coalesce`). What part of memory is payload
//! is learned from full segments (`tcp_measure_rcv_mss`).

use farpace_units::{Instant, Span};
use std::collections::VecDeque;

/// The receive buffer at the beginning (tcp_rmem).
const INITIAL_BUFFER: u32 = 131_072;
/// Payload counts as so many parts of this of memory: half at first.
const PARTS: u64 = 256;
const FIRST_RATIO: u32 = 128;
/// Room in front of a packet.
const HEADROOM: u32 = 64;
/// Bytes of a buffer: of the smallest, whose headers stand in a cache of their own, and of the others.
const SMALL: u32 = 256;
/// What the kernel needs behind the data, and to describe the packet.
const BEHIND: u32 = 320;
const DESCRIPTION: u32 = 256;
/// The program's socket is charged by pages.
const PAGE: u64 = 4096;
/// Data in order opens the window if a segment has so much of it.
const MIN_OPENING: u32 = 128;
/// What the first round trip is expected to bring, in segments.
const FIRST_SEGMENTS: u32 = 10;
/// No window is limited to less.
const MIN_CLAMP: u32 = 1_152;
/// Buffers that are told apart; of more the newest are one.
const MAX_PIECES: usize = 8_192;

/// A segment as it came.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// Stream offset of its first byte.
    pub start: u64,
    /// That behind its last.
    pub end: u64,
    /// Its payload in bytes: more than lies between them, where a part of it was there before the stream
    /// began.
    pub len: u32,
    /// Bytes of the IP packet; of each, where a device has put several together.
    pub packet: u32,
    /// How many these are.
    pub count: u32,
    /// What counts as a full segment of the peer, in bytes of payload, before this one.
    pub full: u32,
}

impl Incoming {
    /// Payload of one of its packets.
    fn each(&self) -> u32 {
        self.len / self.count.max(1)
    }
}

/// A buffer that waits: for the program, or for what is missing before it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    cost: u32,
    /// Bytes that can be added.
    room: u32,
}

/// The receive buffer of one connection.
#[derive(Clone, Debug)]
pub struct LinuxMemory {
    buffer: u32,
    max: u32,
    /// Parts of memory that are payload.
    ratio: u32,
    /// The most that is announced (`window_clamp`), and how far the window is open (`rcv_ssthresh`).
    clamp: u32,
    open: u32,
    /// The window that was announced last (`rcv_wnd`).
    window: u32,
    /// Payload of the largest segment that the peer may send.
    mss: u32,
    ready: VecDeque<Piece>,
    early: Vec<Piece>,
    used: u32,
    /// Most that was read in a round trip, and since when and from where on the present one counts.
    space: u32,
    since: Instant,
    from: u64,
    /// The program has read so far.
    read_to: u64,
    /// The host is short of memory: nothing grows.
    frozen: bool,
}

fn buffer_of(packet: u32) -> u32 {
    let needed = (packet + HEADROOM).next_multiple_of(64);
    if needed <= SMALL { SMALL } else { (needed + BEHIND).next_power_of_two().max(1024) - BEHIND }
}

/// Memory that a packet of so many bytes occupies (`truesize`).
fn cost_of(packet: u32) -> u32 {
    buffer_of(packet) + BEHIND + DESCRIPTION
}

impl LinuxMemory {
    /// The handshake is over (`tcp_init_buffer_space`). `window`: what was announced; `most`: what ever may
    /// be; `mss`: the largest segment that the peer may send; `max`: the largest buffer.
    pub fn new(now: Instant, window: u32, most: u32, mss: u32, max: u32) -> Self {
        let whole = INITIAL_BUFFER / 2;
        let mut clamp = whole.min(most);
        if clamp > 2 * mss && clamp + mss > whole {
            clamp = (2 * mss).max(whole - mss);
        }
        let open = window.min(clamp);
        LinuxMemory {
            buffer: INITIAL_BUFFER,
            max: max.max(INITIAL_BUFFER),
            ratio: FIRST_RATIO,
            clamp,
            open,
            window,
            mss,
            ready: VecDeque::new(),
            early: Vec::new(),
            used: 0,
            space: open.min(window).min(FIRST_SEGMENTS * mss),
            since: now,
            from: 0,
            read_to: 0,
            frozen: false,
        }
    }

    /// Payload that so much memory holds.
    fn payload(&self, memory: u32) -> u32 {
        (u64::from(memory) * u64::from(self.ratio) / PARTS) as u32
    }

    fn free(&self) -> u32 {
        self.payload(self.buffer.saturating_sub(self.used))
    }

    /// Bytes of memory in use.
    pub const fn used(&self) -> u32 {
        self.used
    }
    /// `rcv_ssthresh`, `rcv_space` and `rcv_wnd` of TCP_INFO.
    pub const fn told(&self) -> (u32, u32, u32) {
        (self.open, self.space, self.window)
    }
    /// The most that is announced.
    pub const fn clamp(&self) -> u32 {
        self.clamp
    }
    /// Bytes of memory that it may use.
    pub const fn size(&self) -> u32 {
        self.buffer
    }
    /// The window that was announced last.
    pub const fn window(&self) -> u32 {
        self.window
    }
    /// The host is short of memory, or no longer so.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// The memory that the socket has been charged for suffices for the packet (`sk_forward_alloc`).
    /// `sending`: what its own data occupies.
    pub fn is_charged_for(&self, packet: u32, sending: u64) -> bool {
        let charged = u64::from(self.used) + sending;
        u64::from(cost_of(packet)) <= (PAGE - charged % PAGE) % PAGE
    }

    /// Data in order has come. True: it opens the window.
    pub fn on_data(&mut self, segment: &Incoming) -> bool {
        let len = segment.len;
        let fits = |last: &&mut Piece| last.end == segment.start && last.room >= len && segment.count == 1;
        if let Some(last) = self.ready.back_mut().filter(fits) {
            (last.end, last.room) = (segment.end, last.room - len);
        } else {
            let piece = self.piece(segment);
            self.used = self.used.saturating_add(piece.cost);
            self.keep(piece);
        }
        let full = self.measure(segment);
        len >= MIN_OPENING && self.grow(segment, full)
    }

    /// Data ahead of its turn has come, and is kept; all before `next` is in order. True: it opens the
    /// window, which it may if there is SACK.
    pub fn on_early(&mut self, segment: &Incoming, sack: bool, next: u64) -> bool {
        let full = self.measure(segment);
        let opens = sack && self.grow(segment, full);
        self.keep_early(segment);
        self.enlarge(self.space, next);
        opens
    }

    fn keep_early(&mut self, segment: &Incoming) {
        let len = segment.len;
        let fits = |piece: &&mut Piece| piece.end == segment.start && piece.room >= len && segment.count == 1;
        if let Some(before) = self.early.iter_mut().find(fits) {
            (before.end, before.room) = (segment.end, before.room - len);
            return;
        }
        let piece = self.piece(segment);
        self.drop_early(|other| other.start >= piece.start && other.end <= piece.end);
        self.used = self.used.saturating_add(piece.cost);
        let at = self.early.partition_point(|other| other.start < piece.start);
        self.early.insert(at, piece);
        if self.early.len() > MAX_PIECES {
            self.early.pop().inspect(|last| self.used = self.used.saturating_sub(last.cost));
        }
    }

    /// All up to `next` is in order now (`tcp_ofo_queue`).
    pub fn fill(&mut self, next: u64) {
        let mut reached = self.ready.back().map_or(0, |last| last.end);
        while let Some(first) = self.early.first().copied().filter(|first| first.start <= next) {
            self.early.remove(0);
            if first.end <= reached {
                self.used = self.used.saturating_sub(first.cost);
                continue;
            }
            let len = (first.end - first.start) as u32;
            match self.ready.back_mut() {
                Some(last) if last.end == first.start && last.room >= len => {
                    (last.end, last.room) = (first.end, last.room - len);
                    self.used = self.used.saturating_sub(first.cost);
                }
                _ => self.keep(first),
            }
            reached = first.end;
        }
    }

    /// `offset` is beyond what the program was known to have read.
    pub fn is_unread(&self, offset: u64) -> bool {
        offset > self.read_to
    }

    /// What waits ahead of its turn is given up: the peer has ended (`tcp_fin`).
    pub fn forget_early(&mut self) {
        self.drop_early(|_| true);
    }

    /// The program has read all before `offset`; `rtt` is the receiver's estimate.
    pub fn read(&mut self, now: Instant, offset: u64, rtt: Span) {
        let next = self.ready.back().map_or(offset, |last| last.end.max(offset));
        let touched = |first: &Piece| first.start < offset || first.end <= offset;
        while let Some(first) = self.ready.front().copied().filter(touched) {
            self.adjust(now, first.end.min(offset), next, rtt);
            if first.end > offset {
                break;
            }
            self.ready.pop_front();
            self.used = self.used.saturating_sub(first.cost);
        }
        self.read_to = offset;
    }

    /// The program has copied the bytes before `offset` from one buffer, and all before `next` are in order
    /// (`tcp_rcv_space_adjust`). What it copies in a round trip counts without what still waits.
    fn adjust(&mut self, now: Instant, offset: u64, next: u64, rtt: Span) {
        if rtt.is_zero() || now.since(self.since) < rtt {
            return;
        }
        let copied = offset.saturating_sub(self.from).saturating_sub(next.saturating_sub(offset));
        let copied = u32::try_from(copied).unwrap_or(u32::MAX);
        if copied > self.space {
            self.enlarge(copied, next);
        }
        (self.since, self.from) = (now, offset);
    }

    /// The window to announce (`__tcp_select_window`). `full`: a full segment of the peer; `shift`: of the
    /// windows.
    pub fn select(&self, full: u32, shift: u8) -> u32 {
        let (mut free, whole) = (self.free(), self.payload(self.buffer));
        let most = self.clamp.min(whole);
        let full = full.min(most);
        if most == 0 {
            return 0;
        }
        if free < most / 2 {
            free = free >> shift << shift;
            if free < whole / 16 || free < full {
                return 0;
            }
        }
        let free = free.min(self.open);
        if shift > 0 {
            return free.next_multiple_of(1 << shift);
        }
        if self.window + full <= free || self.window > free {
            free / full.max(1) * full.max(1)
        } else if full == most && free > self.window + most / 2 {
            free
        } else {
            self.window
        }
    }

    /// What is announced from now on, where `left` of the last window is: never less. `most`: no more than
    /// that is wanted.
    pub fn announce(&mut self, left: u32, full: u32, shift: u8, most: u32) -> u32 {
        let wanted = self.select(full, shift).min(most >> shift << shift);
        self.window = if wanted < left { left.next_multiple_of(1 << shift) } else { wanted };
        self.window
    }

    /// Reading has made so much room that the peer should hear of it, where `left` of the last window is.
    pub fn has_opened(&self, left: u32, full: u32, shift: u8) -> bool {
        if u64::from(left) * 2 > u64::from(self.clamp) {
            return false;
        }
        let window = self.select(full, shift);
        window > 0 && window >= left.saturating_mul(2)
    }

    /// The program reads `space` bytes in a round trip, and all before `next` is in order
    /// (`tcp_rcvbuf_grow`).
    fn enlarge(&mut self, space: u32, next: u64) {
        let (read, before) = (u64::from(space), u64::from(self.space.max(1)));
        self.space = space;
        let mut wanted = 2 * read;
        wanted += 2 * (wanted * read.saturating_sub(before) / before);
        wanted += self.early.last().map_or(0, |last| last.end.saturating_sub(next));
        let memory = (wanted * PARTS / u64::from(self.ratio.max(1))).min(u64::from(self.max)) as u32;
        if memory > self.buffer && !self.frozen {
            self.buffer = memory;
            self.clamp = self.payload(memory);
        }
    }

    fn piece(&self, segment: &Incoming) -> Piece {
        let room = buffer_of(segment.packet).saturating_sub(HEADROOM + segment.packet);
        Piece {
            start: segment.start,
            end: segment.end,
            cost: cost_of(segment.packet).saturating_mul(segment.count.max(1)),
            room: if segment.count == 1 { room } else { 0 },
        }
    }

    fn keep(&mut self, piece: Piece) {
        let full = self.ready.len() >= MAX_PIECES;
        match self.ready.back_mut() {
            Some(last) if full => {
                (last.end, last.cost, last.room) = (piece.end, last.cost.saturating_add(piece.cost), 0);
            }
            _ => self.ready.push_back(piece),
        }
    }

    fn drop_early(&mut self, gone: impl Fn(&Piece) -> bool) {
        let used = &mut self.used;
        self.early.retain(|piece| {
            let goes = gone(piece);
            if goes {
                *used = used.saturating_sub(piece.cost);
            }
            !goes
        });
    }

    /// What part of memory is payload: it is looked at when the size of full segments changes. That size now.
    fn measure(&mut self, segment: &Incoming) -> u32 {
        let len = segment.each();
        if len < segment.full {
            return segment.full;
        }
        if len != segment.full {
            let ratio = (u64::from(len) * PARTS / u64::from(cost_of(segment.packet))).clamp(1, 255) as u32;
            if ratio != self.ratio {
                self.ratio = ratio;
                self.limit(self.payload(self.buffer));
                self.space = self.space.min(self.clamp);
            }
        }
        len.min(self.mss)
    }

    /// No more than `clamp` bytes are to be announced (`tcp_set_window_clamp`), until the size of full
    /// segments changes.
    pub fn limit(&mut self, clamp: u32) {
        let (before, clamp) = (self.clamp, clamp.max(MIN_CLAMP));
        self.clamp = clamp;
        if clamp < before {
            self.open = self.open.min(clamp);
        } else if clamp > before {
            self.open = self.open.max(self.window.min(clamp));
        }
    }

    /// `tcp_grow_window`
    fn grow(&mut self, segment: &Incoming, full: u32) -> bool {
        let room = self.clamp.min(self.free()).saturating_sub(self.open);
        if room == 0 || self.frozen {
            return false;
        }
        let (len, cost) = (segment.each(), cost_of(segment.packet));
        let more = if self.payload(cost) <= len { 2 * self.mss } else { self.grown_by(len, cost, full) };
        if more == 0 {
            return false;
        }
        self.open += room.min(more.max(2 * len));
        true
    }

    /// `__tcp_grow_window`
    fn grown_by(&self, len: u32, cost: u32, full: u32) -> u32 {
        let (mut payload, mut window) = (self.payload(cost) / 2, self.payload(self.max) / 2);
        while self.open <= window {
            if payload <= len {
                return 2 * full;
            }
            (payload, window) = (payload / 2, window / 2);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_448;

    fn memory() -> LinuxMemory {
        LinuxMemory::new(Instant::ZERO, 45 * MSS, u32::MAX, MSS, 6 << 20)
    }

    fn segment(start: u64, len: u32, full: u32) -> Incoming {
        Incoming { start, end: start + u64::from(len), len, packet: len + 52, count: 1, full }
    }

    /// Breaks: windows and ACKs of profile `linux` drift away from the kernel's: what Linux 6.18 told of
    /// itself (SO_MEMINFO, TCP_INFO) for these segments on a TUN device, where nothing was read before the
    /// end.
    #[test]
    fn as_the_kernel_counts() {
        let mut m = memory();
        assert_eq!(m.told(), (64_088, 14_480, 65_160));
        let (mut at, mut full) = (0, 536);
        for (len, used, open) in [
            (100, 832, 64_088),
            (100, 1_664, 64_088),
            (512, 2_944, 52_224),
            (1_000, 5_248, 56_832),
            (1_448, 7_552, 68_056),
            (1_400, 9_856, 70_952),
            (200, 9_856, 73_848),
            (260, 11_136, 74_960),
        ] {
            m.on_data(&segment(at, len, full));
            full = if len >= full { len.min(MSS) } else { full };
            if (len, at) == (100, 100) {
                full = 100; // two of a size
            }
            at += u64::from(len);
            assert_eq!((m.used(), m.told().0), (used, open), "{len}");
        }
        m.read(Instant::ZERO, at, Span::ZERO);
        assert_eq!(m.used(), 0);
        assert!(!m.is_charged_for(152, 0) && m.is_charged_for(152, 932) && !m.is_charged_for(1_500, 2_000));
    }

    /// Breaks: memory of what came ahead of its turn is counted twice, or never given back.
    #[test]
    fn what_came_early() {
        let mut m = memory();
        assert!(m.on_early(&segment(1_448, 1_448, 536), true, 0));
        assert!(!m.on_early(&segment(5_000, 1_000, 1_448), false, 0));
        m.on_data(&segment(0, 1_448, 1_448));
        m.fill(2_896);
        assert_eq!(m.used(), 3 * 2_304);
        m.read(Instant::ZERO, 2_896, Span::ZERO);
        assert_eq!(m.used(), 2_304);
        m.on_data(&segment(2_896, 2_104, 1_448));
        m.fill(6_000);
        m.read(Instant::ZERO, 6_000, Span::ZERO);
        assert_eq!(m.used(), 0);
    }

    /// Breaks: the receive buffer of profile `linux` grows by what a program reads late at once, which is no
    /// round trip's worth, or by what it has not read yet.
    #[test]
    fn each_buffer_is_looked_at_by_itself() {
        let ms = |n| Instant::ZERO + Span::from_millis(n);
        for (reads, space) in [
            (vec![(20, 20)], 14_480), // the first buffer ends a round trip, the others none
            (vec![(5, 16), (20, 20)], 14 * MSS), // the seventeenth ends it, and three wait
            (vec![(5, 10), (20, 11)], 14_480), // eleven were read, but nine wait
        ] {
            let mut m = memory();
            (0..20).for_each(|n| _ = m.on_data(&segment(n * u64::from(MSS), MSS, MSS)));
            for (at, segments) in reads {
                m.read(ms(at), segments * u64::from(MSS), Span::from_millis(10));
            }
            assert_eq!(m.told().1, space);
        }
    }
}
