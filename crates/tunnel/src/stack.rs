//! Which TCP carries a transfer: farpace's own in a tunnel or the kernel's under TLS; or either in the clear.

use crate::{Gate, SecureStream, Service, TransferProbe};
use anyhow::{Context, Result, anyhow, bail};
use farpace_live::socket::{Interrupted, LiveListener, SocketOptions, Stack, Stream};
use farpace_process::interrupt;
use farpace_transfer::{FramedStream, kernel};
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Where receivers listen and senders connect if nothing is said.
pub const DEFAULT_PORT: u16 = 7077;
/// How long a connection may take to open.
pub const CONNECT_TIME: Duration = Duration::from_secs(20);
/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(200);

/// The first address of the network that is not `address` itself.
pub fn neighbour(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let base = u32::from(v4) & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            let first = base.wrapping_add(1);
            IpAddr::V4(if first == u32::from(v4) { base.wrapping_add(2) } else { first }.into())
        }
        IpAddr::V6(v6) => {
            let base = u128::from(v6) & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            let first = base.wrapping_add(1);
            IpAddr::V6(if first == u128::from(v6) { base.wrapping_add(2) } else { first }.into())
        }
    }
}

/// A TCP.
pub enum Net {
    /// The kernel's.
    Kernel,
    /// farpace's own, and how its connections are to be.
    Farpace(Box<(Stack, SocketOptions)>),
}

/// A place where connections come in.
pub enum TransferListener {
    /// Of the kernel.
    Kernel(TcpListener),
    /// Of farpace's stack.
    Farpace(LiveListener),
    /// Of whoever has a ticket, encrypted.
    Gate(Gate),
}

/// A connection, who is at its other end, and where to look how it goes.
pub struct TransferStream {
    /// The stream.
    pub line: FramedStream,
    /// The other end.
    pub peer: String,
    /// Its address, if it is known.
    pub address: Option<IpAddr>,
    /// Where to look.
    pub probe: TransferProbe,
    /// Ends our direction alone.
    pub finish: Box<dyn Fn() + Send + Sync>,
}

impl From<SecureStream> for TransferStream {
    fn from(channel: SecureStream) -> Self {
        let SecureStream { line, peer, probe, finish } = channel;
        let address = peer.parse().ok().map(|at: SocketAddr| at.ip());
        TransferStream { line, peer, address, probe, finish }
    }
}

fn of_kernel(stream: TcpStream) -> Result<TransferStream> {
    let at = stream.peer_addr().ok();
    let (peer, address) = (named(at), at.map(|at| at.ip()));
    let probe = TransferProbe::Kernel(stream.try_clone().context("cannot open another descriptor")?);
    let finisher = stream.try_clone().context("cannot open another descriptor")?;
    let finish = Box::new(move || drop(finisher.shutdown(Shutdown::Write)));
    let line = kernel::line_of(stream).context("cannot open another descriptor")?;
    Ok(TransferStream { line, peer, address, probe, finish })
}

fn named(peer: Option<SocketAddr>) -> String {
    // An address of IPv4 as such, also where the socket is one of IPv6.
    peer.map_or("?".to_owned(), |peer| SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string())
}

fn of_farpace(stream: Stream) -> TransferStream {
    let at = stream.peer_addr().ok();
    let (peer, address) = (named(at), at.map(|at| at.ip()));
    // All that was written is to arrive before the stack goes.
    stream.set_linger(Some(Duration::from_secs(5)));
    let (reader, closer, finisher) = (stream.clone(), stream.clone(), stream.clone());
    let finish = Box::new(move || drop(finisher.shutdown(Shutdown::Write)));
    let close = move || {
        let _ = closer.shutdown(Shutdown::Both);
        closer.interrupt();
    };
    let probe = TransferProbe::Farpace(stream.clone());
    let line = FramedStream { reader: Box::new(reader), writer: Box::new(stream), close: Box::new(close) };
    TransferStream { line, peer, address, probe, finish }
}

/// Host and port of `HOST:PORT`, `HOST`, `[ADDRESS]:PORT`, `[ADDRESS]` or an address alone.
///
/// # Errors
/// The port is none.
pub fn host_and_port(text: &str) -> Result<(String, u16)> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address.to_string(), DEFAULT_PORT));
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(DEFAULT_PORT), str::parse);
    match (host, port) {
        (host, Ok(port @ 1..)) if is_host(host) => Ok((host.to_owned(), port)),
        _ => bail!("`{text}` is not HOST, HOST:PORT or [ADDRESS]:PORT with a port from 1 to 65535"),
    }
}

fn is_host(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || (!text.is_empty() && !text.contains([':', '[', ']']))
}

/// Host and port in one word.
pub fn named_at(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl Net {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Net::Kernel => "kernel",
            Net::Farpace(_) => "farpace",
        }
    }
    /// A connection to a port of a host.
    ///
    /// # Errors
    /// There is no such host, it refuses, or does not answer.
    pub fn connect(&self, host: &str, port: u16) -> Result<TransferStream> {
        let to = named_at(host, port);
        let addresses =
            (host, port).to_socket_addrs().with_context(|| format!("cannot find the host of {to}"));
        let mut last = anyhow!("`{to}` has no address");
        for address in addresses? {
            let tried = match self {
                Net::Kernel => TcpStream::connect_timeout(&address, CONNECT_TIME)
                    .map_err(anyhow::Error::from)
                    .and_then(of_kernel),
                Net::Farpace(farpace) => {
                    farpace.0.connect(address, &farpace.1).map(of_farpace).map_err(Into::into)
                }
            };
            match tried {
                Ok(call) => return Ok(call),
                Err(error) => {
                    let refused = error.downcast_ref::<io::Error>().map(io::Error::kind)
                        == Some(io::ErrorKind::ConnectionRefused);
                    let hint = if refused { "; is `farpace recv` running there?" } else { "" };
                    last = anyhow!("cannot connect to {address}: {error}{hint}");
                }
            }
            if interrupt::asked() {
                break;
            }
        }
        Err(last)
    }
    /// Listens.
    ///
    /// # Errors
    /// The address is in use, or is not one of this machine.
    pub fn listen(&self, at: SocketAddr) -> Result<TransferListener> {
        let context =
            || format!("cannot listen at {at}; another program may have the port: choose one with --listen");
        match self {
            Net::Kernel => TcpListener::bind(at).map(TransferListener::Kernel).with_context(context),
            Net::Farpace(farpace) => {
                farpace.0.listen(at, &farpace.1).map(TransferListener::Farpace).with_context(context)
            }
        }
    }
}

impl TransferListener {
    /// Where it is.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            TransferListener::Kernel(listener) => listener.local_addr().ok(),
            TransferListener::Farpace(listener) => Some(listener.local_addr()),
            TransferListener::Gate(gate) => Some(gate.address()),
        }
    }
    /// Who is at the other end of a connection, for people.
    pub fn name_of(&self, peer: &str) -> String {
        match self {
            TransferListener::Gate(gate) => gate.name_of(peer),
            TransferListener::Kernel(_) | TransferListener::Farpace(_) => peer.to_owned(),
        }
    }
    /// The next connection; none: `stop` said so.
    ///
    /// # Errors
    /// No more connections can come.
    pub fn accept(&self, stop: impl Fn() -> bool) -> Result<Option<TransferStream>> {
        match self {
            TransferListener::Kernel(listener) => loop {
                let stream = kernel::accept(listener, &stop).context("cannot accept connections any more")?;
                match stream.map(of_kernel) {
                    None => return Ok(None),
                    Some(Ok(call)) => return Ok(Some(call)),
                    // There are no descriptors for it just now. It is closed, and those that are served go
                    // on.
                    Some(Err(_)) => {}
                }
            },
            TransferListener::Gate(gate) => loop {
                match gate.accept(&stop)? {
                    Some((Service::Transfer, call)) => return Ok(Some(call)),
                    // Nothing else was opened.
                    Some(_) => {}
                    None => return Ok(None),
                }
            },
            TransferListener::Farpace(listener) => {
                listener.set_timeout(Some(LOOK));
                while !stop() {
                    match listener.accept() {
                        Ok((stream, _)) => return Ok(Some(of_farpace(stream))),
                        Err(error) if Interrupted::is(&error) => {}
                        Err(error)
                            if matches!(
                                error.kind(),
                                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
                            ) => {}
                        Err(error) => {
                            return Err(anyhow!(error).context("cannot accept connections any more"));
                        }
                    }
                }
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a port must be given always, or an address of IPv6 is cut into host and port.
    #[test]
    fn hosts_have_a_port_or_get_one() {
        for (text, host, port) in [
            ("far.example", "far.example", DEFAULT_PORT),
            ("far.example:9000", "far.example", 9000),
            ("10.0.0.1", "10.0.0.1", DEFAULT_PORT),
            ("fd00::1", "fd00::1", DEFAULT_PORT),
            ("[fd00::1]", "fd00::1", DEFAULT_PORT),
            ("[fd00::1]:9000", "fd00::1", 9000),
        ] {
            assert_eq!(host_and_port(text).unwrap(), (host.to_owned(), port), "{text}");
        }
        for text in
            ["", ":7077", "far.example:", "far.example:0", "far.example:99999", "far.example:-1", "[fd00::1"]
        {
            assert!(host_and_port(text).is_err(), "{text}");
        }
    }

    /// Breaks: the kernel gets the address of farpace's TCP, or one of another network.
    #[test]
    fn the_kernel_gets_another_address_of_the_network() {
        for (ours, bits, kernel) in [
            ("10.77.0.2", 24, "10.77.0.1"),
            ("10.77.0.1", 24, "10.77.0.2"),
            ("10.77.0.9", 29, "10.77.0.10"),
            ("fd00::2", 64, "fd00::1"),
        ] {
            assert_eq!(neighbour(ours.parse().unwrap(), bits).to_string(), kernel);
        }
    }
}
