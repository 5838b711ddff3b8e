//! What splitting gains: rates of split connections beside those of the control group, by direction and size.

use farpace_gateway::{ComparisonGroup, ComparisonResult};
use farpace_units::{ByteCount, Rate};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Connections of each group, direction and size that are kept at most: the latest.
const KEPT: usize = 1_000;
/// With fewer connections of either group nothing is said of the gain.
const FEW: usize = 10;
/// The directions, by the side that more payload went to.
const DIRECTIONS: [&str; 2] = ["to_wan", "to_lan"];
/// Names of the sizes, and where each ends, in bytes.
const SIZES: [(&str, u64); 4] = [
    ("below 100 kB", 100_000),
    ("100 kB to 1 MB", 1_000_000),
    ("1 to 10 MB", 10_000_000),
    ("10 MB and more", u64::MAX),
];
/// The standard normal deviate of a probability of 95 %, both sides.
const Z95: f64 = 1.96;

/// The comparison since the start.
#[derive(Default)]
pub struct Gain {
    cells: [[GainCell; SIZES.len()]; DIRECTIONS.len()],
}

#[derive(Default)]
struct GainCell {
    split: GroupRates,
    unsplit: GroupRates,
}

/// Rates in bit/s, the latest last.
#[derive(Default)]
struct GroupRates(VecDeque<f64>);

/// Connections of one direction and size.
#[derive(Clone, Debug, PartialEq)]
pub struct GainRow {
    pub direction: &'static str,
    pub size: &'static str,
    pub split: GroupView,
    pub unsplit: GroupView,
    /// Ratio of the medians, and the interval that it is in with at least 90 %; none with few connections.
    pub gain: Option<[f64; 3]>,
}

/// A group, as others see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupView {
    pub connections: usize,
    /// Median of payload by time, from the SYN to the last acknowledgment.
    pub median: Option<Rate>,
}

impl Gain {
    /// Takes what a gateway has found.
    pub fn add(&mut self, results: Vec<ComparisonResult>) {
        for ComparisonResult { group, payload: [to_wan, to_lan], time } in results {
            let (direction, payload) = if to_wan >= to_lan { (0, to_wan) } else { (1, to_lan) };
            let size = SIZES.iter().position(|(_, end)| payload.get() < *end).unwrap_or(SIZES.len() - 1);
            let cell = &mut self.cells[direction][size];
            let rates = match group {
                ComparisonGroup::Split => &mut cell.split,
                ComparisonGroup::Unsplit => &mut cell.unsplit,
            };
            rates.add(payload, time.as_nanos() as f64 / 1e9);
        }
    }

    /// What is known, without directions and sizes of which nothing is.
    pub fn rows(&self) -> Vec<GainRow> {
        let mut rows = Vec::new();
        for (direction, cells) in DIRECTIONS.into_iter().zip(&self.cells) {
            for ((size, _), GainCell { split, unsplit }) in SIZES.into_iter().zip(cells) {
                if split.0.is_empty() && unsplit.0.is_empty() {
                    continue;
                }
                let gain = split.medians().zip(unsplit.medians()).map(|(own, other)| {
                    let [low, median, high] = own;
                    let [other_low, other_median, other_high] = other;
                    [median / other_median, low / other_high, high / other_low]
                });
                rows.push(GainRow { direction, size, split: split.view(), unsplit: unsplit.view(), gain });
            }
        }
        rows
    }
}

impl GroupRates {
    fn add(&mut self, payload: ByteCount, seconds: f64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(payload.get() as f64 * 8.0 / seconds.max(1e-6));
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted: Vec<f64> = self.0.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The median between the bounds that it is within with 95 %, by order statistics; none of few.
    fn medians(&self) -> Option<[f64; 3]> {
        let sorted = self.sorted();
        if sorted.len() < FEW {
            return None;
        }
        let half = sorted.len() as f64 / 2.0;
        let spread = Z95 * (sorted.len() as f64).sqrt() / 2.0;
        let at = |place: f64| sorted[(place.max(0.0) as usize).min(sorted.len() - 1)];
        Some([at(half - spread), at(half), at(half + spread)])
    }

    fn view(&self) -> GroupView {
        let sorted = self.sorted();
        let median = sorted.get(sorted.len() / 2).map(|rate| Rate::from_bits_per_sec(*rate as u64));
        GroupView { connections: sorted.len(), median }
    }
}

impl GainRow {
    /// For `status --json`.
    pub fn json(&self) -> Value {
        let group = |GroupView { connections, median }: GroupView| {
            let median = median.map(Rate::bits_per_sec);
            json!({ "connections": connections, "median_bit_s": median })
        };
        json!({
            "direction": self.direction,
            "size": self.size,
            "split": group(self.split),
            "unsplit": group(self.unsplit),
            "gain": self.gain.map(|[gain, ..]| gain),
            "gain_interval": self.gain.map(|[_, low, high]| [low, high]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::{RandomStream, Span};

    fn result(group: ComparisonGroup, to_wan: u64, to_lan: u64, time: Span) -> ComparisonResult {
        ComparisonResult { group, payload: [to_wan, to_lan].map(ByteCount::new), time }
    }

    /// Breaks: connections are counted under another direction or size, or something is said of the gain that
    /// a few connections do not show.
    #[test]
    fn each_connection_has_its_row() {
        let mut gain = Gain::default();
        assert!(gain.rows().is_empty());
        let second = Span::from_secs(1);
        let one = |group, to_wan, to_lan| result(group, to_wan, to_lan, second);
        gain.add(vec![one(ComparisonGroup::Split, 99_999, 5), one(ComparisonGroup::Unsplit, 3, 10_000_000)]);
        let rows = gain.rows();
        let names: Vec<_> = rows.iter().map(|row| (row.direction, row.size)).collect();
        assert_eq!(names, [("to_wan", "below 100 kB"), ("to_lan", "10 MB and more")]);
        assert_eq!(
            rows[0].split,
            GroupView { connections: 1, median: Some(Rate::from_bits_per_sec(799_992)) }
        );
        assert_eq!(rows[0].unsplit, GroupView { connections: 0, median: None });
        assert_eq!((rows[0].gain, rows[1].gain), (None, None));
        gain.add(vec![one(ComparisonGroup::Split, 50_000, 0); 2 * KEPT]);
        assert_eq!(gain.rows()[0].split.connections, KEPT, "memory");
    }

    /// Breaks: the interval does not hold the truth, or chance passes for a gain.
    #[test]
    fn the_interval_holds_the_gain() {
        let mut random = RandomStream::new(1, "test");
        for truth in [1.0, 3.0] {
            let mut held = 0;
            for _ in 0..200 {
                let mut gain = Gain::default();
                for _ in 0..40 {
                    // Times that differ by a factor of up to ten.
                    let mut time = || Span::from_millis(1_000 + random.below(9_000));
                    let (split, unsplit) = (time(), time());
                    let unsplit = Span::from_nanos((unsplit.as_nanos() as f64 * truth) as u64);
                    gain.add(vec![
                        result(ComparisonGroup::Split, 5_000_000, 0, split),
                        result(ComparisonGroup::Unsplit, 5_000_000, 0, unsplit),
                    ]);
                }
                let [_, low, high] = gain.rows()[0].gain.unwrap();
                held += u32::from((low..=high).contains(&truth));
            }
            assert!(held >= 180, "{held} of 200 hold {truth}");
        }
    }
}
