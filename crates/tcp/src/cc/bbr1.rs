//! Bbr1.

pub use super::Reno as Bbr1;
