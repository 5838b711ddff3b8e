//! The receive window of Linux, as far as it decides about ACKs: it begins at 64 kB and opens as data comes.
//!
//! Each segment opens it by two of the maximum size, up to a limit that autotuning moves: to twice what was read in a round
//! trip, and more while that grows (`tcp_rcv_space_adjust`). The engine itself announces its whole buffer at once.

use super::DataArrival;
use farpace_units::{Instant, Span};

/// What Linux takes 128 kB of buffer (`tcp_rmem`) for at first, and when it has seen that full segments fill theirs better.
const FIRST: u32 = 65_536;
const FIRST_LIMIT: u32 = 80_896;
/// Segments of this size open it.
const LEAST: u32 = 128;
/// What the first round trip is expected to bring, in segments.
const FIRST_SEGMENTS: u32 = 10;

/// How far the window is open.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// In bytes; none before the first data.
    open: Option<u32>,
    limit: u32,
    /// Most that was read in a round trip.
    most: u32,
    /// Read since then.
    read: u32,
    since: Option<Instant>,
}

impl Opening {
    /// Data has arrived, and is read at once. True if it opens the window.
    pub fn on_data(&mut self, a: &DataArrival) -> bool {
        let mss = a.mss.max(1);
        let open = self.open.unwrap_or_else(|| {
            (self.limit, self.most) = (FIRST_LIMIT, FIRST_SEGMENTS * mss);
            FIRST / mss * mss
        });
        let limit = self.limit.min(a.window);
        let opens = a.len >= LEAST && open < limit;
        let by = if opens { 2 * mss.max(a.len) } else { 0 };
        self.open = Some(open.saturating_add(by).min(limit.max(open)));
        self.tune(a);
        opens
    }

    fn tune(&mut self, a: &DataArrival) {
        self.read = self.read.saturating_add(a.len);
        let since = *self.since.get_or_insert(a.now);
        if a.srtt == Span::ZERO || a.now.since(since) < a.srtt {
            return;
        }
        if self.read > self.most {
            let (read, most) = (u64::from(self.read), u64::from(self.most.max(1)));
            let wanted = (2 * read).saturating_add(2 * (2 * read * (read - most) / most));
            self.limit = self.limit.max(u32::try_from(wanted).unwrap_or(u32::MAX));
            self.most = self.read;
        }
        (self.read, self.since) = (0, Some(a.now));
    }
}
