//! Westwood.

pub use super::Reno as Westwood;
