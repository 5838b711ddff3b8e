//! curl and a web server on two machines of the kernel, with farpace between them.

use crate::harness::*;
use std::fs;
use std::path::PathBuf;

/// Breaks: programs over an emulated line that loses, doubles and delays: a byte that is not what it was, or
/// a transfer that never ends.
#[test]
fn curl_fetches_over_a_bad_line() {
    if !has(&["curl", "python3"]) {
        return;
    }
    let Some((a, b, between)) = machine("a").and_then(|a| Some((a, machine("b")?, machine("m")?))) else {
        return;
    };
    for (host, near, number) in [(&a, "ea", 1), (&b, "eb", 2)] {
        let line =
            format!("link add {near} type veth peer name far0 netns {}\nlink set {near} up\n", host.name());
        between.configure(&line).unwrap();
        host.configure(&format!("addr add 10.77.1.{number}/24 dev far0\nlink set far0 up\n")).unwrap();
    }
    let (folder, bytes) = (tempfile::tempdir().unwrap(), noise(20_000_000));
    fs::write(folder.path().join("film"), &bytes).unwrap();
    let line = ["--loss", "0.1%", "--reorder", "0.5%", "--reorder-by", "1ms", "--duplicate", "0.5%"];
    let line = [&[FARPACE, "emulate", "ea", "eb", "--rate", "200mbit", "--delay", "1ms"], &line[..]].concat();
    let _line = Running::start(&between, &line, folder.path());
    let server = ["python3", "-m", "http.server", "8000"];
    let _server = Running::saying(&b, &server, folder.path(), "Serving HTTP");
    listening(&a, "10.77.1.2:8000");
    let curl = ["curl", "-sSf", "-o", "copy", "http://10.77.1.2:8000/film"];
    good(run(&a, &curl, folder.path()));
    assert!(fs::read(folder.path().join("copy")).unwrap() == bytes, "not what is there");
}

/// Breaks: the same in a lab that a scenario describes.
#[test]
fn curl_fetches_in_a_lab() {
    if !has(&["curl", "python3"]) || machine("probe").is_none() {
        return;
    }
    let (folder, bytes) = (tempfile::tempdir().unwrap(), noise(5_000_000));
    fs::write(folder.path().join("film"), &bytes).unwrap();
    let scenario = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/gallery/lossy.toml");
    let name = format!("st{}", std::process::id());
    let script = "
        set -e
        ip netns exec $FARPACE_NS_b python3 -m http.server 8000 >/dev/null 2>&1 & server=$!
        trap 'kill $server' EXIT
        for i in $(seq 100); do
            ip netns exec $FARPACE_NS_a curl -sf -o /dev/null http://10.0.0.2:8000/ && break
            sleep 0.1
        done
        ip netns exec $FARPACE_NS_a curl -sSf -o copy http://10.0.0.2:8000/film";
    let mut command = std::process::Command::new("timeout");
    command.args([&TIMEOUT.as_secs().to_string(), FARPACE, "lab", "up", scenario.to_str().unwrap()]);
    command.args(["--name", &name, "--set", "links.wan.forward.loss=0.0005", "--", "sh", "-c", script]);
    good(command.current_dir(folder.path()).output().unwrap());
    assert!(fs::read(folder.path().join("copy")).unwrap() == bytes, "not what is there");
}
