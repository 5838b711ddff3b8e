//! Scalable.

pub use super::Reno as Scalable;
