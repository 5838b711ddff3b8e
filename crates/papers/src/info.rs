//! What is known of a paper before anything is measured.

use crate::plausible::PlausibleKey;
use crate::world::PaperWorld;

/// What is known of a paper without a measurement.
#[derive(Debug)]
pub struct PaperInfo {
    /// The name of its command, its directory and its page under `docs/papers`.
    pub name: &'static str,
    /// Title, authors, institute.
    pub citation: &'static str,
    /// The title of its report.
    pub title: &'static str,
    /// Its heading on the page on all papers.
    pub topic: &'static str,
    /// The problem and its solution in two or three sentences.
    pub story: &'static str,
    /// File names of the figures for the page on all papers.
    pub key_figures: &'static [&'static str],
    /// Claims that decide whether the paper is confirmed; none: all of them.
    pub key_claims: &'static [&'static str],
    /// The command for a single run with captures.
    pub single_run: &'static str,
    /// The text of `docs/papers/NAME.md`, which has the reasons of claims that fail.
    pub document: &'static str,
    /// Assumptions about what it leaves open; first the world in which most claims hold.
    pub worlds: &'static [PaperWorld],
    /// Keys about which it leaves something open, each with a plausible range.
    pub plausible: &'static [PlausibleKey],
}

impl PaperInfo {
    /// The world of this name.
    pub fn world(&self, name: &str) -> Option<&'static PaperWorld> {
        self.worlds.iter().find(|world| world.name == name)
    }
}
