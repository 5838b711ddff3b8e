//! The position of a fragment, in both versions of IP.

/// Position of a fragment in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Identification of the datagram (16 bits in IPv4).
    pub ident: u32,
    /// Offset in bytes: 0 to 65528, a multiple of 8.
    pub offset: u32,
    /// True if more fragments follow.
    pub more: bool,
}

impl Fragment {
    /// True for an atomic fragment, which is a whole datagram (RFC 6946).
    pub const fn is_whole(&self) -> bool {
        self.offset == 0 && !self.more
    }
}
