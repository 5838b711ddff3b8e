//! Sizes of socket buffers.

use super::{MAX_WINDOW, Profile};
use crate::receive::LINUX_INITIAL_WINDOW;
use farpace_units::ByteCount;

/// Size of a socket buffer: fixed, or autotuned from `initial` up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSize {
    /// Size at the start of the connection.
    pub initial: ByteCount,
    /// Upper limit of autotuning; equal to `initial` for a buffer of fixed size.
    pub max: ByteCount,
}

impl BufferSize {
    /// A buffer of `size` bytes, whatever the path needs.
    pub const fn fixed(size: ByteCount) -> Self {
        BufferSize { initial: size, max: size }
    }
    /// A buffer that grows from `initial` to at most `max` bytes as the path needs.
    pub const fn auto(initial: ByteCount, max: ByteCount) -> Self {
        BufferSize { initial, max }
    }
    /// True if the size never changes.
    pub fn is_fixed(self) -> bool {
        self.initial >= self.max
    }
    /// The same, with autotuning limited to `max` bytes. A fixed size stays what it is: its user has chosen it.
    #[must_use]
    pub fn limited_to(self, max: ByteCount) -> Self {
        if self.is_fixed() {
            return self;
        }
        let max = self.max.min(max);
        BufferSize { initial: self.initial.min(max), max }
    }
}

/// Rule by which an autotuned receive window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowGrowth {
    /// Ahead of slow start: three times what the application reads in a round trip.
    Ahead,
    /// As Linux 6.x: the window opens with each full segment, up to a limit that follows what the application reads in a
    /// round trip (tcp_grow_window, tcp_rcv_space_adjust).
    Linux,
}

/// Receive and send buffers of a profile, unless settings say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Receive buffer: bounds the window announced.
    pub receive: BufferSize,
    /// Send buffer: bytes written and not acknowledged.
    pub send: BufferSize,
    /// How an autotuned window grows.
    pub growth: WindowGrowth,
}

/// Receive window before the first round trip is measured. Most paths never need more, and a window is no memory before the
/// peer has filled it.
const INITIAL_WINDOW: ByteCount = ByteCount::new(4 << 20);
/// Send buffer before the congestion window needs more.
const INITIAL_SEND_BUFFER: ByteCount = ByteCount::new(256 << 10);
/// Largest send buffer of autotuning: one window in flight, one behind a hole, and one to be sent next.
const MAX_SEND_BUFFER: ByteCount = ByteCount::new(3 << 30);
/// tcp_rmem of Linux 6.x up to 6.15.
const LINUX_RECEIVE: BufferSize =
    BufferSize::auto(ByteCount::new(LINUX_INITIAL_WINDOW as u64), ByteCount::new(6 << 20));
/// tcp_wmem of Linux 6.x.
const LINUX_SEND: BufferSize = BufferSize::auto(ByteCount::new(16_384), ByteCount::new(4 << 20));
/// The historical profiles: their papers state windows, not autotuning.
const HISTORICAL: BufferConfig = BufferConfig {
    receive: BufferSize::fixed(ByteCount::new(4_000_000)),
    send: BufferSize::fixed(ByteCount::new(16_000_000)),
    growth: WindowGrowth::Ahead,
};

impl Profile {
    /// Its buffers.
    pub const fn buffers(self) -> BufferConfig {
        match self {
            Profile::Linux2617
            | Profile::Linux2617Ab
            | Profile::Linux2622
            | Profile::AistFix
            | Profile::AistFixMaxEnd
            | Profile::Linux2624
            | Profile::Net2 => HISTORICAL,
            Profile::Linux => {
                BufferConfig { receive: LINUX_RECEIVE, send: LINUX_SEND, growth: WindowGrowth::Linux }
            }
            Profile::NewReno
            | Profile::Rfc6675
            | Profile::Prr
            | Profile::RackTlp
            | Profile::Modern
            | Profile::Farpace => BufferConfig {
                receive: BufferSize::auto(INITIAL_WINDOW, MAX_WINDOW),
                send: BufferSize::auto(INITIAL_SEND_BUFFER, MAX_SEND_BUFFER),
                growth: WindowGrowth::Ahead,
            },
        }
    }
}
