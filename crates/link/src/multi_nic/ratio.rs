//! Shares of NICs, and the cycle of slots that follows from them.

use crate::multi_nic::{MAX_NICS, NicId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The share of frames of each NIC, as in `90/10` or `99.6/0.4`. The sum is arbitrary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ratio(Vec<u64>);

/// Shares have three decimal places.
const UNIT: u64 = 1_000;

impl Ratio {
    /// From weights in the order of NICs; none if all are zero or there are more than [`MAX_NICS`].
    pub fn of(weights: &[u64]) -> Option<Ratio> {
        let sane = weights.len() <= MAX_NICS && weights.iter().any(|w| *w > 0);
        sane.then(|| Ratio(weights.to_vec()))
    }
    /// The weights in the order of NICs.
    pub fn weights(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Ratio {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("`{text}` is not a ratio: expected a share for each NIC, like \"90/10\" or \"99.6/0.4\"")
        };
        let share = |part: &str| {
            let (whole, fraction) = part.trim().split_once('.').unwrap_or((part.trim(), ""));
            if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
            let whole: u64 = whole.parse().ok().filter(|n| *n <= 1_000_000_000)?;
            Some(whole * UNIT + fraction)
        };
        let weights: Option<Vec<u64>> = text.split('/').map(share).collect();
        weights.and_then(|w| Ratio::of(&w)).ok_or_else(bad)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, weight) in self.0.iter().enumerate() {
            let fraction = format!("{:03}", weight % UNIT);
            let fraction = fraction.trim_end_matches('0');
            let (slash, point) = (if i > 0 { "/" } else { "" }, if fraction.is_empty() { "" } else { "." });
            write!(f, "{slash}{}{point}{fraction}", weight / UNIT)?;
        }
        Ok(())
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Ratio {
    fn schema_name() -> Cow<'static, str> {
        "Ratio".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The share of each NIC, in the order of NICs: \"90/10\", \"99.6/0.4\".",
            "pattern": r"^\d+(\.\d{1,3})?(/\d+(\.\d{1,3})?)*$"
        })
    }
}

/// A cycle of slots: the NIC of each frame. The slots of a NIC are evenly spaced; of slots that coincide,
/// that of the smaller share is first. So `75/25`, slow NIC second, is slow, fast, fast, fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    weights: Vec<u64>,
    /// Number of slots that each NIC has used.
    used: Vec<u64>,
    next: NicId,
}

impl Slots {
    /// The beginning of the cycle. Without any share, the first NIC has all slots.
    pub fn new(ratio: &Ratio) -> Slots {
        let mut slots = Slots { weights: ratio.0.clone(), used: vec![0; ratio.0.len()], next: NicId(0) };
        slots.choose();
        slots
    }
    /// The NIC of the current slot.
    pub const fn next(&self) -> NicId {
        self.next
    }
    /// Moves to the next slot.
    pub fn advance(&mut self) {
        if let Some(used) = self.used.get_mut(self.next.index()) {
            *used += 1;
        }
        self.choose();
    }
    /// How many slots from here on, up to `max`, are of NICs for which `is` is true.
    pub fn run(&self, max: usize, is: impl Fn(NicId) -> bool) -> usize {
        let mut ahead = self.clone();
        let mut n = 0;
        while n < max && is(ahead.next) {
            ahead.advance();
            n += 1;
        }
        n
    }
    /// Sets the shares. Equal shares have no effect.
    pub fn set(&mut self, ratio: &Ratio) {
        if ratio.0 != self.weights {
            *self = Slots::new(ratio);
        }
    }

    /// Selects the NIC whose next slot is due first. The slots of NIC i are due at n / w(i), compared without
    /// division.
    fn choose(&mut self) {
        let mut best: Option<(usize, u64, u64)> = None;
        for (at, (&weight, &used)) in
            self.weights.iter().zip(&self.used).enumerate().filter(|(_, (w, _))| **w > 0)
        {
            let is_earlier = best.is_none_or(|(_, best_weight, best_had)| {
                let (mine, other) =
                    (u128::from(used) * u128::from(best_weight), u128::from(best_had) * u128::from(weight));
                mine < other || (mine == other && weight < best_weight)
            });
            if is_earlier {
                best = Some((at, weight, used));
            }
        }
        self.next = NicId(best.map_or(0, |(at, ..)| at as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(ratio: &str, n: usize) -> Vec<u8> {
        let mut slots = Slots::new(&ratio.parse().expect("a ratio"));
        let mut out = Vec::new();
        for _ in 0..n {
            out.push(slots.next().0);
            slots.advance();
        }
        out
    }

    /// Breaks: the order vectors of the paper, whose cycle begins with the slow NIC.
    #[test]
    fn a_quarter_is_one_slow_slot_and_three_fast_ones() {
        assert_eq!(cycle("75/25", 8), [1, 0, 0, 0, 1, 0, 0, 0]);
    }

    /// Breaks: each NIC gets its share, evenly spaced.
    #[test]
    fn each_nic_gets_its_share_evenly() {
        for (ratio, per) in [("90/10", 10), ("99.6/0.4", 250)] {
            let slots = cycle(ratio, per * 20);
            for window in slots.windows(per) {
                assert_eq!(window.iter().filter(|nic| **nic == 1).count(), 1, "{ratio}");
            }
        }
        let three = cycle("1000/100/10", 1_110);
        let count = |n| three.iter().filter(|nic| **nic == n).count();
        assert_eq!((count(0), count(1), count(2)), (1_000, 100, 10));
    }

    /// Breaks: ratios read back as they were written.
    #[test]
    fn ratios_read_back() {
        for text in ["90/10", "99.6/0.4", "1", "100/0/0.125"] {
            assert_eq!(text.parse::<Ratio>().map(|r| r.to_string()).as_deref(), Ok(text));
        }
        for bad in ["", "/", "90/", "0/0", "-1/2", "1.2345/1", "a/b", "1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1"] {
            assert!(bad.parse::<Ratio>().is_err(), "{bad}");
        }
    }
}
