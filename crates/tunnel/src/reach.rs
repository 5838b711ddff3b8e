//! The end that comes: it tries UDP and TCP at once, and takes the better of what gets through.

use super::ticket::Ticket;
use super::{SecureStream, Service, Via, inside, paths, tls};
use anyhow::{Context, Result, anyhow, bail};
use farpace_live::Wait;
use farpace_live::device::udp_tunnel::{Dialled, PeerConfig, SecretKey, TunnelStatus, UdpBind};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::socket::{SocketOptions, Stack, Stream};
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_report::number;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// How long UDP is tried.
const UDP_TIME: Duration = Duration::from_secs(5);
/// How long TCP is tried, and then its handshake of TLS.
const TCP_TIME: Duration = Duration::from_secs(5);
/// When TCP gets through first, UDP has this long to do so too, and three times as long as TCP took.
const GRACE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(20);
/// TLS handshakes at once. The other end takes 64, and may be behind by some; more wait here.
const MAX_SHAKING: usize = 32;

/// Which ways may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierChoice {
    /// A tunnel over UDP, with farpace's TCP inside.
    pub udp: bool,
    /// TLS over the kernel's TCP.
    pub tcp: bool,
}

impl Default for CarrierChoice {
    fn default() -> Self {
        CarrierChoice { udp: true, tcp: true }
    }
}

/// A way to the other end.
pub struct ReachedEnd {
    carrier: Carrier,
    /// Which way, and why not the other.
    pub why: String,
    /// With several paths: the first tunnel, over which they were opened, and the connection that keeps them.
    _lease: Option<(Stack, Stream)>,
    /// Where the other end is, outside of a tunnel.
    at: SocketAddr,
    /// The connection that was made to try, to be used first.
    first: Mutex<Option<SecureStream>>,
}

/// How it is reached.
pub enum Carrier {
    /// By farpace's TCP in a tunnel.
    Tunnel {
        /// The stack inside.
        stack: Stack,
        /// The other end's address there.
        inside: IpAddr,
        /// How connections are to be.
        options: Box<SocketOptions>,
        /// The tunnels, as they were a moment ago, and what they are called.
        status: Vec<(String, TunnelStatus)>,
    },
    /// By TLS.
    Tls {
        /// Where.
        at: SocketAddr,
        /// What shows the keys.
        ticket: Box<Ticket>,
        /// Handshakes at present.
        shaking: Box<(Mutex<usize>, Condvar)>,
    },
}

enum WayResult {
    Udp(Result<(Box<UdpTunnel>, Dialled)>),
    Tcp(SocketAddr, Result<SecureStream>),
}

/// Finds a way to the end that a ticket names, for connections to `service`.
///
/// # Errors
/// No way leads there; the error says what happened on each.
pub fn reach(
    ticket: &Ticket,
    service: Service,
    ways: CarrierChoice,
    options: &SocketOptions,
    via: &[Via],
) -> Result<ReachedEnd> {
    let places: Vec<_> = ticket.places.iter().map(ToString::to_string).collect();
    let addresses = ticket.addresses();
    if addresses.is_empty() {
        bail!("cannot find the host of {}", places.join(", "));
    }
    let given_up = Arc::new(AtomicBool::new(false));
    let (tell, hear) = channel();
    if ways.udp {
        try_udp(ticket, &addresses, via.is_empty(), given_up.clone(), tell.clone());
    }
    if ways.tcp {
        for at in &addresses {
            try_tcp(ticket, service, *at, tell.clone());
        }
    }
    drop(tell);
    let begun = Stopwatch::start();
    let mut udp: Option<anyhow::Error> = (!ways.udp).then(|| anyhow!("not wanted"));
    let mut tcp: Option<(SocketAddr, SecureStream, Duration)> = None;
    let mut tcp_error: Option<anyhow::Error> = None;
    let found = loop {
        if interrupt::asked() {
            break Err(anyhow!("interrupted"));
        }
        let is_over = match hear.recv_timeout(LOOK) {
            Ok(WayResult::Udp(Ok((device, dialled)))) => {
                break tunnel(*device, dialled, ticket, options, via, &addresses);
            }
            Ok(WayResult::Udp(Err(error))) => {
                udp = Some(error);
                false
            }
            Ok(WayResult::Tcp(at, Ok(channel))) => {
                tcp.get_or_insert((at, channel, begun.elapsed()));
                false
            }
            Ok(WayResult::Tcp(at, Err(error))) => {
                tcp_error = Some(error.context(format!("TCP to {at}")));
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let late = |since: Duration| begun.elapsed() > since + GRACE.max(since * 3);
        if let Some((at, channel, took)) = tcp.take() {
            if udp.is_some() || late(took) {
                let why = match &udp {
                    _ if !ways.udp => format!("TLS 1.3 over the kernel's TCP to {at}"),
                    Some(error) => format!(
                        "TLS 1.3 over the kernel's TCP to {at}, because UDP does not get through: {error:#}"
                    ),
                    None => format!(
                        "TLS 1.3 over the kernel's TCP to {at}, because UDP has not been answered meanwhile"
                    ),
                };
                let (ticket, shaking) = (Box::new(ticket.clone()), Box::default());
                let carrier = Carrier::Tls { at, ticket, shaking };
                let first = Mutex::new(Some(channel));
                break Ok(ReachedEnd { carrier, why, at, first, _lease: None });
            }
            tcp = Some((at, channel, took));
        } else if is_over {
            break Err(match (udp, tcp_error) {
                (Some(udp), Some(tcp)) if ways.udp => anyhow!("{udp:#}; {tcp:#}"),
                (_, Some(error)) | (Some(error), None) => error,
                (None, None) => anyhow!("no answer"),
            });
        }
    };
    given_up.store(true, Ordering::Relaxed);
    found
}

/// `at_once`: before it is known how long packets may be. Several paths need to know that first.
fn try_udp(
    ticket: &Ticket,
    addresses: &[SocketAddr],
    at_once: bool,
    given_up: Arc<AtomicBool>,
    tell: Sender<WayResult>,
) {
    let open = |ticket: &Ticket| -> Result<UdpTunnel> {
        // Another key where both ends would have the same address inside.
        let mut key = SecretKey::generate().context("no random numbers")?;
        while key.public().inner_address() == ticket.key().inner_address() {
            key = SecretKey::generate().context("no random numbers")?;
        }
        let peer = PeerConfig::at(ticket.key(), Some(ticket.preshared()), addresses.to_vec());
        let config = TunnelConfig { bind: UdpBind::default(), peers: vec![peer], ..TunnelConfig::new(key) };
        Ok(UdpTunnel::open(&config)?)
    };
    let device = open(ticket);
    let work = move || {
        let found = device.and_then(|mut device| {
            let stop = || given_up.load(Ordering::Relaxed);
            let dialled = match at_once {
                true => device.dial_at_once(UDP_TIME, &stop),
                false => device.dial(UDP_TIME, &stop),
            }?;
            Ok((Box::new(device), dialled))
        });
        let _ = tell.send(WayResult::Udp(found));
    };
    // Without a thread there is one way less.
    let _ = Builder::new().name("farpace-udp".into()).spawn(work);
}

fn try_tcp(ticket: &Ticket, service: Service, at: SocketAddr, tell: Sender<WayResult>) {
    let client = tls::TlsClient::new(ticket, service).context("the TLS key is none");
    let work = move || {
        let found = client.and_then(|client| connect(&client, at));
        let _ = tell.send(WayResult::Tcp(at, found));
    };
    let _ = Builder::new().name("farpace-tls".into()).spawn(work);
}

fn connect(client: &tls::TlsClient, at: SocketAddr) -> Result<SecureStream> {
    let tcp = TcpStream::connect_timeout(&at, TCP_TIME)?;
    let again = tcp.try_clone()?;
    let timeouts = |time| again.set_read_timeout(time).and_then(|()| again.set_write_timeout(time));
    timeouts(Some(TCP_TIME))?;
    let (channel, _) = client.shake(tcp).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            anyhow!("no answer to a TLS handshake within {} s", TCP_TIME.as_secs())
        }
        // What rustls refuses.
        ErrorKind::InvalidData => {
            anyhow::Error::new(error).context("it is not who the ticket says, or the ticket is old")
        }
        _ => anyhow::Error::new(error).context("the connection ended during the TLS handshake"),
    })?;
    timeouts(None)?;
    Ok(channel)
}

/// Does `work` when fewer than [`MAX_SHAKING`] others do theirs.
fn in_turn<T>((count, left): &(Mutex<usize>, Condvar), work: impl FnOnce() -> T) -> T {
    let count = || count.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = left.wait_while(count(), |taken| *taken >= MAX_SHAKING);
    *taken.unwrap_or_else(PoisonError::into_inner) += 1;
    let done = work();
    *count() -= 1;
    left.notify_one();
    done
}

fn tunnel(
    device: UdpTunnel,
    dialled: Dialled,
    ticket: &Ticket,
    options: &SocketOptions,
    via: &[Via],
    places: &[SocketAddr],
) -> Result<ReachedEnd> {
    let Dialled { endpoint, rtt, .. } = dialled;
    let (own, status) = (device.addresses().to_vec(), device.status());
    let stack = Stack::on_device(Box::new(device), &own, Wait::Sleep)?;
    let at: IpAddr = ticket.key().inner_address().into();
    let options = inside(options);
    let (stack, status, why, lease) = if via.is_empty() {
        let rtt =
            rtt.map_or(String::new(), |rtt| format!(", round trip {} ms", number(rtt.as_secs_f64() * 1e3)));
        let why = format!("farpace's TCP in a WireGuard tunnel over UDP to {endpoint}{rtt}");
        (stack, vec![("udp".to_owned(), status)], why, None)
    } else {
        let keys = (ticket.key(), ticket.preshared());
        let paths = paths::open(&stack, at, keys, places, via, &options)?;
        let why = format!(
            "farpace's TCP in {} WireGuard tunnels over UDP to {endpoint}: {}",
            via.len(),
            paths.said
        );
        let names = via.iter().map(Via::to_string);
        (paths.stack, names.zip(paths.statuses).collect(), why, Some((stack, paths.lease)))
    };
    // Without a place for its socket `farpace ss` does not show it; nothing else is lost.
    let _ = stack.offer_list("tunnel");
    let carrier = Carrier::Tunnel { stack, inside: at, options: Box::new(options), status };
    Ok(ReachedEnd { carrier, why, at: endpoint, first: Mutex::new(None), _lease: lease })
}

impl ReachedEnd {
    /// How it is reached.
    pub const fn carrier(&self) -> &Carrier {
        &self.carrier
    }
    /// The tunnels, as they were a moment ago, and what they are called.
    pub fn statuses(&self) -> &[(String, TunnelStatus)] {
        match &self.carrier {
            Carrier::Tunnel { status, .. } => status,
            Carrier::Tls { .. } => &[],
        }
    }
    /// For how long no tunnel has answered what was sent. None: one has, nothing was sent, or there is none.
    pub fn unanswered(&self) -> Option<Duration> {
        let each = self.statuses().iter().map(|(_, status)| status.peers().first()?.unanswered);
        each.collect::<Option<Vec<_>>>()?.into_iter().min()
    }
    /// In a word: `farpace` or `tls`.
    pub const fn name(&self) -> &'static str {
        match self.carrier {
            Carrier::Tunnel { .. } => "farpace",
            Carrier::Tls { .. } => "tls",
        }
    }
    /// A new stream to a service.
    ///
    /// # Errors
    /// It is not served there, or the way does not lead there any more.
    pub fn open(&self, service: Service) -> Result<SecureStream> {
        if let Some(first) = self.first.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(first);
        }
        match &self.carrier {
            Carrier::Tunnel { stack, inside, options, .. } => {
                let stream = stack.connect((*inside, service.port()), options);
                let stream = SecureStream::of_stream(stream.context("cannot connect through the tunnel")?);
                // The address inside says nothing to people.
                Ok(SecureStream { peer: self.at.to_string(), ..stream })
            }
            Carrier::Tls { at, ticket, shaking } => {
                let client = tls::TlsClient::new(ticket, service)?;
                in_turn(shaking, || connect(&client, *at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TicketIdentity;
    use std::net::TcpListener;
    use std::sync::atomic::AtomicUsize;

    /// Breaks: a browser that opens many connections at once through a forwarded port loses those beyond what
    /// the other end takes, where UDP does not get through.
    #[test]
    fn handshakes_of_a_burst_wait_for_their_turn() {
        let shaking = Box::default();
        let (now, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let shake = || {
            in_turn(&shaking, || {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                Stopwatch::start().wait_until(20_000_000, || false);
                now.fetch_sub(1, Ordering::Relaxed);
            });
            done.fetch_add(1, Ordering::Relaxed);
        };
        std::thread::scope(|scope| (0..4 * MAX_SHAKING).for_each(|_| drop(scope.spawn(shake))));
        assert_eq!(done.into_inner(), 4 * MAX_SHAKING);
        assert!((2..=MAX_SHAKING).contains(&most.into_inner()));
    }

    /// Breaks: whoever has the right ticket is told that it is wrong, because the other end was busy.
    #[test]
    fn a_closed_connection_is_not_a_wrong_ticket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let identity = TicketIdentity::generate().unwrap();
        let ticket = identity.ticket(Vec::new(), &tls::public_key(&identity.tls()).unwrap());
        let client = tls::TlsClient::new(&ticket, Service::Forward).unwrap();
        let error = std::thread::scope(|scope| {
            scope.spawn(|| drop(listener.accept().unwrap()));
            connect(&client, listener.local_addr().unwrap()).err().unwrap()
        });
        assert!(!format!("{error:#}").contains("ticket"), "{error:#}");
    }
}
