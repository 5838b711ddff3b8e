//! What a run looks like: tables, figures, and self-contained HTML.
//!
//! Figures are functions from data to a [`Drawing`] (SVG for wide and narrow screens). Their data is
//! gathered while a run goes on, in bounded memory: [`WindowHistory`] and [`FlightRecorder`] take the rows
//! of a trace, [`BinnedSeries`] what a bandwidth meter counted, [`Reduced`] any series of numbers. A
//! [`Page`] puts them together; a [`Reproduction`] says how a paper's numbers and claims came out.
//!
//! Start reading at [`Page`]. It never knows the engine or the lab: it sees rows, bins and tables. A page never loads anything: it stands alone as a file.

#![forbid(unsafe_code)]

mod bins;
mod chart;
mod figures;
mod history;
mod html;
mod paths;
mod recorder;
mod reproduction;
#[cfg(test)]
mod sample;
mod scale;
mod series;
mod svg;
mod table;

pub use bins::{BinInterval, BinnedSeries};
pub use chart::{Drawing, Figure};
pub use figures::{
    BandwidthSeries, Bar, ComparedEstimate, ComparisonRow, Curve, Dot, HeatRow, Level, RateLimit, Sides,
    TimeLine, bandwidth, comparison, comparison_of, curves, heat_map, histogram, lines, scatter,
    time_sequence, variables, window,
};
pub use history::{StateBand, WindowHistory};
pub use html::Page;
pub use recorder::FlightRecorder;
pub use reproduction::{Reproduction, ReproductionClaim, ReproductionRow};
pub use scale::number;
pub use series::{Reduced, SeriesBucket};
pub use table::{Align, Table, TableCell, TableColumn};
