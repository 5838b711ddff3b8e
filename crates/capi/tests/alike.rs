//! The same C programs on Linux's sockets and on ours, line by line: every call and every option in every
//! state.
//!
//! The kernel's needs root. Elsewhere these tests pass with a line on stderr that says what is missing, and
//! fail where `CI` is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

#[path = "shared/library.rs"]
mod library;

use farpace_live::socket::posix::{FARPACE, OPTIONS};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options that are not compared, and why.
const NOT_ALIKE: [(&str, &[&str]); 5] = [
    (
        "root may in the kernel what nobody may here: there is no routing by marks, repair, IPsec or raw IP \
         options",
        &[
            "SO_MARK",
            "IP_TRANSPARENT",
            "IPV6_TRANSPARENT",
            "IP_XFRM_POLICY",
            "IPV6_XFRM_POLICY",
            "IPV6_IPSEC_POLICY",
            "TCP_REPAIR",
            "TCP_AO_REPAIR",
            "IP_OPTIONS",
            "IPV6_2292PKTOPTIONS",
        ],
    ),
    (
        "the machine decides: its limits, its congestion control, its modules, its version",
        &[
            "SO_SNDBUF",
            "SO_RCVBUF",
            "TCP_CC_INFO",
            "SO_ORIGINAL_DST",
            "SO_TXREHASH",
            "SO_ATTACH_BPF",
            "SO_ATTACH_REUSEPORT_EBPF",
            "TCP_CONGESTION",
        ],
    ),
    ("Fast Open and zero copy are not there", &["TCP_FASTOPEN_CONNECT", "SO_ZEROCOPY", "UDP_ENCAP"]),
    (
        "there is no multicast and no interface to choose",
        &["IP_MULTICAST_IF", "IP_MULTICAST_TTL", "IPV6_MULTICAST_HOPS", "IPV6_MULTICAST_IF"],
    ),
    (
        "known differences in rare states: the path of a connection that is not open, timers that were moved \
         by a busy machine",
        &["TCP_MAXSEG", "TCP_QUICKACK", "IPV6_V6ONLY"],
    ),
];

/// Calls whose results are not compared: why, in which states (by how their names begin), which.
const CALLS_NOT_ALIKE: [(&str, &[&str], &[&str]); 6] = [
    ("Fast Open is not there", &[""], &["send fast open"]),
    (
        "we look at the memory and the control messages of a program before the state of the socket",
        &[""],
        &["send from null", "message with control"],
    ),
    (
        "the kernel counts a FIN that is not acknowledged, and acknowledges it when it likes; options are \
         agreed on later here",
        &["refused", "reset", "shut", "connecting"],
        &["SIOCOUTQ", "info"],
    ),
    (
        "a socket has its connection until TIME-WAIT is over",
        &["shut, heard"],
        &["shutdown reading", "shutdown writing", "shutdown both", "shutdown writing twice", "getpeername"],
    ),
    (
        "a route, and a limit of ICMP errors, that the machine has or has not",
        &["udp"],
        &["connect to a group", "send twice"],
    ),
    (
        "a connection that has failed keeps its port here until connect(2) is called again, and poll(2) then \
         shows the new one",
        &["refused", "reset", "shut, heard"],
        &["bind", "bind to any port", "bind to nobody", "connect twice", "connect thrice"],
    ),
];

/// What poll(2) and epoll(7) show that is not compared: why, and how the lines begin.
const SHOWN_NOT_ALIKE: [(&str, &[&str]); 4] = [
    (
        "a descriptor that has hung up cannot be made to wait for a connection again, so it does not show \
         that it is not connected",
        &["states, fresh", "states, bound"],
    ),
    (
        "the byte that shows urgent data makes the descriptor readable, too; recv(2) says EAGAIN",
        &["urgent, urgent", "urgent, read it", "urgent, read to the mark"],
    ),
    ("an error that passes shows as something to read: poll(2) would show one for ever", &["udp, refused"]),
    ("the kernel wakes a writer who cannot write any more", &["we end first, shut:"]),
];

/// True if this cannot be compared here. In CI it must be.
fn skipped(why: &str) -> bool {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Not `eprintln!`: the harness hides it for tests that pass.
    std::io::stderr().write_all(format!("skipped, {why}\n").as_bytes()).unwrap();
    true
}

fn compile(source: &str, folder: &Path, kernel: bool) -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(format!("{source}-{kernel}"));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(folder)
        .arg("-o")
        .arg(&program);
    cc.arg(place.join(format!("tests/alike/{source}.c")));
    if kernel {
        cc.arg("-DKERNEL");
    } else {
        let libraries = library::folder();
        cc.arg("-I").arg(place.join("include")).arg("-L").arg(libraries).arg("-lfarpace");
        cc.arg(format!("-Wl,-rpath,{}", libraries.display()));
    }
    let Ok(output) = cc.output() else {
        skipped("needs a C compiler");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// What a program says of the kernel's sockets, and of ours; none: it cannot be compared here.
fn both(source: &str, family: &str) -> Option<[String; 2]> {
    let folder = tempfile::tempdir().unwrap();
    let mut table = String::new();
    for row in OPTIONS.iter().filter(|row| row.level != FARPACE) {
        writeln!(table, "{{\"{}\", {}, {}}},", row.name, row.level, row.number).unwrap();
    }
    std::fs::write(folder.path().join("options.inc"), table).unwrap();
    let mut said = Vec::new();
    for kernel in [true, false] {
        let program = compile(source, folder.path(), kernel)?;
        let output = Command::new(&program).arg(family).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if kernel && errors.contains("unshare") && skipped("needs root: no network namespace") {
            return None;
        }
        assert!(output.status.success(), "{source} {family}, kernel {kernel}: {errors}");
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    said.try_into().ok()
}

/// Lines that differ, but for those that `explained` says are known to.
fn differences(kernels: &str, ours: &str, explained: impl Fn(&str) -> bool) -> Vec<String> {
    assert_eq!(kernels.lines().count(), ours.lines().count());
    let pairs = kernels.lines().zip(ours.lines()).filter(|(kernel, our)| kernel != our && !explained(kernel));
    pairs.map(|(kernel, our)| format!("kernel: {kernel}\nours:   {our}")).collect()
}

/// Breaks: an option of a socket, set or asked for in any state, does something else than in Linux.
#[test]
fn options_are_those_of_linux() {
    for family in ["4", "6"] {
        let Some([kernels, ours]) = both("options", family) else { return };
        let known = |line: &str| {
            let name = line.split_once(": ").map_or("", |(_, rest)| rest).split(' ').nth(1).unwrap_or("");
            // In the kernel's IPv6 a negative length is a long one, in some options and not in others.
            let length = name.starts_with("IPV6_") && line.contains("with room for -1");
            length || NOT_ALIKE.iter().any(|(_, names)| names.contains(&name))
        };
        let differ = differences(&kernels, &ours, known);
        assert!(kernels.lines().count() > 40_000, "IPv{family}");
        assert!(
            differ.is_empty(),
            "IPv{family}, {} lines:\n{}",
            differ.len(),
            differ[..differ.len().min(30)].join("\n")
        );
    }
}

/// A line without what poll(2) shows: `state, call: result`.
fn result(line: &str) -> String {
    const MASKS: [&str; 6] = ["IN", "OUT", "PRI", "RDHUP", "ERR", "HUP"];
    let parts: Vec<_> = line.split(';').collect();
    let [begin, middle @ .., _] = &parts[..] else { return line.to_owned() };
    let begin = begin.rsplit_once(':').map_or(*begin, |(call, mask)| {
        let is_mask = mask.split_whitespace().all(|word| MASKS.contains(&word));
        if is_mask { call } else { begin }
    });
    format!("{begin}:{}", middle.join(";"))
}

/// Breaks: a call of a socket in any state returns something else than in Linux.
#[test]
fn calls_return_what_they_return_in_linux() {
    for family in ["4", "6"] {
        let Some([kernels, ours]) = both("states", family) else { return };
        let strip = |text: &str| text.lines().map(|line| result(line) + "\n").collect::<String>();
        let known = |line: &str| {
            let call = line.split_once(':').map_or(line, |(call, _)| call);
            let Some((state, call)) = call.rsplit_once(", ") else { return false };
            let here = |states: &[&str]| states.iter().any(|begin| state.starts_with(begin));
            CALLS_NOT_ALIKE.iter().any(|(_, states, calls)| here(states) && calls.contains(&call))
        };
        let differ = differences(&strip(&kernels), &strip(&ours), known);
        assert!(kernels.lines().count() > 1000, "IPv{family}");
        assert!(
            differ.is_empty(),
            "IPv{family}, {} lines:\n{}",
            differ.len(),
            differ[..differ.len().min(30)].join("\n")
        );
    }
}

/// Breaks: event loops wait for ever, or are woken for nothing: what poll(2) and an edge-triggered epoll(7)
/// show in each state and from each to the next; or MSG_MORE and TCP_CORK hold back something else than in
/// Linux.
#[test]
fn what_is_shown_and_held_back_is_that_of_linux() {
    for family in ["4", "6"] {
        let known = |line: &str| {
            SHOWN_NOT_ALIKE.iter().any(|(_, begins)| begins.iter().any(|begin| line.starts_with(begin)))
        };
        let Some([kernels, ours]) = both("polls", family) else { return };
        let differ = differences(&kernels, &ours, known);
        assert!(kernels.lines().count() > 100, "IPv{family}");
        assert!(differ.is_empty(), "IPv{family}, {} lines:\n{}", differ.len(), differ.join("\n"));
    }
}
