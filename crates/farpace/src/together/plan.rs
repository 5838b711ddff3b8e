//! Which runs are made, over which paths.

use super::cures::{Cure, Cures, Era, Sender};
use super::measure::Measurement;
use crate::grid::measure;
use anyhow::{Result, anyhow, bail};
use farpace_lab::scenario::Scenario;
use farpace_units::Span;
use std::fmt;

/// A path on which cures meet.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    /// Its name.
    pub name: &'static str,
    /// The scenario's file.
    pub file: &'static str,
    /// Its text: all cures of today.
    pub text: &'static str,
}

/// All of them.
pub fn meetings() -> [Meeting; 2] {
    [
        Meeting {
            name: "ship",
            file: "scenarios/gallery/together.toml",
            text: include_str!("../../../../scenarios/gallery/together.toml"),
        },
        Meeting {
            name: "office",
            file: "scenarios/gallery/together-office.toml",
            text: include_str!("../../../../scenarios/gallery/together-office.toml"),
        },
    ]
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Who sends.
    pub sender: Sender,
    /// From 1.
    pub seed: u64,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let era = match self.sender {
            Sender::Cured(era, _) => era.name(),
            Sender::Outsider { .. } => "outsider",
        };
        write!(f, "{}, {era}, seed {}", self.sender, self.seed)
    }
}

/// All runs over one path.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The path.
    pub meeting: Meeting,
    /// Its scenario, with all cures of today.
    pub base: Scenario,
    /// Values that were asked for.
    pub set: Vec<(String, String)>,
    /// Runs of each kind.
    pub seeds: u64,
    /// Virtual time of each.
    pub time: Span,
}

impl Plan {
    /// All runs over `meeting`.
    ///
    /// # Errors
    /// Values that the scenario does not take, with any of the senders.
    pub fn new(meeting: Meeting, seeds: u64, time: Option<Span>, set: &[(String, String)]) -> Result<Plan> {
        let base = Scenario::parse_with(meeting.text, meeting.file, set).map_err(|e| anyhow!("{e}"))?;
        let time = time.unwrap_or(base.duration);
        if time < Span::from_secs(1) || time > farpace_lab::scenario::MAX_DURATION {
            bail!("--time must be from 1 s to 30 days");
        }
        let plan = Plan { meeting, base, set: set.to_vec(), seeds, time };
        for sender in senders() {
            plan.scenario(Job { sender, seed: 1 })?;
        }
        Ok(plan)
    }
    /// All runs, in order.
    pub fn jobs(&self) -> Vec<Job> {
        let seeds = |sender| (1..=self.seeds).map(move |seed| Job { sender, seed });
        senders().into_iter().flat_map(seeds).collect()
    }
    /// Makes one; none if interrupted.
    ///
    /// # Errors
    /// As [`measure`].
    pub fn measure(&self, job: &Job) -> Result<Option<Measurement>> {
        let run = measure(&self.scenario(*job)?, true)?;
        Ok(run.as_ref().and_then(Measurement::of))
    }
    /// What a job runs.
    ///
    /// # Errors
    /// Values that the scenario does not take.
    pub fn scenario(&self, job: Job) -> Result<Scenario> {
        let sets: Vec<(String, String)> = self.set.iter().cloned().chain(job.sender.sets()).collect();
        let scenario =
            Scenario::parse_with(self.meeting.text, self.meeting.file, &sets).map_err(|e| anyhow!("{e}"))?;
        Ok(Scenario { seed: job.seed, duration: self.time, ..scenario })
    }
}

/// Who sends, in the order of the tables: for both eras no cure, each alone, all but one, and all; then outsiders.
pub fn senders() -> Vec<Sender> {
    let mut senders = Vec::new();
    for era in Era::ALL {
        senders.extend(combinations().map(|cures| Sender::Cured(era, cures)));
    }
    for congestion in ["cubic", "bbr3"] {
        senders.extend([false, true].map(|cards| Sender::Outsider { congestion, cards }));
    }
    senders
}

/// No cure, each alone, all but one, and all.
pub fn combinations() -> impl Iterator<Item = Cures> {
    let alone = Cure::ALL.into_iter().map(|cure| Cures::NONE.with(cure));
    let but = Cure::ALL.into_iter().map(|cure| Cures::all().without(cure));
    std::iter::once(Cures::NONE).chain(alone).chain(but).chain([Cures::all()])
}
