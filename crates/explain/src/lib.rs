//! Why a transfer stalled: from anybody's capture to a verdict with packet numbers.
//!
//! [`input::read`] follows the connections of a capture in bounded memory. What it found out about each is a
//! [`flow::Flow`]: segments, losses, round trips, stalls, and the course of the transfer in slices.
//!
//! Start reading at [`flow::Flow`]. This crate never opens a file, reads a clock or sends a packet.

#![forbid(unsafe_code)]

mod attributed_view;
mod attribution;
mod bucket;
pub mod cause;
mod control;
mod diagnosis;
mod evidence;
mod filter;
mod finding;
pub mod flow;
pub mod frame;
pub mod input;
mod losses;
pub mod pair;
mod policing;
pub mod reproduce;
mod statistics;
mod view;
pub mod words;

pub use attributed_view::AttributedView;
pub use attribution::Attribution;
pub use bucket::Policing;
pub use control::Control;
pub use diagnosis::{Diagnosis, MIN_SHARE, Share, diagnose};
pub use filter::{FilterError, FlowFilter};
pub use finding::Finding;
pub use losses::{Pattern, Thinned};
pub use policing::policing;
pub use view::{Episode, Stretch, Vantage, View};
