//! The kernel as the receiver: a network namespace of its own, and a TUN device with the peer behind it.
//!
//! Nothing outside of the namespace is touched, and all of it goes with the thread that made it.

use super::peer::{Heard, PORT, Peer};
use super::script::{ANSWER, App, Script};
use bytes::Bytes;
use farpace_units::{Instant, Span};
use farpace_wire::tcp::TcpHeader;
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tun_rs::{DeviceBuilder, SyncDevice};

const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The first kernel that `linux` describes: there the first answer makes a conversation.
const OLDEST: (u32, u32) = (6, 8);
const ETHERNET_LEN: usize = 14;
/// An IPv4 packet follows.
const ETHERNET: [u8; ETHERNET_LEN] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];

/// What came of a script.
pub struct Outcome {
    /// When SYN, ACK and the steps really left.
    pub times: Vec<Instant>,
    pub syn_ack: TcpHeader,
    pub heard: Vec<Heard>,
    /// See [`Peer::options`].
    pub options: Vec<Vec<u8>>,
    /// Bytes that the program has read.
    pub delivered: u64,
}

/// The namespace.
pub struct Kernel {
    tun: SyncDevice,
    source: u16,
}

/// This kernel is not one that `linux` describes, and why. No package can be installed that would give
/// another.
pub fn too_old() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse::<u32>().ok());
    let old = (numbers.next(), numbers.next()) < (Some(OLDEST.0), Some(OLDEST.1));
    old.then(|| format!("kernel {} is older than {}.{}", release.trim(), OLDEST.0, OLDEST.1))
}

impl Kernel {
    /// Moves this thread to a namespace of its own. The error says what is missing.
    pub fn new() -> Result<Self, String> {
        if let Some(why) = too_old() {
            return Err(why);
        }
        unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("no network namespace: {e}"))?;
        hurry();
        let tun = DeviceBuilder::new().name("peer").mtu(1500).build_sync();
        let tun = tun.map_err(|e| format!("no TUN device: {e}"))?;
        for arguments in
            [["address", "add", "192.0.2.1/24", "dev", "peer"], ["link", "set", "dev", "peer", "up"]]
        {
            let output = Command::new("ip").args(arguments).output().map_err(|e| format!("ip: {e}"))?;
            if !output.status.success() {
                return Err(format!("ip: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        Ok(Kernel { tun, source: 40_000 })
    }

    /// Plays `script`.
    pub fn run(&mut self, script: &Script) -> Outcome {
        self.source += 1;
        let delivered = Arc::new(AtomicU64::new(0));
        let listener = TcpListener::bind(SocketAddr::from((KERNEL, PORT))).unwrap();
        let (app, count) = (script.app, Arc::clone(&delivered));
        let program = std::thread::Builder::new().spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            drop(listener);
            serve(stream, app, &count);
        });
        let mut line = Line { tun: &self.tun, start: clock(), peer: Peer::new(self.source, script) };
        let mut times = Vec::new();
        let now = line.now();
        times.push(now);
        line.send(line.peer.syn(now, script), Bytes::new());
        line.listen(Instant::ZERO + Span::from_millis(script.rtt));
        let now = line.now();
        times.push(now);
        line.send(line.peer.ack(now), Bytes::new());
        for (due, step) in script.due() {
            line.listen(due);
            let now = line.now();
            times.push(now);
            let (header, payload) = line.peer.segment(now, &step);
            line.send(header, payload);
        }
        line.listen(script.until());
        let delivered = delivered.load(Ordering::SeqCst);
        line.send(line.peer.reset(line.now(), script), Bytes::new());
        if script.app != App::Sleeps {
            program.unwrap().join().unwrap();
        }
        let syn_ack = line.peer.syn_ack.expect("the kernel answers a SYN");
        Outcome { times, syn_ack, heard: line.peer.heard, options: line.peer.options, delivered }
    }

    /// Sets a switch of the namespace's TCP.
    pub fn set(&mut self, switch: &str, value: &str) {
        std::fs::write(format!("/proc/sys/net/ipv4/{switch}"), value).unwrap();
    }

    /// The options of a SYN that the kernel sends.
    pub fn syn(&mut self) -> Vec<u8> {
        self.source += 1;
        let to = SocketAddr::from((PEER, self.source));
        // Nobody will answer.
        let program = std::thread::Builder::new()
            .spawn(move || TcpStream::connect_timeout(&to, Duration::from_millis(20)).is_err())
            .unwrap();
        let mut buffer = [0; 2048];
        let options = loop {
            let len = self.tun.recv(&mut buffer).unwrap();
            let Ok(packet) = Packet::from_frame(&[&ETHERNET, &buffer[..len]].concat()) else { continue };
            let Ok(tcp) = packet.tcp() else { continue };
            if tcp.dst_port() == self.source {
                break tcp.options().to_vec();
            }
        };
        assert!(program.join().unwrap(), "nobody answers");
        options
    }
}

/// Has this thread, and those that it starts, run before all others if that is possible: it sleeps nearly all
/// the time, and what comes late here is not what is measured.
fn hurry() {
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
    let id = thread.file_name().unwrap_or_default();
    _ = Command::new("chrt").args(["--fifo", "--pid", "10"]).arg(id).output();
}

/// The program, until the peer resets the connection.
fn serve(mut stream: TcpStream, app: App, count: &AtomicU64) {
    let mut buffer = [0; 65_536];
    let mut answers = app.answers();
    if app == App::Sleeps {
        // Longer than any script: only then is the socket closed.
        pause(Duration::from_secs(5));
        return;
    }
    while let Ok(n) = stream.read(&mut buffer) {
        count.fetch_add(n as u64, Ordering::SeqCst);
        if n == 0 {
            // After a FIN every read returns at once.
            pause(Duration::from_millis(1));
            if stream.take_error().is_ok_and(|e| e.is_some()) {
                return;
            }
        } else if answers > 0 {
            answers -= 1;
            if stream.write_all(&ANSWER).is_err() {
                return;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a program that does not read")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Wall time.
#[expect(clippy::disallowed_methods, reason = "the kernel lives in it")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// The wire between peer and kernel.
struct Line<'a> {
    tun: &'a SyncDevice,
    start: std::time::Instant,
    peer: Peer,
}

impl Line<'_> {
    fn now(&self) -> Instant {
        Instant::from_nanos(clock().duration_since(self.start).as_nanos() as u64)
    }

    fn send(&self, header: TcpHeader, payload: Bytes) {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let below = Below::new(a, b, AddressPair::V4(PEER, KERNEL), 64);
        let mut frame = Vec::new();
        below.tcp(1, &header, payload).write_frame(&mut frame);
        self.tun.send(&frame[ETHERNET_LEN..]).unwrap();
    }

    /// Takes in what comes until then.
    fn listen(&mut self, until: Instant) {
        let mut buffer = [0; 2048];
        loop {
            let left = until.since(self.now());
            if self.now() >= until {
                return;
            }
            // In whole milliseconds, rounded up.
            let timeout = PollTimeout::try_from(left.as_millis() as u32 + 1).unwrap();
            let mut fds = [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, timeout).unwrap() == 0 {
                continue;
            }
            let len = self.tun.recv(&mut buffer).unwrap();
            let now = self.now();
            let frame = [&ETHERNET, &buffer[..len]].concat();
            // What is not TCP is the kernel looking for neighbours and routers.
            let Ok(packet) = Packet::from_frame(&frame) else { continue };
            let Ok((_, tcp)) = packet.ip_tcp() else { continue };
            // The segments of a connection that has ended are not ours.
            if tcp.dst_port() == self.peer.source()
                && let Some(ack) =
                    self.peer.hear(now, &tcp.header(), tcp.options(), packet.payload().len() as u32)
            {
                self.send(ack, Bytes::new());
            }
        }
    }
}
