//! Whether the line can carry all paced classes at once.

use super::{PacingError, layer_2, on_the_line};
use farpace_units::{ByteCount, Rate};
use farpace_wire::ethernet::{ETHERNET_LEN, MAX_ETHERNET_LEN};

/// Keeps the sum of rates within the line. Rates count layer 2; what surrounds each frame takes line, too, and counts
/// here with frames of the full MTU. (Classes of shorter frames need more: they come late if the line is full, which their
/// counters show.)
#[derive(Clone, Debug)]
pub(crate) struct PacingAdmission {
    line: Rate,
    longest: ByteCount,
    /// Layer 2 and line bytes of a full frame.
    full: (ByteCount, ByteCount),
    /// Only the rates count, not what surrounds frames.
    bare: bool,
    sum: u128,
}

impl PacingAdmission {
    /// For a line that carries IP packets of up to `mtu` bytes.
    pub fn new(line: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        if line.bits_per_sec() == 0 || line > super::LineClock::FASTEST {
            return Err(PacingError::Line);
        }
        if !(68..=65_535).contains(&mtu.get()) {
            return Err(PacingError::Mtu(mtu));
        }
        let frame = mtu + ByteCount::of_len(ETHERNET_LEN);
        let longest = mtu + ByteCount::of_len(MAX_ETHERNET_LEN);
        Ok(PacingAdmission { line, longest, full: (layer_2(frame), on_the_line(frame)), bare: false, sum: 0 })
    }
    /// The same as the paper has it (§3.4): the rates together are at most the line's.
    pub fn of_rates(line: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        Ok(PacingAdmission { bare: true, ..Self::new(line, mtu)? })
    }
    /// The line.
    pub const fn line(&self) -> Rate {
        self.line
    }
    /// The longest frame in memory: an IP packet of the MTU below a header with all its VLAN tags.
    pub const fn longest(&self) -> ByteCount {
        self.longest
    }
    /// Bytes of the line that a full frame takes.
    pub const fn full_frame(&self) -> ByteCount {
        self.full.1
    }
    /// `new` takes the place of `old` (zero: none was there).
    pub fn replace(&mut self, old: Rate, new: Rate) -> Result<(), PacingError> {
        if new.bits_per_sec() == 0 {
            return Err(PacingError::ZeroRate);
        }
        let (frame, wire) = (u128::from(self.full.0.get()), u128::from(self.full.1.get()));
        let sum = self.sum.saturating_sub(old.bits_per_sec().into()) + u128::from(new.bits_per_sec());
        if self.bare && sum > u128::from(self.line.bits_per_sec()) {
            let wanted = Rate::from_bits_per_sec(u64::try_from(sum).unwrap_or(u64::MAX));
            return Err(PacingError::RatesAboveLine { wanted, line: self.line });
        }
        if !self.bare && sum * wire > u128::from(self.line.bits_per_sec()) * frame {
            let wanted = u64::try_from((sum * wire).div_ceil(frame)).unwrap_or(u64::MAX);
            return Err(PacingError::AboveLine { wanted: Rate::from_bits_per_sec(wanted), line: self.line });
        }
        self.sum = sum;
        Ok(())
    }
    /// A class of `rate` has gone.
    pub fn release(&mut self, rate: Rate) {
        self.sum = self.sum.saturating_sub(rate.bits_per_sec().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: more is promised than the line carries, or less than it could. A line of 1538 kbit/s carries exactly
    /// 1518 kbit/s of full frames.
    #[test]
    fn the_line_is_full_to_the_bit() {
        let kbit = |n: u64| Rate::from_bits_per_sec(n * 1_000);
        let mut line = PacingAdmission::new(kbit(1_538), ByteCount::new(1_500)).unwrap();
        line.replace(Rate::default(), kbit(1_000)).unwrap();
        line.replace(Rate::default(), kbit(518)).unwrap();
        let one = Rate::from_bits_per_sec(1);
        assert!(matches!(line.replace(Rate::default(), one), Err(PacingError::AboveLine { .. })));
        line.release(kbit(518));
        assert_eq!(line.replace(kbit(1_000), kbit(1_518)), Ok(()));
        assert_eq!(line.replace(kbit(1_518), Rate::default()), Err(PacingError::ZeroRate));
        let mut papers = PacingAdmission::of_rates(kbit(1_538), ByteCount::new(1_500)).unwrap();
        papers.replace(Rate::default(), kbit(1_538)).unwrap();
        assert!(matches!(papers.replace(Rate::default(), one), Err(PacingError::RatesAboveLine { .. })));
    }
}
