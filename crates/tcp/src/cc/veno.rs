//! Veno.

pub use super::Reno as Veno;
