//! Published measurements made again in virtual time, and experiments of the same kind.
//!
//! Start reading at [`Experiment`]: runs, and what is measured in each. [`Paper`] adds rows, claims and their
//! reasons. The [`Runner`] makes the runs of either. A folder for each of the five papers has what differs,
//! and so have [`together`], [`controls`] and the experiments beside the papers.
//!
//! A measurement never reads a clock, prints, or ends the process. Random numbers come from seeds, so the
//! same experiment gives the same report on every machine, with any number of threads.

#![forbid(unsafe_code)]

pub mod ack;
pub mod assumption_search;
mod assumptions;
mod bulk;
mod contender;
pub mod controls;
mod experiment;
mod info;
mod kept;
pub mod nics;
mod observe;
mod overview;
pub mod pacing;
mod paper;
mod plausible;
mod reasons;
mod report;
mod runner;
pub mod satellite;
pub mod search;
pub mod statistics;
pub mod stops;
mod sweep;
pub mod together;
mod world;

pub use assumptions::{PointSetting, WorldAssumptions};
pub use bulk::endless;
pub use contender::{chosen_controls, congestion_name};
pub use experiment::{CaseRun, Experiment, MeasureError, Measured, RunsOfCase, StopRequest};
pub use info::PaperInfo;
pub use observe::Setting;
pub use overview::Overview;
pub use paper::{ClaimList, Paper, RowList};
pub use plausible::{PlausibleKey, SCENARIO};
pub use reasons::{FailsIn, entries as reasons, entries_in_world as reasons_in_world};
pub use report::{ExperimentReport, PaperSummary, ReportJson};
pub use runner::{ProgressSink, Runner};
pub use world::{CHOICE, PaperWorld, WorldSetting};
