//! Kinds of NICs, with their numbers in extended ARP messages.

use farpace_units::Rate;
use std::fmt;

/// The nominal rate of a NIC, as a number in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NicKind(pub u8);

/// Number, rate in Mbit/s, and name.
const KINDS: [(u8, u64, &str); 12] = [
    (1, 10, "10M"),
    (2, 100, "100M"),
    (3, 1_000, "1G"),
    (4, 2_500, "2.5G"),
    (5, 5_000, "5G"),
    (6, 10_000, "10G"),
    (7, 25_000, "25G"),
    (8, 40_000, "40G"),
    (9, 50_000, "50G"),
    (10, 100_000, "100G"),
    (11, 200_000, "200G"),
    (12, 400_000, "400G"),
];

impl NicKind {
    /// Not known.
    pub const UNKNOWN: NicKind = NicKind(0);

    /// The kind with exactly this nominal rate; unknown if there is none.
    pub fn of_rate(rate: Rate) -> NicKind {
        let kind = KINDS.iter().find(|(_, mbit, _)| Rate::from_mbit(*mbit) == rate);
        kind.map_or(NicKind::UNKNOWN, |(number, ..)| NicKind(*number))
    }
    /// Its nominal rate; none for unknown kinds.
    pub fn rate(self) -> Option<Rate> {
        KINDS.iter().find(|(number, ..)| *number == self.0).map(|(_, mbit, _)| Rate::from_mbit(*mbit))
    }
}

impl fmt::Display for NicKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match KINDS.iter().find(|(number, ..)| *number == self.0) {
            Some((.., name)) => f.write_str(name),
            None if *self == NicKind::UNKNOWN => f.write_str("unknown"),
            None => write!(f, "kind {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: two hosts use the same numbers for the kinds of NICs.
    #[test]
    fn kinds_have_the_numbers_of_the_specification() {
        for (number, mbit) in [(1, 10), (2, 100), (3, 1_000), (4, 2_500), (6, 10_000), (12, 400_000)] {
            let kind = NicKind::of_rate(Rate::from_mbit(mbit));
            assert_eq!(kind, NicKind(number));
            assert_eq!(kind.rate(), Some(Rate::from_mbit(mbit)));
        }
        assert_eq!(NicKind::of_rate(Rate::from_mbit(80)), NicKind::UNKNOWN);
        assert_eq!((NicKind(13).rate(), NicKind::UNKNOWN.rate()), (None, None));
    }
}
