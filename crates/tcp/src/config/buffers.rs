//! Sizes of socket buffers.

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
    /// The same, with autotuning limited to `max` bytes. A fixed size stays what it is: its user has chosen
    /// it.
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
    /// As Linux 6.x: the window opens with each full segment, up to a limit that follows what the application
    /// reads in a round trip (tcp_grow_window, tcp_rcv_space_adjust).
    Linux,
}
