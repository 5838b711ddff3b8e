//! Places in a scenario: where a key or value was written, and the path that leads to it.

use std::ops::Range;

/// Where a key or value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nowhere in particular: the whole file.
    File,
    /// Bytes of the text.
    Text(Range<usize>),
    /// The override of this number.
    Set(usize),
}

/// One step from a table or an array to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DocumentStep {
    Key(String),
    Index(usize),
}

impl From<&str> for DocumentStep {
    fn from(key: &str) -> DocumentStep {
        DocumentStep::Key(key.to_string())
    }
}

impl From<usize> for DocumentStep {
    fn from(index: usize) -> DocumentStep {
        DocumentStep::Index(index)
    }
}

/// The path of a key in the table at `at`.
pub(super) fn below(at: &[DocumentStep], keys: &[&str]) -> Vec<DocumentStep> {
    at.iter().cloned().chain(keys.iter().map(|key| DocumentStep::from(*key))).collect()
}
