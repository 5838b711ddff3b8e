//! What a lab is made of: a namespace and an interface for each host, and the network between them.

use crate::network::{Attachment, RealtimeNetwork, RealtimeOptions};
use crate::state::{HostState, SiteState};
use anyhow::{Context, Result};
use farpace_lab::scenario::Scenario;
use farpace_lab::{BoundaryInfo, BoundaryNetwork};
use farpace_live::device::{Tun, TunConfig};
use farpace_live::{Device, Namespace, Process};
use std::fmt::Write as _;

/// The interface of each host.
pub const INTERFACE: &str = "far0";

/// Whose the addresses of a lab's hosts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residents {
    /// The kernel's: any program can be a host.
    Kernel,
    /// Of somebody who reads frames from the interfaces: the kernel has no address there, and answers
    /// nothing.
    Others,
}

/// Forgets the lab when it is gone.
struct Claim(SiteState);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// A lab of this process. All of it is gone when this is dropped.
pub struct Site {
    // They are dropped in this order.
    network: RealtimeNetwork,
    namespaces: Vec<Namespace>,
    claim: Claim,
}

impl Site {
    /// Makes namespaces, interfaces and the network. Its time begins with [`RealtimeNetwork::run`].
    ///
    /// # Errors
    /// A name that is taken, or what the system does not allow.
    pub fn make(
        scenario: &Scenario,
        name: &str,
        file: &str,
        residents: Residents,
        options: &RealtimeOptions,
    ) -> Result<Self> {
        let (_, boundaries) = BoundaryNetwork::build(scenario, scenario.seed)?;
        let own = Process::own();
        let hosts = boundaries.ports().iter().map(|boundary| HostState {
            host: boundary.host.clone(),
            namespace: format!("far-{name}-{}", boundary.host),
            interface: INTERFACE.to_owned(),
            address: boundary.address.to_string(),
        });
        let state = SiteState {
            name: name.to_owned(),
            scenario: file.to_owned(),
            pid: own.pid,
            started: own.started,
            ready: false,
            hosts: hosts.collect(),
        };
        state.claim()?;
        let mut claim = Claim(state);
        let (mut namespaces, mut devices) = (Vec::new(), Vec::new());
        for (boundary, host) in boundaries.ports().iter().zip(&claim.0.hosts) {
            let namespace = Namespace::create(&host.namespace)?;
            let device = interface(&namespace, boundary, boundaries.ports(), residents)?;
            devices.push(Attachment { host: boundary.host.clone(), device });
            namespaces.push(namespace);
        }
        let network = RealtimeNetwork::build(scenario, devices, options)?;
        claim.0.ready = true;
        claim.0.write()?;
        Ok(Site { network, namespaces, claim })
    }
    /// What others can know of it.
    pub const fn state(&self) -> &SiteState {
        &self.claim.0
    }
    /// The network.
    pub const fn network(&mut self) -> &mut RealtimeNetwork {
        &mut self.network
    }
    /// Removes it.
    ///
    /// # Errors
    /// A namespace that the system does not let go.
    pub fn remove(self) -> Result<()> {
        drop(self.network);
        self.namespaces.into_iter().try_for_each(Namespace::remove)?;
        Ok(())
    }
}

/// The interface of a host, in its namespace: if it is the kernel's, with addresses, routes, and the
/// neighbours that do not answer ARP.
fn interface(
    namespace: &Namespace,
    boundary: &BoundaryInfo,
    all: &[BoundaryInfo],
    residents: Residents,
) -> Result<Box<dyn Device>> {
    let config = TunConfig { tap: true, ..TunConfig::new(INTERFACE) };
    let kernel = residents == Residents::Kernel;
    let quiet = |address: &BoundaryInfo| match address.address.is_ipv4() || !kernel {
        // Otherwise the kernel looks for IPv6 routers, on a network in which nobody asked for it.
        true => std::fs::write(format!("/proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6"), "1").is_ok(),
        false => true,
    };
    let device = namespace.within(|| {
        let device = Tun::open(&config);
        let _ = quiet(boundary);
        device
    })?;
    let device = device.with_context(|| format!("host `{}`", boundary.host))?;
    let mut lines = format!("link set dev {INTERFACE} address {}\n", boundary.mac);
    if kernel {
        lines += &addresses(boundary, all);
    }
    namespace.configure(&lines)?;
    Ok(Box::new(device))
}

/// The address of a host, the ways to all others, and their MAC addresses, as `ip` takes them.
fn addresses(boundary: &BoundaryInfo, all: &[BoundaryInfo]) -> String {
    let prefix = |address: std::net::IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let own = boundary.address;
    let no_dad = if own.is_ipv4() { "" } else { " nodad" };
    let mut lines = format!("addr add {own}/{} dev {INTERFACE}{no_dad}\n", prefix(own));
    for other in
        all.iter().filter(|other| other.host != boundary.host && other.address.is_ipv4() == own.is_ipv4())
    {
        let address = other.address;
        let _ = writeln!(lines, "route replace {address}/{} dev {INTERFACE}", prefix(address));
        if !(boundary.resolves && other.resolves) {
            let _ =
                writeln!(lines, "neigh replace {address} lladdr {} dev {INTERFACE} nud permanent", other.mac);
        }
    }
    lines
}
