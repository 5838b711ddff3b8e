//! The thesis' tables.

use super::cases::Policy;
use super::measure::Measurement;

/// A row: which policy, with timestamps or not, and its six numbers in the order of [`COLUMNS`].
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    /// Which.
    pub policy: Policy,
    /// With timestamps.
    pub timestamps: bool,
    /// As printed.
    pub numbers: [Option<f64>; 6],
}

/// A column: name, unit, id, and what it is of a run.
pub struct Quantity {
    /// For people.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// For programs.
    pub id: &'static str,
    /// Of a run.
    pub of: fn(&Measurement) -> f64,
}

/// The columns of both tables. "Bytes" are those that were sent: without timestamps the thesis' are 1460 times its
/// segments, but for one row. "Dup ACK" is the difference of the two columns before it.
pub const COLUMNS: [Quantity; 6] = [
    Quantity { name: "bytes", unit: "kB", id: "bytes", of: |m| m.sent_kb },
    Quantity { name: "sent", unit: "", id: "sent", of: |m| m.sent },
    Quantity { name: "ACK", unit: "", id: "acks", of: |m| m.acks },
    Quantity { name: "\"Dup ACK\"", unit: "", id: "shared", of: |m| m.sent - m.acks },
    Quantity { name: "CDL", unit: "", id: "cdl", of: |m| m.asked },
    Quantity { name: "CDLACK", unit: "", id: "cdlack", of: |m| m.confirmed },
];

const fn printed(policy: Policy, timestamps: bool, numbers: [u16; 6]) -> Printed {
    let [bytes, sent, acks, shared, asked, confirmed] = numbers;
    let asks = !matches!(policy, Policy::None);
    let cdl = if asks { [Some(asked as f64), Some(confirmed as f64)] } else { [None, None] };
    let [asked, confirmed] = cdl;
    Printed {
        policy,
        timestamps,
        numbers: [
            Some(bytes as f64),
            Some(sent as f64),
            Some(acks as f64),
            Some(shared as f64),
            asked,
            confirmed,
        ],
    }
}

/// Table 5.1.
pub const TABLE_1: [Printed; 4] = [
    printed(Policy::None, false, [561, 394, 206, 188, 0, 0]),
    printed(Policy::None, true, [570, 390, 205, 195, 0, 0]),
    printed(Policy::Rtt, false, [581, 398, 246, 152, 104, 104]),
    printed(Policy::Rtt, true, [616, 417, 255, 162, 116, 115]),
];

/// Table 5.2, and the policy that it leaves out.
pub const TABLE_2: [Printed; 8] = [
    printed(Policy::None, false, [568, 390, 205, 185, 0, 0]),
    printed(Policy::Rtt, false, [581, 398, 240, 158, 104, 104]),
    printed(Policy::Every(2), false, [583, 399, 253, 146, 227, 227]),
    printed(Policy::Every(3), false, [585, 401, 276, 125, 175, 175]),
    printed(Policy::Every(4), false, [591, 405, 250, 155, 128, 128]),
    Printed { policy: Policy::WindowEnd, timestamps: false, numbers: [None; 6] },
    printed(Policy::SlowStart, false, [626, 429, 333, 96, 231, 230]),
    printed(Policy::Rtt, true, [616, 417, 255, 162, 266, 262]),
];

/// Round trip of the first data segment in the thesis' Fig. 5.1, in milliseconds.
pub const FIRST_ROUND_TRIP: f64 = 78.7;
/// By how much ACKs become more (its section 7.3), in percent.
pub const MORE_ACKS: (f64, f64) = (10.0, 20.0);

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a number mistyped: "Dup ACK" is the difference in all rows but one, and without timestamps the bytes are
    /// full segments, again but in one.
    #[test]
    fn the_tables_agree_with_themselves_where_the_thesis_does() {
        let all = || TABLE_1.iter().chain(&TABLE_2);
        let odd = |of: fn(&Printed) -> Option<bool>| all().filter(|p| of(p) == Some(false)).count();
        assert_eq!(odd(|p| Some(p.numbers[1]? - p.numbers[2]? == p.numbers[3]?)), 1);
        let full = |p: &Printed| Some((p.numbers[1]? * 1.46 - p.numbers[0]?).abs() < 1.5);
        assert_eq!(odd(full), 3, "561 kB, and twice 616 kB");
        assert_eq!(all().filter(|p| !p.timestamps && full(p) == Some(false)).count(), 1);
    }
}
