//! Who is under a control, and what is seen of it.

use crate::harness::{Transfer, Up, control_of, farpace, here, json, rounds, until};
use farpace::live::Namespace;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, Ipv4Addr};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Breaks: connections of a control group are not under the control, their bytes differ, `status` does not
/// show them, or they are without a control when the command ends.
#[test]
fn a_control_group() {
    let Some(here) = here() else { return };
    let before = Transfer::to(LOOPBACK);
    let usual = control_of(&before.stream);
    let up = Up::start(&["--cgroup", here.group_text()]);
    let mut transfer = Transfer::to(LOOPBACK);
    assert_eq!(
        (control_of(&transfer.stream), control_of(&transfer.peer)),
        ("farpace".into(), "farpace".into())
    );
    assert_eq!(control_of(&before.stream), usual, "one that was there keeps its own");
    transfer.send(20_000_000);
    let status = json(&["kernel", "status", "--json"]);
    let port = transfer.stream.local_addr().unwrap().port();
    let ours = |row: &&serde_json::Value| row["local"] == format!("127.0.0.1:{port}");
    let row = status["connections"].as_array().unwrap().iter().find(ours).unwrap();
    assert_eq!(row["control"], "farpace");
    assert!(row["cwnd_packets"].as_u64().unwrap() >= 4 && row["srtt_s"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["acked_bytes"].as_u64().unwrap() > 1_000_000, "{row}");
    let (_, metrics, _) = farpace(&["kernel", "status", "--prometheus"]);
    let line = format!("farpace_kernel_cwnd_packets{{local=\"127.0.0.1:{port}\"");
    assert!(metrics.contains(&line), "{metrics}");
    let (_, table, _) = farpace(&["kernel", "status"]);
    assert!(table.contains(&format!("127.0.0.1:{port}")), "{table}");
    up.end();
    assert_eq!(control_of(&transfer.stream), usual, "given back");
    transfer.send(5_000_000);
    transfer.finish();
    before.finish();
    until("programs of ours stay in the kernel", || farpace_kernel::sets_loaded() == 0);
}

/// What `status --json` says without a capability.
fn without(capability: &str, judge: &mut dyn FnMut(i32, &str, &str)) {
    let mut command = std::process::Command::new("setpriv");
    command.arg(format!("--bounding-set=-{capability}")).arg(env!("CARGO_BIN_EXE_farpace"));
    let output = command.args(["kernel", "status", "--json"]).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    judge(output.status.code().unwrap_or(-1), &text(output.stdout), &text(output.stderr));
}

/// Breaks: connections of another network namespace are under the control, but `status` does not show them,
/// or they are not given back; or a command that may not look everywhere does not say so.
#[test]
fn another_network_namespace() {
    use std::os::unix::fs::MetadataExt;
    let Some(here) = here() else { return };
    let other = Namespace::create(&format!("k{}-other", std::process::id())).unwrap();
    other.configure("link set lo up\n").unwrap();
    let usual = other.within(|| control_of(&Transfer::to(LOOPBACK).stream)).unwrap();
    let up = Up::start(&["--cgroup", here.group_text()]);
    let mut transfer = other.within(|| Transfer::to(LOOPBACK)).unwrap();
    transfer.send(1_000_000);
    let status = json(&["kernel", "status", "--json"]);
    let number = std::fs::metadata(format!("/run/netns/{}", other.name())).unwrap().ino();
    let there = |row: &&serde_json::Value| row["namespace"] == number;
    assert_eq!(status["connections"].as_array().unwrap().iter().filter(there).count(), 2, "{status}");
    let hidden = status["hidden_processes"].as_u64().unwrap();
    without("sys_ptrace", &mut |code, said, _| {
        let status: serde_json::Value = serde_json::from_str(said).unwrap();
        assert!(code == 0 && status["hidden_processes"].as_u64().unwrap() > hidden, "{said}");
    });
    without("sys_admin", &mut |code, _, error| {
        assert!(code != 0 && error.contains("CAP_SYS_ADMIN"), "{error}");
    });
    up.end();
    assert_eq!(control_of(&transfer.stream), usual, "given back");
    transfer.finish();
}

/// Breaks: a rule for a network holds elsewhere, or does not hold there.
#[test]
fn destinations() {
    let Some(here) = here() else { return };
    let other = |last| IpAddr::V4(Ipv4Addr::new(127, 9, 9, last));
    let usual = control_of(&Transfer::to(LOOPBACK).stream);
    let rules = [
        "--to",
        "127.9.9.2,control=star,initial-window=20,rto-min=50ms",
        "--to",
        "127.9.9.3/32,control=kernel",
    ];
    let up = Up::start(&[&["--cgroup", here.group_text()][..], &rules].concat());
    for (address, control) in [(other(1), "farpace"), (other(2), "star"), (other(3), usual.as_str())] {
        let mut transfer = Transfer::to(address);
        assert_eq!(control_of(&transfer.stream), control, "{address}");
        transfer.send(3_000_000);
        transfer.finish();
    }
    let mut six = Transfer::to("::1".parse().unwrap());
    assert_eq!(control_of(&six.stream), "farpace");
    six.send(3_000_000);
    six.finish();
    let status = json(&["kernel", "status", "--json"]);
    assert_eq!(status["policy"]["refused"], 0, "{status}");
    up.end();
}

/// Breaks: an ACK request is not agreed on, not sent or not answered; or it spoils the stream.
#[test]
fn ack_requests() {
    let Some(here) = here() else { return };
    let up = Up::start(&["--cgroup", here.group_text(), "--ack-requests"]);
    let mut transfer = Transfer::to(LOOPBACK);
    transfer.send(2_000_000);
    let status = json(&["kernel", "status", "--json"]);
    let count = |key: &str| status["policy"][key].as_u64().unwrap();
    assert_eq!(count("agreed"), 2, "{status}");
    assert!(count("asked") > 0 && count("answered") > 0, "{status}");
    transfer.finish();
    up.end();
}

/// Breaks: the rows of a trace: they are missing, or are not those of a transfer.
#[test]
fn a_trace() {
    let Some(here) = here() else { return };
    let up = Up::start(&["--cgroup", here.group_text()]);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t");
    let out = out.to_str().unwrap().to_owned();
    let command =
        std::thread::spawn(move || json(&["kernel", "trace", "--out", &out, "--for", "4s", "--json"]));
    while !command.is_finished() {
        let mut transfer = Transfer::to(LOOPBACK);
        transfer.send(1_000_000);
        transfer.finish();
    }
    let told = command.join().unwrap();
    assert!(told["rows"].as_u64().unwrap() > 20, "{told}");
    assert_eq!(told["lost_rows"], 0, "{told}");
    let rows: u64 = told["connections"].as_array().unwrap().iter().map(|c| c["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, told["rows"].as_u64().unwrap());
    let table = std::fs::read(dir.path().join("t/trace.parquet")).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
    up.end();
}

/// Breaks: many connections at once: one has no state or no control, or its bytes differ.
#[test]
fn many_connections() {
    let Some(here) = here() else { return };
    let up = Up::start(&["--cgroup", here.group_text()]);
    let count = rounds("FARPACE_KERNEL_CONNECTIONS", 150);
    // Three descriptors each, and a thread that reads.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let most = limit.maximum.map_or(usize::MAX, |most| most as usize);
    let count = count.min(most.saturating_sub(200) / 3);
    // More than an address has ports.
    let address = |n: usize| IpAddr::from([127, 0, 1, 1 + (n / 5_000) as u8]);
    let mut all: Vec<_> = (0..count).map(|n| Transfer::to(address(n))).collect();
    all.iter_mut().for_each(|transfer| transfer.send(100_000));
    let status = json(&["kernel", "status", "--json"]);
    assert_eq!(status["without_state"], 0);
    assert!(status["connections"].as_array().unwrap().len() >= 2 * count, "{}", status["begun"]);
    all.into_iter().for_each(Transfer::finish);
    up.end();
}
