//! Machines for tests, and what they do with each other.

pub use crate::rights::{has_rights, unique};
use farpace::live::Namespace;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub const A: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
pub const PORT: u16 = 5001;

/// Tests that measure must not disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two machines, and one between them with an interface to each.
pub struct Harness {
    pub a: Namespace,
    pub b: Namespace,
    pub between: Namespace,
}

impl Harness {
    pub fn new() -> Self {
        let [a, b, between] = ["a", "b", "m"].map(|name| Namespace::create(&unique(name)).unwrap());
        for (host, near, address, other) in [(&a, "ea", A, B), (&b, "eb", B, A)] {
            let [mac, others] = [address, other].map(|ip| format!("02:00:00:00:00:0{}", ip.octets()[3]));
            let lines = format!(
                "link add {near} type veth peer name far0 netns {}\nlink set {near} up\n",
                host.name()
            );
            between.configure(&lines).unwrap();
            // ARP may be lost as anything else: then nothing goes for a second.
            let known = format!("neigh replace {other} lladdr {others} dev far0 nud permanent");
            let lines = format!(
                "link set far0 address {mac}\naddr add {address}/24 dev far0\nlink set far0 up\n{known}\n"
            );
            host.configure(&lines).unwrap();
        }
        Harness { a, b, between }
    }
    /// The emulator, once it runs.
    pub fn emulate(&self, flags: &[&str]) -> Child {
        running(&self.between, &[&["emulate", "ea", "eb", "--json"], flags].concat(), "Between")
    }
}

/// `farpace` in a namespace, once it says on stderr that it runs.
pub fn running(namespace: &Namespace, words: &[&str], says: &str) -> Child {
    started(&mut command(namespace, words), says)
}

/// `farpace` in a namespace.
pub fn command(namespace: &Namespace, words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    // Beside other tests of the workspace it would measure those.
    command.args(["netns", "exec", namespace.name(), "nice", "-n", "-19", env!("CARGO_BIN_EXE_farpace")]);
    command.args(words);
    command
}

/// A program, once it says on stderr that it runs.
pub fn started(command: &mut Command, says: &str) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = vec![0; says.len()];
    child.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), says);
    child
}

/// Asks a process to end, and reads what it said.
pub fn interrupt(child: Child) -> Output {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    child.wait_with_output().unwrap()
}

pub fn summary(child: Child) -> Value {
    let output = interrupt(child);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The byte at a place of what is sent.
pub fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

/// Sends so much from `a` to `b`, byte for byte; how long it took until all had been read.
pub fn transfer(from: &Namespace, to: &Namespace, address: Ipv4Addr, bytes: usize) -> Duration {
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
pub fn round_trip(from: &Namespace, to: &Namespace) -> Duration {
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

pub fn farpace(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_farpace")).args(words).output().unwrap()
}

pub fn good(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
