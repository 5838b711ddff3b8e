//! Finds what belongs to the two ends of a segment.

use crate::secret::Tuple;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A map from the ends of connections to their slots. Ordered, so that no choice of ends makes the search
/// long.
///
/// A number stands for most ends: comparing it is one instruction, and comparing ends is a dozen. Ends whose
/// number is taken are kept apart. On a host with one IPv4 address there are none.
#[derive(Default)]
pub(crate) struct TupleIndex {
    numbered: BTreeMap<u64, (Tuple, usize)>,
    others: BTreeMap<Tuple, usize>,
}

/// The remote IPv4 address and both ports are the whole number.
fn number(tuple: &Tuple) -> u64 {
    let ports = u64::from(tuple.remote_port) << 16 | u64::from(tuple.local_port);
    let address = match tuple.remote {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() as u64,
    };
    address.rotate_left(32) ^ ports
}

impl TupleIndex {
    /// How many ends there are.
    pub fn len(&self) -> usize {
        self.numbered.len() + self.others.len()
    }

    /// The slot of these ends.
    pub fn get(&self, tuple: &Tuple) -> Option<usize> {
        match self.numbered.get(&number(tuple)) {
            Some((known, slot)) if known == tuple => Some(*slot),
            _ if self.others.is_empty() => None,
            _ => self.others.get(tuple).copied(),
        }
    }

    /// These ends belong to `slot` now.
    pub fn insert(&mut self, tuple: Tuple, slot: usize) {
        match self.numbered.get_mut(&number(&tuple)) {
            Some((known, of)) if *known == tuple => *of = slot,
            Some(_) => _ = self.others.insert(tuple, slot),
            None => {
                self.others.remove(&tuple);
                self.numbered.insert(number(&tuple), (tuple, slot));
            }
        }
    }

    /// These ends belong to nobody any more.
    pub fn remove(&mut self, tuple: &Tuple) {
        let number = number(tuple);
        if self.numbered.get(&number).is_some_and(|(known, _)| known == tuple) {
            self.numbered.remove(&number);
        } else {
            self.others.remove(tuple);
        }
    }

    /// All slots, in the order of their ends.
    pub fn slots(&self) -> Vec<usize> {
        let numbered = self.numbered.values().map(|(tuple, slot)| (tuple, *slot));
        let mut all: Vec<(&Tuple, usize)> =
            numbered.chain(self.others.iter().map(|(tuple, slot)| (tuple, *slot))).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, slot)| slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Ends of which many have the same number.
    fn tuple(n: u64) -> Tuple {
        let v6 = |high: u128| IpAddr::V6(Ipv6Addr::from_bits(high << 64 | 1));
        let v4 = |n: u64| IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | n as u32));
        let remote = if n & 1 == 0 { v6(u128::from(n >> 1 & 7)) } else { v4(n >> 1 & 1) };
        let local = if n & 1 == 0 { v6(99) } else { v4(8 | n >> 2 & 3) };
        Tuple { local, remote, local_port: (n >> 4 & 1) as u16, remote_port: 7 }
    }

    /// Breaks: a segment goes to a connection of other ends, or to none, because two ends have the same
    /// number.
    #[test]
    fn it_is_a_map() {
        let (mut index, mut model) = (TupleIndex::default(), BTreeMap::new());
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (ends, slot) = (tuple(x >> 40), (x >> 32) as usize & 0xff);
            if x >> 63 == 0 {
                index.insert(ends, slot);
                model.insert(ends, slot);
            } else {
                index.remove(&ends);
                model.remove(&ends);
            }
            let other = tuple(x >> 48);
            assert_eq!(index.get(&ends), model.get(&ends).copied());
            assert_eq!(index.get(&other), model.get(&other).copied());
            assert_eq!(index.len(), model.len());
        }
        assert!(!index.others.is_empty() && !index.numbered.is_empty(), "both parts were in use");
        assert_eq!(index.slots(), model.into_values().collect::<Vec<_>>());
    }
}
