//! One run of a scenario: what is gathered while it goes on, its summary, the verdict in words, and the
//! report.
//!
//! Start reading at [`RunSummary`], which [`summarize()`] makes of what a [`RunWatch`] has seen and the lab's
//! outcome. [`run_scenario`] does all of it for programs. [`words`] and [`tables`] say it, [`page`] shows it.
//! This crate never prints, and never reads a clock.

#![forbid(unsafe_code)]

mod classes;
mod datagrams;
mod input;
mod library;
mod nics;
mod pacing;
pub mod page;
mod places;
mod summarize;
mod summary;
pub mod tables;
mod watch;
pub mod words;

pub use classes::{CompletionTimes, FlowClassSummary};
pub use datagrams::DatagramSummary;
pub use input::RunInput;
pub use library::{RunResult, run_scenario};
pub use nics::NicsSummary;
pub use pacing::{ClassSummary, PacingSummary};
pub use summarize::summarize;
pub use summary::{
    AckSummary, BottleneckSummary, DropSummary, FlowSummary, RunSummary, ScenarioSummary, SilenceSummary,
    Status, StopEpisode, Wall,
};
pub use watch::{RunTime, RunWatch};
