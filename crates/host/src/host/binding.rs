//! bind(2) for TCP sockets of a host.

use super::Host;
use crate::binds::{Bind, BindId, PortError};
use crate::secret::{Purpose, Tuple};
use std::net::SocketAddr;

impl Host {
    /// Gives a TCP socket a local port, alone or beside others that share it.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn bind(&mut self, bind: Bind) -> Result<BindId, PortError> {
        let known = bind.address.is_unspecified() || bind.any_address || self.internet.is_ours(bind.address);
        if !known {
            return Err(PortError::NotOurs(bind.address));
        }
        if bind.port != 0 {
            return self.binds.add(bind);
        }
        let nobody = Tuple { local: bind.address, remote: bind.address, local_port: 0, remote_port: 0 };
        let random = self.secret.hash(Purpose::Port, &nobody, self.binds.made());
        self.binds.add_anywhere(bind, random)
    }

    /// Where a socket is bound; none: it is not any more.
    pub fn bound(&mut self, id: BindId) -> Option<SocketAddr> {
        self.binds.bound(id)
    }

    /// Changes whom a bound socket bears beside it.
    pub fn set_reuse(&mut self, id: BindId, reuse_address: bool, reuse_port: bool) {
        self.binds.set_reuse(id, reuse_address, reuse_port);
    }

    /// The socket is closed: its port is free for others, and nobody listens there.
    pub fn unbind(&mut self, id: BindId) {
        self.stop_listening_on(id);
        self.binds.remove(id);
    }
}
