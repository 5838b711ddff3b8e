//! The scenario's words as configurations of the elements in `path`.

use super::spec::{Counts, Mtu, Policer, ResolvedDirection};
use farpace_path::{Counted, Framing, LinkConfig, MtuDirection, MtuError, PolicerConfig};
use farpace_units::{ByteCount, Instant};
use std::ops::Range;

impl Policer {
    /// As an element is made from it.
    pub fn config(&self) -> PolicerConfig {
        // Every field is named, so that a new one cannot be forgotten.
        let Policer { rate, burst, refill, phase, counts } = *self;
        PolicerConfig {
            rate,
            burst,
            refill: (!refill.is_zero()).then_some(refill),
            phase,
            counted: match counts {
                Counts::Ip => Counted::Ip,
                Counts::Frame => Counted::Ethernet,
            },
        }
    }
}

impl Mtu {
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
