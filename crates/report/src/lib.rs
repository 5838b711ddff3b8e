//! Reports of runs: tables, figures, and self-contained HTML.
//!
//! Figures are functions from data to a [`Drawing`] (SVG for wide and narrow screens). Their data is
//! collected during a run in bounded memory: [`WindowHistory`] and [`FlightRecorder`] from rows of a trace,
//! [`BinnedSeries`] from a bandwidth meter, [`Reduced`] from any series of numbers. A [`Page`] combines them.
//! A [`Reproduction`] contains the values and claims of a paper with their results.
//!
//! Start reading at [`Page`]. This crate never depends on the engine or the lab: its input is rows, bins
//! and tables.

#![forbid(unsafe_code)]

mod bins;
mod chart;
mod explore;
mod figures;
mod history;
mod html;
mod palette;
mod paths;
mod recorder;
mod reproduction;
#[cfg(test)]
mod sample;
mod scale;
mod series;
mod svg;
mod table;
mod text_block;
mod worlds;

pub use bins::{BinInterval, BinnedSeries};
pub use chart::{Drawing, Figure};
pub use explore::{
    EventKind, Exploration, ExploreAxis, ExploreEvent, ExplorePanel, ExploreSeries, MAX_EVENTS, MAX_OVERVIEW,
    MAX_POINTS, SeriesKind,
};
pub use farpace_units::number;
pub use figures::{
    BandwidthSeries, Bar, Cloud, ComparedEstimate, ComparisonRow, Curve, Dot, DropSeries, HeatRow, Level,
    LinePanel, MAX_CURVES, MAX_FIELDS, RateLimit, RecordedDrops, SequenceDrops, SequencePiece, Sides,
    StyledLine, TimeLine, TimeSequence, bandwidth, clouds, comparison, comparison_of, curves, drops,
    heat_map, histogram, line_panels, lines, scatter, sequence, time_sequence, time_sequence_with_drops,
    variables, window,
};
pub use history::{StateBand, WindowHistory};
pub use html::Page;
pub use palette::{Style, Thing, styles};
pub use recorder::FlightRecorder;
pub use reproduction::{Reproduction, ReproductionClaim, ReproductionRow};
pub use series::{Reduced, SeriesBucket};
pub use table::{Align, Table, TableCell, TableColumn};
pub use text_block::fill;
pub use worlds::{
    AGREES, AssumedSetting, AssumedWorld, ComparedClaim, ComparedNumber, PrintAgreement, WorldComparison,
    agrees,
};
