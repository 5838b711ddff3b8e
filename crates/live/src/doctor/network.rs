//! Interfaces: what would spoil results on them.

use super::DoctorFinding;
use crate::system::{Offload, offload, sysctl};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Queueing disciplines that let packets go at once, until the line is full.
const HARMLESS: [&str; 6] = ["noqueue", "pfifo_fast", "mq", "pfifo", "fq", "clsact"];
/// More interfaces are not listed one by one.
const MAX: usize = 64;

/// All findings.
pub fn look() -> Vec<DoctorFinding> {
    let names = names();
    let mut findings: Vec<_> =
        names.iter().take(MAX).filter(|name| *name != "lo").filter_map(|name| interface(name)).collect();
    if names.len() > MAX {
        findings.push(DoctorFinding::ok("interfaces", format!("{MAX} of {} were looked at", names.len())));
    }
    findings.extend(mtus(&names));
    findings.extend(queues());
    findings.extend(filters(&names));
    findings.push(forwarding());
    findings
}

fn folder(interface: &str) -> PathBuf {
    Path::new("/sys/class/net").join(interface)
}

fn read(interface: &str, what: &str) -> Option<String> {
    fs::read_to_string(folder(interface).join(what)).ok().map(|text| text.trim().to_owned())
}

fn names() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// What an interface does with packets.
fn interface(name: &str) -> Option<DoctorFinding> {
    let mtu = read(name, "mtu")?;
    let state = read(name, "operstate").unwrap_or_default();
    let is_on = |what: &&Offload| offload(name, **what).unwrap_or(false);
    let on: Vec<_> = Offload::ALL.iter().filter(is_on).collect();
    let list: Vec<_> = on.iter().map(|what| what.name()).collect();
    let offloads = if list.is_empty() { "no offloads".to_owned() } else { list.join(" ") };
    let value = format!("{state}, MTU {mtu} B, {offloads}");
    if on.contains(&&Offload::Lro) {
        let mend =
            format!("sudo ethtool -K {name} lro off (what it puts together cannot be sent on as it was)");
        return Some(DoctorFinding::note(name, value, mend));
    }
    Some(DoctorFinding::ok(name, value))
}

/// Interfaces that belong together and take packets of different lengths.
fn mtus(names: &[String]) -> Vec<DoctorFinding> {
    let index = |name: &str| read(name, "ifindex");
    let mut findings = Vec::new();
    for name in names {
        let partner = match fs::read_link(folder(name).join("master")) {
            Ok(master) => master.file_name().and_then(|name| name.to_str()).map(str::to_owned),
            // Both ends of a veth say where the other is. The one is enough.
            Err(_) => {
                let other = read(name, "iflink").filter(|other| Some(other) != index(name).as_ref());
                let is_other = |candidate: &&String| **candidate > *name && index(candidate) == other;
                other.as_ref().and_then(|_| names.iter().find(is_other).cloned())
            }
        };
        let Some(partner) = partner else { continue };
        let (own, its) = (read(name, "mtu"), read(&partner, "mtu"));
        if let (Some(own), Some(its)) = (own, its)
            && own != its
        {
            let value = format!("{own} B, but {its} B on {partner}");
            let mend = format!("longer packets vanish there: sudo ip link set {name} mtu {its}");
            findings.push(DoctorFinding::note(format!("MTU of {name}"), value, mend));
        }
    }
    findings
}

/// Queueing disciplines that delay or drop packets on their own.
fn queues() -> Vec<DoctorFinding> {
    let folders = ["", "/usr/sbin/", "/sbin/"];
    let shown = folders.iter().find_map(|folder| {
        Command::new(format!("{folder}tc")).args(["-j", "qdisc", "show"]).stdin(Stdio::null()).output().ok()
    });
    let Some(shown) = shown else {
        return vec![DoctorFinding::note(
            "queueing",
            "cannot tell: `tc` is missing",
            "install the package iproute2",
        )];
    };
    judge(&serde_json::from_slice(&shown.stdout).unwrap_or_default())
}

/// The same, from what `tc -j qdisc show` has printed.
fn judge(shown: &Value) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for qdisc in shown.as_array().into_iter().flatten() {
        let text = |key| qdisc.get(key).and_then(Value::as_str).unwrap_or_default();
        let (kind, interface) = (text("kind"), text("dev"));
        if HARMLESS.contains(&kind) || interface.is_empty() || qdisc.get("root").is_none() {
            continue;
        }
        let what = format!("queueing on {interface}");
        let away = format!("sudo tc qdisc delete dev {interface} root");
        let limit = qdisc.pointer("/options/limit").and_then(Value::as_u64);
        let (value, mend) = match (kind, limit) {
            ("netem", Some(1000)) => (
                "netem with its default limit of 1000 packets: at 1 Gbit/s it holds 12 ms, and drops the rest"
                    .to_owned(),
                format!("give it a limit of rate x delay / 1500 B or more, or: {away}"),
            ),
            ("fq_codel" | "cake" | "codel", _) => (
                format!("{kind}: drops and marks when packets have waited for 5 ms"),
                format!(
                    "for experiments with own queues: sudo tc qdisc replace dev {interface} root pfifo \
                         limit 10000"
                ),
            ),
            _ => (format!("{kind}: shapes what leaves"), away),
        };
        findings.push(DoctorFinding::note(what, value, mend));
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::ok("queueing", "no discipline delays or drops packets on its own"));
    }
    findings
}

/// Strict filters drop packets whose answers would leave by another interface.
fn filters(names: &[String]) -> Option<DoctorFinding> {
    let read = |name: &str| {
        let value = sysctl::read(&format!("net.ipv4.conf.{}.rp_filter", name.replace('.', "/")));
        value.ok().and_then(|value| value.parse::<u8>().ok()).unwrap_or(0)
    };
    let all = read("all");
    // The larger of both counts; 1 is strict, 2 loose.
    let strict: Vec<_> = names.iter().filter(|name| all.max(read(name)) == 1).map(String::as_str).collect();
    if strict.is_empty() {
        return Some(DoctorFinding::ok("reverse-path filter", "not strict on any interface"));
    }
    let mend = "a host with two ways loses packets: sudo sysctl net.ipv4.conf.all.rp_filter=2";
    Some(DoctorFinding::note("reverse-path filter", format!("strict on {}", strict.join(", ")), mend))
}

fn forwarding() -> DoctorFinding {
    let on = sysctl::read("net.ipv4.ip_forward").is_ok_and(|value| value == "1");
    let value = match on {
        true => "on: what other hosts send by this machine goes on",
        false => {
            "off: hosts behind TUN and TAP devices reach this machine only (sysctl net.ipv4.ip_forward=1 for \
             more)"
        }
    };
    DoctorFinding::ok("IP forwarding", value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Judgement;
    use serde_json::json;

    /// Breaks: queues that spoil results are passed over, or harmless ones cause alarm.
    #[test]
    fn queues_are_judged() {
        let shown = json!([
            {"kind": "noqueue", "dev": "lo", "root": true, "options": {}},
            {"kind": "netem", "dev": "a", "root": true, "options": {"limit": 1000}},
            {"kind": "tbf", "dev": "b", "root": true, "options": {"rate": 1}},
            {"kind": "fq_codel", "dev": "c", "root": true, "options": {"limit": 10240}},
            {"kind": "fq_codel", "dev": "d", "parent": "1:1", "options": {"limit": 10240}},
            {"kind": "pfifo", "dev": "e", "root": true},
        ]);
        let findings = judge(&shown);
        assert!(findings.iter().all(|finding| finding.judgement == Judgement::Note));
        let whats: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(whats, ["queueing on a", "queueing on b", "queueing on c"]);
        assert!(findings[0].value.contains("1000 packets"));
        assert_eq!(judge(&Value::Null)[0].judgement, Judgement::Ok);
    }
}
