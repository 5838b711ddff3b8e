//! The authors' worlds: named sets of assumptions about what a paper leaves open.
//!
//! A world is data beside its paper. It says of each assumption what the paper prints, to which number it is
//! fitted if it is, and why it is plausible. Numbers that were used for a fit are marked; the others judge
//! it.

use farpace_report::{AssumedSetting, AssumedWorld};

/// A named set of assumptions, under which all runs of a paper are made.
#[derive(Debug)]
pub struct PaperWorld {
    /// Its name, for `--assume`.
    pub name: &'static str,
    /// What it assumes, in a sentence or two.
    pub about: &'static str,
    /// The assumptions.
    pub settings: &'static [WorldSetting],
    /// Rows whose printed numbers were used for the fit. What ends in `/` stands for all rows that begin so.
    pub fitted: &'static [&'static str],
    /// It was chosen by the claims that hold, so that they do not judge it.
    pub fitted_to_claims: bool,
    /// What came out in it, beside the literal runs.
    pub result: &'static str,
}

/// An assumption of a world.
#[derive(Debug)]
pub struct WorldSetting {
    /// The part of a run that has the key. Each paper says which parts its runs have; a run without the part
    /// is as it was. A choice of the paper that is no key of scenarios has the part [`CHOICE`].
    pub part: &'static str,
    /// The key within the part.
    pub key: &'static str,
    /// Its value as scenarios write it; empty: the key that the paper's runs give is not given.
    pub value: &'static str,
    /// What the paper prints about it.
    pub printed: &'static str,
    /// The printed number to which it is fitted; none: it is not.
    pub fitted: Option<&'static str>,
    /// Why it is plausible.
    pub plausible: &'static str,
}

/// The part of what a paper decides in place of a scenario.
pub const CHOICE: &str = "paper";

impl PaperWorld {
    /// The value of a choice that the paper has to make.
    pub fn choice(&self, key: &str) -> Option<&'static str> {
        self.settings.iter().find(|s| s.part == CHOICE && s.key == key).map(|s| s.value)
    }
    /// True if the printed number of this row was used for the fit.
    pub fn is_fitted(&self, row: &str) -> bool {
        let covers = |of: &&str| if of.ends_with('/') { row.starts_with(*of) } else { row == *of };
        self.fitted.iter().any(covers)
    }
    /// For reports.
    pub fn described(&self) -> AssumedWorld {
        let setting = |s: &WorldSetting| AssumedSetting {
            part: s.part.to_owned(),
            key: s.key.to_owned(),
            value: s.value.to_owned(),
            printed: s.printed.to_owned(),
            fitted: s.fitted.map(str::to_owned),
            plausible: s.plausible.to_owned(),
        };
        AssumedWorld {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            fitted_to_claims: self.fitted_to_claims,
            result: self.result.to_owned(),
            settings: self.settings.iter().map(setting).collect(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const SETTING: WorldSetting = WorldSetting {
        part: "sender",
        key: "abc",
        value: "off",
        printed: "nothing",
        fitted: None,
        plausible: "of the time",
    };
    pub(crate) static WORLD: PaperWorld = PaperWorld {
        name: "test",
        about: "",
        settings: &[
            SETTING,
            WorldSetting { part: "host", key: "slow", value: "", ..SETTING },
            WorldSetting { part: CHOICE, key: "window", value: "9", ..SETTING },
        ],
        fitted: &["a/", "b/c"],
        fitted_to_claims: false,
        result: "",
    };

    /// Breaks: numbers that were used for a fit count as numbers that judge it, or a choice is not found.
    #[test]
    fn fitted_rows_are_known() {
        assert!(WORLD.is_fitted("a/b") && WORLD.is_fitted("b/c"));
        assert!(!WORLD.is_fitted("b/c/d") && !WORLD.is_fitted("a"));
        assert_eq!(WORLD.choice("window"), Some("9"));
    }
}
