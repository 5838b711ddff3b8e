//! HTcp.

pub use super::Reno as HTcp;
