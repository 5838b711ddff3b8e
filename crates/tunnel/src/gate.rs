//! The end that waits: a tunnel and a TLS listener at the same port number, for whoever has the ticket.

use super::serving::{LOOK, accept_inside, spawn};
use super::ticket::{Ticket, TicketIdentity, TicketPlace};
use super::{CarrierChoice, SecureStream, Service, inside, paths, tls};
use crate::own_addresses;
use crate::{TransferStream, named_at};
use anyhow::{Context, Result, anyhow};
use farpace_live::Wait;
use farpace_live::device::udp_tunnel::{TunnelStatus, UdpBind};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::socket::{SocketOptions, Stack};
use farpace_transfer::kernel;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Connections that were accepted and nobody serves yet.
const MAX_WAITING: usize = 16;
/// TLS handshakes at once, where the service is known only after them; and how long one may take.
const MAX_SHAKING: usize = 64;
const SHAKE: Duration = Duration::from_secs(10);
/// Ends with several paths at once.
const MAX_LEASES: usize = 16;
/// Addresses of this machine that a ticket names.
const MAX_OWN: usize = 4;
/// Attempts to find a port that is free for UDP and for TCP.
const ATTEMPTS: usize = 8;

/// Where an end waits, and who may come.
#[derive(Clone, Debug, Default)]
pub struct GateArgs {
    /// An address of this machine; none: all.
    pub address: Option<IpAddr>,
    /// Of UDP and TCP; 0: the system chooses.
    pub port: u16,
    /// How others reach this machine; none: by its own addresses.
    pub advertise: Vec<String>,
    /// Which ways are open.
    pub ways: CarrierChoice,
    /// TLS handshakes are answered before anybody accepts connections. Otherwise whoever serves the only
    /// service answers them.
    pub shakes_early: bool,
}

/// The end that waits.
pub struct Gate {
    ticket: Ticket,
    at: SocketAddr,
    calls: Mutex<Receiver<(Service, TransferStream)>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// It ends with the gate.
    _stack: Option<Stack>,
    status: Option<TunnelStatus>,
    /// Why one of the ways is closed.
    note: Option<String>,
}

impl Gate {
    /// Opens the ways.
    ///
    /// # Errors
    /// No way can be opened: the port is taken, or there are no random numbers.
    pub fn open(
        identity: &TicketIdentity,
        args: &GateArgs,
        services: &[Service],
        options: &SocketOptions,
    ) -> Result<Gate> {
        let tls_key = tls::public_key(&identity.tls()).context("the TLS key is none")?;
        let mut ticket = identity.ticket(Vec::new(), &tls_key);
        let (device, listener, note) = ports(identity, args, &ticket)?;
        let of_device = device.as_ref().and_then(|device| device.local_addr().ok());
        let at = of_device.or_else(|| listener.as_ref().and_then(|listener| listener.local_addr().ok()));
        let at = at.context("no way is open")?;
        let hosts = if args.advertise.is_empty() { advertised(args.address) } else { args.advertise.clone() };
        for host in hosts {
            // With a port of its own, if it has been translated.
            let place = host.parse().unwrap_or(TicketPlace { host, port: at.port() });
            ticket.add(place);
        }
        let (tell, calls) = sync_channel(MAX_WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let status = device.as_ref().map(UdpTunnel::status);
        let port = device.as_ref().map(UdpTunnel::port);
        let mut stack = None;
        if let (Some(device), Some(port)) = (device, port) {
            let address = device.addresses().to_vec();
            let own = Stack::on_device(Box::new(device), &address, Wait::Sleep)?;
            let within = address.first().copied().context("the tunnel has no address")?;
            for service in services {
                let listener = own.listen((within, service.port()), &inside(options))?;
                let (tell, stop, service) = (tell.clone(), stop.clone(), *service);
                let serve = move || {
                    accept_inside(&listener, &stop, &mut |stream| {
                        tell.send((service, SecureStream::of_stream(stream).into())).is_ok()
                    });
                };
                threads.push(spawn(serve)?);
            }
            // More paths, for those who ask.
            let listener = own.listen((within, Service::Paths.port()), &inside(options))?;
            let leases = Arc::new(AtomicUsize::new(0));
            let shared =
                (port, ticket.preshared(), services.to_vec(), options.clone(), tell.clone(), stop.clone());
            let serve = move || {
                let (port, preshared, services, options, tell, stop) = shared;
                accept_inside(&listener, &stop, &mut |stream| {
                    if leases.load(Ordering::Relaxed) >= MAX_LEASES {
                        return true;
                    }
                    leases.fetch_add(1, Ordering::Relaxed);
                    let shared =
                        (port.clone(), preshared.clone(), services.clone(), options.clone(), tell.clone());
                    let (counted, left) = (leases.clone(), leases.clone());
                    let lease = move || {
                        let (port, preshared, services, options, tell) = shared;
                        paths::serve(stream, &port, &preshared, &services, &options, &tell);
                        counted.fetch_sub(1, Ordering::Relaxed);
                    };
                    // It ends when its connection does, at the latest with the stack below.
                    if spawn(lease).is_err() {
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                    true
                });
            };
            threads.push(spawn(serve)?);
            stack = Some(own);
        }
        if let Some(listener) = listener {
            let server =
                tls::TlsServer::new(&identity.tls(), &ticket, services).context("the TLS key is none")?;
            let stop = stop.clone();
            // Where there is one service alone, whoever serves it has limits for strangers, and time for
            // them.
            let later = match services {
                &[service] if !args.shakes_early => Some(service),
                _ => None,
            };
            threads.push(spawn(move || accept_tls(&listener, &server, later, &tell, &stop))?);
        }
        Ok(Gate { ticket, at, calls: Mutex::new(calls), stop, threads, _stack: stack, status, note })
    }

    /// What lets others come.
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }
    /// Where it is.
    pub const fn address(&self) -> SocketAddr {
        self.at
    }
    /// Why one of the ways is closed.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
    /// The tunnel, as it was a moment ago; none: there is none.
    pub fn status(&self) -> Option<&TunnelStatus> {
        self.status.as_ref()
    }
    /// Who is at the other end of a connection, for people: where a tunnel comes from, not the address
    /// inside, which follows from a key.
    pub fn name_of(&self, peer: &str) -> String {
        let peers = self.status.as_ref().map(TunnelStatus::peers).unwrap_or_default();
        let inside = peer.parse().ok().map(|at: SocketAddr| at.ip());
        let found = peers.iter().find(|known| inside == Some(known.key.inner_address().into()));
        let outside = found.and_then(|known| known.endpoint);
        outside.map_or_else(
            || peer.to_owned(),
            |at| SocketAddr::new(at.ip().to_canonical(), at.port()).to_string(),
        )
    }
    /// The next connection; none: `stop` said so.
    ///
    /// # Errors
    /// No more connections can come.
    pub fn accept(&self, stop: &dyn Fn() -> bool) -> Result<Option<(Service, TransferStream)>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        while !stop() {
            match calls.recv_timeout(LOOK) {
                Ok(call) => return Ok(Some(call)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(anyhow!("cannot accept connections any more"));
                }
            }
        }
        Ok(None)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Whoever waits to hand a connection over finds nobody.
        drop(std::mem::replace(&mut self.calls, Mutex::new(sync_channel(0).1)));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

type GateSockets = (Option<UdpTunnel>, Option<TcpListener>, Option<String>);

/// Opens UDP and TCP at the same number. TCP may be missing where UDP is there, and the other way round; it
/// is said why.
fn ports(identity: &TicketIdentity, args: &GateArgs, ticket: &Ticket) -> Result<GateSockets> {
    let mut last = anyhow!("neither UDP nor TCP is wanted");
    for _ in 0..if args.port == 0 { ATTEMPTS } else { 1 } {
        let config = TunnelConfig {
            bind: UdpBind { address: args.address, port: args.port, interface: None },
            admit: Some(ticket.preshared()),
            ..TunnelConfig::new(identity.tunnel())
        };
        let device = args.ways.udp.then(|| UdpTunnel::open(&config).map_err(anyhow::Error::from));
        let port = match &device {
            Some(Ok(device)) => device.local_addr()?.port(),
            _ => args.port,
        };
        let listener = args.ways.tcp.then(|| listen(args.address, port));
        match (device, listener) {
            (Some(Ok(device)), Some(Ok(listener))) => return Ok((Some(device), Some(listener), None)),
            (Some(Ok(device)), None) => return Ok((Some(device), None, None)),
            (None, Some(Ok(listener))) => return Ok((None, Some(listener), None)),
            (Some(Err(error)), None) => last = error,
            (None | Some(Err(_)), Some(Err(error))) => last = error,
            // The number is taken in TCP: another one is tried, if it may be another.
            (Some(Ok(device)), Some(Err(error))) if args.port != 0 => {
                return Ok((Some(device), None, Some(format!("No TCP: {error:#}"))));
            }
            (Some(Err(error)), Some(Ok(listener))) if args.port != 0 => {
                return Ok((None, Some(listener), Some(format!("No UDP: {error:#}"))));
            }
            (Some(Ok(_)), Some(Err(error))) | (Some(Err(error)), Some(Ok(_))) => last = error,
            (None, None) => break,
        }
    }
    Err(last)
}

fn listen(address: Option<IpAddr>, port: u16) -> Result<TcpListener> {
    let context = || {
        let at = address.map_or(format!("port {port}"), |address| named_at(&address.to_string(), port));
        format!("cannot listen at {at}; another program may have the port: choose one with --listen")
    };
    let open = |address: IpAddr| TcpListener::bind(SocketAddr::new(address, port));
    match address {
        Some(address) => open(address),
        // A system without IPv6 has all addresses of IPv4 left.
        None => open(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| open(Ipv4Addr::UNSPECIFIED.into())),
    }
    .with_context(context)
}

/// The addresses by which others may reach this machine.
fn advertised(bound: Option<IpAddr>) -> Vec<String> {
    if let Some(bound) = bound.filter(|bound| !bound.is_unspecified()) {
        return vec![bound.to_canonical().to_string()];
    }
    let mut own = own_addresses::list();
    own.truncate(MAX_OWN);
    // A machine without networks still has itself.
    if own.is_empty() {
        own.push(Ipv4Addr::LOCALHOST.into());
    }
    own.iter().map(ToString::to_string).collect()
}

fn accept_tls(
    listener: &TcpListener,
    server: &tls::TlsServer,
    later: Option<Service>,
    tell: &SyncSender<(Service, TransferStream)>,
    stop: &AtomicBool,
) {
    let shaking = Arc::new(AtomicUsize::new(0));
    while let Ok(Some(tcp)) = kernel::accept(listener, || stop.load(Ordering::Relaxed)) {
        let address = tcp.peer_addr().ok().map(|at| at.ip());
        if tcp.set_nonblocking(false).is_err() {
            continue;
        }
        if let Some(service) = later {
            let Ok(channel) = server.later(tcp) else { continue };
            let call = TransferStream { address, ..channel.into() };
            if tell.send((service, call)).is_err() {
                return;
            }
            continue;
        }
        if shaking.load(Ordering::Relaxed) >= MAX_SHAKING {
            continue;
        }
        shaking.fetch_add(1, Ordering::Relaxed);
        let (tell, shaking, server) = (tell.clone(), shaking.clone(), server.clone());
        let left = shaking.clone();
        let shake = move || {
            let timeouts = |time| tcp.set_read_timeout(time).and_then(|()| tcp.set_write_timeout(time));
            let again = tcp.try_clone();
            if let (Ok(()), Ok(tcp)) = (timeouts(Some(SHAKE)), again)
                && let Ok((channel, service)) = server.shake(tcp)
                && timeouts(None).is_ok()
            {
                let _ = tell.send((service, TransferStream { address, ..channel.into() }));
            }
            shaking.fetch_sub(1, Ordering::Relaxed);
        };
        if Builder::new().spawn(shake).is_err() {
            left.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
