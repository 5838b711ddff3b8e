//! Quirks: what the engine does where RFCs leave a choice, or where a kernel departs from them.

/// The engine asks these, and never which profile or recovery a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// On the wire, in its states and in its timers as Linux 6.x.
    pub linux: bool,
    /// First congestion window where none is set.
    pub first_window: FirstWindow,
    /// Which window is taken from a segment as new as the last update.
    pub window_updates: WindowUpdates,
    /// The first window stays after a SYN was sent again. RFC 5681 §3.1 and RFC 6928 §2 make it one segment.
    pub keeps_window_after_syn_timeout: bool,
    /// The window stays where the application does not fill it. RFC 7661 and RFC 5681 §4.1 lower it.
    pub keeps_window_when_idle: bool,
    /// Reno counts ACKs. RFC 3465 counts bytes.
    pub reno_per_ack: bool,
}

/// First congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstWindow {
    /// Two to four segments, by the MSS (RFC 3390).
    Rfc3390,
    /// Ten segments, or 14600 bytes (RFC 6928).
    Rfc6928,
    /// Ten segments of any size, as Linux counts.
    TenSegments,
}

impl FirstWindow {
    /// In segments of `mss` bytes.
    pub const fn segments(self, mss: u32) -> u32 {
        match (self, mss) {
            (FirstWindow::TenSegments, _) => 10,
            (FirstWindow::Rfc6928, 0..=1460) => 10,
            (FirstWindow::Rfc6928, 7300..) => 2,
            (FirstWindow::Rfc6928, mss) => 14_600 / mss,
            (FirstWindow::Rfc3390, 1461..) => 2,
            (FirstWindow::Rfc3390, 1096..) => 3,
            (FirstWindow::Rfc3390, _) => 4,
        }
    }
}

/// Which window is taken from a segment as new as the last update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUpdates {
    /// Any (RFC 9293 §3.10.7.4).
    Any,
    /// A larger one, or none at all (Linux 6.x).
    LargerOrZero,
    /// A larger one (Linux 2.6).
    Larger,
}

impl WindowUpdates {
    /// True if `window` replaces `current`.
    pub const fn takes(self, window: u32, current: u32) -> bool {
        match self {
            WindowUpdates::Any => window != current,
            WindowUpdates::LargerOrZero => window > current || window == 0,
            WindowUpdates::Larger => window > current,
        }
    }
}
