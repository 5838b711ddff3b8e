//! Admission control: whether the link can carry all paced classes together.

use super::{PacingError, layer_2, wire_len};
use farpace_units::{ByteCount, Rate};
use farpace_wire::ethernet::{ETHERNET_LEN, MAX_ETHERNET_LEN};

/// Keeps the sum of rates within the capacity of the link. Rates count layer 2. Preamble and inter-frame gap
/// use capacity too; they are counted for frames of the full MTU. Classes of shorter frames need more
/// capacity than that: on a full link their packets are late, which
/// [`ClassStats::latest`](super::ClassStats::latest) shows.
#[derive(Clone, Debug)]
pub(crate) struct PacingAdmission {
    link_rate: Rate,
    longest: ByteCount,
    /// Layer 2 length and wire length of a full frame.
    full: (ByteCount, ByteCount),
    /// Count rates only, without framing overhead.
    bare: bool,
    sum: u128,
}

impl PacingAdmission {
    /// For a link that carries IP packets of up to `mtu` bytes.
    pub fn new(link_rate: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        if link_rate.bits_per_sec() == 0 || link_rate > super::LinkClock::MAX_RATE {
            return Err(PacingError::LinkRate);
        }
        if !(68..=65_535).contains(&mtu.get()) {
            return Err(PacingError::Mtu(mtu));
        }
        let frame = mtu + ByteCount::of_len(ETHERNET_LEN);
        let longest = mtu + ByteCount::of_len(MAX_ETHERNET_LEN);
        Ok(PacingAdmission {
            link_rate,
            longest,
            full: (layer_2(frame), wire_len(frame)),
            bare: false,
            sum: 0,
        })
    }
    /// Admission as in the paper (§3.4): the sum of rates is at most the rate of the link.
    pub fn of_rates(link_rate: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        Ok(PacingAdmission { bare: true, ..Self::new(link_rate, mtu)? })
    }
    /// The rate of the link.
    pub const fn link_rate(&self) -> Rate {
        self.link_rate
    }
    /// The longest frame in memory: an IP packet of the MTU and an Ethernet header with all its VLAN tags.
    pub const fn longest(&self) -> ByteCount {
        self.longest
    }
    /// Wire length of a full frame.
    pub const fn full_frame(&self) -> ByteCount {
        self.full.1
    }
    /// Replaces rate `old` (zero for a new class) by `new`.
    pub fn replace(&mut self, old: Rate, new: Rate) -> Result<(), PacingError> {
        if new.bits_per_sec() == 0 {
            return Err(PacingError::ZeroRate);
        }
        let (frame, wire) = (u128::from(self.full.0.get()), u128::from(self.full.1.get()));
        let sum = self.sum.saturating_sub(old.bits_per_sec().into()) + u128::from(new.bits_per_sec());
        if self.bare && sum > u128::from(self.link_rate.bits_per_sec()) {
            let wanted = Rate::from_bits_per_sec(u64::try_from(sum).unwrap_or(u64::MAX));
            return Err(PacingError::RatesAboveLinkRate { wanted, link_rate: self.link_rate });
        }
        if !self.bare && sum * wire > u128::from(self.link_rate.bits_per_sec()) * frame {
            let wanted = u64::try_from((sum * wire).div_ceil(frame)).unwrap_or(u64::MAX);
            return Err(PacingError::AboveLinkRate {
                wanted: Rate::from_bits_per_sec(wanted),
                link_rate: self.link_rate,
            });
        }
        self.sum = sum;
        Ok(())
    }
    /// Removes a class of `rate`.
    pub fn release(&mut self, rate: Rate) {
        self.sum = self.sum.saturating_sub(rate.bits_per_sec().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: admission accepts what the link can carry and nothing more. A link of 1538 kbit/s carries
    /// exactly 1518 kbit/s of full frames.
    #[test]
    fn admission_is_exact_to_the_bit() {
        let kbit = |n: u64| Rate::from_bits_per_sec(n * 1_000);
        let mut link_rate = PacingAdmission::new(kbit(1_538), ByteCount::new(1_500)).unwrap();
        link_rate.replace(Rate::default(), kbit(1_000)).unwrap();
        link_rate.replace(Rate::default(), kbit(518)).unwrap();
        let one = Rate::from_bits_per_sec(1);
        assert!(matches!(link_rate.replace(Rate::default(), one), Err(PacingError::AboveLinkRate { .. })));
        link_rate.release(kbit(518));
        assert_eq!(link_rate.replace(kbit(1_000), kbit(1_518)), Ok(()));
        assert_eq!(link_rate.replace(kbit(1_518), Rate::default()), Err(PacingError::ZeroRate));
        let mut papers = PacingAdmission::of_rates(kbit(1_538), ByteCount::new(1_500)).unwrap();
        papers.replace(Rate::default(), kbit(1_538)).unwrap();
        assert!(matches!(papers.replace(Rate::default(), one), Err(PacingError::RatesAboveLinkRate { .. })));
    }
}
