//! The course of a transfer in slices of at least a round trip, in bounded memory.

use farpace_units::{Instant, Span};

/// Slices of one direction. When there are more, two become one.
pub const MAX_SLICES: usize = 2_048;

macro_rules! waits {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// What the sender waited for before it sent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Wait { $($(#[$doc])* $variant),* }
        impl Wait {
            /// All of them.
            pub const ALL: &'static [Wait] = &[$(Wait::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Wait::ALL.len();
            /// The name in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Wait::$variant => $name),* }
            }
        }
    };
}

waits! {
    /// Everything was acknowledged: the sender's program had nothing to send.
    Program = "program",
    /// Everything was acknowledged, and the other side's program had to speak first.
    Peer = "peer",
    /// The receive window was closed.
    ZeroWindow = "zero_window",
    /// The receive window was full.
    Window = "window",
    /// An ACK, which released what came next.
    Ack = "ack",
    /// A lone segment's ACK, which the receiver delayed.
    DelayedAck = "delayed_ack",
    /// Nothing that can be seen: the sender had both windows and the ACK, and waited.
    Sender = "sender",
    /// A retransmission timer.
    Timer = "timer",
    /// The connection: from the first SYN to the first data.
    Connect = "connect",
}

/// What happened in one slice of time.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Its beginning.
    pub start: Instant,
    /// Its end.
    pub end: Instant,
    /// First frame of the sender in it.
    pub first_frame: u64,
    /// Last frame of the sender in it.
    pub last_frame: u64,
    /// New payload sent.
    pub sent: u64,
    /// Payload that was sent again.
    pub resent: u64,
    /// Payload acknowledged or SACKed.
    pub delivered: u64,
    /// Segments with data.
    pub segments: u32,
    /// Those shorter than full ones, without ends of writes behind which the send buffer was full.
    pub short: u32,
    /// Those that left directly behind an ACK.
    pub prompt: u32,
    /// Most bytes in flight, as the sender knew it.
    pub flight: u64,
    /// Smallest offered window.
    pub window: u64,
    /// Least, largest and sum of round trips from the capture point to the receiver and back, and how many.
    pub far: Stat,
    /// The same from the capture point to the sender and back.
    pub near: Stat,
    /// Bytes by which ACKs of new data did not move the right edge of the window on.
    pub unread: u64,
    /// Losses, as retransmissions that were needed.
    pub losses: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// Time by what the sender waited for.
    pub waits: [Span; Wait::COUNT],
    /// ECN echoes.
    pub echoes: u32,
}

/// Least, most, sum and number of spans.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stat {
    /// How many.
    pub n: u32,
    /// The least.
    pub min: Span,
    /// The largest.
    pub max: Span,
    /// All together.
    pub sum: Span,
}

impl Stat {
    /// One more.
    pub fn add(&mut self, value: Span) {
        self.min = if self.n == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.sum += value;
        self.n = self.n.saturating_add(1);
    }

    /// Mean; zero for none.
    pub fn mean(&self) -> Span {
        if self.n == 0 { Span::ZERO } else { self.sum / u64::from(self.n) }
    }

    fn merge(&mut self, other: &Stat) {
        if other.n == 0 {
            return;
        }
        self.min = if self.n == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.n = self.n.saturating_add(other.n);
    }
}

impl Slice {
    fn new(start: Instant) -> Self {
        Slice {
            start,
            end: start,
            first_frame: 0,
            last_frame: 0,
            sent: 0,
            resent: 0,
            delivered: 0,
            segments: 0,
            short: 0,
            prompt: 0,
            flight: 0,
            window: u64::MAX,
            far: Stat::default(),
            near: Stat::default(),
            unread: 0,
            losses: 0,
            timeouts: 0,
            waits: [Span::ZERO; Wait::COUNT],
            echoes: 0,
        }
    }

    /// How long it lasts.
    pub fn duration(&self) -> Span {
        self.end.since(self.start)
    }

    /// Time the sender waited for one thing.
    pub fn waited(&self, wait: Wait) -> Span {
        self.waits.get(wait as usize).copied().unwrap_or_default()
    }

    fn merge(&mut self, other: &Slice) {
        self.end = other.end;
        if self.first_frame == 0 {
            self.first_frame = other.first_frame;
        }
        self.last_frame = self.last_frame.max(other.last_frame);
        self.sent += other.sent;
        self.resent += other.resent;
        self.delivered += other.delivered;
        self.segments += other.segments;
        self.short += other.short;
        self.prompt += other.prompt;
        self.flight = self.flight.max(other.flight);
        self.window = self.window.min(other.window);
        self.far.merge(&other.far);
        self.near.merge(&other.near);
        self.unread += other.unread;
        self.losses += other.losses;
        self.timeouts += other.timeouts;
        self.echoes += other.echoes;
        for (to, from) in self.waits.iter_mut().zip(other.waits) {
            *to += from;
        }
    }
}

/// All slices of one direction.
#[derive(Debug, Default)]
pub struct Timeline {
    slices: Vec<Slice>,
    /// A slice lasts at least so long.
    width: Span,
    /// How often two slices became one.
    pub halvings: u32,
}

impl Timeline {
    /// Memory on the heap, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.slices.capacity() * size_of::<Slice>()
    }

    /// Nothing follows: room for more goes.
    pub(super) fn shrink(&mut self) {
        self.slices.shrink_to_fit();
    }

    /// The slices, in order of time.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The slice at `now`, a new one if the last has lasted for `round` and more.
    pub(super) fn at(&mut self, now: Instant, round: Span) -> &mut Slice {
        let width = self.width.max(round).max(Span::from_micros(100));
        let begin_new = match self.slices.last_mut() {
            None => true,
            Some(last) => {
                last.end = last.end.max(now);
                last.duration() >= width
            }
        };
        if begin_new {
            if self.slices.len() >= MAX_SLICES {
                self.halve();
            }
            let start = self.slices.last().map_or(now, |last| last.end);
            self.slices.push(Slice::new(start));
        }
        let last = self.slices.len() - 1;
        &mut self.slices[last]
    }

    /// The windows seen so far are larger by this shift.
    pub(super) fn rescale(&mut self, shift: u8) {
        for slice in self.slices.iter_mut().filter(|slice| slice.window < u64::MAX) {
            slice.window <<= shift;
        }
    }

    pub(super) fn last(&mut self) -> Option<&mut Slice> {
        self.slices.last_mut()
    }

    fn halve(&mut self) {
        let mut kept = Vec::with_capacity(MAX_SLICES);
        for pair in self.slices.chunks(2) {
            let mut first = pair[0];
            if let Some(second) = pair.get(1) {
                first.merge(second);
            }
            kept.push(first);
        }
        self.halvings += 1;
        let whole = self.slices.last().map_or(Span::ZERO, |last| last.end.since(kept[0].start));
        self.width = whole / (MAX_SLICES as u64 / 2);
        self.slices = kept;
    }
}
