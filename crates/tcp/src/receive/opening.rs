//! The receive window of Linux 6.x: it begins at 64 kB and opens as data comes.
//!
//! Each full segment opens it by two of the maximum size (tcp_grow_window), up to a limit that autotuning
//! moves: to twice what was read in a round trip, and more while that grows (tcp_rcv_space_adjust).

use farpace_units::{Instant, Span};

/// The limit once full segments have shown how well they fill the memory of an initial buffer of 128 KiB
/// (tcp_rmem).
const FIRST_LIMIT: u32 = 80_896;
/// Segments of this size open it.
const MIN_OPENING: u32 = 128;
/// What the first round trip is expected to bring, in segments.
const FIRST_SEGMENTS: u32 = 10;

/// How far the window is open.
#[derive(Clone, Debug)]
pub struct Opening {
    /// In bytes.
    open: u32,
    limit: u32,
    /// Most that was read in a round trip; none before the first data.
    most: Option<u32>,
    /// Read since then.
    read: u32,
    since: Option<Instant>,
}

impl Opening {
    /// A window of `initial` bytes.
    pub fn new(initial: u32) -> Self {
        Opening { open: initial, limit: FIRST_LIMIT.max(initial), most: None, read: 0, since: None }
    }
    /// Bytes that it is open.
    pub fn open(&self) -> u32 {
        self.open
    }
    /// The application has read so much of what had come by `now`.
    pub fn on_read(&mut self, now: Instant, bytes: u32, mss: u32, rtt: Span) {
        self.read = self.read.saturating_add(bytes);
        self.tune(now, mss.max(1), rtt);
    }
    /// `len` bytes of payload have arrived, of segments of at most `mss` bytes. The window is at most `max`
    /// bytes. True if this segment opens it.
    pub fn on_data(&mut self, now: Instant, len: u32, mss: u32, max: u32) -> bool {
        let mss = mss.max(1);
        self.since.get_or_insert(now);
        let limit = self.limit.min(max);
        let opens = len >= MIN_OPENING && self.open < limit;
        if opens {
            self.open = self.open.saturating_add(2 * mss.max(len)).min(limit);
        }
        opens
    }

    fn tune(&mut self, now: Instant, mss: u32, rtt: Span) {
        let since = self.since.unwrap_or(now);
        if rtt == Span::ZERO || now.since(since) < rtt {
            return;
        }
        let most = self.most.unwrap_or(FIRST_SEGMENTS * mss);
        if self.read > most {
            let (read, most) = (u64::from(self.read), u64::from(most.max(1)));
            let wanted = (2 * read).saturating_add(2 * (2 * read * (read - most) / most));
            self.limit = self.limit.max(u32::try_from(wanted).unwrap_or(u32::MAX));
            self.most = Some(self.read);
        }
        (self.read, self.since) = (0, Some(now));
    }
}
