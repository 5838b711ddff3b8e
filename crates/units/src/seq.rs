//! TCP sequence numbers (RFC 9293 §3.4), modulo 2^32.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A TCP sequence or acknowledgment number. It has no total order. Comparisons such as
/// [`before`](Seq::before) hold while two numbers are less than 2^31 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(u32);

impl Seq {
    /// From the number on the wire.
    pub const fn new(n: u32) -> Self {
        Seq(n)
    }
    /// The number on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Signed distance from `from` to `self`: positive if `self` is later.
    pub const fn distance(self, from: Seq) -> i32 {
        self.0.wrapping_sub(from.0) as i32
    }
    /// `self < other` modulo 2^32.
    pub const fn before(self, other: Seq) -> bool {
        self.distance(other) < 0
    }
    /// `self <= other` modulo 2^32.
    pub const fn before_eq(self, other: Seq) -> bool {
        self.distance(other) <= 0
    }
    /// `self > other` modulo 2^32.
    pub const fn after(self, other: Seq) -> bool {
        self.distance(other) > 0
    }
    /// `self >= other` modulo 2^32.
    pub const fn after_eq(self, other: Seq) -> bool {
        self.distance(other) >= 0
    }
    /// Bytes from `start` up to `self`; zero if `self` is not after it.
    pub const fn bytes_since(self, start: Seq) -> u32 {
        let d = self.distance(start);
        if d > 0 { d as u32 } else { 0 }
    }
    /// The later of two numbers.
    #[must_use]
    pub const fn later(self, other: Seq) -> Seq {
        if other.after(self) { other } else { self }
    }
    /// The earlier of two numbers.
    #[must_use]
    pub const fn earlier(self, other: Seq) -> Seq {
        if other.before(self) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    fn add(self, rhs: u32) -> Seq {
        Seq(self.0.wrapping_add(rhs))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, rhs: u32) {
        *self = *self + rhs;
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;
    fn sub(self, rhs: u32) -> Seq {
        Seq(self.0.wrapping_sub(rhs))
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Seq;

    /// Breaks: comparisons across 2^32, which every transfer beyond 4 GB needs.
    #[test]
    fn comparisons_work_across_the_wrap() {
        let (a, b) = (Seq::new(u32::MAX - 1), Seq::new(3));
        assert!(a.before(b) && b.after(a) && a.before_eq(a) && !a.before(a));
        assert_eq!(b.bytes_since(a), 5);
        assert_eq!(a.bytes_since(b), 0);
        assert_eq!(a.later(b), b);
        assert_eq!(a.earlier(b), a);
    }
}
