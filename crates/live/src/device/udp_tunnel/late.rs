//! Places of a peer that are found out while the tunnel is at work.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// A handle by which another thread tells a tunnel where its first peer is, when its name is found.
#[derive(Clone, Debug, Default)]
pub struct LateEndpoints(Arc<Mutex<Vec<SocketAddr>>>);

impl LateEndpoints {
    /// The peer may be at one of these places. The tunnel begins a handshake with all of them within 250 ms,
    /// unless it knew a place before.
    pub fn set(&self, all: Vec<SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }
    /// What was set since.
    pub(super) fn take(&self) -> Vec<SocketAddr> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
