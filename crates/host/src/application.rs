//! What uses a connection.

use crate::connection_id::ConnectionId;
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::Instant;
use std::any::Any;
use std::net::SocketAddr;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketEnds {
    /// Ours.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}

/// A program at one end of a connection, driven by its events.
///
/// It may read, write, close or abort the connection during the call; the host transmits afterwards.
pub trait Application: Any {
    /// It has got its connection: the one that is being opened, or one whose handshake is complete. Comes
    /// once, before any event.
    fn on_begin(&mut self, id: ConnectionId, ends: SocketEnds) {
        let _ = (id, ends);
    }
    /// Something happened on `connection`.
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: ConnectionEvent);
}
