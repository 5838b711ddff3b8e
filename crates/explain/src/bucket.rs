//! A token bucket that drops what exceeds its rate.

use farpace_units::{Instant, Rate};

/// What a policer looks like from outside.
#[derive(Clone, Debug)]
pub struct Policing {
    /// Its rate, of payload.
    pub rate: Rate,
    /// What the bucket holds, in bytes.
    pub burst: u64,
    /// The first loss.
    pub since: Instant,
    /// 0 to 1.
    pub confidence: f64,
    /// Connections of the capture that share it.
    pub connections: usize,
    /// This one's share of what got through.
    pub share: f64,
}
