//! Labs that go up and down.

use crate::harness::*;
use farpace::live::Namespace;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

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

/// Breaks: programs in a lab do not reach each other over its network, or something stays behind when it is
/// taken down.
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
    let addresses =
        good(farpace(&["lab", "exec", &name, "b", "--", "ip", "-4", "-o", "addr", "show", "far0"]));
    assert!(addresses.contains("10.0.0.2/32"), "{addresses}");
    let [a, b] = ["a", "b"].map(|host| Namespace::existing(&format!("far-{name}-{host}")));
    let took = transfer(&a, &b, Ipv4Addr::new(10, 0, 0, 2), 5_000_000);
    assert!(took > Duration::from_millis(400), "5 MB at 100 Mbit/s within {took:?}");
    let again = farpace(&["lab", "up", &file, "--name", &name]);
    assert_eq!(again.status.code(), Some(2), "a second lab of this name");
    good(farpace(&["lab", "down", &name]));
    assert_eq!(left(&name), Vec::<String>::new());
}

/// Breaks: captures at the hosts of a lab cannot be read, or lack packets: both went into one file.
#[test]
fn every_host_of_a_lab_has_its_capture() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let (name, directory) = (unique("pcap"), tempfile::tempdir().unwrap());
    let captures = directory.path().to_str().unwrap();
    let file = scenario("lossy.toml");
    let set = "links.wan.forward.loss=0";
    good(farpace(&["lab", "up", &file, "--name", &name, "--pcap", captures, "--set", set]));
    let [a, b] = ["a", "b"].map(|host| Namespace::existing(&format!("far-{name}-{host}")));
    transfer(&a, &b, Ipv4Addr::new(10, 0, 0, 2), 2_000_000);
    good(farpace(&["lab", "down", &name]));
    for host in ["a", "b"] {
        let capture = directory.path().join(format!("{host}.pcapng"));
        let told = good(farpace(&["explain", capture.to_str().unwrap(), "--json"]));
        let told: Value = serde_json::from_str(&told).unwrap();
        // The lab may go down before the last ACKs.
        let flow = &told["captures"][0]["flows"][0];
        let sent = ["bytes", "unacknowledged_bytes"].map(|key| flow[key].as_u64().unwrap_or_default());
        assert!(sent[0] + sent[1] >= 2_000_000, "{host}: {sent:?} of {told}");
    }
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
    // Its name can be had again. Told to be up is the new one, not what the old one has left.
    up();
    let listed = good(farpace(&["lab", "list"]));
    assert!(listed.lines().any(|line| line.contains(&name) && line.contains(" up ")), "{listed}");
    good(farpace(&["lab", "exec", &name, "a", "--", "ip", "addr", "show", "far0"]));
    kill();
    assert!(!left(&name).is_empty());
    good(farpace(&["lab", "down", &name]));
    assert_eq!(left(&name), Vec::<String>::new());
    up();
    kill();
    // Its exit code is about the machine.
    let told = String::from_utf8(farpace(&["doctor", "--clean"]).stdout).unwrap();
    assert!(told.contains(&format!("lab {name}")), "{told}");
    assert_eq!(left(&name), Vec::<String>::new());
}

/// Breaks: a lab that has ended by itself is gone, and nobody can learn why.
#[test]
fn a_lab_that_has_gone_leaves_its_words() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let name = unique("gone");
    good(farpace(&["lab", "up", &scenario("lossy.toml"), "--name", &name]));
    let log = format!("/run/farpace/lab/{name}.log");
    good(farpace(&["lab", "exec", &name, "a", "--", "ip", "link", "del", "far0"]));
    std::thread::sleep(Duration::from_millis(500));
    let listed = farpace(&["lab", "list"]);
    let noted = String::from_utf8(listed.stderr).unwrap();
    assert!(noted.contains(&format!("Lab `{name}` has ended by itself; see {log}")), "{noted}");
    assert!(!std::fs::read_to_string(&log).unwrap().is_empty());
    farpace(&["doctor", "--clean"]);
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
    let script = "ip netns exec $FARPACE_NS_a ip -o addr show far0 | grep -q 10.0.0.1 && test $FARPACE_LAB = \
                  $1 && exit 7";
    let file = scenario("lossy.toml");
    let up =
        ["lab", "up", &file, "--name", &name, "--set", "links.wan.forward.loss=0", "--", "sh", "-c", script];
    let output = farpace(&[&up[..], &["sh", &name]].concat());
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(left(&name), Vec::<String>::new());
    for (command, code) in [(&["sh", "-c", "kill -TERM $$"][..], 143), (&["no-such-program"], 127)] {
        let output = farpace(&[&["lab", "up", &file, "--name", &name, "--"], command].concat());
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(left(&name), Vec::<String>::new());
    }
}
