//! The numbers that the paper prints.

/// A row of Tables 2 to 4: least, greatest and mean bandwidth, in the unit of the target, and the greatest burstiness in
/// packets.
#[derive(Clone, Copy, Debug)]
pub struct Bandwidth {
    /// The target, as the paper writes it.
    pub target: &'static str,
    /// The target in bit/s.
    pub rate: u64,
    /// Per so many packets.
    pub n: usize,
    /// Least, greatest, mean, in `unit`.
    pub numbers: [f64; 3],
    /// bit/s.
    pub unit: f64,
    /// In MTU, rounded up.
    pub burstiness: f64,
}

const K: f64 = 1e3;
const M: f64 = 1e6;

const fn row(
    target: &'static str,
    rate: u64,
    n: usize,
    numbers: [f64; 3],
    unit: f64,
    burstiness: f64,
) -> Bandwidth {
    Bandwidth { target, rate, n, numbers, unit, burstiness }
}

/// Table 2: one flow.
pub const TABLE_2: [Bandwidth; 4] = [
    row("8K", 8_000, 1, [7.96, 7.96, 7.96], K, 1.0),
    row("10M", 10_000_000, 1, [9.95, 9.95, 9.95], M, 1.0),
    row("500M", 500_000_000, 1, [495.0, 500.0, 498.0], M, 2.0),
    row("930M", 930_000_000, 1, [918.0, 931.0, 926.0], M, 2.0),
];

/// Flows of Table 3.
pub const FLOWS: usize = 96;
/// Table 3: each of [`FLOWS`] flows.
pub const TABLE_3: Bandwidth = row("10M", 10_000_000, 1, [9.89, 9.92, 9.91], M, 1.0);

/// Table 4: five flows at once.
pub const TABLE_4: [Bandwidth; 10] = [
    row("20M", 20_000_000, 1, [14.4, 30.3, 20.5], M, 2.0),
    row("50M", 50_000_000, 1, [30.0, 98.4, 33.1], M, 2.0),
    row("100M", 100_000_000, 1, [61.9, 246.0, 103.0], M, 2.0),
    row("300M", 300_000_000, 1, [168.0, 494.0, 332.0], M, 2.0),
    row("500M", 500_000_000, 1, [345.0, 990.0, 506.0], M, 2.0),
    row("20M", 20_000_000, 2, [16.6, 24.1, 19.9], M, 2.0),
    row("50M", 50_000_000, 2, [39.8, 74.2, 49.9], M, 2.0),
    row("100M", 100_000_000, 2, [68.0, 143.0, 100.0], M, 2.0),
    row("300M", 300_000_000, 2, [205.0, 493.0, 304.0], M, 2.0),
    row("500M", 500_000_000, 2, [405.0, 658.0, 500.0], M, 2.0),
];

/// Rates of Table 4 and Fig. 7, in bit/s.
pub const FIVE: [u64; 5] = [20_000_000, 50_000_000, 100_000_000, 300_000_000, 500_000_000];

/// Table 5: FIFO in kB.
pub const FIFOS: [u32; 5] = [16, 64, 256, 1024, 4096];
/// Table 5, no limit: Mbit/s and drops by FIFO.
pub const UNLIMITED: [(f64, u64); 5] =
    [(29.4, 219), (210.0, 257), (223.0, 394), (256.0, 1196), (459.0, 1283)];
/// Table 5, token bucket.
pub const TOKEN_BUCKET: [(f64, u64); 5] = [(26.9, 131), (191.0, 402), (379.0, 261), (419.0, 12), (471.0, 0)];
/// Table 5, PSPacer.
pub const PSPACER: [(f64, u64); 5] = [(474.0, 0), (474.0, 0), (473.0, 0), (474.0, 0), (474.0, 0)];
