//! What the router that a gateway runs on knows of its routes.

use farpace_units::Instant;
use std::net::IpAddr;

/// Tells the MTU of the routes by which a gateway's packets leave. A gateway asks when a connection opens.
pub trait RouteMtus {
    /// The longest packet from a host of the LAN side to one of the WAN side, and the reverse, that the
    /// router forwards, in bytes. None: it does not know.
    fn mtus(&mut self, now: Instant, lan: IpAddr, wan: IpAddr) -> [Option<u16>; 2];
}
