//! Chance for algorithms that should not do the same at the same time as others.

/// SplitMix64: what a flow does at random need not be hard to guess, only different from others.
#[derive(Clone, Copy, Debug)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    /// Connections with different seeds get different numbers.
    pub fn new(seed: u32) -> Self {
        SplitMix64(u64::from(seed))
    }

    /// The next number, any of 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
