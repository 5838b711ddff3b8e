//! Local ports of a program.

use super::engine::{Engine, call_host};
use farpace_host::{Bind, BindId, PortError};
use nix::errno::Errno;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// A TCP port of a host, for a listener or an outgoing connection. Dropping it releases the port.
pub struct BoundSocket {
    engine: Arc<dyn Engine>,
    id: BindId,
    at: SocketAddr,
}

impl BoundSocket {
    pub(super) fn open(engine: &Arc<dyn Engine>, bind: Bind) -> io::Result<Self> {
        let bound = call_host(&**engine, move |host, _| {
            let id = host.bind(bind)?;
            Ok((id, host.bound(id)))
        })?;
        let (id, at) = bound.map_err(|error| match error {
            PortError::Taken(_) => Errno::EADDRINUSE,
            PortError::NotOurs(_) | PortError::NoneLeft => Errno::EADDRNOTAVAIL,
        })?;
        let at = at.unwrap_or(SocketAddr::new(bind.address, bind.port));
        Ok(BoundSocket { engine: engine.clone(), id, at })
    }

    /// Its address and port.
    pub const fn at(&self) -> SocketAddr {
        self.at
    }
    pub(super) const fn id(&self) -> BindId {
        self.id
    }
    /// Changes SO_REUSEADDR and SO_REUSEPORT.
    pub fn set_reuse(&self, reuse_address: bool, reuse_port: bool) {
        let id = self.id;
        // After the end of the engine no port is in use.
        let _ = self.engine.run(Box::new(move |host, _| host.set_reuse(id, reuse_address, reuse_port)));
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let id = self.id;
        let _ = self.engine.run(Box::new(move |host, _| host.unbind(id)));
    }
}
