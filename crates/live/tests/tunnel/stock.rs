//! A stock WireGuard at the other end: wireguard-go, with the kernel's TCP on top.
//!
//! Needs root and the program `wireguard-go`. Elsewhere these tests pass with a line on stderr that says what
//! is missing, and fail where `CI` is set.

use crate::netns::alone;
use crate::pair::{LOCALHOST, bind, options, preshared, until};
use farpace_live::Wait;
use farpace_live::device::udp_tunnel::{PeerConfig, SecretKey, TunnelStatus};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::socket::Stack;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const THEIRS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 1));
const OURS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 2));

/// wireguard-go on an interface; it ends with this.
struct Stock {
    child: Child,
    name: &'static str,
}

impl Drop for Stock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(self.control());
    }
}

fn ip(words: &str) {
    assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Stock {
    fn control(&self) -> String {
        format!("/var/run/wireguard/{}.sock", self.name)
    }
    /// An interface that knows one peer; `endpoint`: where that is.
    fn start(
        name: &'static str,
        key: &SecretKey,
        port: u16,
        peer: &SecretKey,
        endpoint: Option<u16>,
    ) -> Option<Stock> {
        let child = Command::new("wireguard-go")
            .args(["-f", name])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            assert!(std::env::var_os("CI").is_none(), "no wireguard-go");
            std::io::stderr().write_all(b"skipped: wireguard-go is not installed\n").unwrap();
            return None;
        };
        let stock = Stock { child, name };
        until("its control socket is there", || UnixStream::connect(stock.control()).is_ok());
        let mut control = UnixStream::connect(stock.control()).unwrap();
        let endpoint = endpoint.map_or(String::new(), |port| format!("endpoint=127.0.0.1:{port}\n"));
        let text = format!(
            "set=1\nprivate_key={}\nlisten_port={port}\nreplace_peers=true\npublic_key={}\npreshared_key={}\n\
             {endpoint}allowed_ip={OURS}/32\n\n",
            hex(&key.to_bytes()),
            hex(&peer.public().to_bytes()),
            hex(&[0x5a; 32]),
        );
        control.write_all(text.as_bytes()).unwrap();
        let mut answer = [0; 64];
        let len = control.read(&mut answer).unwrap();
        assert!(answer[..len].starts_with(b"errno=0"), "{:?}", String::from_utf8_lossy(&answer[..len]));
        ip(&format!("addr add {THEIRS}/24 dev {name}"));
        ip(&format!("link set {name} mtu 1420 up"));
        Some(stock)
    }
}

fn config(key: &SecretKey, peer: &SecretKey, at: Option<u16>) -> TunnelConfig {
    let endpoints = at.map(|port| (LOCALHOST, port).into()).into_iter().collect();
    let peer = PeerConfig {
        allowed: vec![(THEIRS, 32)],
        ..PeerConfig::at(peer.public(), Some(preshared()), endpoints)
    };
    TunnelConfig {
        addresses: vec![OURS],
        bind: bind(),
        peers: vec![peer],
        mtu: Some(1_420),
        ..TunnelConfig::new(key.clone())
    }
}

fn stack(device: UdpTunnel) -> (Stack, TunnelStatus) {
    let status = device.status();
    (Stack::on_device(Box::new(device), &[OURS], Wait::Sleep).unwrap(), status)
}

fn data() -> Vec<u8> {
    (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// All that comes goes back.
fn echo(mut from: impl Read, mut to: impl Write, end: impl FnOnce()) {
    let mut room = vec![0; 64 << 10];
    loop {
        match from.read(&mut room).unwrap() {
            0 => return end(),
            n => to.write_all(&room[..n]).unwrap(),
        }
    }
}

/// Breaks: the tunnel is not WireGuard's, so that only farpace can be the other end.
#[test]
fn the_kernels_tcp_behind_wireguard_go_is_reached() {
    alone(|| {
        ip("link set lo up");
        let (ours, theirs) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
        let Some(_stock) = Stock::start("fpwg0", &theirs, 51_820, &ours, None) else { return };
        let mut device = UdpTunnel::open(&config(&ours, &theirs, Some(51_820))).unwrap();
        let dialled = device.dial(Duration::from_secs(10), &|| false).unwrap();
        assert_eq!(dialled.mtu, 1_420, "the kernel there answers probes");
        let (stack, status) = stack(device);
        let listener = TcpListener::bind((THEIRS, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let sent = data();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().unwrap();
                echo(&stream, &stream, || stream.shutdown(Shutdown::Write).unwrap());
            });
            let mut stream = stack.connect(at, &options()).unwrap();
            let mut writer = stream.clone();
            let bytes = sent.clone();
            scope.spawn(move || {
                writer.write_all(&bytes).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            assert!(back == sent, "{} of {} B came back", back.len(), sent.len());
        });
        assert_eq!(status.rejected(), Default::default());
    });
}

/// Breaks: a stock WireGuard cannot begin, or a datagram of it is misread.
#[test]
fn wireguard_go_may_begin() {
    alone(|| {
        ip("link set lo up");
        let (ours, theirs) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
        let device = UdpTunnel::open(&config(&ours, &theirs, None)).unwrap();
        let port = device.local_addr().unwrap().port();
        let (stack, status) = stack(device);
        let Some(_stock) = Stock::start("fpwg1", &theirs, 0, &ours, Some(port)) else { return };
        let listener = stack.listen((OURS, 7), &options()).unwrap();
        let sent = data();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().unwrap();
                echo(stream.clone(), stream.clone(), || stream.shutdown(Shutdown::Write).unwrap());
            });
            let mut stream = TcpStream::connect((OURS, 7)).unwrap();
            let mut writer = stream.try_clone().unwrap();
            let bytes = sent.clone();
            scope.spawn(move || {
                writer.write_all(&bytes).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            assert!(back == sent, "{} of {} B came back", back.len(), sent.len());
        });
        until("it is seen", || status.peers().iter().any(|peer| peer.proven && peer.handshakes > 0));
        // Who has just begun may send before its first handshake is answered, and nothing else is wrong.
        assert_eq!(status.rejected().forged + status.rejected().malformed + status.rejected().foreign, 0);
    });
}
