//! Numbers of bytes and packets.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

macro_rules! saturating_count {
    ($name:ident, $inner:ty) => {
        impl $name {
            /// Zero.
            pub const ZERO: $name = $name(0);
            /// The maximum; it stands for "unlimited".
            pub const MAX: $name = $name(<$inner>::MAX);
            /// The number `n`.
            pub const fn new(n: $inner) -> Self {
                $name(n)
            }
            /// The bare number.
            pub const fn get(self) -> $inner {
                self.0
            }
            /// True for zero.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }
        impl Add for $name {
            type Output = $name;
            fn add(self, rhs: $name) -> $name {
                $name(self.0.saturating_add(rhs.0))
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, rhs: $name) {
                *self = *self + rhs;
            }
        }
        impl Sub for $name {
            type Output = $name;
            fn sub(self, rhs: $name) -> $name {
                $name(self.0.saturating_sub(rhs.0))
            }
        }
        impl SubAssign for $name {
            fn sub_assign(&mut self, rhs: $name) {
                *self = *self - rhs;
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(iter: I) -> $name {
                iter.fold($name(0), |a, b| a + b)
            }
        }
    };
}

/// A number of bytes. Addition and subtraction saturate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(u64);
saturating_count!(ByteCount, u64);

impl ByteCount {
    /// The length of something in memory.
    pub const fn of_len(len: usize) -> Self {
        ByteCount(len as u64)
    }
    /// As a length in memory; saturates.
    pub fn as_len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
}

impl fmt::Debug for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ByteCount {
    /// The largest decimal unit that keeps the value exact: `16 MB`, `256 kB`, `1448 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        match () {
            () if n == 0 => write!(f, "0 B"),
            () if n.is_multiple_of(1_000_000_000) => write!(f, "{} GB", n / 1_000_000_000),
            () if n.is_multiple_of(1_000_000) => write!(f, "{} MB", n / 1_000_000),
            () if n.is_multiple_of(1_000) => write!(f, "{} kB", n / 1_000),
            () => write!(f, "{n} B"),
        }
    }
}

/// A number of packets, or of full-sized segments for TCP windows. Addition and subtraction saturate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Packets(u32);
saturating_count!(Packets, u32);

impl fmt::Debug for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.0)
    }
}
