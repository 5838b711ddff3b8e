//! The kernel in a network namespace of its own: a TUN device with the peer behind it, and a tap that tells
//! when what passed.
//!
//! Nothing outside of the namespace is touched, and all of it goes with the thread that made it.

use super::calls::{Congestion, Outcome, Place, Sockets, Table, call};
use super::peer::{Peer, Sent};
use super::program::{Action, Op, Program};
use super::sys;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::{Arc, mpsc};

pub const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DEVICE: &str = "peer";
/// The kernel that `linux` describes.
const OLDEST: (u32, u32) = (6, 18);
/// A step that takes longer was interrupted, and nobody knows when it took effect.
const LATE: i64 = 1_500_000;
/// Programs before ports come again; what is left of their connections is with other peers by then.
const SHIFTS: u32 = 500;

/// Switches of a namespace before a program changes any.
const DEFAULTS: [(&str, &str); 4] = [
    ("tcp_no_metrics_save", "1"),
    ("tcp_rmem", "4096 131072 6291456"),
    // Room for all that programs write; those about buffers change it.
    ("tcp_wmem", "4096 4194304 4194304"),
    ("ip_local_port_range", "32768 60999"),
];

/// What came of a program.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub sent: Vec<Sent>,
    /// When each step really began, in nanoseconds.
    pub times: Vec<i64>,
    /// What calls gave, and when; none: they still waited at the end.
    pub results: BTreeMap<usize, (Outcome, i64)>,
    /// When watching ended.
    pub end: i64,
    /// The most by which this thread woke up too late, in nanoseconds: the kernel's timers fire as late on
    /// such a machine.
    pub overslept: i64,
    /// How much earlier the stack was told of a step than it came, in nanoseconds, where that is not zero.
    pub behind: BTreeMap<usize, i64>,
    /// Steps that took too long: when, and how long.
    pub late: Vec<(i64, i64)>,
}

/// The namespace.
pub struct Kernel {
    tun: OwnedFd,
    tap: OwnedFd,
    count: u32,
    /// First address of the peers.
    peers: u32,
    /// What switches were.
    saved: BTreeMap<String, String>,
}

fn clock() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.num_nanoseconds())
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|e| format!("ip: {e}"))?;
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {why}", arguments.join(" "))) }
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
        sys::hurry();
        let tun = sys::tun(DEVICE)?;
        _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        ip(&["address", "add", "192.0.2.1/24", "dev", DEVICE])?;
        ip(&["link", "set", "dev", DEVICE, "mtu", "1500", "txqueuelen", "5000", "up"])?;
        ip(&["link", "set", "dev", "lo", "up"])?;
        ip(&["route", "add", "198.18.0.0/15", "dev", DEVICE])?;
        let mut kernel =
            Kernel { tun, tap: sys::tap(DEVICE)?, count: 0, peers: 0xc612_0001, saved: BTreeMap::new() };
        for (name, value) in DEFAULTS {
            kernel.set(name, value)?;
        }
        kernel.saved.clear();
        Ok(kernel)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let path = format!("/proc/sys/net/ipv4/{name}");
        let old = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        self.saved.entry(name.to_owned()).or_insert(old);
        std::fs::write(&path, value).map_err(|e| format!("{path} = {value}: {e}"))
    }

    /// Plays `program`.
    ///
    /// # Errors
    /// A switch that this kernel does not have.
    pub fn run(&mut self, program: &Program) -> Result<Record, String> {
        for (name, value) in std::mem::take(&mut self.saved) {
            std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).map_err(|e| e.to_string())?;
        }
        for (name, value) in &program.switches {
            self.set(name, value)?;
        }
        self.count += 1;
        let remote = Ipv4Addr::from_bits(self.peers + self.count % 100_000);
        let shift = (self.count % SHIFTS * 20) as u16;
        while sys::passed(self.tap.as_raw_fd()).is_some() {}
        self.drain();
        let mut run = Run {
            kernel: self,
            table: Table::of_kernel(),
            sockets: Arc::default(),
            place: Place { remote, shift, congestion: Congestion::named(&program.congestion) },
            peer: Peer::new(LOCAL, remote, shift),
            start: clock(),
            record: Record::default(),
        };
        run.play(program);
        Ok(run.record)
    }

    fn drain(&self) {
        let mut packet = [0; 2048];
        while nix::unistd::read(&self.tun, &mut packet).is_ok_and(|n| n > 0) {}
    }
}

struct Run<'a> {
    kernel: &'a Kernel,
    table: Table,
    sockets: Arc<Sockets>,
    place: Place,
    peer: Peer,
    start: i64,
    record: Record,
}

impl Run<'_> {
    fn now(&self) -> i64 {
        clock() - self.start
    }

    /// Notes what was sent until now.
    fn hear(&mut self) {
        self.kernel.drain();
        while let Some(packet) = sys::passed(self.kernel.tap.as_raw_fd()) {
            if packet.outgoing {
                self.record.sent.extend(self.peer.heard(&packet.bytes, packet.at - self.start));
            }
        }
    }

    /// A step that began at `from` is done.
    fn took(&mut self, from: i64) {
        let took = self.now() - from;
        if took > LATE {
            self.record.late.push((from, took));
        }
    }

    fn wait_until(&mut self, until: i64) {
        loop {
            self.hear();
            let left = until - self.now();
            if left <= 0 {
                self.record.overslept = self.record.overslept.max(-left);
                return;
            }
            let tap = PollFd::new(self.kernel.tap.as_fd(), PollFlags::POLLIN);
            let tun = PollFd::new(self.kernel.tun.as_fd(), PollFlags::POLLIN);
            _ = ppoll(&mut [tap, tun], Some(TimeSpec::nanoseconds(left)), None);
        }
    }

    fn play(&mut self, program: &Program) {
        let (finished, results) = mpsc::channel();
        let mut workers = Vec::new();
        for (n, step) in program.steps.iter().enumerate() {
            self.wait_until(step.at as i64 * 1000);
            let now = self.now();
            self.record.times.push(now);
            let packet = match &step.what {
                Action::Segment(segment) => self.peer.packet(segment, now),
                Action::Icmp(icmp) => self.peer.icmp(icmp),
                Action::Call(c) => {
                    let (table, sockets, place) = (self.table, self.sockets.clone(), self.place);
                    let (slot, blocking, op, start) = (c.slot, c.blocking, c.op.clone(), self.start);
                    if blocking && op != Op::Socket {
                        let finished = finished.clone();
                        let worker = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
                            let outcome = call(&table, &sockets, place, slot, true, &op);
                            _ = finished.send((n, outcome, clock() - start));
                        });
                        workers.extend(worker.ok());
                        // It should be in its call before anything else happens.
                        self.wait_until(now + 1_000_000);
                    } else {
                        let outcome = call(&table, &sockets, place, slot, blocking, &op);
                        self.took(now);
                        self.record.results.insert(n, (outcome, self.now()));
                    }
                    self.hear();
                    continue;
                }
            };
            _ = nix::unistd::write(&self.kernel.tun, &packet);
            self.took(now);
            self.hear();
        }
        self.wait_until(program.duration() as i64 * 1000);
        self.record.end = self.now();
        let take = |record: &mut Record| {
            for (n, outcome, at) in results.try_iter() {
                record.results.insert(n, (outcome, at));
            }
        };
        take(&mut self.record);
        if self.record.results.len()
            < program.steps.iter().filter(|s| matches!(s.what, Action::Call(_))).count()
        {
            self.sockets.shut_all(&self.table);
        }
        for worker in workers {
            _ = worker.join();
        }
        self.sockets.abort_all(&self.table);
    }
}
