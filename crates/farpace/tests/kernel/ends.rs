//! How it ends: orderly, killed, again and again.

use crate::harness::{Here, Transfer, Up, control_of, farpace, here, rounds, until};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Connections that come and go, and one that stays, until it is told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start() -> Load {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let short = {
            let (stop, done) = (stop.clone(), done.clone());
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let mut transfer = Transfer::to(LOOPBACK);
                    transfer.send(300_000);
                    transfer.finish();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let long = {
            let stop = stop.clone();
            spawn(move || {
                let mut transfer = Transfer::to(LOOPBACK);
                while !stop.load(Ordering::Relaxed) {
                    transfer.send(200_000);
                    sleep(Duration::from_millis(2));
                }
                transfer.finish();
            })
        };
        Load { stop, done, threads: vec![short, long] }
    }

    /// Every transfer was whole; how many there were.
    fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.done.load(Ordering::Relaxed)
    }
}

fn nothing_is_left() {
    until("a control of ours is registered", || farpace_kernel::registered().is_empty());
    until("programs of ours stay in the kernel", || farpace_kernel::sets_loaded() == 0);
    assert!(!std::path::Path::new("/sys/fs/bpf/farpace").exists());
}

fn stays(here: &Here) {
    let (code, _, error) = farpace(&["kernel", "up", "--cgroup", here.group_text(), "--stay"]);
    assert_eq!(code, 0, "{error}");
}

/// Breaks: what `--stay` has loaded goes with the command, is not listed, or does not go by `down`; a second
/// one is loaded beside it.
#[test]
fn it_stays_until_down() {
    let Some(here) = here() else { return };
    stays(&here);
    let transfer = Transfer::to(LOOPBACK);
    assert_eq!(control_of(&transfer.stream), "farpace");
    let (code, _, error) = farpace(&["kernel", "up"]);
    assert!(code == 2 && error.contains("already"), "{code} {error}");
    let (_, doctor, _) = farpace(&["doctor"]);
    assert!(doctor.contains("kernel of process"), "{doctor}");
    let (code, told, error) = farpace(&["kernel", "down"]);
    assert!(code == 0 && told.contains(": 2 connections are under"), "{told} {error}");
    assert_ne!(control_of(&transfer.stream), "farpace");
    transfer.finish();
    nothing_is_left();
    let (code, _, error) = farpace(&["kernel", "status"]);
    assert!(code == 2 && error.contains("farpace kernel up"), "{error}");
}

/// Breaks: a command that is killed leaves a control for new connections, or connections that stop.
#[test]
fn killed_while_it_runs() {
    let Some(here) = here() else { return };
    let up = Up::start(&["--cgroup", here.group_text()]);
    let mut transfer = Transfer::to(LOOPBACK);
    transfer.send(1_000_000);
    up.kill();
    // Before Linux 6.4 the registration stays, too, until `down`.
    if farpace_kernel::ends_with_owner() {
        until("a control of ours is registered", || farpace_kernel::registered().is_empty());
    }
    // It keeps its control, whose programs stay as long as it does.
    assert_eq!(control_of(&transfer.stream), "farpace");
    transfer.send(20_000_000);
    let (code, _, _) = farpace(&["kernel", "down"]);
    assert_eq!(code, 0);
    assert_ne!(control_of(&transfer.stream), "farpace");
    transfer.send(1_000_000);
    transfer.finish();
    nothing_is_left();
}

/// Breaks: killed at whatever moment of `up --stay`, it leaves what `doctor --clean` or `down` does not take
/// away.
#[test]
fn killed_at_every_moment() {
    let Some(here) = here() else { return };
    let load = Load::start();
    for round in 0..rounds("FARPACE_KERNEL_ROUNDS", 24) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
        command.args(["kernel", "up", "--stay", "--cgroup", here.group_text()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(10 * (round as u64 % 48)));
        let _ = child.kill();
        child.wait().unwrap();
        let (_, cleaned, error) = farpace(&["doctor", "--clean"]);
        let (code, _, down) = farpace(&["kernel", "down"]);
        assert_eq!(code, 0, "round {round}: {cleaned} {error} {down}");
        until("a control of ours is registered", || farpace_kernel::registered().is_empty());
    }
    assert!(load.end() > 0);
    nothing_is_left();
}

/// Breaks: loading and unloading under load leaks programs, or a connection loses a byte or stops.
#[test]
fn loaded_again_and_again_under_load() {
    let Some(here) = here() else { return };
    let load = Load::start();
    for round in 0..rounds("FARPACE_KERNEL_ROUNDS", 24) {
        stays(&here);
        let (code, _, error) = farpace(&["kernel", "down"]);
        assert_eq!(code, 0, "round {round}: {error}");
    }
    assert!(load.end() > 0);
    nothing_is_left();
}
