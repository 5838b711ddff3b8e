//! How late packets leave, compared with when they were to.

use farpace_units::Span;

/// Parts of each power of two: quantiles are exact to 1/16.
const PARTS: u64 = 16;
/// Values below are counted each for itself.
const EXACT: u64 = 2 * PARTS;
/// Counters for all values of 64 bits.
const PLACES: usize = (EXACT + (64 - 5) * PARTS) as usize;

/// Times, of which quantiles are wanted. It takes 8 kB, however many there are.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    count: u64,
    most: Span,
}

impl Lateness {
    /// Nothing so far.
    pub fn new() -> Self {
        Lateness { counts: vec![0; PLACES], count: 0, most: Span::ZERO }
    }
    /// One more.
    #[inline]
    pub fn record(&mut self, time: Span) {
        if let Some(counter) = self.counts.get_mut(place(time.as_nanos())) {
            *counter += 1;
        }
        self.count += 1;
        self.most = self.most.max(time);
    }
    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }
    /// The longest.
    pub const fn most(&self) -> Span {
        self.most
    }
    /// What so many of all (0 to 1) do not exceed, to 1/16. Zero, if there are none.
    pub fn quantile(&self, share: f64) -> Span {
        let wanted = ((self.count as f64) * share.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Span::from_nanos(upper(at)).min(self.most);
            }
        }
        self.most
    }
    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.most) = (0, Span::ZERO);
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness::new()
    }
}

fn place(nanos: u64) -> usize {
    if nanos < EXACT {
        return nanos as usize;
    }
    let power = u64::from(nanos.ilog2());
    let part = (nanos >> (power - 4)) & (PARTS - 1);
    (EXACT + (power - 5) * PARTS + part) as usize
}

/// The greatest value that is counted at a place.
fn upper(place: usize) -> u64 {
    let place = place as u64;
    if place < EXACT {
        return place;
    }
    let (power, part) = ((place - EXACT) / PARTS + 5, (place - EXACT) % PARTS);
    let width = 1u64 << (power - 4);
    (1u64 << power).saturating_add(part * width).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the accuracy that a run of the emulator claims of itself.
    #[test]
    fn quantiles_are_those_of_the_times_to_a_sixteenth() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.quantile(0.5), Span::ZERO);
        for n in 1..=1_000u64 {
            lateness.record(Span::from_nanos(n * n));
        }
        for (share, exact) in [(0.0, 1), (0.001, 1), (0.5, 250_000), (0.99, 980_100), (1.0, 1_000_000)] {
            let found = lateness.quantile(share).as_nanos();
            assert!((exact..=exact + exact / 16).contains(&found), "{share}: {found}, not {exact}");
        }
        assert_eq!((lateness.count(), lateness.most().as_nanos()), (1_000, 1_000_000));
        lateness.clear();
        assert_eq!((lateness.count(), lateness.quantile(1.0)), (0, Span::ZERO));
    }

    /// Breaks: a time falls through all counters, and quantiles are wrong.
    #[test]
    fn every_time_has_its_place() {
        let powers = (0..64).map(|power| 1u64 << power);
        for nanos in powers.flat_map(|p| [p - 1, p, p + 1]).chain([u64::MAX]) {
            let at = place(nanos);
            assert!(at < PLACES && nanos <= upper(at), "{nanos}");
            assert!(upper(at) - nanos <= nanos / 16, "{nanos} counts as {}", upper(at));
        }
    }
}
