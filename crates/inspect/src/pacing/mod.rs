//! The proof of pacing, from captures of any origin.
//!
//! The analysis is [`farpace_link::proof`]; here captures are read (`input`), and what came out is put into
//! words (`words`), tables (`tables`), JSON (`json`) and a page with figures (`page`, `figures`).

mod error;
mod figures;
mod input;
mod json;
mod page;
mod tables;
mod words;

pub use error::{CaptureCause, ProofInputError};
pub use input::{ExaminedCapture, ProofRequest, ReadSink, all_precise, captures, examine, refuse_nothing};
pub use json::report;
pub use page::page;
pub use tables::text;
