//! The two ports of a connection.

/// Ports of a connection, as seen from this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Ours.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}
