//! Several UDP paths to the end that waits, by interfaces of this machine.
//!
//! Over the first tunnel the end that comes tells the keys of its paths; the one that waits opens as many
//! tunnels behind its port:
//!
//! ```text
//! it says   paths 1 RTT KEY KEY...    the longest round trip in microseconds, a public key for each path
//! it hears  ok                        or why not
//! ```
//! The paths last as long as this connection.

use super::serving::{accept_inside, spawn};
use super::{Service, inside};
use crate::TransferStream;
use anyhow::{Context, Result, anyhow, bail, ensure};
use farpace_live::device::udp_tunnel::{
    PeerConfig, PresharedKey, PublicKey, SecretKey, TunnelPort, TunnelStatus, UdpBind,
};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::socket::{SocketOptions, Stack, Stream};
use farpace_live::{MAX_TUNNEL_PATHS, path_framing, stack_over_paths};
use farpace_report::number;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Longest line of this.
const MAX_LINE: u64 = 2_048;
/// How long the other end may take for its line, and for its answer.
const LINE_TIME: Duration = Duration::from_secs(10);
/// How long a path is dialled.
const DIAL_TIME: Duration = Duration::from_secs(5);
/// Paths on which nothing has come for so many looks, of a second each, are closed.
const MAX_SILENT: u32 = 180;
const LOOK: Duration = Duration::from_secs(1);

/// By what a path leaves this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// An interface.
    Interface(String),
    /// The interface that has this address.
    Address(IpAddr),
}

impl FromStr for Via {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Via::Address(address));
        }
        match farpace_live::device::is_interface_name(text) {
            true => Ok(Via::Interface(text.to_owned())),
            false => Err(format!("`{text}` is neither an interface nor an address of this machine")),
        }
    }
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Via::Interface(name) => f.write_str(name),
            Via::Address(address) => write!(f, "{address}"),
        }
    }
}

impl Via {
    /// Where its socket is to be. Binding to an address alone would not choose the link.
    ///
    /// # Errors
    /// No interface has this address.
    pub fn bind(&self) -> Result<UdpBind> {
        match self {
            Via::Interface(name) => Ok(UdpBind { interface: Some(name.clone()), ..UdpBind::default() }),
            Via::Address(address) => {
                let all = nix::ifaddrs::getifaddrs().context("cannot list the addresses of this machine")?;
                let mut has = all.filter(|interface| {
                    interface.address.as_ref().is_some_and(|at| {
                        at.as_sockaddr_in().is_some_and(|v4| IpAddr::V4(v4.ip()) == *address)
                            || at.as_sockaddr_in6().is_some_and(|v6| IpAddr::V6(v6.ip()) == *address)
                    })
                });
                let interface =
                    has.next().with_context(|| format!("no interface of this machine has {address}"))?;
                Ok(UdpBind { address: Some(*address), port: 0, interface: Some(interface.interface_name) })
            }
        }
    }
}

/// Several paths that are open.
pub(crate) struct OpenPaths {
    /// The host over all of them.
    pub stack: Stack,
    /// Of each path.
    pub statuses: Vec<TunnelStatus>,
    /// What is said of them.
    pub said: String,
    /// It closes them when it is dropped.
    pub lease: Stream,
}

/// Opens a path for each of `via`, over a tunnel that is open.
///
/// # Errors
/// An interface is not there, the other end does not want it, or none of the paths leads there.
pub(crate) fn open(
    first: &Stack,
    at: IpAddr,
    (key, preshared): (PublicKey, PresharedKey),
    places: &[SocketAddr],
    via: &[Via],
    options: &SocketOptions,
) -> Result<OpenPaths> {
    ensure!(via.len() <= MAX_TUNNEL_PATHS, "at most {MAX_TUNNEL_PATHS} paths, not {}", via.len());
    let binds: Vec<UdpBind> = via.iter().map(Via::bind).collect::<Result<_>>()?;
    let mut keys = Vec::new();
    while keys.len() < via.len() {
        let new = SecretKey::generate().context("no random numbers")?;
        if new.public().inner_address() != key.inner_address() {
            keys.push(new);
        }
    }
    let Some(main) = keys.first().map(SecretKey::public) else { bail!("there is no path") };
    let words: Vec<String> = keys.iter().map(|key| key.public().to_string()).collect();
    let mut lease =
        first.connect((at, Service::Paths.port()), options).context("the other end takes one path alone")?;
    lease.set_read_timeout(Some(LINE_TIME))?;
    lease.write_all(format!("paths 2 {}\n", words.join(" ")).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(&mut lease).take(MAX_LINE).read_line(&mut answer).context("no answer about the paths")?;
    ensure!(answer == "ok\n", "the other end takes one path alone: {}", answer.trim());
    let own = main.inner_address();
    let dialled: Vec<Result<(UdpTunnel, String)>> = std::thread::scope(|scope| {
        let each = binds.iter().zip(&keys).zip(0..).map(|((bind, secret), place)| {
            let endpoints = places.iter().copied();
            let endpoints = match bind.address {
                Some(address) => endpoints.filter(|to| to.is_ipv4() == address.is_ipv4()).collect(),
                None => endpoints.collect(),
            };
            let config = TunnelConfig {
                addresses: vec![own.into()],
                bind: bind.clone(),
                peers: vec![PeerConfig::at(key, Some(preshared.clone()), endpoints)],
                framing: Some(path_framing(main, key, place)),
                ..TunnelConfig::new(secret.clone())
            };
            scope.spawn(move || {
                let mut device = UdpTunnel::open(&config)?;
                let said = match device.dial(DIAL_TIME, &farpace_process::interrupt::asked) {
                    Ok(dialled) => {
                        let rtt = dialled.rtt.map_or(String::new(), |rtt| {
                            format!(", round trip {} ms", number(rtt.as_secs_f64() * 1e3))
                        });
                        format!("packets of {} B{rtt}", dialled.mtu)
                    }
                    // It is tried again and again.
                    Err(error) => format!("not yet: {error}"),
                };
                Ok((device, said))
            })
        });
        let threads: Vec<_> = each.collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|result| result.unwrap_or_else(|_| Err(anyhow!("the thread has panicked")))).collect()
    });
    let mut devices = Vec::new();
    let mut said = Vec::new();
    for (via, result) in via.iter().zip(dialled) {
        let (device, text) = result.with_context(|| format!("the path by {via}"))?;
        said.push(format!("{via} ({text})"));
        devices.push(device);
    }
    ensure!(said.iter().any(|text| !text.contains("not yet")), "no path leads there: {}", said.join(", "));
    let (stack, statuses) = stack_over_paths(own.into(), devices)?;
    lease.set_read_timeout(None)?;
    Ok(OpenPaths { stack, statuses, said: said.join(", "), lease })
}

/// Opens the paths that a connection asks for, and serves on them what is served here, until it ends.
pub(crate) fn serve(
    mut stream: Stream,
    port: &TunnelPort,
    preshared: &PresharedKey,
    services: &[Service],
    options: &SocketOptions,
    tell: &SyncSender<(Service, TransferStream)>,
) {
    let opened = hear(&mut stream).and_then(|keys| far_stack(port, preshared, &keys));
    let (stack, statuses) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            // If it cannot be told, it cannot be helped.
            let _ = stream.write_all(format!("{error:#}\n").replace('\n', " ").as_bytes());
            return;
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for service in services {
        let at = (IpAddr::V4(port.public_key().inner_address()), service.port());
        let Ok(listener) = stack.listen(at, &inside(options)) else { continue };
        let (tell, stop, service) = (tell.clone(), stop.clone(), *service);
        let serve = move || {
            accept_inside(&listener, &stop, &mut |stream| {
                tell.send((service, super::SecureStream::of_stream(stream).into())).is_ok()
            });
        };
        threads.extend(spawn(serve).ok());
    }
    let _ = stream.write_all(b"ok\n").and_then(|()| stream.set_read_timeout(Some(LOOK)));
    let mut silent = (0, 0_u64);
    loop {
        match stream.read(&mut [0; 16]) {
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {}
            // The other end is done, or says what it must not say.
            _ => break,
        }
        let received = statuses.iter().flat_map(TunnelStatus::peers).map(|peer| peer.received).sum();
        silent = if received == silent.1 { (silent.0 + 1, received) } else { (0, received) };
        if silent.0 > MAX_SILENT {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        let _ = thread.join();
    }
}

/// What is asked for: keys of paths.
fn hear(stream: &mut Stream) -> Result<Vec<PublicKey>> {
    stream.set_read_timeout(Some(LINE_TIME))?;
    let mut line = String::new();
    BufReader::new(&mut *stream).take(MAX_LINE).read_line(&mut line)?;
    read(&line).context("that is not understood: use the same version of farpace at both ends")
}

fn read(line: &str) -> Option<Vec<PublicKey>> {
    let words = line.strip_suffix('\n')?.strip_prefix("paths 2 ")?.split(' ');
    let keys: Vec<PublicKey> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    let distinct = keys.iter().enumerate().all(|(at, key)| !keys[..at].contains(key));
    ((1..=MAX_TUNNEL_PATHS).contains(&keys.len()) && distinct).then_some(keys)
}

fn far_stack(
    port: &TunnelPort,
    preshared: &PresharedKey,
    keys: &[PublicKey],
) -> Result<(Stack, Vec<TunnelStatus>)> {
    let own = port.public_key();
    let main = *keys.first().context("there is no path")?;
    ensure!(main.inner_address() != own.inner_address(), "both ends would have the same address");
    let allowed = vec![(IpAddr::V4(main.inner_address()), 32)];
    let devices: Result<Vec<UdpTunnel>> = keys
        .iter()
        .zip(0..)
        .map(|(key, number)| {
            let peer = PeerConfig {
                allowed: allowed.clone(),
                ..PeerConfig::at(*key, Some(preshared.clone()), Vec::new())
            };
            // Key and socket are those of the port.
            let config = TunnelConfig {
                peers: vec![peer],
                framing: Some(path_framing(own, main, number)),
                ..TunnelConfig::new(SecretKey::from_bytes([0; 32]))
            };
            Ok(port.open(&config)?)
        })
        .collect();
    Ok(stack_over_paths(own.inner_address().into(), devices?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: whoever has a ticket makes the receiver open as many tunnels as he likes, or crash.
    #[test]
    fn what_is_asked_for_has_limits() {
        let keys: Vec<String> = (0..9).map(|_| SecretKey::generate().unwrap().public().to_string()).collect();
        let line = |keys: &[String]| format!("paths 2 {}\n", keys.join(" "));
        assert_eq!(read(&line(&keys[..2])).unwrap().len(), 2);
        let twice = [keys[0].clone(), keys[0].clone()];
        for wrong in [
            line(&keys),
            line(&twice),
            line(&[]),
            line(&keys[..1]).replace("paths 2", "paths 1"),
            line(&keys[..1]).trim_end().to_owned(),
            "paths 2 key\n".to_owned(),
            String::new(),
        ] {
            assert!(read(&wrong).is_none(), "{wrong}");
        }
    }

    /// Breaks: an interface or an address is taken for the other, or an option of a shell for one of them.
    #[test]
    fn interfaces_and_addresses_are_told_apart() {
        assert_eq!("eth0".parse(), Ok(Via::Interface("eth0".into())));
        assert_eq!("192.0.2.1".parse(), Ok(Via::Address([192, 0, 2, 1].into())));
        assert_eq!("fd00::1".parse(), Ok(Via::Address("fd00::1".parse().unwrap())));
        assert!("an interface".parse::<Via>().is_err() && "".parse::<Via>().is_err());
        assert!(Via::Address([192, 0, 2, 1].into()).bind().is_err());
        let local = Via::Address([127, 0, 0, 1].into()).bind().unwrap();
        assert_eq!(local.interface.as_deref(), Some("lo"));
    }
}
