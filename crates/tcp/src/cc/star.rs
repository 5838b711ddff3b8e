//! TCP-STAR.

pub use super::Reno as Star;
