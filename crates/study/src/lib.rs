//! Studies: many runs of one scenario with varied values and seeds, in a folder that grows.
//!
//! Start reading at [`StudyPlan`]: what is varied, from a text like `links.wan.delay=5ms..300ms*7`
//! ([`Axis`]). [`run`] makes the runs that the [`StudyFolder`] does not have yet; each is known by a key of
//! its content. [`StudyQueue`] has the same runs for those who make them elsewhere. [`StoredStudy`] reads
//! them back, [`summarize`] takes means over seeds, [`StudyPage`] shows them, and [`merge()`] joins shards.
//!
//! A study never reads a clock: what limits the time of a run is told by a [`StudySink`]. The rows do not
//! depend on the number of threads, on interruptions, or on how the runs were divided.

#![forbid(unsafe_code)]

mod axis;
mod dataset;
mod error;
mod folder;
mod grid;
mod journal;
mod keys;
mod merge;
mod page;
mod plan;
mod quantity;
mod queue;
mod record;
mod runner;
mod sample;
mod shard;
mod simulate;
mod statistics;
mod template;

pub use axis::{Axis, AxisError, MAX_VALUES};
pub use dataset::{FLOW_COLUMNS, RUN_COLUMNS, StudyColumn};
pub use error::StudyError;
pub use farpace_trace::TableKind;
pub use folder::{DATA_SET, FORMAT, Provenance, StoredStudy, StudyFolder};
pub use grid::{Grid, GridIndex, MAX_AXES};
pub use merge::{merge, shard_folder};
pub use page::{StudyPage, csv_text, cut_note, interval, json, table};
pub use plan::{MAX_RUNS, MAX_SEEDS, PlanSpec, ScenarioSource, StudyPlan};
pub use quantity::{QuantityKind, QuantityValue};
pub use queue::{MIN_SEEDS, PlannedRun, QueueOptions, RunOrder, StudyEnd, StudyQueue};
pub use record::{FlowRecord, Measurement, RunRecord, RunStatus};
pub use runner::{RunOptions, StudySink, probe, run};
pub use sample::{MAX_SAMPLES, Sampling};
pub use shard::Shard;
pub use simulate::{RunEnd, RunVerdict, Simulate, simulate};
pub use statistics::{Metric, PointSummary, summarize};
pub use template::ScenarioTemplate;
