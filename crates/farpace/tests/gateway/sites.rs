//! `client - gateway a - links - gateway b - server`: a pair, on both routers.

use crate::harness::{STEP_TIMEOUT, accepted, assert_clean, connect_from, listen_on};
use crate::process::GatewayProcess;
use crate::rights::unique;
use farpace::live::Namespace;
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const SERVER: &str = "10.2.0.2";
pub const SERVER6: &str = "fd02::2";
pub const CLIENT: &str = "10.1.0.2";
const FARPACE: &str = env!("CARGO_BIN_EXE_farpace");

/// Both sites.
pub struct Sites {
    pub client: Namespace,
    pub routers: [Namespace; 2],
    pub server: Namespace,
    links: usize,
    /// Journals of the gateways of each router.
    state: [TempDir; 2],
    pub files: TempDir,
}

/// The name of a site, by its number.
const NAMES: [&str; 2] = ["a", "b"];

impl Sites {
    /// With so many links between the routers; the kernel knows the way by the first one, if it is to know
    /// one.
    pub fn new(links: usize, with_routes: bool) -> Self {
        let [client, a, b, server] =
            ["c", "a", "b", "s"].map(|name| Namespace::create(&unique(name)).unwrap());
        let routers = [a, b];
        for (site, host, router) in [(1, &client, &routers[0]), (2, &server, &routers[1])] {
            let name = host.name();
            router.configure(&format!("link add lan0 type veth peer name eth0 netns {name}\n")).unwrap();
            let up = |interface: &str, n: u8| {
                format!(
                    "addr add 10.{site}.0.{n}/24 dev {interface}\n\
                     addr add fd0{site}::{n}/64 dev {interface} nodad\n\
                     link set {interface} up\n"
                )
            };
            router.configure(&up("lan0", 1)).unwrap();
            host.configure(&up("eth0", 2)).unwrap();
            let routes = format!("route add default via 10.{site}.0.1\nroute add default via fd0{site}::1\n");
            host.configure(&routes).unwrap();
        }
        for link in 0..links {
            let peer = routers[1].name();
            routers[0]
                .configure(&format!("link add l{link} type veth peer name l{link} netns {peer}\n"))
                .unwrap();
            for (n, router) in (1..).zip(&routers) {
                let lines = format!(
                    "addr add 172.16.{link}.{n}/24 dev l{link}\n\
                     addr add fd16:{link}::{n}/64 dev l{link} nodad\n\
                     link set l{link} up\n"
                );
                router.configure(&lines).unwrap();
            }
        }
        let state = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let sites = Sites { client, routers, server, links, state, files: tempfile::tempdir().unwrap() };
        for at in 0..2 {
            sites.sysctl(at, "net/ipv4/ip_forward", "1");
            sites.sysctl(at, "net/ipv6/conf/all/forwarding", "1");
            if with_routes {
                let (other, n) = (2 - at, 2 - at);
                let routes = format!(
                    "route add 10.{other}.0.0/24 via 172.16.0.{n}\n\
                     route add fd0{other}::/64 via fd16:0::{n}\n"
                );
                sites.routers[at].configure(&routes).unwrap();
            }
        }
        sites
    }

    pub fn sysctl(&self, at: usize, name: &str, value: &str) {
        let write = || std::fs::write(format!("/proc/sys/{name}"), value).unwrap();
        self.routers[at].within(write).unwrap();
    }

    /// A program on a router.
    pub fn on_router(&self, at: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.routers[at].name()]).args(words);
        command.env("FARPACE_STATE", self.state[at].path());
        command
    }

    /// `farpace` on a router, to its end.
    pub fn farpace(&self, at: usize, words: &[&str]) -> Output {
        self.on_router(at, &[&[FARPACE], words].concat()).output().unwrap()
    }

    /// Makes the files of both sites in a folder, and returns that of the peer of each.
    pub fn keys(&self, folder: &str) -> [PathBuf; 2] {
        let endpoints: Vec<_> = (0..self.links).map(|link| format!("172.16.{link}.2")).collect();
        self.keys_with(folder, "b=10.2.0.0/24,fd02::/64", &endpoints)
    }

    /// The same, with the networks behind b, and where b is reached on each link.
    pub fn keys_with(&self, folder: &str, b: &str, endpoints: &[String]) -> [PathBuf; 2] {
        let paths = self.links.to_string();
        let out = self.files.path().join(folder);
        let mut command = Command::new(FARPACE);
        command.args(["gateway", "keys", "a=10.1.0.0/24,fd01::/64", b]);
        command.args(["--paths", &paths, "--out", out.to_str().unwrap()]);
        for endpoint in endpoints {
            command.args(["--endpoint".to_owned(), format!("b={endpoint}")]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        [out.join("b.conf"), out.join("a.conf")]
    }

    /// A gateway at a site that splits all connections.
    pub fn gateway(&self, at: usize, peer: &std::path::Path, words: &[&str]) -> GatewayProcess {
        self.gateway_by(at, &[], peer, words)
    }

    /// The same, started by a program.
    pub fn gateway_by(
        &self,
        at: usize,
        program: &[&str],
        peer: &std::path::Path,
        words: &[&str],
    ) -> GatewayProcess {
        let own = [FARPACE, "gateway", "up", "--json", "--min-rtt", "0us", "--lan", "lan0", "--peer"];
        let links: Vec<_> =
            (0..self.links).flat_map(|link| ["--via".to_owned(), format!("l{link}")]).collect();
        let mut command = self.on_router(at, &[program, &own].concat());
        command.arg(peer).args(links).args(words);
        GatewayProcess::start(command)
    }

    /// Both gateways, whose peers are up on all paths. The end that waits is first.
    pub fn pair(&self) -> [GatewayProcess; 2] {
        let [of_b, of_a] = self.keys("keys");
        let b = self.gateway(1, &of_a, &[]);
        let a = self.gateway(0, &of_b, &[]);
        self.wait_for_paths(self.links);
        [a, b]
    }

    /// Waits until so many paths are up at both ends, and traffic is caught.
    pub fn wait_for_paths(&self, paths: usize) {
        for at in 0..2 {
            self.until(at, "the paths are up", |status| {
                let up = |path: &&Value| path["up"] == true;
                let count = status["peer"]["paths"].as_array().unwrap().iter().filter(up).count();
                count == paths && status["peer"]["caught"] == (paths > 0)
            });
        }
    }

    /// Waits until the status of a gateway is so.
    pub fn until(&self, at: usize, what: &str, is_so: impl Fn(&Value) -> bool) {
        let since = Instant::now();
        loop {
            let status = self.status(at);
            if is_so(&status) {
                return;
            }
            assert!(since.elapsed() < STEP_TIMEOUT, "{what} at {}: {}", NAMES[at], status["peer"]);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What a gateway says of itself.
    pub fn status(&self, at: usize) -> Value {
        let output = self.farpace(at, &["gateway", "status", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all["gateways"][0].clone()
    }

    pub fn split(&self, at: usize) -> u64 {
        self.status(at)["totals"]["split"].as_u64().unwrap()
    }

    /// A listener on the server.
    pub fn listen(&self, address: &str) -> TcpListener {
        listen_on(&self.server, address)
    }

    pub fn try_connect(&self, address: &str, within: Duration) -> std::io::Result<TcpStream> {
        connect_from(&self.client, address, within)
    }

    /// A connection, and its end at the server.
    pub fn connect(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let address = listener.local_addr().unwrap().ip().to_string();
        let near = self.try_connect(&address, STEP_TIMEOUT).unwrap();
        (near, accepted(listener))
    }

    /// True if the server answers pings of the client.
    pub fn pings(&self, address: &str) -> bool {
        let ping =
            || Command::new("ping").args(["-c", "2", "-i", "0.2", "-W", "2", address]).output().unwrap();
        self.client.within(ping).unwrap().status.success()
    }

    /// Nothing of a gateway is left on a router.
    pub fn assert_clean(&self, at: usize) {
        assert_clean(&self.routers[at], self.state[at].path());
    }
}
