//! What it is for: kernel to kernel over paths of the lab.

use crate::harness::{Up, here};
use std::process::Command;

const LOSSY: &str = r#"
title = "kernel-lossy"
duration = "60 s"
[hosts.a]
[hosts.b]
[[links]]
name = "wan"
between = ["a", "b"]
rate = "50 Mbit/s"
delay = "20 ms"
queue = "500 packets"
forward = { loss = 0.01 }
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "1 MB"
"#;

/// Sends 20 MB from a to b under each control, and prints how long that took.
const TRIAL: &str = r#"
import os, socket, sys, threading, time
def within(name):
    fd = os.open('/run/netns/' + name, os.O_RDONLY)
    import ctypes
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0): raise OSError('setns')
    os.close(fd)
a, b, address = os.environ['FARPACE_NS_a'], os.environ['FARPACE_NS_b'], sys.argv[1]
within(b)
listener = socket.create_server((address, 7))
def serve():
    while True:
        peer, _ = listener.accept()
        while peer.recv(1 << 20): pass
        peer.close()
threading.Thread(target=serve, daemon=True).start()
within(a)
for control in sys.argv[2:]:
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    s.connect((address, 7))
    begun = time.monotonic()
    end, size = begun + 8, 0
    while time.monotonic() < end: size += s.send(b'x' * 65536)
    s.shutdown(socket.SHUT_WR)
    s.settimeout(60)
    s.recv(1)
    print(control, size * 8 / (time.monotonic() - begun) / 1e6, flush=True)
    s.close()
"#;

/// Breaks: one loss in a hundred, which control `farpace` takes for what the path loses, and cubic for
/// congestion: kernel to kernel it gets five times as much at least, and three quarters of the line.
#[test]
fn a_lossy_path_in_real_time() {
    let Some(_here) = here() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("kernel-lossy.toml");
    std::fs::write(&scenario, LOSSY).unwrap();
    std::fs::write(dir.path().join("trial.py"), TRIAL).unwrap();
    let up = Up::start(&[]);
    let mut lab = Command::new(env!("CARGO_BIN_EXE_farpace"));
    lab.args(["lab", "up"])
        .arg(&scenario)
        .arg("--json")
        .arg("--")
        .arg("python3")
        .arg(dir.path().join("trial.py"));
    let output = lab.args(["10.0.0.2", "cubic", "farpace"]).output().unwrap();
    up.end();
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = |control: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{control} ")));
        line.unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&output.stderr))).parse().unwrap()
    };
    let (cubic, farpace) = (rate("cubic"), rate("farpace"));
    let json = text.find('{').map(|at| &text[at..]);
    let summary: serde_json::Value =
        serde_json::from_str(json.unwrap_or_else(|| panic!("{output:?}"))).unwrap();
    // Packets that leave late make the round trip wander, and the path is not that of the scenario.
    let late = summary["accuracy"]["p99_us"].as_f64().unwrap();
    let (times, part) = if late < 500.0 { (5.0, 0.75) } else { (2.0, 0.2) };
    let line = 50.0 * 1448.0 / 1538.0;
    let told = format!("cubic {cubic}, farpace {farpace} Mbit/s, 1 % later than {late} us");
    assert!(farpace > times * cubic && farpace > part * line, "{told}");
}
