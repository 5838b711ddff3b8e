//! What `explain` tells of files: it opens captures, traces and logs of `ss`, and puts verdicts into text,
//! JSON and pages with figures.
//!
//! Start reading at [`ExaminedFile`], which [`examine()`] makes of a file. [`words`], [`json`] and [`page`]
//! show it, [`Cured`] is what the lab says of a cure, [`reasons`] shows verdicts on the engine's own records,
//! and [`view`] serves pages to a browser. This crate never prints, and never writes a file.

#![forbid(unsafe_code)]

mod cure;
mod error;
mod examine;
mod figures;
pub mod json;
mod packets;
pub mod page;
pub mod reasons;
mod transfer;
pub mod view;
pub mod words;

pub use cure::{CureError, Cured};
pub use error::{ExamineError, ReadCause};
pub use examine::{
    CapturePair, ExaminedFile, FileSource, FlowSelection, collect_packets, examine, judge, pair, try_cures,
};
pub use packets::{MAX_PIECES, MAX_VIEWED, PathShares};
pub use transfer::Transfer;
