//! LedbatPlusPlus.

pub use super::Reno as LedbatPlusPlus;
