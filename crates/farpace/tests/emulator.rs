//! `farpace emulate` and `farpace lab` between network namespaces, with the kernel's TCP at both ends.
//!
//! Needs root and iproute2. Elsewhere these tests pass with a line on stderr that says what is missing, and fail where `CI`
//! is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

use farpace::live::Namespace;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const A: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const PORT: u16 = 5001;

/// Tests that measure must not disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that nobody else has.
fn unique(what: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("t{}-{}-{what}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// True if namespaces can be made here.
fn has_rights() -> bool {
    let error = match Namespace::create(&unique("probe")) {
        Ok(_) => return true,
        Err(error) => error,
    };
    assert!(std::env::var_os("CI").is_none(), "{error}");
    // Not `eprintln!`: the harness hides it for tests that pass.
    let line = format!("skipped, needs root: {error}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    false
}

/// Two machines, and one between them with an interface to each.
struct Bed {
    a: Namespace,
    b: Namespace,
    between: Namespace,
}

impl Bed {
    fn new() -> Self {
        let [a, b, between] = ["a", "b", "m"].map(|name| Namespace::create(&unique(name)).unwrap());
        for (host, near, address) in [(&a, "ea", A), (&b, "eb", B)] {
            let lines = format!("link add {near} type veth peer name far0 netns {}\nlink set {near} up\n", host.name());
            between.configure(&lines).unwrap();
            host.configure(&format!("addr add {address}/24 dev far0\nlink set far0 up\n")).unwrap();
        }
        Bed { a, b, between }
    }
    /// The emulator, once it runs.
    fn emulate(&self, flags: &[&str]) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.between.name(), env!("CARGO_BIN_EXE_farpace"), "emulate", "ea", "eb"]);
        command.args(flags).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = [0; 7];
        let reader = child.stderr.as_mut().unwrap();
        reader.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"Between");
        child
    }
}

/// Asks a process to end, and reads what it said.
fn interrupt(child: Child) -> Output {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    child.wait_with_output().unwrap()
}

fn summary(child: Child) -> Value {
    let output = interrupt(child);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The byte at a place of what is sent.
fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

/// Sends so much from `a` to `b`, byte for byte; how long it took until all had been read.
fn transfer(from: &Namespace, to: &Namespace, address: Ipv4Addr, bytes: usize) -> Duration {
    let listener = to.within(|| TcpListener::bind((address, PORT)).unwrap()).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut buffer, mut at) = (vec![0; 1 << 18], 0);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return (at, Instant::now()),
                n => {
                    let wrong = buffer[..n].iter().enumerate().find(|(i, byte)| **byte != pattern(at + i));
                    assert!(wrong.is_none(), "wrong after {at} bytes: {wrong:?}");
                    at += n;
                }
            }
        }
    });
    let mut stream = from.within(|| TcpStream::connect((address, PORT)).unwrap()).unwrap();
    let begun = Instant::now();
    let chunk: Vec<u8> = (0..251 * 256).map(pattern).collect();
    let mut left = bytes;
    while left > 0 {
        let n = left.min(chunk.len());
        stream.write_all(&chunk[..n]).unwrap();
        left -= n;
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let (read, ended) = reader.join().unwrap();
    assert_eq!(read, bytes);
    ended - begun
}

/// The shortest of some round trips of a datagram.
fn round_trip(from: &Namespace, to: &Namespace) -> Duration {
    let far = to.within(|| UdpSocket::bind((B, PORT)).unwrap()).unwrap();
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((n, peer)) = far.recv_from(&mut buffer) {
            if n == 0 {
                break;
            }
            far.send_to(&buffer[..n], peer).unwrap();
        }
    });
    let near = from.within(|| UdpSocket::bind((A, 0)).unwrap()).unwrap();
    near.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    near.connect(SocketAddr::from((B, PORT))).unwrap();
    let mut shortest = Duration::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        near.send(b"?").unwrap();
        near.recv(&mut [0; 64]).unwrap();
        shortest = shortest.min(begun.elapsed());
    }
    near.send(b"").unwrap();
    echo.join().unwrap();
    shortest
}

/// Breaks: the emulator is another line than was asked for: its rate, its delay.
#[test]
fn a_line_has_the_rate_and_the_delay_that_were_asked_for() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let bed = Bed::new();
    let emulator = bed.emulate(&["--rate", "100mbit", "--delay", "5ms", "--queue", "50ms"]);
    let rtt = round_trip(&bed.a, &bed.b).as_secs_f64();
    assert!((0.010..0.0115).contains(&rtt), "a round trip of {rtt} s");
    let bytes = 25_000_000;
    let took = transfer(&bed.a, &bed.b, B, bytes).as_secs_f64();
    let rate = bytes as f64 * 8.0 / took / 1e6;
    // 1448 of 1538 bytes are payload.
    assert!((86.0..94.2).contains(&rate), "{rate} Mbit/s");
    let summary = summary(emulator);
    let forward = &summary["directions"][0];
    assert!(forward["bytes_out"].as_u64().unwrap() > bytes as u64, "{summary}");
    assert!(summary["accuracy"]["packets"].as_u64().unwrap() > 17_000, "{summary}");
}

/// Breaks: bytes are changed, lost or repeated on the way to programs when the line misbehaves; or drops are not counted.
#[test]
fn a_bad_line_spoils_no_byte() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let bed = Bed::new();
    let flags = ["--loss", "0.02%", "--reorder", "0.5%", "--reorder-by", "1ms", "--duplicate", "0.5%"];
    let emulator = bed.emulate(&[&flags[..], &["--corrupt", "0.02%", "--delay", "200us", "--seed", "3"]].concat());
    transfer(&bed.a, &bed.b, B, 100_000_000);
    transfer(&bed.b, &bed.a, A, 10_000_000);
    let summary = summary(emulator);
    let drops = summary["drops"].as_array().unwrap();
    let lost = drops.iter().find(|drop| drop["place"] == "line.forward.loss").unwrap();
    assert!(lost["packets"].as_u64().unwrap() > 3, "{summary}");
    assert_eq!(lost["cause"], "loss");
    let forward = &summary["directions"][0];
    assert!(forward["packets_out"].as_u64() > forward["packets_in"].as_u64(), "more are doubled than lost: {summary}");
}

/// Breaks: packets vanish in the emulator, or it counts others than there were.
#[test]
fn every_datagram_is_delivered_or_counted() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let bed = Bed::new();
    let emulator = bed.emulate(&["--loss", "10%"]);
    let far = bed.b.within(|| UdpSocket::bind((B, PORT)).unwrap()).unwrap();
    far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let near = bed.a.within(|| UdpSocket::bind((A, 0)).unwrap()).unwrap();
    let sent = 5_000;
    for n in 0..sent {
        near.send_to(&[0; 100], (B, PORT)).unwrap();
        if n % 50 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let mut received = 0;
    while far.recv(&mut [0; 128]).is_ok() {
        received += 1;
    }
    let summary = summary(emulator);
    let drops = summary["drops"].as_array().unwrap();
    let lost = drops.iter().find(|drop| drop["place"] == "line.forward.loss").unwrap()["packets"].as_u64().unwrap();
    assert!((400..600).contains(&lost), "{summary}");
    // ARP may be lost, too.
    assert!((sent..sent + 10).contains(&(received + lost)), "{received} received, {lost} lost: {summary}");
}

fn farpace(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_farpace")).args(words).output().unwrap()
}

fn good(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn scenario(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/gallery").join(name);
    path.to_str().unwrap().to_owned()
}

/// Everything that a lab of this name may have left.
fn left(name: &str) -> Vec<String> {
    let folders = ["/run/netns", "/run/farpace/lab"];
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|entry| entry.contains(name)).collect()
}

/// Breaks: programs in a lab do not reach each other over its network, or something stays behind when it is taken down.
#[test]
fn a_lab_goes_up_works_and_leaves_nothing() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let name = unique("lab");
    let file = scenario("lossy.toml");
    let told = good(farpace(&["lab", "up", &file, "--name", &name, "--set", "links.wan.forward.loss=0"]));
    assert!(told.contains(&format!("farpace lab exec {name} a -- COMMAND")), "{told}");
    // Over two links and a router.
    let addresses = good(farpace(&["lab", "exec", &name, "b", "--", "ip", "-4", "-o", "addr", "show", "far0"]));
    assert!(addresses.contains("10.0.0.2/32"), "{addresses}");
    let [a, b] = ["a", "b"].map(|host| Namespace::existing(&format!("far-{name}-{host}")));
    let took = transfer(&a, &b, Ipv4Addr::new(10, 0, 0, 2), 5_000_000);
    assert!(took > Duration::from_millis(400), "5 MB at 100 Mbit/s within {took:?}");
    let again = farpace(&["lab", "up", &file, "--name", &name]);
    assert_eq!(again.status.code(), Some(2), "a second lab of this name");
    good(farpace(&["lab", "down", &name]));
    assert_eq!(left(&name), Vec::<String>::new());
}

/// Breaks: a lab whose process was killed stays for ever, or keeps its name.
#[test]
fn what_a_killed_lab_leaves_is_found_and_removed() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let name = unique("killed");
    let up = || good(farpace(&["lab", "up", &scenario("lossy.toml"), "--name", &name]));
    let kill = || {
        let labs: Value = serde_json::from_str(&good(farpace(&["lab", "list", "--json"]))).unwrap();
        let lab = labs.as_array().unwrap().iter().find(|lab| lab["name"] == name.as_str()).unwrap().clone();
        assert!(Command::new("kill").args(["-9", &lab["pid"].to_string()]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(100));
    };
    up();
    kill();
    assert!(good(farpace(&["lab", "list"])).contains("left behind"));
    // Its name can be had again.
    up();
    kill();
    assert!(!left(&name).is_empty());
    good(farpace(&["lab", "down", &name]));
    assert_eq!(left(&name), Vec::<String>::new());
}

/// Breaks: scripts that run under a lab are not told where, or the lab stays when they end.
#[test]
fn a_lab_lasts_as_long_as_its_program() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let name = unique("script");
    let script = "ip netns exec $FARPACE_NS_a ping -c 1 -W 2 10.0.0.2 > /dev/null; test $FARPACE_LAB = $1 && exit 7";
    let file = scenario("lossy.toml");
    let up = ["lab", "up", &file, "--name", &name, "--set", "links.wan.forward.loss=0", "--", "sh", "-c", script];
    let output = farpace(&[&up[..], &["sh", &name]].concat());
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(left(&name), Vec::<String>::new());
}
