//! TCP-J.

pub use super::Reno as TcpJ;
