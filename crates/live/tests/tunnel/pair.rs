//! Two stacks that are connected by a tunnel over loopback.

use farpace_live::Wait;
use farpace_live::device::udp_tunnel::{
    Dialled, PeerConfig, PresharedKey, PublicKey, SecretKey, TunnelStatus, UdpBind,
};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::socket::{SocketOptions, Stack};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

pub const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The secret that both ends know.
pub fn preshared() -> PresharedKey {
    PresharedKey::from_bytes([0x5a; 32])
}

/// A socket at loopback.
pub fn bind() -> UdpBind {
    UdpBind { address: Some(LOCALHOST), ..UdpBind::default() }
}

/// An end that admits whoever knows its keys.
pub struct Server {
    pub stack: Stack,
    pub key: PublicKey,
    pub at: SocketAddr,
    pub inside: IpAddr,
    pub status: TunnelStatus,
}

pub fn server() -> Server {
    server_with(None)
}

pub fn server_with(mtu: Option<u16>) -> Server {
    let config = TunnelConfig {
        bind: bind(),
        admit: Some(preshared()),
        mtu,
        ..TunnelConfig::new(SecretKey::generate().unwrap())
    };
    let device = UdpTunnel::open(&config).unwrap();
    let (key, at, status) = (device.public_key(), device.local_addr().unwrap(), device.status());
    let inside = device.addresses()[0];
    let stack = Stack::on_device(Box::new(device), &[inside], Wait::Sleep).unwrap();
    Server { stack, key, at, inside, status }
}

/// The configuration of an end that comes to a server at `at`.
pub fn client_config(server: &Server, at: SocketAddr) -> TunnelConfig {
    let peer = PeerConfig::at(server.key, Some(preshared()), vec![at]);
    TunnelConfig { bind: bind(), peers: vec![peer], ..TunnelConfig::new(SecretKey::generate().unwrap()) }
}

/// An end that has come to a server, by way of `at`.
pub fn client_by(server: &Server, at: SocketAddr) -> (Stack, Dialled, TunnelStatus) {
    let mut device = UdpTunnel::open(&client_config(server, at)).unwrap();
    let dialled = device.dial(Duration::from_secs(10), &|| false).unwrap();
    let (status, inside) = (device.status(), device.addresses()[0]);
    (Stack::on_device(Box::new(device), &[inside], Wait::Sleep).unwrap(), dialled, status)
}

/// The same, before it is known how long packets may be.
pub fn client_at_once_by(server: &Server, at: SocketAddr) -> (Stack, Dialled, TunnelStatus) {
    let mut device = UdpTunnel::open(&client_config(server, at)).unwrap();
    let dialled = device.dial_at_once(Duration::from_secs(10), &|| false).unwrap();
    let (status, inside) = (device.status(), device.addresses()[0]);
    (Stack::on_device(Box::new(device), &[inside], Wait::Sleep).unwrap(), dialled, status)
}

pub fn client(server: &Server) -> (Stack, Dialled, TunnelStatus) {
    client_by(server, server.at)
}

pub fn options() -> SocketOptions {
    let mut options = SocketOptions::profile("farpace").unwrap();
    options.connect_timeout = Some(Duration::from_secs(10));
    options
}

/// Waits until `is` says so, at most 10 s.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came to this: {what}");
}
