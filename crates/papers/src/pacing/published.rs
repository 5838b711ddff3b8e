//! The numbers that the paper prints.

use super::scheduler::PacingMethod;

/// A row of Tables 2 to 4.
#[derive(Clone, Copy, Debug)]
pub struct PublishedBandwidth {
    /// The target as the paper writes it.
    pub target: &'static str,
    /// The target in bit/s.
    pub rate: u64,
    /// Per so many packets.
    pub n: usize,
    /// Smallest, greatest and mean bandwidth, in `unit`.
    pub numbers: [f64; 3],
    /// In bit/s.
    pub unit: f64,
    /// Greatest burstiness in MTU, rounded up.
    pub burstiness: f64,
}

const fn row(n: usize, target: &'static str, rate: u64, numbers: [f64; 3], q: f64) -> PublishedBandwidth {
    let unit = if rate < 1_000_000 { 1e3 } else { 1e6 };
    PublishedBandwidth { target, rate, n, numbers, unit, burstiness: q }
}

/// Table 2: one flow.
pub const TABLE_2: [PublishedBandwidth; 4] = [
    row(1, "8K", 8_000, [7.96, 7.96, 7.96], 1.0),
    row(1, "10M", 10_000_000, [9.95, 9.95, 9.95], 1.0),
    row(1, "500M", 500_000_000, [495.0, 500.0, 498.0], 2.0),
    row(1, "930M", 930_000_000, [918.0, 931.0, 926.0], 2.0),
];

/// Flows of Table 3.
pub const FLOWS: usize = 96;
/// Table 3: each of [`FLOWS`] flows.
pub const TABLE_3: PublishedBandwidth = row(1, "10M", 10_000_000, [9.89, 9.92, 9.91], 1.0);

/// Rates of Table 4 and Fig. 7, in bit/s.
pub const FIVE: [u64; 5] = [20_000_000, 50_000_000, 100_000_000, 300_000_000, 500_000_000];

/// Table 4: five flows at once.
pub const TABLE_4: [PublishedBandwidth; 10] = [
    row(1, "20M", FIVE[0], [14.4, 30.3, 20.5], 2.0),
    row(1, "50M", FIVE[1], [30.0, 98.4, 33.1], 2.0),
    row(1, "100M", FIVE[2], [61.9, 246.0, 103.0], 2.0),
    row(1, "300M", FIVE[3], [168.0, 494.0, 332.0], 2.0),
    row(1, "500M", FIVE[4], [345.0, 990.0, 506.0], 2.0),
    row(2, "20M", FIVE[0], [16.6, 24.1, 19.9], 2.0),
    row(2, "50M", FIVE[1], [39.8, 74.2, 49.9], 2.0),
    row(2, "100M", FIVE[2], [68.0, 143.0, 100.0], 2.0),
    row(2, "300M", FIVE[3], [205.0, 493.0, 304.0], 2.0),
    row(2, "500M", FIVE[4], [405.0, 658.0, 500.0], 2.0),
];

/// Table 5: FIFO in kB.
pub const FIFOS: [u32; 5] = [16, 64, 256, 1024, 4096];

/// A row of Table 5: Mbit/s and packets lost, by FIFO.
pub type PublishedFifos = [(f64, u64); 5];

/// Table 5 without a limit.
pub const UNLIMITED: PublishedFifos = [(29.4, 219), (210.0, 257), (223.0, 394), (256.0, 1196), (459.0, 1283)];
/// Table 5 with a token bucket.
pub const TOKEN_BUCKET: PublishedFifos = [(26.9, 131), (191.0, 402), (379.0, 261), (419.0, 12), (471.0, 0)];
/// Table 5 with PSPacer.
pub const PSPACER: PublishedFifos = [(474.0, 0), (474.0, 0), (473.0, 0), (474.0, 0), (474.0, 0)];

/// The row of Table 5 for a pacer.
pub fn table_5(pacer: PacingMethod) -> Option<&'static PublishedFifos> {
    match pacer {
        PacingMethod::None => Some(&UNLIMITED),
        PacingMethod::TokenBucket => Some(&TOKEN_BUCKET),
        PacingMethod::Psp => Some(&PSPACER),
        PacingMethod::Edf | PacingMethod::Fq | PacingMethod::Connection => None,
    }
}
