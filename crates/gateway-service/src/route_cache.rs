//! The MTU of the routes of the router, asked of the kernel when a connection opens.

use farpace_gateway::RouteMtus;
use farpace_live::system::{ForwardedRoute, RouteQuery};
use farpace_units::{Instant, Span};
use nix::net::if_::if_nametoindex;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// What was asked holds for so long: routes change.
const LIFETIME: Span = Span::from_secs(1);
/// Pairs of hosts that are remembered at most. Strangers choose their addresses.
const MAX_REMEMBERED: usize = 4_096;

/// What the kernel said of the ways between two hosts.
struct KnownMtus {
    until: Instant,
    mtus: [Option<u16>; 2],
}

/// Asks the kernel, and remembers what it said.
pub struct RouteCache {
    query: RouteQuery,
    /// The device of the LAN side, and that of the WAN side, if there is one: what is written to it comes in
    /// by it.
    devices: [Option<u32>; 2],
    /// By the hosts of both sides.
    known: BTreeMap<(IpAddr, IpAddr), KnownMtus>,
}

impl RouteCache {
    /// A cache of what the kernel says of packets that come in by these devices: first that of the LAN.
    ///
    /// # Errors
    /// The system refuses, or there is no such device.
    pub fn open(devices: &[String]) -> io::Result<Self> {
        let index = |at: usize| devices.get(at).map(|name| if_nametoindex(name.as_str())).transpose();
        Ok(RouteCache { query: RouteQuery::open()?, devices: [index(0)?, index(1)?], known: BTreeMap::new() })
    }

    fn ask(&mut self, input: Option<u32>, from: IpAddr, to: IpAddr) -> Option<u16> {
        // A kernel that does not answer is as one that does not know: the leg finds the MTU by itself.
        let mtu = self.query.mtu(&ForwardedRoute { from, to, input: input? }).ok()??;
        Some(u16::try_from(mtu).unwrap_or(u16::MAX))
    }
}

impl RouteMtus for RouteCache {
    fn mtus(&mut self, now: Instant, lan: IpAddr, wan: IpAddr) -> [Option<u16>; 2] {
        if let Some(known) = self.known.get(&(lan, wan)).filter(|known| now < known.until) {
            return known.mtus;
        }
        if self.known.len() >= MAX_REMEMBERED {
            self.known.clear();
        }
        let [of_lan, of_wan] = self.devices;
        // What is written to the device of the WAN side goes to the WAN.
        let mtus = [self.ask(of_wan, lan, wan), self.ask(of_lan, wan, lan)];
        self.known.insert((lan, wan), KnownMtus { until: now + LIFETIME, mtus });
        mtus
    }
}
