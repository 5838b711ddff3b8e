//! Which TCP carries a transfer: farpace's own in a tunnel or the kernel's under TLS; or either in the clear.

use super::explain::TransferProbe;
use super::options::say;
use crate::carrier::{CarrierChoice, Gate, SecureStream, Service};
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use farpace_live::device::TunConfig;
use farpace_live::socket::{Interrupted, LiveListener, SocketOptions, Stack, Stream};
use farpace_process::interrupt;
use farpace_transfer::{FramedStream, kernel};
use farpace_units::Rate;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Where receivers listen and senders connect if nothing is said.
pub const PORT: u16 = 7077;
/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(20);
/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(200);

/// Which TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StackChoice {
    /// farpace's in a tunnel over UDP; where UDP does not get through, the kernel's under TLS
    #[default]
    Auto,
    /// farpace's own: in a tunnel over UDP, or on the device of --tun
    Farpace,
    /// The kernel's: under TLS, or in the clear with --insecure
    Kernel,
}

/// Which TCP, and on what.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StackArgs {
    /// Whose TCP carries the data
    #[arg(long, value_enum, default_value_t)]
    pub stack: StackChoice,
    /// TCP profile of farpace's TCP (farpace profiles)
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Congestion control of farpace's TCP (farpace profiles)
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// A setting of farpace's TCP, as in scenarios: ack_control=safe; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// What is in the clear.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClearArgs {
    /// In the clear, without a ticket: everybody on the path can read and change what is sent
    #[arg(long)]
    pub insecure: bool,
    /// With --insecure: name of a TUN device to make for farpace's TCP; it goes with the command
    #[arg(long, value_name = "NAME", requires = "addr", requires = "insecure")]
    pub tun: Option<String>,
    /// Address of farpace's TCP on that device, e.g. 10.77.0.2/24
    #[arg(long, value_name = "ADDR/LEN", value_parser = network)]
    pub addr: Option<(IpAddr, u8)>,
    /// Address of the kernel on that device [default: the first other one of the network]
    #[arg(long, value_name = "ADDR", requires = "tun")]
    pub kernel_addr: Option<IpAddr>,
}

/// An address and the bits of its network.
fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let form = || format!("`{text}` is not an address with the bits of its network, like 10.77.0.2/24");
    let (address, bits) = text.split_once('/').ok_or_else(form)?;
    let address: IpAddr = address.parse().map_err(|_| form())?;
    let bits: u8 = bits.parse().map_err(|_| form())?;
    let most = if address.is_ipv4() { 30 } else { 126 };
    if (1..=most).contains(&bits) { Ok((address, bits)) } else { Err(form()) }
}

/// The first address of the network that is not `address` itself.
fn neighbour(address: IpAddr, bits: u8) -> IpAddr {
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
        return Ok((address.to_string(), PORT));
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(PORT), str::parse);
    match (host, port) {
        (host, Ok(port @ 1..)) if is_host(host) => Ok((host.to_owned(), port)),
        _ => bail!("`{text}` is not HOST, HOST:PORT or [ADDRESS]:PORT with a port from 1 to 65535"),
    }
}

fn is_host(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || (!text.is_empty() && !text.contains([':', '[', ']']))
}

impl StackArgs {
    /// Which encrypted ways may be taken.
    pub const fn ways(&self) -> CarrierChoice {
        match self.stack {
            StackChoice::Auto => CarrierChoice { udp: true, tcp: true },
            StackChoice::Farpace => CarrierChoice { udp: true, tcp: false },
            StackChoice::Kernel => CarrierChoice { udp: false, tcp: true },
        }
    }

    /// How connections of farpace's TCP are to be, at `cap` at most: profile `farpace`, if nothing else is
    /// said.
    ///
    /// # Errors
    /// Profile, congestion control or a setting are not known.
    pub fn options(&self, cap: Option<Rate>) -> Result<SocketOptions> {
        let mut options = SocketOptions::profile(self.profile.as_deref().unwrap_or("farpace"))?;
        if let Some(name) = &self.congestion {
            options = options.congestion(name)?;
        }
        options.set(&self.set.join(" ")).context("--set")?;
        options.rate_cap = cap.or(options.rate_cap);
        options.connect_timeout = Some(CONNECT);
        Ok(options.nodelay(true))
    }
}

impl ClearArgs {
    /// Brings the TCP up that was asked for, in the clear; says if it is another one.
    ///
    /// # Errors
    /// farpace's TCP was demanded and cannot be had, or profile or congestion control are not known.
    pub fn up(&self, args: &StackArgs, cap: Option<Rate>, quiet: bool) -> Result<Net> {
        let options = args.options(cap)?;
        if args.stack == StackChoice::Kernel {
            return Ok(Net::Kernel);
        }
        let (Some(tun), Some((address, bits))) = (&self.tun, self.addr) else {
            if args.stack == StackChoice::Farpace {
                bail!("in the clear farpace's own TCP needs a device: --tun fp0 --addr 10.77.0.2/24");
            }
            if args.profile.is_some() || args.congestion.is_some() || !args.set.is_empty() {
                say(
                    quiet,
                    "The kernel's TCP is used, so --profile, --congestion and --set do nothing: add --tun \
                     fp0 --addr 10.77.0.2/24",
                );
            }
            return Ok(Net::Kernel);
        };
        let kernel = self.kernel_addr.unwrap_or_else(|| neighbour(address, bits));
        let config = TunConfig { addresses: vec![(kernel, bits)], ..TunConfig::new(tun) };
        match Stack::on_tun(config, &[address]) {
            Ok(stack) => {
                if let Err(error) = stack.offer_list("transfer") {
                    say(quiet, &format!("`farpace ss` will not show its connections: {error}"));
                }
                say(quiet, &format!("farpace's TCP is {address} on {tun}, the kernel there is {kernel}."));
                Ok(Net::Farpace(Box::new((stack, options))))
            }
            Err(error) if args.stack == StackChoice::Farpace => Err(anyhow!(error)
                .context("farpace's own TCP cannot be brought up; --stack kernel needs no privileges")),
            Err(error) => {
                say(
                    quiet,
                    &format!("The kernel's TCP is used, because farpace's cannot be brought up: {error}"),
                );
                Ok(Net::Kernel)
            }
        }
    }
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
                Net::Kernel => TcpStream::connect_timeout(&address, CONNECT)
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
            ("far.example", "far.example", PORT),
            ("far.example:9000", "far.example", 9000),
            ("10.0.0.1", "10.0.0.1", PORT),
            ("fd00::1", "fd00::1", PORT),
            ("[fd00::1]", "fd00::1", PORT),
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
        for (ours, kernel) in [
            ("10.77.0.2/24", "10.77.0.1"),
            ("10.77.0.1/24", "10.77.0.2"),
            ("10.77.0.9/29", "10.77.0.10"),
            ("fd00::2/64", "fd00::1"),
        ] {
            let (address, bits) = network(ours).unwrap();
            assert_eq!(neighbour(address, bits).to_string(), kernel);
        }
        for text in ["10.77.0.2", "10.77.0.2/33", "10.77.0.2/0", "x/24", "10.77.0.2/32"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
