//! The Internet checksum (RFC 1071), over the pieces of a packet.

/// A checksum in progress. Pieces may have any length: an odd one shifts the pieces after it by a byte, as
/// if all had been one run of bytes (RFC 1071 §2(A) and (B)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Sum of little-endian 16-bit words. The one's complement sum does not depend on the byte order
    /// (RFC 1071 §2(B)), so bytes are swapped only at the end.
    acc: u64,
    /// True after an odd number of bytes.
    odd: bool,
}

impl Sum {
    /// The checksum of no bytes.
    pub const fn new() -> Self {
        Sum { acc: 0, odd: false }
    }

    /// Adds `bytes`.
    #[must_use]
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let piece = u64::from(fold(sum_words(bytes)));
        let piece = if self.odd { u64::from((piece as u16).swap_bytes()) } else { piece };
        Sum { acc: self.acc + piece, odd: self.odd ^ (bytes.len() % 2 == 1) }
    }

    /// Adds a 16-bit field.
    #[must_use]
    #[inline]
    pub fn word(self, word: u16) -> Sum {
        self.bytes(&word.to_be_bytes())
    }

    /// The value for the checksum field: the complement of the sum. It is zero over a piece that includes a
    /// valid checksum field.
    #[inline]
    pub fn finish(self) -> u16 {
        !fold(self.acc).swap_bytes()
    }
}

/// The checksum of contiguous bytes.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).finish()
}

/// Sum of little-endian 32-bit words, with zeros as padding. Two accumulators of 64 bits collect the carries
/// in their upper halves (they would overflow at 32 GiB), and the loop can be vectorised.
#[inline]
fn sum_words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (mut low, mut high) = (0u64, 0u64);
    for word in words {
        let word = u64::from_le_bytes(*word);
        low += word & 0xffff_ffff;
        high += word >> 32;
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let last = u64::from_le_bytes(last);
    u64::from(fold(low)) + u64::from(fold(high)) + (last & 0xffff_ffff) + (last >> 32)
}

/// Folds the carries back in (end-around carry) until 16 bits are left.
#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}
