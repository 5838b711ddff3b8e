//! The name of a connection.

/// A connection of a host; stays valid for a while after the connection has closed (see
/// [`DEFAULT_CLOSED_KEPT`](crate::DEFAULT_CLOSED_KEPT)), and never means another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    pub(crate) slot: usize,
    pub(crate) generation: u32,
}
