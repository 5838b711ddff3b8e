//! `farpace up` and `farpace doctor`, as programs, with the kernel of this machine as the other end.
//!
//! Needs root. Elsewhere these tests pass with a line on stderr that says what is missing, and fail where
//! `CI` is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

const FARPACE: &str = env!("CARGO_BIN_EXE_farpace");

/// A network namespace with a name, gone when this is dropped.
struct Namespace(String);

impl Namespace {
    /// None: there is no right to make one.
    fn new(what: &str) -> Option<Self> {
        let name = format!("fpup{}{what}", std::process::id());
        let made = ip(&format!("netns add {name}"));
        if !made.status.success() {
            assert!(std::env::var_os("CI").is_none(), "{made:?}");
            let _ = std::io::stderr().write_all(b"skipped, needs root\n");
            return None;
        }
        let namespace = Namespace(name);
        namespace.ip("link set lo up");
        Some(namespace)
    }
    /// A command in it.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(line.split_whitespace());
        command
    }
    fn ip(&self, line: &str) -> String {
        let output = ip(&format!("-n {} {line}", self.0));
        assert!(output.status.success(), "ip {line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }
    /// What is set in it, but for what changes by itself.
    fn state(&self) -> String {
        let shown = self.ip("-o link show") + &self.ip("-o addr show scope global");
        shown.replace("qdisc noqueue", "qdisc noop")
    }
    /// Does `work` in it.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        farpace::live::system::in_namespace(Some(&self.0), || Ok(work())).unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns delete {}", self.0));
    }
}

fn ip(line: &str) -> Output {
    Command::new("ip").args(line.split_whitespace()).output().unwrap()
}

/// `farpace up`, running; ended by force when this is dropped.
struct Up {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it said when it was up.
    about: Value,
}

impl Up {
    fn start(namespace: &Namespace, arguments: &str) -> Self {
        let mut child = namespace
            .command(&format!("{FARPACE} up --json {arguments}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let about = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}: {:?}", child.wait()));
        Up { child, out, about }
    }
    /// Sends a signal, and returns how it ended and what it said.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Up {
    /// What it said on stderr; it has ended.
    fn errors(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `echo` at this address sends back, of a megabyte.
fn echoes(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let sent: Vec<u8> = (0..1_000_003u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect();
    let mut reading = stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        reading.read_to_end(&mut got).unwrap();
        got
    });
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(reader.join().unwrap() == sent, "{address}: not what was sent");
}

/// An ICMP echo by the kernel's own ping socket would need `ping`: where there is none, farpace's answer is
/// proved elsewhere.
fn pings(namespace: &Namespace, address: &str) {
    match Command::new("ping").arg("-V").output() {
        Ok(_) => {
            assert!(namespace.run(&format!("ping -c 1 -W 2 {address}")).status.success(), "ping {address}")
        }
        Err(_) => eprintln!("no ping here"),
    }
}

/// Breaks: the first thing that everybody tries.
#[test]
fn a_host_on_tun_serves_the_kernel_and_goes_without_a_trace() {
    let Some(namespace) = Namespace::new("a") else { return };
    let before = namespace.state();
    for (signal, extra) in [("-INT", ""), ("-TERM", "--no-offload")] {
        let up = Up::start(&namespace, &format!("--tun fp7 --addr 10.7.7.2/24 --addr fd77::2/64 {extra}"));
        assert_eq!(up.about["up"]["interface"], "fp7");
        assert_eq!(up.about["up"]["kernel_addresses"][0], "10.7.7.1/24");
        pings(&namespace, "10.7.7.2");
        pings(&namespace, "fd77::2");
        namespace.within(|| {
            echoes("10.7.7.2:7");
            echoes("[fd77::2]:7");
            let mut lines = BufReader::new(TcpStream::connect("10.7.7.2:19").unwrap());
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            assert!(line.starts_with(" !\"#") && line.len() == 74, "{line:?}");
            assert!(TcpStream::connect("10.7.7.2:80").is_err(), "nobody listens there");
        });
        let (code, said) = up.end(signal);
        assert_eq!(code, Some(0), "{said}");
        let end: Value = serde_json::from_str(&said).unwrap();
        // At least the SYN to port 80; also what was on its way to the broken chargen connection.
        assert!(end["end"]["dropped"]["no_listener"].as_u64().unwrap() >= 1, "{said}");
        assert_eq!(namespace.state(), before, "{signal}");
    }
}

/// Breaks: hosts on TAP devices and on Ethernet interfaces do not find their neighbours.
#[test]
fn a_host_joins_an_ethernet() {
    let Some(namespace) = Namespace::new("b") else { return };
    let up = Up::start(&namespace, "--tap tp7 --addr 10.7.8.2/24 --mtu 9000");
    namespace.within(|| echoes("10.7.8.2:7"));
    assert_eq!(up.end("-INT").0, Some(0));

    namespace.ip("link add k type veth peer name f");
    namespace.ip("link set k up");
    namespace.ip("addr add 10.7.9.1/24 dev k");
    namespace.ip("addr add fd79::1/64 dev k nodad");
    let before = namespace.state();
    let up = Up::start(&namespace, "--iface f --addr 10.7.9.2/24 --addr fd79::2/64");
    assert!(namespace.ip("-o link show f").contains("UP"));
    namespace.within(|| {
        echoes("10.7.9.2:7");
        echoes("[fd79::2]:7");
    });
    assert_eq!(up.end("-TERM").0, Some(0));
    let after = namespace.state();
    assert!(!namespace.ip("-o link show f").contains(",UP"), "{before}\n{after}");
}

/// Breaks: after kill -9 the machine stays changed, and nobody knows how.
#[test]
fn what_a_killed_process_left_is_found_and_cleaned() {
    let Some(namespace) = Namespace::new("c") else { return };
    let folder = tempfile::tempdir().unwrap();
    let doctor = |extra: &str| {
        let mut command = namespace.command(&format!("{FARPACE} doctor --json {extra}"));
        let output = command.env("FARPACE_STATE", folder.path()).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let left = |report: &Value| {
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["what"] == "left over").map(|finding| finding["value"].clone())
    };
    namespace.ip("link add k type veth peer name f");
    let before = namespace.state();
    let mut command =
        namespace.command(&format!("{FARPACE} up --json --iface f --addr 10.7.9.2/24 --mtu 1400"));
    let mut child = command.env("FARPACE_STATE", folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    assert_eq!(left(&doctor("")).unwrap(), "nothing", "it runs");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(namespace.state(), before);
    let found = left(&doctor("")).unwrap();
    assert!(found.as_str().unwrap().contains("link set dev f mtu 1500"), "{found}");
    let cleaned = doctor("--clean");
    assert_eq!(cleaned["cleaned"].as_array().unwrap().len(), 1, "{cleaned}");
    assert_eq!(left(&cleaned).unwrap(), "nothing");
    let same = |state: String| state.replace("M-DOWN", "").replace("LOWERLAYERDOWN", "DOWN");
    assert_eq!(same(namespace.state()), same(before));
    let journals = std::fs::read_dir(folder.path()).unwrap().flatten().filter(|entry| entry.path().is_file());
    assert_eq!(journals.count(), 0);
}

/// Breaks: a host takes an address that another machine on the network has, or this one, and both lose
/// connections.
#[test]
fn an_address_that_somebody_has_is_refused() {
    let Some(namespace) = Namespace::new("t") else { return };
    namespace.ip("link add k type veth peer name f");
    namespace.ip("link set k up");
    namespace.ip("addr add 10.7.9.1/24 dev k");
    namespace.ip("addr add fd79::1/64 dev k nodad");
    let before = namespace.state();
    let up = |flags: &str| namespace.run(&format!("{FARPACE} up --iface f --for 1s --json {flags}"));
    let refused = |flags: &str, why: &str| {
        let output = up(flags);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(why), "{flags}: {said}");
        assert!(output.stdout.is_empty(), "it was never up");
    };
    refused("--addr 10.7.9.1/24", "10.7.9.1 is this machine's own, on k");
    let same = |state: String| state.replace("M-DOWN", "").replace("LOWERLAYERDOWN", "DOWN");
    assert_eq!(same(namespace.state()), same(before), "nothing stays of what was tried");
    // To XDP the kernel at the other end is a machine like any other.
    refused("--mode af-xdp --addr 10.7.9.2/24 --addr 10.7.9.1/24", "10.7.9.1 is taken on f: ");
    refused("--mode af-xdp --addr fd79::1/64", "fd79::1 is taken on f: ");
    assert!(up("--addr 10.7.9.2/24 --addr fd79::2/64").status.success(), "a free one");
    // The same by a packet socket, with another host of ours as the one that has it.
    namespace.ip("link add br0 type bridge");
    for name in ["x", "y"] {
        namespace.ip(&format!("link add {name} type veth peer name {name}1"));
        namespace.ip(&format!("link set {name}1 master br0 up"));
        namespace.ip(&format!("link set {name} up"));
    }
    namespace.ip("link set br0 up");
    let first = Up::start(&namespace, "--iface x --addr 10.7.9.2/24 --addr fd79::2/64");
    for address in ["10.7.9.2/24", "fd79::2/64"] {
        let output = namespace.run(&format!("{FARPACE} up --iface y --for 1s --addr {address}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("is taken on y: "), "{said}");
    }
    assert_eq!(first.end("-INT").0, Some(0));
}

/// Breaks: addresses, names and times that cannot work are accepted, and the host is up and reaches nobody;
/// or the machine is changed before the refusal.
#[test]
fn what_cannot_work_is_refused() {
    let Some(namespace) = Namespace::new("w") else { return };
    namespace.ip("addr add 10.7.9.1/24 dev lo");
    let before = namespace.state();
    for (flags, why) in [
        ("--addr 127.0.0.1/8", "a loopback address"),
        ("--addr ::1/64", "a loopback address"),
        ("--addr 10.7.8.0/24", "the address of the network"),
        ("--addr 10.7.8.255/24", "the broadcast address"),
        ("--addr 10.7.8.2/24 --addr 10.7.8.2/24", "10.7.8.2 is given twice"),
        ("--addr 10.7.8.2/24 --peer-addr 10.7.8.2", "10.7.8.2 is the address of the host itself"),
        ("--addr 10.7.8.2/24 --peer-addr 10.7.7.2", "10.7.7.2 is in no network of the host"),
        ("--addr 10.7.8.2/24 --gateway 10.7.7.2", "10.7.7.2 is in no network of the host"),
        ("--addr 10.7.9.1/24", "10.7.9.1 is this machine's own, on lo"),
        ("--addr fd77::2/64 --mtu 600", "at least 1280 B"),
        ("--iface lo --addr 10.7.8.2/24", "`lo` is the loopback interface"),
        ("--tun fp%d", "`fp%d` cannot be the name of an interface"),
        ("--serve echo:0", "`0` is not a port"),
        ("--for 0s", "`0s` is no time"),
    ] {
        let output = namespace.run(&format!("{FARPACE} up {flags}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(why), "{flags}: {said}");
        assert_eq!(namespace.state(), before, "{flags}");
    }
}

/// Breaks: two hosts get the same address, or one is on an interface whose frames another program carries:
/// both lose packets, and nobody says why.
#[test]
fn hosts_that_would_disturb_each_other_are_refused() {
    let Some(namespace) = Namespace::new("y") else { return };
    let refused = |line: &str, words: &[&str]| {
        let output = namespace.run(&format!("{FARPACE} {line}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{line}: {said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{line}: {said}"));
    };
    let first = Up::start(&namespace, "--tun fp7 --addr 10.7.7.2/24");
    let process = format!("process {} (", first.child.id());
    let second = "up --tun fp8 --addr 10.7.7.2/24 --peer-addr 10.7.7.9 --for 1s";
    refused(second, &["`10.7.7.2` is in use by ", &process, "on fp7"]);
    assert_eq!(first.end("-INT").0, Some(0));
    assert!(namespace.run(&format!("{FARPACE} {second}")).status.success(), "it is free again");

    namespace.ip("link add k type veth peer name f");
    namespace.ip("link set k up");
    namespace.ip("link set f up");
    let shared = [9, 10].map(|n| Up::start(&namespace, &format!("--iface f --addr 10.7.{n}.2/24")));
    let nics = "nics up --addr 10.7.8.1/24 --nic f --for 1s";
    refused(nics, &["`f` is in use by process "]);
    for host in shared {
        assert_eq!(host.end("-INT").0, Some(0));
    }
    let mut carrier = namespace.command(&format!("{FARPACE} nics up --addr 10.7.8.1/24 --nic f"));
    let mut carrier = carrier.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(carrier.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let host = "up --iface f --addr 10.7.9.2/24 --for 1s";
    refused(host, &["`f` is in use by ", &format!("process {} (", carrier.id())]);
    Command::new("kill").args(["-INT", &carrier.id().to_string()]).status().unwrap();
    assert!(carrier.wait().unwrap().success());
}

/// Breaks: an interface that vanishes, idle or in mid-transfer, leaves a program that waits for ever.
#[test]
fn a_device_that_goes_away_is_an_error() {
    let Some(namespace) = Namespace::new("d") else { return };
    for (name, options) in [("f", "--iface f --addr 10.7.9.2/24"), ("fp7", "--tun fp7 --addr 10.7.9.2/24")] {
        for busy in [false, true] {
            if name == "f" {
                namespace.ip("link add k type veth peer name f");
                namespace.ip("link set k up");
                namespace.ip("addr add 10.7.9.1/24 dev k");
            }
            let mut up = Up::start(&namespace, options);
            if busy {
                let mut stream = namespace.within(|| TcpStream::connect("10.7.9.2:9").unwrap());
                stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
                stream.write_all(&[0; 1_000_000]).unwrap();
                namespace.ip(&format!("link delete {name}"));
                while stream.write(&[0; 65_536]).is_ok() {}
            } else {
                namespace.ip(&format!("link delete {name}"));
            }
            let begin = Instant::now();
            let code = loop {
                match up.child.try_wait().unwrap() {
                    Some(status) => break status.code(),
                    None => assert!(begin.elapsed() < Duration::from_secs(10), "it goes on"),
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            assert_eq!(code, Some(1));
            assert!(up.errors().contains("the interface has been removed"), "{name}");
        }
    }
}

/// Breaks: a host that is stopped for a while and goes on loses its connections, or nobody learns that it
/// stood still.
#[test]
fn a_host_that_was_suspended_goes_on() {
    let Some(namespace) = Namespace::new("g") else { return };
    let mut up = Up::start(&namespace, "--tun fp7 --addr 10.7.7.2/24");
    let signal = |signal: &str, up: &Up| {
        let sent = Command::new("kill").args([signal, &up.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    let mut idle = namespace.within(|| TcpStream::connect("10.7.7.2:7").unwrap());
    let busy = namespace.within(|| TcpStream::connect("10.7.7.2:7").unwrap());
    let (mut writing, mut reading) = (busy.try_clone().unwrap(), busy);
    let writer = std::thread::spawn(move || {
        // For about two seconds beside the time for which nobody reads.
        for n in 0..400u16 {
            writing.write_all(&[n as u8; 10_000]).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        reading.read_to_end(&mut got).unwrap();
        got
    });
    std::thread::sleep(Duration::from_millis(500));
    signal("-STOP", &up);
    std::thread::sleep(Duration::from_secs(3));
    signal("-CONT", &up);
    writer.join().unwrap();
    let got = reader.join().unwrap();
    assert_eq!(got.len(), 4_000_000);
    assert!(got.chunks(10_000).enumerate().all(|(n, chunk)| chunk.iter().all(|byte| *byte == n as u8)));
    idle.write_all(b"still here").unwrap();
    let mut answer = [0; 10];
    idle.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"still here");
    signal("-INT", &up);
    let mut said = String::new();
    up.out.read_to_string(&mut said).unwrap();
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
    let end: Value = serde_json::from_str(&said).unwrap();
    let paused = end["end"]["longest_pause"].as_f64().unwrap();
    assert!((2.5..30.0).contains(&paused), "{said}");
    assert!(up.errors().contains("the host did not run meanwhile"), "nothing was said");
}

/// Breaks: whoever lacks rights, or takes a name that is taken, does not learn what to do.
#[test]
fn what_is_missing_is_said() {
    let Some(namespace) = Namespace::new("e") else { return };
    let said = |output: Output| (output.status.code(), String::from_utf8(output.stderr).unwrap());
    // The program's folder may be closed to others: a copy is not.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("farpace");
    std::fs::copy(FARPACE, &copy).unwrap();
    let open = |path: &std::path::Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    };
    open(folder.path());
    open(&copy);
    let nobody = format!("setpriv --reuid 65534 --regid 65534 --clear-groups {}", copy.display());
    for device in ["--tun fp8", "--iface lo --addr 10.0.0.2/24"] {
        let (code, error) = said(namespace.run(&format!("{nobody} up {device}")));
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("setcap cap_net_admin,cap_net_raw+ep"), "{error}");
    }
    let doctor = namespace.run(&format!("{nobody} doctor --json"));
    assert_eq!(doctor.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let rights =
        report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "CAP_NET_ADMIN");
    assert_eq!(rights.unwrap()["judgement"], "problem");

    // No TUN: its folder is empty, and stays so.
    let hidden =
        ["unshare", "-m", "sh", "-c", &format!("mount -t tmpfs -o ro none /dev/net; {FARPACE} up --tun fp8")];
    let mut hidden_up = Command::new("ip");
    hidden_up.args(["netns", "exec", &namespace.0]).args(hidden);
    let (code, error) = said(hidden_up.output().unwrap());
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("there is no /dev/net/tun") && error.contains("modprobe tun"), "{error}");

    let _up = Up::start(&namespace, "--tun fp8");
    let (code, error) = said(namespace.run(&format!("{FARPACE} up --tun fp8 --addr 10.78.0.2/24")));
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("choose another name"), "{error}");
    let (code, error) = said(namespace.run(&format!("{FARPACE} up --iface nowhere --addr 10.0.0.2/24")));
    assert_eq!(code, Some(2));
    assert!(error.contains("`nowhere`") && error.contains("ip link"), "{error}");
}

/// Breaks: captures of live hosts cannot be read, or miss a direction.
#[test]
fn captures_can_be_read() {
    let Some(namespace) = Namespace::new("f") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("up.pcapng");
    let up = Up::start(&namespace, &format!("--tun fp9 --addr 10.7.7.2/24 --pcap {}", file.display()));
    namespace.within(|| echoes("10.7.7.2:7"));
    assert_eq!(up.end("-INT").0, Some(0));
    let shown = Command::new(FARPACE).arg("show").arg(&file).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.success());
    for way in ["10.7.7.1", "10.7.7.2"] {
        assert!(text.lines().any(|line| line.contains(way)), "{text}");
    }
    assert!(
        text.lines().count() > 1000,
        "a megabyte in both directions is more than {}",
        text.lines().count()
    );
}
