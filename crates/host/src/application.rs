//! What uses a connection.

use farpace_tcp::{Connection, Event};
use farpace_units::Instant;
use std::any::Any;

/// A program at one end of a connection, driven by its events.
///
/// It may read, write, close or abort the connection during the call; the host transmits afterwards.
pub trait Application: Any {
    /// Something happened on `connection`.
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event);
}
