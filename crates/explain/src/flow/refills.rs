//! What releases data behind a short segment: the program's own clock, or the ACK that makes room in the send
//! buffer.

use super::acks::AT_ONCE;

/// Chance does it more rarely.
const MAX_CHANCE: f64 = 0.01;

/// How often data behind a short segment left as soon as an ACK had come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refills {
    all: u32,
    /// For each of the times that count as at once.
    at_once: [u32; AT_ONCE.len()],
    /// How often chance would have had it so.
    by_chance: [f64; AT_ONCE.len()],
}

impl Refills {
    /// Data left behind a short segment, after a pause, at once by each of the times that count so, or not.
    /// `chance` is the share of the pause that counts as at once by each.
    pub fn refilled(&mut self, at_once: [bool; AT_ONCE.len()], chance: [f64; AT_ONCE.len()]) {
        self.all = self.all.saturating_add(1);
        for (hits, hit) in self.at_once.iter_mut().zip(at_once) {
            *hits = hits.saturating_add(u32::from(hit));
        }
        for (sum, chance) in self.by_chance.iter_mut().zip(chance) {
            *sum += chance.min(1.0);
        }
    }

    /// ACKs release this data: more often directly behind an ACK than chance would have it. A program that
    /// fills its send buffer is woken by the ACK that frees a part of it.
    pub fn by_acks(&self) -> bool {
        let released = |(hits, by_chance): (&u32, &f64)| {
            let share = by_chance / f64::from(self.all.max(1));
            hits * 10 >= self.all * 8 && chance_of(*hits, self.all, share) < MAX_CHANCE
        };
        self.at_once.iter().zip(&self.by_chance).any(released)
    }
}

/// How likely at least `hits` of `all` are where each is one with chance `share`: Chernoff's bound.
fn chance_of(hits: u32, all: u32, share: f64) -> f64 {
    let seen = f64::from(hits) / f64::from(all.max(1));
    if seen <= share || share <= 0.0 {
        return 1.0;
    }
    let part = |p: f64, q: f64| if p > 0.0 { p * libm::log(p / q) } else { 0.0 };
    let divergence = part(seen, share) + part(1.0 - seen, 1.0 - share);
    libm::exp(-f64::from(all) * divergence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refills(at_once: u32, late: u32, chance: f64) -> Refills {
        let mut refills = Refills::default();
        (0..at_once + late).for_each(|n| refills.refilled([n >= late; 2], [chance; 2]));
        refills
    }

    /// Breaks: a send buffer is taken for a program that pauses, or the reverse.
    #[test]
    fn what_leaves_behind_acks_is_released_by_them() {
        assert!(!refills(0, 0, 0.25).by_acks());
        assert!(!refills(1, 0, 0.25).by_acks(), "once may be chance");
        assert!(refills(9, 0, 0.25).by_acks());
        assert!(refills(9, 2, 0.25).by_acks(), "a program that is woken late now and then");
        assert!(!refills(9, 3, 0.25).by_acks(), "a clock of its own");
    }

    /// Breaks: where ACKs come all the time, each segment follows one, which tells nothing.
    #[test]
    fn dense_acks_tell_nothing() {
        assert!(!refills(50, 0, 1.0).by_acks());
        assert!(!refills(50, 0, 0.95).by_acks());
        assert!(refills(50, 0, 0.9).by_acks());
    }

    /// Breaks: a send buffer whose program is woken late on a busy host is taken for a program that pauses.
    #[test]
    fn programs_that_are_woken_late_are_released_by_acks_too() {
        let late = |chance| {
            let mut refills = Refills::default();
            (0..60).for_each(|n| refills.refilled([n % 2 == 0, n % 20 != 0], [chance, 3.0 * chance]));
            refills.by_acks()
        };
        assert!(late(0.2));
        assert!(!late(0.32), "ACKs come so closely that most data leaves soon after one");
    }
}
