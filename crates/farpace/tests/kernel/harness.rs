//! A control group, connections in it, and `farpace kernel` beside them.

use rustix::net::sockopt::tcp_congestion;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// The kernel has one control of each name.
static ALONE: Mutex<()> = Mutex::new(());

/// What is needed is there, and nobody else uses it; this process is in a control group of its own.
pub struct Here {
    pub group: PathBuf,
    root: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

/// None: something is missing, and has been said.
pub fn here() -> Option<Here> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let missing = |what: &str| {
        assert!(std::env::var_os("CI").is_none(), "{what}");
        // Not `eprintln!`: the harness hides it for tests that pass.
        std::io::stderr().write_all(format!("skipped: {what}\n").as_bytes()).unwrap();
    };
    let (code, doctor, _) = farpace(&["kernel", "doctor", "--json"]);
    if code != 0 {
        missing(&format!("farpace kernel does not work here: {doctor}"));
        return None;
    }
    let Ok(root) = farpace_kernel::cgroup_root() else {
        missing("there are no control groups of version 2");
        return None;
    };
    let group = root.join(format!("farpace-test-{}", std::process::id()));
    std::fs::create_dir_all(&group).unwrap();
    let here = Here { group, root, _alone: alone };
    here.enter(&here.group);
    Some(here)
}

impl Here {
    fn enter(&self, group: &std::path::Path) {
        std::fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }
    pub fn group_text(&self) -> &str {
        self.group.to_str().unwrap()
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.enter(&self.root);
        let _ = std::fs::remove_dir(&self.group);
    }
}

/// How much the long tests do: a variable of the environment says more in `tools/soak`.
pub fn rounds(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Runs the command; its exit code and what it wrote.
pub fn farpace(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_farpace")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// The same, with JSON for its answer.
pub fn json(arguments: &[&str]) -> Value {
    let (code, out, error) = farpace(arguments);
    assert_eq!(code, 0, "{arguments:?}: {error}");
    serde_json::from_str(&out).unwrap()
}

/// `farpace kernel up` that runs.
pub struct Up {
    child: Child,
    _out: BufReader<ChildStdout>,
}

impl Up {
    /// Begins, and waits until it is up.
    pub fn start(arguments: &[&str]) -> Up {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
        command.args(["kernel", "up"]).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("The kernel has"), "{arguments:?}: `{line}`");
        Up { child, _out: out }
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    /// Ends it at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The control that a socket is under.
pub fn control_of(stream: &TcpStream) -> String {
    tcp_congestion(stream).unwrap()
}

/// The byte at a place of the stream.
fn byte_at(place: usize) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// A connection over loopback; the other end compares what comes, and closes when all has come.
pub struct Transfer {
    pub stream: TcpStream,
    pub peer: TcpStream,
    reader: JoinHandle<usize>,
    sent: usize,
}

impl Transfer {
    pub fn to(address: IpAddr) -> Transfer {
        let listener = TcpListener::bind(SocketAddr::new(address, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        let mut from = peer.try_clone().unwrap();
        let reader = spawn(move || {
            let (mut all, mut buffer) = (0, vec![0; 1 << 16]);
            loop {
                let n = from.read(&mut buffer).unwrap();
                if n == 0 {
                    return all;
                }
                let right = buffer[..n].iter().enumerate().all(|(i, byte)| *byte == byte_at(all + i));
                assert!(right, "a byte between {all} and {} is wrong", all + n);
                all += n;
            }
        });
        Transfer { stream, peer, reader, sent: 0 }
    }

    pub fn send(&mut self, bytes: usize) {
        let data: Vec<u8> = (self.sent..self.sent + bytes).map(byte_at).collect();
        self.stream.write_all(&data).unwrap();
        self.sent += bytes;
    }

    /// Every byte that was sent has come.
    pub fn finish(self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(self.reader.join().unwrap(), self.sent);
    }
}

/// Waits until it holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        sleep(Duration::from_millis(20));
    }
}
