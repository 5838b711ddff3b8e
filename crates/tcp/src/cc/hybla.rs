//! Hybla.

pub use super::Reno as Hybla;
