//! The scenario's words as configurations of the elements in `path`.

use super::spec::{MtuSpec, PolicerCounts, PolicerSpec, ResolvedDirection};
use farpace_path::{Framing, LinkConfig, MtuDirection, MtuError, PolicedBytes, PolicerConfig};
use farpace_units::{ByteCount, Instant};
use std::ops::Range;

impl PolicerSpec {
    /// As an element is made from it.
    pub fn config(&self) -> PolicerConfig {
        // Every field is named, so that a new one cannot be forgotten.
        let PolicerSpec { rate, burst, refill, phase, counts } = *self;
        PolicerConfig {
            rate,
            burst,
            refill: (!refill.is_zero()).then_some(refill),
            phase,
            counted: match counts {
                PolicerCounts::Ip => PolicedBytes::Ip,
                PolicerCounts::Frame => PolicedBytes::Ethernet,
            },
        }
    }
}

impl MtuSpec {
    /// The element that is made from it.
    ///
    /// # Errors
    /// What a checked scenario does not have: limits that are too small, or changes out of order.
    pub fn way(&self) -> Result<MtuDirection, MtuError> {
        let changes =
            self.changes.iter().map(|c| farpace_path::MtuChange { at: Instant::ZERO + c.at, mtu: c.limit });
        let way = MtuDirection::new(self.limit, changes.collect())?;
        Ok(if self.silent { way.silent() } else { way })
    }
}

impl ResolvedDirection<'_> {
    /// Queue, line and delay, as an element is made from them.
    pub fn link(&self) -> LinkConfig {
        LinkConfig { rate: self.rate, delay: self.delay, queue: self.queue, framing: self.framing() }
    }

    /// What a frame takes on the line: padded as on Ethernet, unless the overhead is 0.
    pub fn framing(&self) -> Framing {
        if self.overhead == ByteCount::ZERO {
            return Framing::NONE;
        }
        Framing { overhead: self.overhead, ..Framing::ETHERNET }
    }

    /// The outages as instants, in order.
    pub fn down(&self) -> Vec<Range<Instant>> {
        self.outages.iter().map(|o| (Instant::ZERO + o.at)..(Instant::ZERO + o.at + o.lasts)).collect()
    }
}
