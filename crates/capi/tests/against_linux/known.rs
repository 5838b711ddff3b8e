//! Programs that are known to differ: `known.txt` has a line for each, its number and the kind of the
//! difference. docs/conformance.md says of the kinds what is behind them.
//!
//! The number says what a program is only as long as `draw.rs` stays as it is. With FARPACE_BLESS=1 what
//! differs is added to the file; after a change of `draw.rs` it is to be made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/against_linux/known.txt")
}

/// Programs by number.
pub struct Known(BTreeMap<u64, String>);

impl Known {
    pub fn read() -> Self {
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        let line = |line: &str| {
            let (seed, kind) = line.split_once(' ')?;
            Some((seed.parse().ok()?, kind.to_owned()))
        };
        Known(text.lines().filter_map(line).collect())
    }
    pub fn has(&self, seed: u64) -> bool {
        self.0.contains_key(&seed)
    }
    pub fn kinds(&self) -> BTreeSet<&str> {
        self.0.values().map(String::as_str).collect()
    }
    pub fn add(&mut self, seed: u64, kind: &str) {
        self.0.insert(seed, kind.to_owned());
    }
    pub fn write(&self) {
        let text: String = self.0.iter().map(|(seed, kind)| format!("{seed} {kind}\n")).collect();
        std::fs::write(path(), text).unwrap();
    }
}
