//! The side of a gateway that leads to its peer: a tunnel for each path, and what makes one link of them.

use super::config::GatewayFile;
use super::endpoint_name::{EndpointName, first_answers};
use super::peer_file::{PeerFile, PeerPath, allowed};
use anyhow::{Context, Result, anyhow, bail, ensure};
use farpace_gateway::{Gateway, LinkEnd, PeerLink};
use farpace_link::multi_nic::{MultiNic, NeighbourId, NicId};
use farpace_live::device::udp_tunnel::{
    DialError, Dialled, LateEndpoints, PeerConfig, PeerStatus, RejectedDatagrams, SecretKey, TunnelStatus,
    UdpBind,
};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::system::SystemInterface;
use farpace_live::{Device, Driver, add_paths, path_framing};
use farpace_path::world::{ElementId, World};
use farpace_path::{Port, Prefix};
use farpace_tunnel::Via;
use farpace_units::{Instant, Span};
use farpace_wire::MacAddr;
use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

/// For so long the first answers of the peer are waited for. A path that has not answered is tried again and
/// again.
const DIAL_TIME: Duration = Duration::from_secs(2);

/// What waits for the paths at most, besides what keeps them busy. It is what a segment that is sent again
/// waits for when a link is cut.
const MAX_QUEUE_TIME: Span = Span::from_millis(10);

/// The tunnels of a gateway with a peer.
pub struct GatewayPair {
    /// What is known of the peer.
    pub file: PeerFile,
    /// Where that stands.
    path: PathBuf,
    /// The links of the paths, as they were named.
    pub links: Vec<String>,
    /// What was found out when the paths were opened, in words.
    pub said: Vec<String>,
    tunnels: Vec<UdpTunnel>,
    statuses: Vec<TunnelStatus>,
    /// Endpoints of the paths that have one, and by which the tunnels hear of them; with the own address of
    /// each, if one is said.
    names: Vec<Option<EndpointName>>,
    late: Vec<(LateEndpoints, Option<IpAddr>)>,
    /// The MAC address of the peer on the first path. It follows from the keys, and is looked for in each
    /// round: X25519 takes too long for that.
    peer_mac: MacAddr,
    mtu: u16,
}

/// The elements of the world between the gateway and the tunnels.
pub struct PairElements {
    /// The link between both gateways.
    pub link: ElementId,
    /// The layer over the paths.
    pub paths: ElementId,
}

/// A path as others see it.
pub struct PathView {
    /// The link that it leaves by, as it was named.
    pub via: String,
    /// Frames arrive there.
    pub up: bool,
    /// The rate at which it is used, in bit/s, as it was measured.
    pub rate: Option<u64>,
    /// Smoothed round trip.
    pub rtt: Option<Span>,
    /// Recent share of lost frames, 0 to 1.
    pub loss: Option<f64>,
    /// Frames sent and received.
    pub frames: [u64; 2],
    /// Why the name of its endpoint is not found.
    pub endpoint_error: Option<String>,
    /// The tunnel.
    pub tunnel: Option<PeerStatus>,
    /// What was not accepted.
    pub rejected: RejectedDatagrams,
}

/// The link to the peer as others see it.
pub struct PairView {
    /// The file of the peer.
    pub file: PathBuf,
    pub site: String,
    pub peer: String,
    pub prefixes: Vec<Prefix>,
    pub peer_prefixes: Vec<Prefix>,
    /// The peer was heard.
    pub heard: bool,
    /// Traffic for it comes to the gateway.
    pub caught: bool,
    /// Packets sent, received, and dropped because of their addresses.
    pub packets: [u64; 3],
    /// Packets that preceded bulk, and of such packets those that were dropped.
    pub priority: [u64; 2],
    /// Frames that were sent again by another path.
    pub repaired: u64,
    /// How often a path has failed.
    pub failures: u64,
    pub paths: Vec<PathView>,
}

impl GatewayPair {
    /// Opens a tunnel for each path, and waits a moment for answers.
    ///
    /// # Errors
    /// The file of the peer is bad, or an interface or a port cannot be had.
    pub fn open(file: &GatewayFile) -> Result<Option<GatewayPair>> {
        let Some(path) = &file.peer else { return Ok(None) };
        let peer = PeerFile::read(path)?;
        let links = path_links(file, &peer)?;
        let mut names = endpoint_names(&peer)?;
        let endpoints = first_answers(&mut names);
        let configs = tunnel_configs(&peer, &links, &endpoints)?;
        let open = |config: &TunnelConfig| {
            let port = config.bind.port;
            UdpTunnel::open(config).with_context(|| {
                format!("cannot open the path at UDP port {port}; `ss -lunp` shows who has it")
            })
        };
        let tunnels = configs.iter().map(open).collect::<Result<Vec<_>>>()?;
        let (tunnels, said) = dial_all(tunnels);
        let least = tunnels.iter().map(|tunnel| tunnel.info().mtu).min().unwrap_or(1_280);
        let mtu = peer.mtu.unwrap_or(least);
        let unknown = names.iter().map(|name| name.as_ref().and_then(EndpointName::error));
        let said = said.iter().zip(&peer.paths).zip(unknown).map(|((said, path), unknown)| {
            let waits = path.endpoint.is_none();
            match (said, unknown) {
                (Ok(dialled), _) => {
                    let rtt = dialled.rtt.map_or(String::new(), |rtt| {
                        format!(", round trip {} ms", farpace_report::number(rtt.as_secs_f64() * 1e3))
                    });
                    format!("{} answers, packets of {} B{rtt}", dialled.endpoint, dialled.mtu)
                }
                (Err(_), Some(unknown)) => format!("not yet: {unknown}"),
                (Err(_), None) if waits => format!("waits at UDP port {}", path.listen_port.unwrap_or(0)),
                (Err(error), None) => format!("not yet: {error}"),
            }
        });
        let said = said.collect();
        let statuses = tunnels.iter().map(UdpTunnel::status).collect();
        let late = tunnels.iter().map(UdpTunnel::late_endpoints);
        let late = late.zip(configs.iter().map(|config| config.bind.address)).collect();
        let peer_mac = tunnels.first().and_then(UdpTunnel::framing).context("there is no path")?.peer;
        let links =
            links.iter().map(|via| via.as_ref().map_or("routes".to_owned(), Via::to_string)).collect();
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        Ok(Some(GatewayPair { file: peer, path, links, said, tunnels, statuses, names, late, peer_mac, mtu }))
    }

    /// The longest packet inside, in bytes.
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Puts the link to the peer behind a gateway of `world`. The devices of the returned ports are
    /// [attached](GatewayPair::attach) later.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn build(&self, world: &mut World, gateway: ElementId) -> Result<(PairElements, Vec<ElementId>)> {
        let [own, peer] = self.file.addresses().context("there is no path")?;
        let framing = self.tunnels.first().and_then(UdpTunnel::framing).context("there is no path")?;
        let (own, peer) =
            (LinkEnd { mac: framing.own, address: own }, LinkEnd { mac: framing.peer, address: peer });
        let (ours, theirs) = (self.file.prefixes.clone(), self.file.peer_prefixes.clone());
        let link = PeerLink::new(Instant::ZERO, own, peer, ours, theirs);
        let link = world.add("peer", Box::new(link))?;
        world.connect((gateway, Gateway::WAN), (link, PeerLink::GATEWAY))?;
        // The generation of the list of paths must differ after each start.
        let random = SecretKey::generate().context("no random numbers")?.to_bytes();
        let seed = random.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (paths, ports) = add_paths(world, own.address.into(), &self.tunnels, seed)?;
        world.connect((link, PeerLink::PATHS), (paths, Port(0)))?;
        if let Some(layer) = world.element_mut::<MultiNic>(paths) {
            layer.prioritise_datagrams();
            layer.limit_queue_time(MAX_QUEUE_TIME);
        }
        Ok((PairElements { link, paths }, ports))
    }

    /// Gives the tunnels to the driver.
    pub fn attach(&mut self, driver: &mut Driver, ports: Vec<ElementId>) {
        for (port, tunnel) in ports.into_iter().zip(self.tunnels.drain(..)) {
            driver.attach(port, Box::new(tunnel));
        }
    }

    /// The least MTU of the paths that is known by now, if the file says none.
    pub fn measured_mtu(&self) -> Option<u16> {
        let peers: Vec<PeerStatus> = self.statuses.iter().flat_map(TunnelStatus::peers).collect();
        let proven = peers.iter().filter(|peer| peer.proven);
        proven.map(|peer| peer.mtu).min().filter(|_| self.file.mtu.is_none())
    }

    /// Tells the tunnels of names that were found since.
    pub fn follow_names(&mut self) {
        for (name, (late, own)) in self.names.iter_mut().zip(&self.late) {
            if let Some(found) = name.as_mut().and_then(EndpointName::news) {
                late.set(reachable(found, *own));
            }
        }
    }

    /// The peer as the layer over the paths knows it.
    fn neighbour(&self, layer: &MultiNic) -> Option<NeighbourId> {
        Some(layer.neighbour(self.peer_mac)).filter(|neighbour| *neighbour != NeighbourId::ORDINARY)
    }

    /// True if a path leads to the peer.
    pub fn is_up(&self, world: &World, elements: &PairElements) -> bool {
        let layer = world.element::<MultiNic>(elements.paths);
        let up = |layer: &MultiNic| Some(layer.paths().working(self.neighbour(layer)?).next().is_some());
        layer.and_then(up).unwrap_or(false)
    }

    /// Bytes of authentic packets that have come from the peer, on all paths. It is renewed four times a
    /// second.
    pub fn heard(&self) -> u64 {
        self.statuses.iter().flat_map(TunnelStatus::peers).map(|peer| peer.received).sum()
    }

    /// What it does.
    pub fn view(&self, world: &World, elements: &PairElements) -> PairView {
        let link = world.element::<PeerLink>(elements.link);
        let layer = world.element::<MultiNic>(elements.paths);
        let stats = link.map(PeerLink::stats).unwrap_or_default();
        let neighbour = layer.and_then(|layer| self.neighbour(layer));
        let tunnels = self.statuses.iter().zip(&self.names);
        let paths = self.links.iter().zip(tunnels).zip(0_u8..).map(|((via, (status, name)), number)| {
            let id = NicId(number);
            let path = layer.zip(neighbour).and_then(|(layer, to)| layer.paths().any_path(to, id));
            let count = |counts: &[u64]| counts.get(usize::from(number)).copied().unwrap_or(0);
            let frames = layer.map(MultiNic::stats).map(|stats| [count(&stats.sent), count(&stats.received)]);
            PathView {
                via: via.clone(),
                up: path.is_some_and(|path| path.up),
                rate: path.filter(|path| path.up).map(|path| path.rate.bits_per_sec()),
                rtt: path.map(|path| path.rtt).filter(|rtt| !rtt.is_zero()),
                loss: layer.zip(neighbour).and_then(|(layer, to)| layer.path_loss(to, id)),
                frames: frames.unwrap_or_default(),
                tunnel: status.peers().into_iter().next(),
                endpoint_error: name.as_ref().and_then(EndpointName::error),
                rejected: status.rejected(),
            }
        });
        let (first, refused) = layer.map_or((0, 0), MultiNic::priority_counts);
        PairView {
            file: self.path.clone(),
            site: self.file.site.clone(),
            peer: self.file.peer.clone(),
            prefixes: self.file.prefixes.clone(),
            peer_prefixes: self.file.peer_prefixes.clone(),
            heard: link.is_some_and(PeerLink::has_heard),
            caught: false,
            packets: [stats.sent, stats.received, stats.foreign],
            priority: [first, refused],
            repaired: layer.map_or(0, |layer| layer.stats().retransmitted),
            failures: layer.map_or(0, |layer| layer.stats().path_failures),
            paths: paths.collect(),
        }
    }
}

/// The link of each path; none where the routes decide.
///
/// # Errors
/// There are more links than paths, or fewer that are not one.
pub fn path_links(file: &GatewayFile, peer: &PeerFile) -> Result<Vec<Option<Via>>> {
    let (links, paths) = (file.links()?, peer.paths.len());
    match links.as_slice() {
        [] => Ok(vec![None; paths]),
        [one] => Ok(vec![Some(one.clone()); paths]),
        some if some.len() == paths => Ok(some.iter().cloned().map(Some).collect()),
        some => bail!(
            "{} links for {paths} paths to {}: name one for each path, or one for all; \
             `farpace gateway keys --paths {}` makes files for as many paths",
            some.len(),
            peer.peer,
            some.len()
        ),
    }
}

/// The endpoints of the paths, which are looked for from now on.
fn endpoint_names(peer: &PeerFile) -> Result<Vec<Option<EndpointName>>> {
    let look = |(number, path): (u16, &PeerPath)| {
        let name = path.endpoint.as_deref().map(EndpointName::look_for).transpose();
        name.with_context(|| format!("path {number}"))
    };
    (1..).zip(&peer.paths).map(look).collect()
}

/// The places that can be reached from an address.
fn reachable(mut places: Vec<SocketAddr>, own: Option<IpAddr>) -> Vec<SocketAddr> {
    places.retain(|to| own.is_none_or(|own| own.is_ipv4() == to.is_ipv4()));
    places
}

/// The tunnels of all paths, to the places of the peer.
fn tunnel_configs(
    peer: &PeerFile,
    links: &[Option<Via>],
    endpoints: &[Vec<SocketAddr>],
) -> Result<Vec<TunnelConfig>> {
    let [own, other] = peer.addresses().context("there is no path")?;
    let Some(first) = peer.paths.first() else { bail!("there is no path") };
    let (own_key, peer_key) = (first.private_key.public(), first.peer_public_key);
    let ways = links.iter().zip(endpoints);
    let each = peer.paths.iter().zip(ways).zip(0_u8..).map(|((path, (via, endpoints)), number)| {
        let mut bind = match via {
            Some(via) => via.bind()?,
            None => UdpBind::default(),
        };
        bind.port = path.listen_port.unwrap_or(0);
        if let Some(name) = &bind.interface {
            let exists = SystemInterface::here(name).exists();
            ensure!(exists, "there is no interface `{name}` (--via): `ip link` lists them");
        }
        let config = PeerConfig {
            key: path.peer_public_key,
            preshared: Some(peer.preshared_key.clone()),
            endpoints: reachable(endpoints.clone(), bind.address),
            allowed: allowed(other, &peer.peer_prefixes),
            keepalive: path.keepalive(),
        };
        Ok(TunnelConfig {
            addresses: vec![own.into()],
            bind,
            peers: vec![config],
            mtu: peer.mtu,
            framing: Some(path_framing(own_key, peer_key, number)),
            ..TunnelConfig::new(path.private_key.clone())
        })
    });
    each.collect()
}

type PathFound = Result<Dialled, DialError>;

/// Dials all at once.
fn dial_all(tunnels: Vec<UdpTunnel>) -> (Vec<UdpTunnel>, Vec<PathFound>) {
    std::thread::scope(|scope| {
        let dial = |mut tunnel: UdpTunnel| {
            scope.spawn(move || {
                let found = tunnel.dial(DIAL_TIME, &|| false);
                (tunnel, found)
            })
        };
        let threads: Vec<_> = tunnels.into_iter().map(dial).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).unzip()
    })
}

/// What a test of the paths finds, without a gateway that runs: for each its name, and who answers.
///
/// # Errors
/// The links do not fit the paths.
pub fn probe(file: &GatewayFile, peer: &PeerFile) -> Result<Vec<(String, Result<String>)>> {
    let links = path_links(file, peer)?;
    let mut found = Vec::new();
    for ((path, via), number) in peer.paths.iter().zip(&links).zip(1..) {
        let name = via.as_ref().map_or("routes".to_owned(), Via::to_string);
        let answer = || -> Result<String> {
            if path.endpoint.is_none() {
                return Ok("the peer comes to us".to_owned());
            }
            let one = PeerFile { paths: vec![path.clone()], ..peer.clone() };
            let endpoints = [path.endpoints()?];
            let configs = tunnel_configs(&one, std::slice::from_ref(via), &endpoints)?;
            let config = configs.into_iter().next().context("there is no path")?;
            for to in endpoints.into_iter().flatten() {
                route_exists(&config.bind, to)?;
            }
            // Another socket may have the port; who answers does not care.
            let config = TunnelConfig { bind: UdpBind { port: 0, ..config.bind.clone() }, ..config };
            let mut tunnel = UdpTunnel::open(&config)?;
            let dialled = tunnel.dial(DIAL_TIME, &farpace_process::interrupt::asked)?;
            Ok(format!("{} answers, packets of {} B", dialled.endpoint, dialled.mtu))
        };
        found.push((format!("path {number} via {name}"), answer()));
    }
    Ok(found)
}

/// There is a route to `to` by the link.
fn route_exists(bind: &UdpBind, to: SocketAddr) -> Result<()> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).context("cannot open a UDP socket")?;
    if let Some(name) = &bind.interface {
        setsockopt(&socket, BindToDevice, &OsString::from(name)).map_err(io::Error::from)?;
    }
    let by = bind.interface.as_ref().map_or(String::new(), |name| format!(" by {name}"));
    socket.connect(to).map_err(|error| anyhow!("no route to {to}{by}: {error}"))
}
