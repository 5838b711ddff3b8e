//! Why lists of cards are refused, and how often that and other things have happened.

use farpace_path::Inspection;
use farpace_wire::ExtensionError;
use std::collections::BTreeMap;

/// Why a neighbour's list of cards is not believed. The message that carried it is an ordinary one to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum ArpRefusal {
    /// It breaks a rule of its own.
    #[error("{0}")]
    Malformed(#[from] ExtensionError),
    /// It names one of our cards.
    #[error("it names our card")]
    OurCard,
    /// It comes from somebody we neither asked nor know.
    #[error("nobody asked for it")]
    Unsolicited,
    /// A newer one has come before.
    #[error("a newer one is known")]
    OlderGeneration,
    /// It has the number of the list that is known, and says something else.
    #[error("another of its generation is known")]
    SameGeneration,
    /// It names another neighbour's card.
    #[error("it names another neighbour's card")]
    TakenCard,
}

/// What has happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArpStats {
    /// Messages that have left with our list.
    pub told: u64,
    /// Announcements among them that nobody asked for.
    pub announced: u64,
    /// Lists that were new, or newer than what was known.
    pub learned: u64,
    /// Neighbours that have shown that they no longer have a list, or whose address another machine has now.
    pub evicted: u64,
    /// Neighbours that have not been heard of for too long.
    pub expired: u64,
    /// Neighbours that made room for others.
    pub forgotten: u64,
    /// Lists that were not believed.
    pub refused: BTreeMap<ArpRefusal, u64>,
}

impl ArpStats {
    /// A list is refused.
    pub(super) fn refuse(&mut self, why: ArpRefusal) {
        *self.refused.entry(why).or_default() += 1;
    }
    /// How often lists have been refused for this reason.
    pub fn refused(&self, why: ArpRefusal) -> u64 {
        self.refused.get(&why).copied().unwrap_or(0)
    }
    /// As named readings.
    pub fn inspect(&self) -> Inspection {
        let ArpStats { told, announced, learned, evicted, expired, forgotten, refused } = self;
        let refused: Vec<_> = refused.iter().map(|(why, times)| format!("{times} ({why})")).collect();
        vec![
            ("lists sent", told.to_string()),
            ("announcements sent", announced.to_string()),
            ("lists learned", learned.to_string()),
            ("lists evicted", evicted.to_string()),
            ("neighbours expired", expired.to_string()),
            ("neighbours forgotten", forgotten.to_string()),
            ("lists refused", if refused.is_empty() { "none".to_owned() } else { refused.join(", ") }),
        ]
    }
}
