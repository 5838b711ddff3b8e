//! The segment size where the handshake is missing: super-segments (TSO, GRO) are multiples of it.

/// The least size that is taken for one: the default of RFC 9293 less options.
const LEAST: u32 = 500;

/// The size of segments, from the lengths of those that passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentSize {
    /// The greatest common divisor of most lengths.
    unit: u32,
    regular: u32,
    irregular: u32,
}

impl SegmentSize {
    /// Payload of `len` bytes passed in one segment.
    pub fn see(&mut self, len: u32) {
        if len < LEAST {
            return;
        }
        let common = gcd(self.unit, len);
        if common >= LEAST {
            self.unit = common;
            self.regular = self.regular.saturating_add(1);
            return;
        }
        self.irregular = self.irregular.saturating_add(1);
        if self.irregular > self.regular {
            // What came first was the end of a write.
            *self = SegmentSize { unit: len, regular: 1, irregular: 0 };
        }
    }

    /// The size in bytes; 0 if nothing is known.
    pub const fn get(self) -> u32 {
        self.unit
    }
}

const fn gcd(a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[u32]) -> u32 {
        let mut size = SegmentSize::default();
        lengths.iter().for_each(|len| size.see(*len));
        size.get()
    }

    /// Breaks: in a capture that begins in the middle of a connection all super-segments but the longest
    /// count as short ones, and the program as what bounds the transfer.
    #[test]
    fn the_unit_of_super_segments_is_found() {
        assert_eq!(of(&[1448 * 44, 1448 * 3, 1448 * 7, 1448 * 12]), 1448);
        assert_eq!(of(&[1448; 20]), 1448);
        assert_eq!(of(&[700, 1448, 2896, 4344, 1448]), 1448, "it began with the end of a write");
        assert_eq!(of(&[1448, 2896, 1000, 1448 * 5, 613, 1448]), 1448, "ends of writes between");
        assert_eq!(of(&[1, 20]), 0);
    }
}
