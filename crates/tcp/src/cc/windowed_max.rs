//! The greatest value of the last so many round trips.

use std::collections::VecDeque;

/// Greatest values of late, falling, by round trip: one entry for a round trip at most.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax(VecDeque<(u64, f64)>);

impl WindowedMax {
    /// The greatest value; zero before the first one.
    pub fn get(&self) -> f64 {
        self.0.front().map_or(0.0, |&(_, value)| value)
    }

    /// A value of this round trip; those of `rounds` round trips ago and older are forgotten.
    pub fn note(&mut self, round: u64, value: f64, rounds: u64) {
        while self.0.back().is_some_and(|&(_, v)| v <= value) {
            self.0.pop_back();
        }
        if self.0.back().is_none_or(|&(r, _)| r != round) {
            self.0.push_back((round, value));
        }
        while self.0.front().is_some_and(|&(r, _)| r + rounds <= round) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the memory of BBR: the maximum, its successors when it is too old, and no more entries than
    /// round trips.
    #[test]
    fn maximum_of_the_last_rounds() {
        let mut max = WindowedMax::default();
        assert_eq!(max.get(), 0.0);
        let seen: Vec<_> = [(0, 5.0), (0, 9.0), (1, 7.0), (1, 8.0), (2, 3.0), (3, 1.0), (4, 2.0), (9, 1.0)]
            .map(|(round, value)| {
                max.note(round, value, 3);
                max.get()
            })
            .into();
        assert_eq!(seen, [5.0, 9.0, 9.0, 9.0, 9.0, 8.0, 3.0, 1.0]);
        assert_eq!(max.0.len(), 1);
    }
}
