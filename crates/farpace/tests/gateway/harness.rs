//! `client - router - server`, and a gateway on the router.

use crate::process::GatewayProcess;
pub use crate::rights::{has_rights, unique};
use farpace::live::Namespace;
use serde_json::Value;
use std::fs::Permissions;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const SERVER: &str = "192.0.2.2";
pub const SERVER6: &str = "2001:db8::2";
pub const CLIENT: &str = "10.9.0.2";
pub const PORT: u16 = 5001;
/// No step of a test takes longer.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// Three hosts in a row.
pub struct Net {
    pub client: Namespace,
    pub router: Namespace,
    pub server: Namespace,
    /// Where gateways of this test keep their journals.
    pub state: TempDir,
}

impl Net {
    pub fn new() -> Self {
        let [client, router, server] = ["c", "r", "s"].map(|name| Namespace::create(&unique(name)).unwrap());
        let state = tempfile::tempdir().unwrap();
        let ends = [(&client, "lan0", "10.9.0", "fd09:"), (&server, "wan0", "192.0.2", "2001:db8:")];
        for (host, near, v4, v6) in ends {
            let name = host.name();
            router.configure(&format!("link add {near} type veth peer name eth0 netns {name}\n")).unwrap();
            let up = |interface: &str, n: u8| {
                format!(
                    "addr add {v4}.{n}/24 dev {interface}\n-6 addr add {v6}:{n}/64 dev {interface} nodad\n\
                     link set {interface} up\n"
                )
                .replace("-6 addr", "addr")
            };
            router.configure(&up(near, 1)).unwrap();
            host.configure(&up("eth0", 2)).unwrap();
            host.configure(&format!("route add default via {v4}.1\nroute add default via {v6}:1\n")).unwrap();
        }
        let net = Net { client, router, server, state };
        net.sysctl("net/ipv4/ip_forward", "1");
        net.sysctl("net/ipv6/conf/all/forwarding", "1");
        net
    }

    /// Sets a parameter of the router.
    pub fn sysctl(&self, name: &str, value: &str) {
        self.router.within(|| std::fs::write(format!("/proc/sys/{name}"), value).unwrap()).unwrap();
    }

    /// A program on the router.
    pub fn on_router(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.router.name()]).args(words);
        command.env("FARPACE_STATE", self.state.path());
        command
    }

    /// `farpace` on the router, to its end.
    pub fn farpace(&self, words: &[&str]) -> Output {
        self.on_router(&[&[env!("CARGO_BIN_EXE_farpace")], words].concat()).output().unwrap()
    }

    /// A gateway that splits all connections.
    pub fn gateway(&self, words: &[&str]) -> GatewayProcess {
        let own = [env!("CARGO_BIN_EXE_farpace"), "gateway", "up", "--json", "--min-rtt", "0us"];
        let sides = ["--lan", "lan0", "--wan", "wan0"];
        let command = self.on_router(&[&own[..], &sides, words].concat());
        GatewayProcess::start(command)
    }

    /// The same, where each command of this program of the system takes so many seconds, while the folder is
    /// there.
    pub fn gateway_with_slow(&self, program: &str, seconds: f64) -> (GatewayProcess, TempDir) {
        let (tools, path) = (tempfile::tempdir().unwrap(), std::env::var("PATH").unwrap());
        let real = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|real| real.exists());
        let slow = format!("#!/bin/sh\nsleep {seconds}\nexec {} \"$@\"\n", real.unwrap().display());
        let slower = tools.path().join(program);
        std::fs::write(&slower, slow).unwrap();
        std::fs::set_permissions(&slower, Permissions::from_mode(0o755)).unwrap();
        let own = [env!("CARGO_BIN_EXE_farpace"), "gateway", "up", "--json", "--min-rtt", "0us"];
        let mut command = self.on_router(&[&own[..], &["--lan", "lan0", "--wan", "wan0"]].concat());
        command.env("PATH", format!("{}:{path}", tools.path().display()));
        (GatewayProcess::start(command), tools)
    }

    /// The same, with the priority of its rules.
    pub fn gateway_with_priority(&self, priority: u32) -> GatewayProcess {
        let path = self.state.path().with_extension("toml");
        std::fs::write(&path, format!("rule_priority = {priority}\n")).unwrap();
        self.gateway(&["--config", path.to_str().unwrap()])
    }

    /// What the gateway says of itself.
    pub fn status(&self) -> Value {
        let output = self.farpace(&["gateway", "status", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all["gateways"][0].clone()
    }

    pub fn split(&self) -> u64 {
        self.status()["totals"]["split"].as_u64().unwrap()
    }

    /// A listener on the server.
    pub fn listen(&self, address: &str) -> TcpListener {
        listen_on(&self.server, address)
    }

    pub fn try_connect(&self, address: &str) -> std::io::Result<TcpStream> {
        connect_from(&self.client, address, STEP_TIMEOUT)
    }

    /// A connection, and its end at the server.
    pub fn connect(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let address = listener.local_addr().unwrap().ip().to_string();
        let near = self.try_connect(&address).unwrap();
        (near, accepted(listener))
    }

    /// Nothing of a gateway is left on the router.
    pub fn assert_clean(&self) {
        assert_clean(&self.router, self.state.path());
    }
}

/// The rules of a router that lead to gateways.
fn rules_of(router: &Namespace) -> usize {
    let rules = ["-4", "-6"].map(|family| ip_on(router, &[family, "rule"])).concat();
    rules.lines().filter(|line| line.contains("lookup 77")).count()
}

/// What `ip` says on a router.
pub fn ip_on(router: &Namespace, words: &[&str]) -> String {
    let output = router.within(|| Command::new("ip").args(words).output().unwrap()).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Nothing of a gateway is left on a router, nor in the folder of its journals.
pub fn assert_clean(router: &Namespace, state: &Path) {
    let since = Instant::now();
    let left = || {
        let files: Vec<_> = std::fs::read_dir(state).unwrap().flatten().map(|entry| entry.path()).collect();
        (rules_of(router), files)
    };
    while left() != (0, Vec::new()) {
        assert!(since.elapsed() < Duration::from_secs(6), "{:?}", left());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!ip_on(router, &["link"]).contains("fplan"));
}

/// A listener of a host.
pub fn listen_on(host: &Namespace, address: &str) -> TcpListener {
    let address: IpAddr = address.parse().unwrap();
    host.within(|| TcpListener::bind((address, PORT)).unwrap()).unwrap()
}

/// A connection of a host, whose steps take no longer than [`STEP_TIMEOUT`].
pub fn connect_from(host: &Namespace, address: &str, within: Duration) -> std::io::Result<TcpStream> {
    let address = SocketAddr::new(address.parse().unwrap(), PORT);
    host.within(|| TcpStream::connect_timeout(&address, within)).unwrap().map(bounded)
}

/// The other end of a connection.
pub fn accepted(listener: &TcpListener) -> TcpStream {
    bounded(listener.accept().unwrap().0)
}

fn bounded(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(STEP_TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(STEP_TIMEOUT)).unwrap();
    stream
}

/// Resets, and then FINs, of either end of connections that `connect` makes reach the other.
pub fn assert_endings_pass(connect: impl Fn() -> (TcpStream, TcpStream)) {
    for by_client in [true, false] {
        let (near, far) = connect();
        exchange(&near, &far, 0, 1000);
        let (own, mut other) = if by_client { (near, far) } else { (far, near) };
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(&own, nix::sys::socket::sockopt::Linger, &linger).unwrap();
        drop(own);
        let ended = read_some(&mut other, &mut [0; 10]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset, "by the client: {by_client}");
    }
    // Half-closed: the other direction goes on.
    for by_client in [true, false] {
        let (near, far) = connect();
        let (mut own, mut other) = if by_client { (near, far) } else { (far, near) };
        own.write_all(b"question").unwrap();
        own.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        other.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question");
        let sender = send(other.try_clone().unwrap(), 0, 3_000_000, true);
        receive(&mut own, 0, 3_000_000);
        assert_eq!(read_some(&mut own, &mut [0; 10]).unwrap(), 0);
        sender.join().unwrap();
    }
}

/// The byte at a place of what is sent.
pub fn pattern(at: usize) -> u8 {
    (at % 251) as u8 ^ (at / 251 % 241) as u8
}

/// Sends so many bytes from `from` on, in a thread.
pub fn send(mut stream: TcpStream, from: usize, bytes: usize, close: bool) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut at = from;
        while at < from + bytes {
            let n = (from + bytes - at).min(60_000);
            let chunk: Vec<u8> = (at..at + n).map(pattern).collect();
            stream.write_all(&chunk).unwrap();
            at += n;
        }
        if close {
            stream.shutdown(Shutdown::Write).unwrap();
        }
    })
}

/// Reads what there is. Linux interrupts a read that has a timeout when the process was stopped and goes on,
/// as by a debugger or a suspended machine, although no signal is handled (signal(7)).
pub fn read_some(stream: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads so many bytes from `from` on, and compares them.
pub fn receive(stream: &mut TcpStream, from: usize, bytes: usize) {
    let mut buffer = vec![0; 1 << 18];
    let mut at = from;
    while at < from + bytes {
        let most = buffer.len().min(from + bytes - at);
        let n = read_some(stream, &mut buffer[..most]).unwrap();
        assert!(n > 0, "the stream ends after {} of {bytes} bytes", at - from);
        let wrong = buffer[..n].iter().enumerate().find(|(i, byte)| **byte != pattern(at + i));
        assert!(wrong.is_none(), "wrong after {at} bytes: {wrong:?}");
        at += n;
    }
}

/// Bytes both ways at once, compared.
pub fn exchange(near: &TcpStream, far: &TcpStream, from: usize, bytes: usize) {
    let senders = [near, far].map(|stream| send(stream.try_clone().unwrap(), from, bytes, false));
    let readers = [near, far].map(|stream| {
        let mut stream = stream.try_clone().unwrap();
        std::thread::spawn(move || receive(&mut stream, from, bytes))
    });
    senders.into_iter().chain(readers).for_each(|thread| thread.join().unwrap());
}
