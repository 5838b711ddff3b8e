//! Vegas.

pub use super::Reno as Vegas;
