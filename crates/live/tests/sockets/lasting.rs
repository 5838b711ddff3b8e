//! Resources of a live host, and their release.

use crate::pair::{A, B, pair, stacks};
use farpace_live::socket::{SocketOptions, Stack};
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

/// Hosts and sockets per test.
const ROUNDS: usize = 30;
/// Maximum time for threads to end on a busy machine.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// Environment variable: this test is the only one in its process.
const VARIABLE: &str = "FARPACE_TEST_ALONE";

/// Threads and descriptors of this process.
fn taken() -> (usize, usize) {
    let count = |folder| std::fs::read_dir(folder).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// Waits until there are as many as before.
fn settles(before: (usize, usize), what: &str) {
    let end = Instant::now() + MAX_WAIT;
    while taken() != before {
        assert!(Instant::now() < end, "{what}: {:?} threads and descriptors, {before:?} before", taken());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A host whose peer is gone keeps its connection until a timeout, which is short here.
fn options() -> SocketOptions {
    let mut options = SocketOptions::default();
    options.set("user_timeout=1s fin_timeout=1s").unwrap();
    options
}

fn talk() {
    let mut pair = pair(&options());
    pair.here.write_all(b"hello").unwrap();
    let mut got = [0; 5];
    pair.there.read_exact(&mut got).unwrap();
    let _datagrams = (pair.a.bind_udp((A, 0)).unwrap(), pair.b.bind_udp((B, 0)).unwrap());
    pair.a.offer_list("a test").unwrap();
}

/// Hosts that are dropped with an open connection, that are stopped, and that never had a socket; each with a
/// control socket.
fn rounds() {
    let folder = std::env::var("XDG_RUNTIME_DIR").unwrap() + "/farpace-hosts";
    let before = taken();
    for _ in 0..ROUNDS {
        talk();
    }
    settles(before, "dropped");
    for _ in 0..ROUNDS {
        let (a, b) = stacks();
        a.offer_list("a test").unwrap();
        let _listener = b.listen((B, 80), &options()).unwrap();
        let stream = a.connect((B, 80), &options()).unwrap();
        let stop = |stack: &Stack| drop(stack.stop().unwrap());
        [&a, &b].into_iter().for_each(stop);
        drop(stream);
    }
    settles(before, "stopped");
    for _ in 0..ROUNDS {
        drop(stacks());
    }
    settles(before, "never used");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "control sockets are left");
}

/// Breaks: no thread, descriptor or file remains after hosts and sockets have ended. Runs in its own process,
/// without other tests.
#[test]
fn hosts_leave_nothing_behind() {
    if std::env::var_os(VARIABLE).is_some() {
        return rounds();
    }
    let folder = std::env::temp_dir().join(format!("farpace-lasting-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "lasting::hosts_leave_nothing_behind", "--nocapture", "--test-threads", "1"]);
    let output = again.env(VARIABLE, "1").env("XDG_RUNTIME_DIR", &folder).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
