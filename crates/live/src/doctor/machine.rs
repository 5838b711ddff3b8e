//! The system as a whole: rights, kinds of devices, parameters, timers.

use super::DoctorFinding;
use crate::device::{PacketConfig, PacketSocket, XdpSocket};
use crate::system::sysctl;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bits of the rights in `/proc/self/status` (`linux/capability.h`).
const RIGHTS: [(u32, &str, &str); 3] = [
    (12, "CAP_NET_ADMIN", "TUN and TAP devices, addresses, emulation"),
    (13, "CAP_NET_RAW", "packet sockets on interfaces"),
    (21, "CAP_SYS_ADMIN", "network namespaces"),
];
/// Buffers of sockets below this many bytes limit the kernel's TCP on long paths.
const ENOUGH_BUFFER: u64 = 4 << 20;
/// The least version that was tried.
const OLDEST: (u32, u32) = (5, 4);
/// Sleeps of one millisecond by which timers are judged.
const SLEEPS: usize = 100;
/// Sleeps that are late by more, at the median, make emulation coarse.
const LATE: Duration = Duration::from_micros(300);

/// All findings.
pub fn look() -> Vec<DoctorFinding> {
    let mut findings = rights();
    findings.push(tun());
    findings.push(packet_socket());
    findings.push(xdp());
    findings.push(tool());
    findings.push(kernel());
    findings.push(congestion());
    findings.extend(buffers());
    findings.push(clock());
    findings.push(timers());
    findings
}

fn rights() -> Vec<DoctorFinding> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let each = RIGHTS.map(|(bit, name, purpose)| {
        if mask >> bit & 1 == 1 {
            return DoctorFinding::ok(name, format!("there: {purpose}"));
        }
        let value = format!("missing: no {purpose}");
        match bit {
            21 => DoctorFinding::note(name, value, "run as root what makes namespaces: sudo farpace lab up"),
            _ => DoctorFinding::problem(
                name,
                value,
                "run farpace as root, or give it the rights: sudo setcap \
                 cap_net_admin,cap_net_raw+ep \"$(command -v farpace)\"",
            ),
        }
    });
    each.into()
}

fn tun() -> DoctorFinding {
    const TUN: &str = "/dev/net/tun";
    match File::options().read(true).write(true).open(TUN) {
        Ok(_) => DoctorFinding::ok(TUN, "opens"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let make = "sudo modprobe tun; in a container: --device /dev/net/tun --cap-add NET_ADMIN";
            DoctorFinding::problem(TUN, "is not there: no TUN and TAP devices", make)
        }
        Err(error) => DoctorFinding::problem(TUN, error.to_string(), "sudo chmod 666 /dev/net/tun"),
    }
}

fn packet_socket() -> DoctorFinding {
    match PacketSocket::open(&PacketConfig::new("lo")) {
        Ok(_) => DoctorFinding::ok("AF_PACKET", "opens, with the header for super-segments"),
        Err(error) => {
            DoctorFinding::problem("AF_PACKET", error.to_string(), "give the right CAP_NET_RAW, as above")
        }
    }
}

fn xdp() -> DoctorFinding {
    match XdpSocket::probe() {
        Ok(()) => {
            DoctorFinding::ok("AF_XDP", "possible; --mode af-xdp says for each interface in which mode")
        }
        // Packet sockets do the same.
        Err(error) => DoctorFinding::ok("AF_XDP", format!("not possible, and not needed: {error}")),
    }
}

fn tool() -> DoctorFinding {
    let folders = ["", "/usr/sbin/", "/sbin/"];
    let version = folders.iter().find_map(|folder| {
        let output = Command::new(format!("{folder}ip")).arg("-V").stdin(Stdio::null()).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    });
    match version {
        Some(version) => DoctorFinding::ok("ip", version),
        None => {
            DoctorFinding::problem("ip", "is missing", "install the package iproute2 (iproute on Fedora)")
        }
    }
}

fn kernel() -> DoctorFinding {
    let release = sysctl::read("kernel.osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let value = format!("Linux {release}, {cpus} CPUs");
    if version < OLDEST {
        let (major, minor) = OLDEST;
        return DoctorFinding::note(
            "kernel",
            value,
            format!("farpace was tried on {major}.{minor} and later only"),
        );
    }
    if cpus < 2 {
        return DoctorFinding::note(
            "kernel",
            value,
            "with one CPU both ends of a transfer share it: figures are lower",
        );
    }
    DoctorFinding::ok("kernel", value)
}

fn congestion() -> DoctorFinding {
    let read = |name| sysctl::read(name).unwrap_or_default();
    let now = read("net.ipv4.tcp_congestion_control");
    let (available, allowed) =
        (read("net.ipv4.tcp_available_congestion_control"), read("net.ipv4.tcp_allowed_congestion_control"));
    let value = format!("{now}; available: {available}; for everybody: {allowed}");
    let locked: Vec<_> =
        available.split(' ').filter(|name| !allowed.split(' ').any(|other| other == *name)).collect();
    if locked.is_empty() {
        return DoctorFinding::ok("kernel's congestion control", value);
    }
    let mend = format!(
        "sudo sysctl net.ipv4.tcp_allowed_congestion_control=\"{available}\" (for programs without root)"
    );
    DoctorFinding::note("kernel's congestion control", value, mend)
}

fn buffers() -> Vec<DoctorFinding> {
    let each = [("net.core.rmem_max", "receive"), ("net.core.wmem_max", "send")].map(|(name, way)| {
        let value = sysctl::read(name).unwrap_or_default();
        let bytes: u64 = value.parse().unwrap_or(0);
        let text = format!("{bytes} B: most that programs can ask for to {way}");
        if bytes >= ENOUGH_BUFFER {
            return DoctorFinding::ok(name, text);
        }
        let mend = format!(
            "sudo sysctl {name}={ENOUGH_BUFFER} (for ordinary sockets; devices of farpace go \
                            beyond it as root)"
        );
        DoctorFinding::note(name, text, mend)
    });
    each.into()
}

fn clock() -> DoctorFinding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    match source.as_str() {
        "hpet" | "acpi_pm" | "jiffies" => DoctorFinding::note(
            "clock",
            source,
            "reading it takes microseconds: boot with clocksource=tsc if the machine has a steady one",
        ),
        _ => DoctorFinding::ok("clock", source),
    }
}

fn timers() -> DoctorFinding {
    crate::sharpen_timers();
    let asked = Duration::from_millis(1);
    let mut late: Vec<_> = (0..SLEEPS).map(|_| sleep_once(asked)).collect();
    late.sort();
    let us = |at: usize| late.get(at).map_or(0, Duration::as_micros);
    let value = format!(
        "a sleep of 1 ms is late by {} us (median), {} us (worst of {SLEEPS})",
        us(SLEEPS / 2),
        us(SLEEPS - 1)
    );
    if late.get(SLEEPS / 2).is_some_and(|median| *median > LATE) {
        return DoctorFinding::note(
            "timers",
            value,
            "the machine is busy, or its timers are coarse: use --wait spin",
        );
    }
    DoctorFinding::ok("timers", value)
}

#[allow(clippy::disallowed_methods, reason = "it measures how late real time is")]
fn sleep_once(asked: Duration) -> Duration {
    let begin = Instant::now();
    std::thread::sleep(asked);
    begin.elapsed().saturating_sub(asked)
}
