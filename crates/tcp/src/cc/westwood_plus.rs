//! WestwoodPlus.

pub use super::Reno as WestwoodPlus;
