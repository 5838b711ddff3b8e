//! Dctcp.

pub use super::Reno as Dctcp;
