//! Illinois.

pub use super::Reno as Illinois;
