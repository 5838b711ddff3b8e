//! The Internet checksum (RFC 1071), over as many pieces as a packet has.

/// A checksum in the making. Pieces may have any length: an odd one shifts the pieces after it by a byte, as
/// if all had been one run of bytes (RFC 1071 §2(A) and (B)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Sum of little-endian 16-bit words. The one's complement sum does not mind the byte order
    /// (RFC 1071 §2(B)), so the swap is left to the end.
    acc: u64,
    /// An odd number of bytes so far.
    odd: bool,
}

impl Sum {
    /// Over no bytes.
    pub const fn new() -> Self {
        Sum { acc: 0, odd: false }
    }

    /// Goes on with `bytes`.
    #[must_use]
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let piece = u64::from(fold(sum_words(bytes)));
        let piece = if self.odd { u64::from((piece as u16).swap_bytes()) } else { piece };
        Sum { acc: self.acc + piece, odd: self.odd ^ (bytes.len() % 2 == 1) }
    }

    /// Goes on with a 16-bit field.
    #[must_use]
    #[inline]
    pub fn word(self, word: u16) -> Sum {
        self.bytes(&word.to_be_bytes())
    }

    /// The value for the checksum field: the complement of the sum. Over a piece that includes a right
    /// checksum field it is zero.
    #[inline]
    pub fn finish(self) -> u16 {
        !fold(self.acc).swap_bytes()
    }
}

/// The checksum of one run of bytes.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).finish()
}

/// Sum of the little-endian 32-bit words, a last part filled up with zeros. Two accumulators of 64 bits: the
/// carries gather in the upper halves (they would overflow at 32 GiB), and the loop becomes vector code.
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
