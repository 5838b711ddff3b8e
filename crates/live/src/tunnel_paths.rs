//! One host over several tunnels: a UDP path for each interface, under the layer that makes several paths
//! one.
//!
//! Both ends have as many tunnels, in the same order. A path that does not answer any more carries nothing
//! until it does again; what was under way on it is sent again by the others
//! ([`farpace_link::multi_nic::repair`]), before TCP knows of it.

use crate::device::udp_tunnel::{PublicKey, TunnelStatus, WireguardFraming};
use crate::device::{Device, UdpTunnel};
use crate::driver::{Driver, DriverError, Wait};
use crate::socket::{Stack, StackError};
use crate::system::default_memory;
use farpace_host::{Host, LocalLink};
use farpace_link::multi_nic::{MultiNic, MultiNicConfig, NicSpec, Resequence};
use farpace_path::world::{ElementId, World};
use farpace_path::{BoundaryPort, Port};
use farpace_units::{Instant, RandomStream, Rate};
use farpace_wire::{MacAddr, NicKind};
use std::net::IpAddr;

/// Paths of one host at most.
pub const MAX_TUNNEL_PATHS: usize = 8;
/// What an interface is taken for of which nothing is known; what a path carries is measured.
const USUAL_RATE: Rate = Rate::from_mbit(1_000);

/// The MAC addresses of path `number` at an end with key `own`, and at the other with `peer`: what the layer
/// tells paths by.
pub fn path_framing(own: PublicKey, peer: PublicKey, number: u8) -> WireguardFraming {
    let mac = |key: PublicKey| {
        let [a, b, c, d, ..] = key.to_bytes();
        // Locally administered, of one station.
        MacAddr([2, a, b, c, d, number])
    };
    WireguardFraming { own: mac(own), peer: mac(peer) }
}

/// The layer over tunnels that carry frames ([`path_framing`]), whose stack has `address`: its port 0 leads
/// to the stack, and its other ports to the boundary ports that are returned, in the order of the tunnels.
/// One path alone needs no order, and nobody else repairs it.
///
/// # Errors
/// See [`DriverError`].
pub fn add_paths(
    world: &mut World,
    address: IpAddr,
    paths: &[UdpTunnel],
    seed: u64,
) -> Result<(ElementId, Vec<ElementId>), DriverError> {
    let macs = paths.iter().filter_map(|path| Some(path.framing()?.own));
    let spec = |mac| NicSpec { mac, rate: USUAL_RATE, kind: NicKind::of_rate(USUAL_RATE) };
    let specs: Vec<NicSpec> = macs.map(spec).collect();
    let resequence = (paths.len() > 1).then(Resequence::default);
    let config = MultiNicConfig { resequence, ..MultiNicConfig::default() };
    let lists = RandomStream::new(seed, "lists");
    let layer = MultiNic::new(Instant::ZERO, &config, &specs, &[address], lists);
    let layer = world.add("paths", Box::new(layer))?;
    let mut ports = Vec::new();
    for (number, _) in (1_u16..).zip(paths) {
        let port = world.add(&format!("path.{number}"), Box::new(BoundaryPort::default()))?;
        world.connect((layer, Port(number)), (port, Port(0)))?;
        ports.push(port);
    }
    Ok((layer, ports))
}

/// A host with one address over tunnels that carry frames ([`path_framing`]), in the order of their paths.
///
/// # Errors
/// See [`StackError`].
pub fn stack_over_paths(
    address: IpAddr,
    paths: Vec<UdpTunnel>,
) -> Result<(Stack, Vec<TunnelStatus>), StackError> {
    let (secret, seed) = crate::socket::secret_and_seed().map_err(StackError::Random)?;
    let statuses = paths.iter().map(UdpTunnel::status).collect();
    let mtu = paths.iter().map(|path| path.info().mtu).min().unwrap_or(1_280);
    let stack = Stack::start("farpace-paths", mtu, move || {
        let mut world = World::new(seed);
        let mut host = Host::new(address, secret);
        host.set_memory_limit(default_memory());
        host.set_mtu(mtu);
        let mac = paths.first().and_then(UdpTunnel::framing).map(|framing| framing.own);
        host.join_link(mac.unwrap_or_default(), LocalLink::default());
        host.share_link();
        let host = world.add("host", Box::new(host)).map_err(DriverError::from)?;
        let (layer, ports) = add_paths(&mut world, address, &paths, seed)?;
        world.connect((host, Port(0)), (layer, Port(0))).map_err(DriverError::from)?;
        let mut driver = Driver::new(world, Wait::Sleep)?;
        for (port, path) in ports.into_iter().zip(paths) {
            driver.attach(port, Box::new(path));
        }
        driver.set_host(host);
        Ok::<_, StackError>(driver)
    })?;
    Ok((stack, statuses))
}
