//! Named random streams. A new consumer does not change the numbers of others.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic stream of random numbers (xoshiro256++), identified by the seed of a run and the name of
/// its consumer. The same pair yields the same numbers on every host.
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream of consumer `name` in a run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a of the name; seed_from_u64 then mixes the bits (SplitMix64).
        let mut h: u64 = 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        RandomStream(Xoshiro256PlusPlus::seed_from_u64(seed.rotate_left(32) ^ h))
    }
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// A number in `0..1`, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// True with probability `p`, which is limited to 0..=1. Draws exactly one number.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    /// A number in `0..n`; 0 if `n` is 0. The bias is below n/2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }
    /// Fills `buf` with random bytes.
    pub fn fill(&mut self, buf: &mut [u8]) {
        self.0.fill_bytes(buf);
    }
}

#[cfg(test)]
mod tests {
    use super::RandomStream;

    /// Breaks: the numbers of every recorded seed.
    #[test]
    fn the_stream_is_pinned() {
        // Computed by a separate program from the definitions of FNV-1a, SplitMix64 and xoshiro256++.
        let table = [
            (1, "loss", [0x70fd_08d1_69b7_f00c, 0x5893_20e8_ab9c_ad53, 0x7c3b_df59_579e_0a6a]),
            (1, "delay", [0x0223_1647_3297_29be, 0x3609_a519_dfb3_b9bc, 0x764e_bf3d_83ac_c7db]),
            (2, "loss", [0x322c_f74a_6107_48bb, 0x84a5_8810_964e_9f29, 0xf5b6_4d44_de5d_e863]),
        ];
        for (seed, name, numbers) in table {
            let mut stream = RandomStream::new(seed, name);
            assert_eq!(numbers.map(|_| stream.next_u64()), numbers, "{name} of seed {seed}");
        }
    }
}
