//! Packets of a host inside an encrypted tunnel over ordinary UDP sockets: no privileges, any path that
//! carries UDP.
//!
//! The wire protocol is WireGuard's, so that any WireGuard peer can be the other end. boringtun does
//! handshakes, keys, cookies and encryption; this module does what is around them:
//!
//! | concept | file |
//! |---|---|
//! | keys, and the addresses that follow from them | `keys` |
//! | a WireGuard configuration file | `config` |
//! | the UDP socket: GSO, GRO, ECN | `socket` |
//! | another end: where it is, what it may send | `peer` |
//! | how long packets may be (RFC 8899) | `pmtu`, and `probe` for its messages |
//! | packets of the host sealed into datagrams | `sealing` |
//! | datagrams opened, from peers and from strangers | `opening` |
//! | segments put together before the host sees them | `coalesce` |
//! | several devices behind one socket | `inlet` |
//! | Ethernet frames, for hosts with several tunnels | `framing` |
//! | what others see of it | `status` |
//! | places of a peer that are found later | `late` |
//!
//! The tunnel never retransmits and never delays: the TCP inside does all that.

mod coalesce;
mod config;
mod framing;
mod inlet;
mod keys;
mod late;
mod opening;
mod peer;
mod pmtu;
mod probe;
mod sealing;
mod socket;
mod status;

pub use config::{MAX_FILE, MAX_FILE_PEERS, WireguardError, WireguardFile};
pub use framing::WireguardFraming;
pub use keys::{KeyError, PresharedKey, PublicKey, SecretKey};
pub use late::LateEndpoints;
pub use opening::{MAX_HANDSHAKES, MAX_PEERS, MAX_UNPROVEN, UNPROVEN_TIME};
pub use socket::UdpBind;
pub use status::{PeerStatus, RejectedDatagrams, TunnelStatus};

pub(crate) use keys::random_bytes;

use super::{Device, DeviceCounters, DeviceError, DeviceInfo};
use crate::clock::Clock;
use boringtun::noise::TunnResult;
use boringtun::noise::rate_limiter::RateLimiter;
use coalesce::Coalescer;
use farpace_units::{Instant, Span};
use farpace_wire::Packet;
use inlet::{Inlet, SharedSocket};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use peer::{OVERHEAD, TunnelPeer, inner_mtu};
use quinn_udp::RecvMeta;
use sealing::SealedBatch;
use socket::{BATCHES, LONGEST, OutgoingBatch, SendFate, TunnelSocket};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// A path that was not heard for so long is opened anew.
const PATH_SILENCE: Span = Span::from_secs(2);
/// So often timers of the protocol are looked at: retries, keepalives, new keys.
const TICK: Span = Span::from_millis(250);
/// Handshakes in a second from which on whoever begins one must show that its address is its own (cookies).
/// boringtun counts each of them twice.
const COOKIES_FROM: u64 = 100;
/// An end behind an address translator says something at least so often, in seconds, as WireGuard's
/// documentation advises.
pub const KEEPALIVE: u16 = 25;

/// Another end of a tunnel.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its public key.
    pub key: PublicKey,
    /// A secret that both ends mix in besides.
    pub preshared: Option<PresharedKey>,
    /// Where it may be; the first that answers is it. None: it comes to us.
    pub endpoints: Vec<SocketAddr>,
    /// Which addresses inside are its own, with the bits of their networks.
    pub allowed: Vec<(IpAddr, u8)>,
    /// Seconds after which an empty packet is sent in silence.
    pub keepalive: Option<u16>,
}

impl PeerConfig {
    /// A peer with the address that follows from its key, at one of these places.
    pub fn at(key: PublicKey, preshared: Option<PresharedKey>, endpoints: Vec<SocketAddr>) -> Self {
        let keepalive = (!endpoints.is_empty()).then_some(KEEPALIVE);
        PeerConfig { key, preshared, endpoints, allowed: vec![(key.inner_address().into(), 32)], keepalive }
    }
}

/// One end of tunnels.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// Its private key.
    pub key: SecretKey,
    /// Its addresses inside; none: the one that follows from its key.
    pub addresses: Vec<IpAddr>,
    /// Its UDP socket.
    pub bind: UdpBind,
    /// Whom it knows.
    pub peers: Vec<PeerConfig>,
    /// Whoever else knows this secret and our public key is admitted, with the address that follows from its
    /// key.
    pub admit: Option<PresharedKey>,
    /// The longest packet inside, in bytes; none: what the interface towards the first peer leaves.
    pub mtu: Option<u16>,
    /// It carries Ethernet frames: it is one of several tunnels of a host. There is one peer then, which does
    /// the same.
    pub framing: Option<WireguardFraming>,
}

impl TunnelConfig {
    /// An end that knows nobody, at a port that the system chooses.
    pub fn new(key: SecretKey) -> Self {
        TunnelConfig {
            key,
            addresses: Vec::new(),
            bind: UdpBind::default(),
            peers: Vec::new(),
            admit: None,
            mtu: None,
            framing: None,
        }
    }
}

/// Why a tunnel did not come about.
#[derive(Debug, Error)]
pub enum DialError {
    /// Nobody answered, or who answered does not have the right key.
    #[error("no answer to a WireGuard handshake from {to} within {} ms ({sent} sent)", waited.as_millis())]
    NoAnswer {
        /// Where it was looked for.
        to: String,
        /// For how long.
        waited: Duration,
        /// Handshakes that the system sent.
        sent: u64,
    },
    /// Whoever waited did not want it any more.
    #[error("interrupted")]
    Interrupted,
    /// The device is of no use.
    #[error(transparent)]
    Device(#[from] io::Error),
}

/// A tunnel that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialled {
    /// Where the other end is.
    pub endpoint: SocketAddr,
    /// The longest packet inside that passes, in bytes; after [`UdpTunnel::dial_at_once`] the longest that
    /// can leave this machine.
    pub mtu: u16,
    /// The round trip of a probe or of the handshake; none: it answers no probes, or a handshake was lost.
    pub rtt: Option<Duration>,
}

/// One end of WireGuard tunnels as a device without Ethernet.
pub struct UdpTunnel {
    key: SecretKey,
    addresses: Vec<IpAddr>,
    socket: Arc<SharedSocket>,
    /// Its datagrams come by the socket of another device.
    inlet: Option<Arc<Inlet>>,
    framing: Option<WireguardFraming>,
    info: DeviceInfo,
    clock: Clock,
    limiter: Arc<RateLimiter>,
    admit: Option<PresharedKey>,
    /// No packet inside is longer, whatever a path bears.
    cap: u16,
    /// By the number that is in the upper 24 bits of what they send us.
    peers: BTreeMap<u32, TunnelPeer>,
    by_key: BTreeMap<PublicKey, u32>,
    /// The first configured peer with an endpoint: the one that is dialled.
    dialled: Option<u32>,
    /// To whom a packet went last: most go to the same.
    last_route: Option<(IpAddr, u32)>,
    buffers: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    batch: SealedBatch,
    coalescer: Coalescer,
    /// What this end tells its own host: that packets were too long.
    local: VecDeque<Packet>,
    counters: DeviceCounters,
    rejected: RejectedDatagrams,
    next_tick: Instant,
    /// Handshakes that were answered in this second.
    handshakes: (Instant, u32),
    initiations: u64,
    status: TunnelStatus,
    late: LateEndpoints,
}

impl UdpTunnel {
    /// Opens the socket. Nothing is sent yet.
    ///
    /// # Errors
    /// The socket cannot be had, or the system gives no random numbers.
    pub fn open(config: &TunnelConfig) -> Result<Self, DeviceError> {
        let socket = Arc::new(SharedSocket::new(TunnelSocket::open(&config.bind)?));
        let limiter = Arc::new(RateLimiter::new(&config.key.public().point(), COOKIES_FROM * 2));
        Self::on(socket, None, limiter, config)
    }

    fn on(
        socket: Arc<SharedSocket>,
        inlet: Option<Arc<Inlet>>,
        limiter: Arc<RateLimiter>,
        config: &TunnelConfig,
    ) -> Result<Self, DeviceError> {
        let first = config.peers.first().and_then(|peer| peer.endpoints.first().copied());
        let outer = first.and_then(|to| socket.interface_mtu(to));
        let v6 = first.is_some_and(|to| to.ip().to_canonical().is_ipv6());
        // Whoever waits for peers learns the MTU of each; until then Ethernet's is the limit.
        let longest = inner_mtu(outer.unwrap_or(1_500), v6).min((LONGEST - OVERHEAD) as u16);
        let mtu = config.mtu.unwrap_or(longest);
        let cap = config.mtu.unwrap_or(u16::MAX);
        let clock = Clock::new();
        let public = config.key.public();
        let now = clock.now();
        let own = if config.addresses.is_empty() {
            vec![public.inner_address().into()]
        } else {
            config.addresses.clone()
        };
        let mut tunnel = UdpTunnel {
            key: config.key.clone(),
            addresses: own,
            info: DeviceInfo { name: "tunnel".into(), mtu, mac: None, super_segment: super_segment(mtu) },
            limiter,
            inlet,
            framing: config.framing,
            admit: config.admit.clone(),
            cap,
            peers: BTreeMap::new(),
            by_key: BTreeMap::new(),
            dialled: None,
            last_route: None,
            buffers: vec![vec![0; LONGEST + 1]; BATCHES],
            scratch: vec![0; LONGEST + 1],
            batch: SealedBatch::new(),
            // A layer that spreads frames counts them one by one.
            coalescer: Coalescer::new(config.framing.is_none()),
            local: VecDeque::new(),
            counters: DeviceCounters::default(),
            rejected: RejectedDatagrams::default(),
            next_tick: now,
            handshakes: (now, 0),
            initiations: 0,
            status: TunnelStatus::default(),
            late: LateEndpoints::default(),
            socket,
            clock,
        };
        for peer in &config.peers {
            let added = tunnel.add_peer(now, peer);
            let index = added.map_err(DeviceError::system("make room for a peer"))?;
            if !peer.endpoints.is_empty() {
                tunnel.dialled.get_or_insert(index);
            }
        }
        Ok(tunnel)
    }

    /// Adds a peer under a number that nobody can guess.
    fn add_peer(&mut self, now: Instant, config: &PeerConfig) -> io::Result<u32> {
        let index = loop {
            let [a, b, c] = random_bytes()?;
            let index = u32::from_be_bytes([0, a, b, c]);
            let is_free = match &self.inlet {
                None => !self.peers.contains_key(&index),
                Some(inlet) => self.socket.share(config.key, index, inlet),
            };
            if is_free {
                break index;
            }
        };
        let mut peer = TunnelPeer::new(now, &self.key, config, index, self.limiter.clone());
        if let Some(to) = peer.endpoint {
            peer.new_path(now, self.socket.interface_mtu(to), self.cap);
        }
        self.by_key.insert(config.key, index);
        self.peers.insert(index, peer);
        Ok(index)
    }

    fn remove_peer(&mut self, index: u32) {
        if let Some(peer) = self.peers.remove(&index) {
            self.by_key.remove(&peer.key);
            self.last_route = None;
        }
    }

    /// The public key of this end.
    pub fn public_key(&self) -> PublicKey {
        self.key.public()
    }
    /// A handle by which further devices can be opened behind the same socket, while this one is at work.
    pub fn port(&self) -> TunnelPort {
        TunnelPort { socket: self.socket.clone(), limiter: self.limiter.clone(), key: self.key.clone() }
    }
    /// The frames that it carries; none: IP packets alone.
    pub const fn framing(&self) -> Option<WireguardFraming> {
        self.framing
    }
    /// Its addresses inside.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
    /// Where its socket is.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    /// What others may look at while the device is at work.
    pub fn status(&self) -> TunnelStatus {
        self.status.clone()
    }

    /// By which others say later where the first peer is.
    pub fn late_endpoints(&self) -> LateEndpoints {
        self.late.clone()
    }

    /// Opens the tunnel to the first peer with an endpoint: sends handshakes to all of its endpoints until
    /// one answers, and finds out how long packets may be. Afterwards the device's MTU is that. `stop` is
    /// asked again and again.
    ///
    /// # Errors
    /// See [`DialError`].
    pub fn dial(&mut self, within: Duration, stop: &dyn Fn() -> bool) -> Result<Dialled, DialError> {
        self.dial_until(within, stop, true)
    }

    /// As [`UdpTunnel::dial`], but a round trip earlier: it does not wait until it is known how long packets
    /// may be. By the time an answer to a first packet inside comes that is known, and both hosts are told
    /// of what is too long, as a router tells it (ICMP). For peers that are farpace, too: hosts behind others
    /// know the device's MTU alone.
    ///
    /// # Errors
    /// See [`DialError`].
    pub fn dial_at_once(&mut self, within: Duration, stop: &dyn Fn() -> bool) -> Result<Dialled, DialError> {
        self.dial_until(within, stop, false)
    }

    fn dial_until(
        &mut self,
        within: Duration,
        stop: &dyn Fn() -> bool,
        with_mtu: bool,
    ) -> Result<Dialled, DialError> {
        let begun = self.clock.now();
        let end = begun + Span::from_nanos(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let Some(index) = self.dialled else {
            return Err(DialError::Device(io::Error::new(
                io::ErrorKind::NotFound,
                "no peer has an endpoint",
            )));
        };
        let mut strays = Vec::new();
        let mut attempts = 0;
        loop {
            let now = self.clock.now();
            self.receive(usize::MAX, &mut strays)?;
            // There is no host yet that could hear them.
            strays.clear();
            let Some(peer) = self.peers.get_mut(&index) else { return Err(DialError::Interrupted) };
            let span = |rtt: Span| Duration::from_nanos(rtt.as_nanos());
            match peer.endpoint.filter(|_| peer.is_ready()) {
                Some(endpoint) if peer.pmtu.is_settled() => {
                    self.info.mtu = peer.pmtu.mtu();
                    self.info.super_segment = super_segment(self.info.mtu);
                    return Ok(Dialled { endpoint, mtu: self.info.mtu, rtt: peer.pmtu.rtt().map(span) });
                }
                Some(endpoint) if !with_mtu => {
                    // As of RTTs in TCP, that of a handshake that was sent again is not known (Karn).
                    let rtt = (attempts == 1).then(|| span(now.since(begun)));
                    return Ok(Dialled { endpoint, mtu: self.info.mtu, rtt });
                }
                _ => {}
            }
            if stop() {
                return Err(DialError::Interrupted);
            }
            if now >= end && !peer.is_ready() {
                let all: Vec<_> = peer.candidates.iter().map(SocketAddr::to_string).collect();
                let (to, sent) = (all.join(", "), self.initiations);
                return Err(DialError::NoAnswer { to, waited: within, sent });
            }
            if !peer.is_ready() && peer.retry_at.is_none_or(|(at, _)| now >= at) {
                peer.attempt(now);
                self.initiate(index);
                attempts += 1;
            }
            let left = self.due_in().unwrap_or(TICK).min(Span::from_millis(20)).max(Span::from_millis(1));
            let mut fds = [PollFd::new(self.fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, PollTimeout::from((left.as_nanos() / 1_000_000) as u16));
        }
    }

    /// Sends a new handshake to all places where a peer may be.
    fn initiate(&mut self, index: u32) {
        let Some(peer) = self.peers.get_mut(&index) else { return };
        let mut room = [0; 256];
        if let TunnResult::WriteToNetwork(message) = peer.tunn.format_handshake_initiation(&mut room, true) {
            let known = peer.endpoint.filter(|at| !peer.candidates.contains(at));
            for to in peer.candidates.iter().copied().chain(known) {
                let out = OutgoingBatch { to, from: None, ecn: None, segment: message.len(), bytes: message };
                self.initiations += u64::from(self.socket.send(&out) == SendFate::Sent);
            }
        }
    }

    /// A path of several is tried again and again: the others carry the connections meanwhile. Paths are
    /// probed each second at least. So where nothing is heard, the other end may have begun anew, and know no
    /// keys; the protocol itself would ask after 15 s.
    fn reopen(&mut self, now: Instant) {
        let is_due = |peer: &TunnelPeer| {
            let is_silent = !peer.is_ready() || now.since(peer.heard) >= PATH_SILENCE;
            is_silent && !peer.candidates.is_empty() && peer.retry_at.is_none_or(|(at, _)| now >= at)
        };
        let due: Vec<u32> =
            self.peers.iter().filter(|(_, peer)| is_due(peer)).map(|(index, _)| *index).collect();
        for index in due {
            if let Some(peer) = self.peers.get_mut(&index) {
                peer.attempt(now);
            }
            self.initiate(index);
        }
    }

    /// Places that were found since are tried as if they had been configured.
    fn take_late_endpoints(&mut self, now: Instant) {
        let found = self.late.take();
        let Some(first) = found.first().copied() else { return };
        let is_unknown = |peer: &&mut TunnelPeer| peer.configured && peer.candidates.is_empty();
        let Some(peer) = self.peers.values_mut().find(is_unknown) else { return };
        (peer.candidates, peer.retry_at) = (found, None);
        if peer.endpoint.is_none() {
            peer.endpoint = Some(first);
            peer.new_path(now, self.socket.interface_mtu(first), self.cap);
        }
    }

    /// Timers of the protocol, probes of paths, peers that are gone.
    fn tick(&mut self, now: Instant) {
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.limiter.reset_count();
            self.forget_peers(now);
            let mut room = [0; 256];
            for peer in self.peers.values_mut() {
                if let TunnResult::WriteToNetwork(message) = peer.tunn.update_timers(&mut room)
                    && let Some(to) = peer.endpoint
                {
                    let out = OutgoingBatch {
                        to,
                        from: peer.from,
                        ecn: None,
                        segment: message.len(),
                        bytes: message,
                    };
                    // What is lost now is sent again by its timer.
                    self.socket.send(&out);
                }
            }
            self.take_late_endpoints(now);
            if self.framing.is_some() {
                self.reopen(now);
            }
            self.status.set(now, self.peers.values(), self.rejected, self.counters);
        }
        self.probe_paths(now);
    }

    /// Peers that were admitted go when they have proved nothing, or have been silent for long.
    fn forget_peers(&mut self, now: Instant) {
        let is_over = |peer: &TunnelPeer| {
            let unproven = !peer.proven && now.since(peer.born) > UNPROVEN_TIME;
            !peer.configured
                && (unproven || peer.tunn.is_expired() || now.since(peer.heard) > opening::SILENT_TIME)
        };
        let over: Vec<u32> =
            self.peers.iter().filter(|(_, peer)| is_over(peer)).map(|(index, _)| *index).collect();
        over.into_iter().for_each(|index| self.remove_peer(index));
    }
}

impl Drop for UdpTunnel {
    fn drop(&mut self) {
        if let Some(inlet) = &self.inlet {
            self.socket.unshare(inlet);
        }
    }
}

/// A handle of a socket that a device is behind, for further devices with the same key.
#[derive(Clone)]
pub struct TunnelPort {
    socket: Arc<SharedSocket>,
    limiter: Arc<RateLimiter>,
    key: SecretKey,
}

impl TunnelPort {
    /// The public key of the end.
    pub fn public_key(&self) -> PublicKey {
        self.key.public()
    }
    /// Opens a device for the peers of `config`, whose key and socket count for nothing. Nobody else is
    /// admitted there.
    ///
    /// # Errors
    /// A peer is known there already, the process has no descriptors left, or there are no random numbers.
    pub fn open(&self, config: &TunnelConfig) -> Result<UdpTunnel, DeviceError> {
        let what = || DeviceError::system("open a tunnel beside another");
        if config.peers.iter().any(|peer| self.socket.knows(peer.key)) {
            let taken = io::Error::new(io::ErrorKind::AddrInUse, "somebody has that key already");
            return Err(what()(taken));
        }
        let inlet = Arc::new(Inlet::new().map_err(what())?);
        let config = TunnelConfig { key: self.key.clone(), admit: None, ..config.clone() };
        UdpTunnel::on(self.socket.clone(), Some(inlet), self.limiter.clone(), &config)
    }
}

/// The longest super-segment whose datagrams fit into one call, for connections that fill packets of `mtu`
/// bytes.
fn super_segment(mtu: u16) -> u32 {
    let datagram = usize::from(mtu) + OVERHEAD;
    let segments = (LONGEST / datagram).clamp(1, sealing::MAX_SEGMENTS);
    // The headers are counted once: what is between them and the MTU is payload of every segment.
    let payload = usize::from(mtu).saturating_sub(80).max(1);
    (segments * payload + 40).min(65_535) as u32
}

impl Device for UdpTunnel {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        let now = self.clock.now();
        self.tick(now);
        into.extend(self.local.drain(..));
        let enough = into.len().saturating_add(budget);
        if let Some(inlet) = self.inlet.clone() {
            for (datagram, meta) in inlet.take() {
                self.open_datagram(now, &datagram, &meta, into);
            }
            self.coalescer.flush(into);
            self.probe_paths(now);
            return Ok(());
        }
        let mut metas = [RecvMeta::default(); BATCHES];
        while into.len() < enough {
            self.counters.reads += 1;
            let count = self.socket.receive(&mut self.buffers, &mut metas)?;
            let buffers = std::mem::take(&mut self.buffers);
            for (buffer, meta) in buffers.iter().zip(&metas).take(count) {
                let bytes = buffer.get(..meta.len).unwrap_or_default();
                for datagram in bytes.chunks(meta.stride.max(1)) {
                    self.open_datagram(now, datagram, meta, into);
                }
            }
            self.buffers = buffers;
            if count < BATCHES {
                break;
            }
        }
        self.coalescer.flush(into);
        self.probe_paths(now);
        Ok(())
    }

    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        self.seal_all(packets);
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inlet.as_ref().map_or_else(|| self.socket.fd(), |inlet| inlet.fd())
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }

    fn due_in(&self) -> Option<Span> {
        if !self.local.is_empty() {
            return Some(Span::ZERO);
        }
        let now = self.clock.now();
        let probes = self.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.pmtu.deadline(now));
        let next = probes.min().map_or(self.next_tick, |probe| probe.min(self.next_tick));
        Some(next.since(now))
    }

    fn is_heard_again(&mut self) -> bool {
        self.peers.values_mut().fold(false, |any, peer| any | std::mem::take(&mut peer.is_back))
    }
}
