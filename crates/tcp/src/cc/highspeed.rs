//! HighSpeed TCP.

pub use super::Reno as HighSpeed;
