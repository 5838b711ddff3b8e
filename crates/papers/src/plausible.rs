//! What a paper leaves open: keys, each with a range of values that are plausible for its hosts and networks.
//!
//! A range is data beside its paper and says why it is plausible. A search draws its points from them.

/// A key about which a paper leaves something open.
#[derive(Clone, Copy, Debug)]
pub struct PlausibleKey {
    /// The part of a run that has the key, as in [`WorldSetting`](crate::WorldSetting); [`SCENARIO`]: the key
    /// is a path of the scenario.
    pub part: &'static str,
    /// The key within the part.
    pub key: &'static str,
    /// Its plausible values, as `farpace sweep --vary` takes them.
    pub range: &'static str,
    /// Why these are plausible and others are not.
    pub reason: &'static str,
}

/// The part of keys that are paths of the scenario.
pub const SCENARIO: &str = "scenario";

impl PlausibleKey {
    /// Its name: part and key, or the path of the scenario.
    pub fn name(&self) -> String {
        key_name(self.part, self.key)
    }
}

/// The name of a key.
pub(crate) fn key_name(part: &str, key: &str) -> String {
    if part == SCENARIO { key.to_owned() } else { format!("{part}.{key}") }
}

#[cfg(test)]
mod tests {
    use crate::ack::AckPaper;
    use crate::assumptions::PointSetting;
    use crate::nics::NicsPaper;
    use crate::pacing::PacingPaper;
    use crate::satellite::SatellitePaper;
    use crate::stops::StopsPaper;
    use crate::{Paper, Runner};
    use farpace_units::Span;
    use std::collections::BTreeSet;

    /// Each value and each end of a range must make runs that differ from the literal ones in what they
    /// assume.
    fn every_range_can_be_run<P: Paper>(paper: &P) {
        let mut names = BTreeSet::new();
        for key in P::ABOUT.plausible {
            assert!(names.insert(key.name()), "{} is there twice", key.name());
            assert!(!key.reason.is_empty());
            let range = key.range.split('*').next().unwrap();
            for value in range.split(',').flat_map(|word| word.split("..")) {
                let point = PointSetting { part: key.part.into(), key: key.key.into(), value: value.into() };
                let assumed = paper.assumed().at(&[point]);
                let made = paper.assuming(assumed, true).and_then(|paper| Runner::plan(&paper).map(drop));
                assert!(made.is_ok(), "{} {} = {value}: {made:?}", P::ABOUT.name, key.name());
            }
        }
        assert!(!names.is_empty());
    }

    /// Breaks: a search over a key that its paper lists is refused, or fails in the middle.
    #[test]
    fn every_plausible_value_makes_runs() {
        every_range_can_be_run(&StopsPaper::new(true, None, &[]).unwrap());
        every_range_can_be_run(&SatellitePaper::new(true, None, Span::from_secs(60), &[]).unwrap());
        every_range_can_be_run(&AckPaper::new(true, &[]));
        every_range_can_be_run(&PacingPaper::new([true, false], None, None, &[]).unwrap());
        every_range_can_be_run(&NicsPaper::new(true, None, &[]).unwrap());
    }
}
