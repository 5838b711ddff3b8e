//! What there is on a host, one by one: for lists like those of ss(8).

use crate::application::SocketEnds;
use crate::binds::BindId;
use crate::connection_id::ConnectionId;
use crate::host::Host;
use farpace_tcp::{Connection, ConnectionState};
use std::net::SocketAddr;

/// A listener, as lists show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Where it is bound.
    pub id: BindId,
    /// Its address and port.
    pub at: SocketAddr,
    /// Connections whose handshake is not complete.
    pub half_open: usize,
    /// Of these at most.
    pub backlog: usize,
}

impl Host {
    /// Connections that are not over, with their ends.
    pub fn live_connections(&self) -> impl Iterator<Item = (ConnectionId, SocketEnds, &Connection)> {
        let open =
            self.connections.iter().filter(|(_, entry)| entry.connection.state() != ConnectionState::Closed);
        open.map(|(id, entry)| {
            let tuple = &entry.tuple;
            let ends = SocketEnds {
                local: SocketAddr::new(tuple.local, tuple.local_port),
                remote: SocketAddr::new(tuple.remote, tuple.remote_port),
            };
            (id, ends, &entry.connection)
        })
    }

    /// Who listens.
    pub fn listening(&self) -> impl Iterator<Item = Listed> {
        self.listeners.iter().map(|listener| Listed {
            id: listener.id,
            at: SocketAddr::new(listener.bind().address, listener.id.port),
            half_open: listener.half_open(),
            backlog: listener.settings.backlog,
        })
    }
}
