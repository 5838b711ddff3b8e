//! Packets that never passed the capture point, by the IPv4 identification of those that did (RFC 791; Linux
//! numbers the packets of a connection one by one, RFC 6864 permits it).

/// Packets of a connection in a row before their numbers are believed to count.
const MIN_STEPS: u32 = 8;
/// A larger step is another counter.
const MAX_MISSING: u16 = 256;

/// The numbering of the packets of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Identifications {
    last: Option<u16>,
    /// Packets whose number was the next one, and others.
    next: u32,
    others: u32,
    missing: u16,
}

impl Identifications {
    /// A packet passed; 0: it carries no identification. Returns by how much its number exceeds that of the
    /// packet before.
    pub fn see(&mut self, id: u16) -> Option<u16> {
        self.missing = 0;
        if id == 0 {
            return None;
        }
        let step = id.wrapping_sub(self.last.replace(id)?);
        if step == 1 {
            self.next = self.next.saturating_add(1);
        } else {
            self.others = self.others.saturating_add(1);
            if self.counts() && (2..=MAX_MISSING).contains(&step) {
                self.missing = step - 1;
            }
        }
        Some(step)
    }

    /// Packets that left between the newest one and the one before, and did not pass; 0 if numbers do not
    /// count packets.
    pub fn missing(&self) -> u16 {
        self.missing
    }

    fn counts(&self) -> bool {
        self.next >= MIN_STEPS && self.next >= self.others.saturating_mul(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: losses before the capture point are told from a program that pauses.
    #[test]
    fn a_step_counts_what_did_not_pass() {
        let mut ids = Identifications::default();
        for id in 65_530..=65_535 {
            ids.see(id);
        }
        ids.see(0);
        for id in 1..6 {
            ids.see(id);
        }
        assert_eq!(ids.missing(), 0);
        ids.see(9);
        assert_eq!(ids.missing(), 3);
        ids.see(10);
        assert_eq!(ids.missing(), 0);
        ids.see(5_000);
        assert_eq!(ids.missing(), 0, "another counter");
    }

    /// Breaks: hosts that draw identifications at random are not believed.
    #[test]
    fn random_numbers_say_nothing() {
        let mut ids = Identifications::default();
        for n in 0..100u16 {
            ids.see(n.wrapping_mul(40_503));
            assert_eq!(ids.missing(), 0);
        }
        ids.see(3);
        assert_eq!(ids.missing(), 0);
    }
}
