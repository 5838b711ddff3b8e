//! The tables of the thesis.

use super::cases::{AckCase, AskPolicy as P, DelaySplit};
use super::transfer::AckRun;

/// A row: a policy, with timestamps or not, and its six numbers in the order of [`COLUMNS`].
#[derive(Clone, Copy, Debug)]
pub struct PublishedPolicy {
    pub policy: P,
    pub timestamps: bool,
    pub numbers: [Option<f64>; 6],
}

impl PublishedPolicy {
    /// For people.
    pub fn label(&self) -> String {
        format!("{}{}", self.policy.label(), if self.timestamps { ", timestamps" } else { "" })
    }
    /// The same here.
    pub fn case(&self, split: DelaySplit) -> AckCase {
        AckCase::new(split, self.policy, self.timestamps)
    }
}

/// A column: for people, its unit, for programs, and its number of a run.
pub type PublishedColumn = (&'static str, &'static str, &'static str, fn(&AckRun) -> f64);

/// The columns of both tables. "Bytes" are those that were sent: without timestamps the thesis' are 1460
/// times its segments, but for one row. "Dup ACK" is the difference of the two columns before it.
pub const COLUMNS: [PublishedColumn; 6] = [
    ("bytes", "kB", "bytes", |m| m.sent_kb),
    ("sent", "", "sent", |m| m.sent),
    ("ACK", "", "acks", |m| m.acks),
    ("\"Dup ACK\"", "", "shared", |m| m.sent - m.acks),
    ("CDL", "", "cdl", |m| m.asked),
    ("CDLACK", "", "cdlack", |m| m.confirmed),
];

const fn row(policy: P, timestamps: bool, numbers: [u16; 6]) -> PublishedPolicy {
    let asks = !matches!(policy, P::None);
    let [bytes, sent, acks, shared, asked, confirmed] = numbers;
    let [asked, confirmed] = if asks { [Some(asked as f64), Some(confirmed as f64)] } else { [None, None] };
    let [bytes, sent, acks, shared] = [bytes as f64, sent as f64, acks as f64, shared as f64];
    let numbers = [Some(bytes), Some(sent), Some(acks), Some(shared), asked, confirmed];
    PublishedPolicy { policy, timestamps, numbers }
}

/// Table 5.1.
pub const TABLE_1: [PublishedPolicy; 4] = [
    row(P::None, false, [561, 394, 206, 188, 0, 0]),
    row(P::None, true, [570, 390, 205, 195, 0, 0]),
    row(P::Rtt, false, [581, 398, 246, 152, 104, 104]),
    row(P::Rtt, true, [616, 417, 255, 162, 116, 115]),
];

/// Table 5.2, and the policy that it leaves out.
pub const TABLE_2: [PublishedPolicy; 8] = [
    row(P::None, false, [568, 390, 205, 185, 0, 0]),
    row(P::Rtt, false, [581, 398, 240, 158, 104, 104]),
    row(P::Every2, false, [583, 399, 253, 146, 227, 227]),
    row(P::Every3, false, [585, 401, 276, 125, 175, 175]),
    row(P::Every4, false, [591, 405, 250, 155, 128, 128]),
    PublishedPolicy { policy: P::WindowEnd, timestamps: false, numbers: [None; 6] },
    row(P::SlowStart, false, [626, 429, 333, 96, 231, 230]),
    row(P::Rtt, true, [616, 417, 255, 162, 266, 262]),
];

/// Round trip of the first data segment in Fig. 5.1, in ms.
pub const FIRST_ROUND_TRIP: f64 = 78.7;
/// By how much ACKs become more (section 7.3), in percent.
pub const MORE_ACKS: std::ops::RangeInclusive<f64> = 10.0..=20.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a number mistyped: "Dup ACK" is the difference in all rows but one, and without timestamps the
    /// bytes are full segments, again but in one.
    #[test]
    fn the_tables_agree_with_themselves_where_the_published_ones_do() {
        let all = || TABLE_1.iter().chain(&TABLE_2);
        let odd = |of: fn(&PublishedPolicy) -> Option<bool>| all().filter(|p| of(p) == Some(false)).count();
        assert_eq!(odd(|p| Some(p.numbers[1]? - p.numbers[2]? == p.numbers[3]?)), 1);
        let full = |p: &PublishedPolicy| Some((p.numbers[1]? * 1.46 - p.numbers[0]?).abs() < 1.5);
        assert_eq!(odd(full), 3, "561 kB, and twice 616 kB");
        assert_eq!(all().filter(|p| !p.timestamps && full(p) == Some(false)).count(), 1);
    }
}
