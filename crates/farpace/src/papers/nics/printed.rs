//! The numbers that the paper prints. Its figures are not readable: only what the text says.

/// A measurement of TCP with a ratio and a skip number.
pub struct Printed {
    /// Shares of the wide and the narrow card.
    pub ratio: &'static str,
    /// The skip number.
    pub skip: u16,
    /// Throughput in Mbit/s.
    pub mbit: f64,
    /// Segments sent again, in percent; none: not observed.
    pub resent: Option<f64>,
}

/// The conventional method, 90/10.
pub const CONVENTIONAL: Printed = Printed { ratio: "90/10", skip: 0, mbit: 143.0, resent: Some(9.79) };
/// The best skip number at 90/10.
pub const BEST: Printed = Printed { ratio: "90/10", skip: 8, mbit: 373.0, resent: Some(7.17) };
/// The best ratio and skip number without the observing program.
pub const UNOBSERVED: Printed = Printed { ratio: "99.6/0.4", skip: 18, mbit: 714.0, resent: None };
/// How much faster it gets at 90/10: 373/143.
pub const GAIN: f64 = 2.6;
/// By how much fewer segments are sent again, in percent.
pub const FEWER: f64 = 26.8;
/// How much larger the window is (Fig. 10).
pub const WINDOW: f64 = 3.0;
/// UDP at 90/10, Mbit/s.
pub const UDP: f64 = 914.0;
/// TCP over the card of 1 Gbit/s alone, Mbit/s.
pub const ALONE: f64 = 689.0;
