//! curl and a web server, one of them on farpace's TCP.

use crate::harness::*;
use std::fs;
use std::path::Path;

const MUCH: usize = 100_000_000;
const SERVER: [&str; 3] = ["python3", "-m", "http.server"];

fn curl<'a>(url: &'a str, into: &'a str) -> [&'a str; 5] {
    ["curl", "-sSfg", "-o", into, url]
}

/// A folder with a large file, and what is in it.
fn folder() -> (tempfile::TempDir, Vec<u8>) {
    let (folder, bytes) = (tempfile::tempdir().unwrap(), noise(MUCH));
    fs::write(folder.path().join("film"), &bytes).unwrap();
    (folder, bytes)
}

fn fetched(folder: &Path, bytes: &[u8], what: &str) {
    let file = folder.join("copy");
    // Not `assert_eq!`: nobody wants to see them.
    assert!(fs::read(&file).unwrap() == bytes, "{what}: not what is there");
    fs::remove_file(file).unwrap();
}

/// Breaks: servers that know nothing of farpace, on farpace's TCP, with clients of the kernel.
#[test]
fn the_kernels_curl_fetches_from_a_server_on_farpace() {
    if !has(&["curl", "python3"]) {
        return;
    }
    let Some(machine) = machine("srv") else { return };
    let (folder, bytes) = folder();
    let server = exec(&["--tun", "st0"], &[&SERVER[..], &["8000"]].concat());
    let server = Running::saying(&machine, &server, folder.path(), "Serving HTTP");
    listening(&machine, "10.77.0.2:8000");
    let url = "http://10.77.0.2:8000/film";
    good(run(&machine, &curl(url, "copy"), folder.path()));
    fetched(folder.path(), &bytes, url);
    // Many small ones, on connections of their own.
    for _ in 0..20 {
        let listing = good(run(&machine, &["curl", "-sSf", "http://10.77.0.2:8000/"], folder.path()));
        assert!(listing.contains("film"), "{listing}");
    }
    // The kernel's loopback has nothing of it.
    assert_eq!(
        run(&machine, &["curl", "-s", "http://127.0.0.1:8000/"], folder.path()).status.code(),
        Some(7)
    );
    server.signal("-INT");
    assert_eq!(server.ends(), Some(0));
    assert!(machine.configure("link show st0\n").is_err(), "the device has stayed");
}

/// Breaks: the same over IPv6, with a server that listens at all addresses of both families.
#[test]
fn a_server_of_both_families_hears_both() {
    if !has(&["curl", "python3"]) {
        return;
    }
    let Some(machine) = machine("six") else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page"), "hello").unwrap();
    let server = exec(&["--tun", "st0"], &[&SERVER[..], &["8000", "--bind", "::"]].concat());
    let _server = Running::saying(&machine, &server, folder.path(), "Serving HTTP");
    listening(&machine, "10.77.0.2:8000");
    for url in ["http://[fd77::2]:8000/page", "http://10.77.0.2:8000/page"] {
        assert_eq!(good(run(&machine, &["curl", "-sSfg", url], folder.path())), "hello", "{url}");
    }
}

/// Breaks: clients that know nothing of farpace, on farpace's TCP, with servers of the kernel; or what is not
/// for farpace's networks does not go to the kernel.
#[test]
fn a_curl_on_farpace_fetches_from_the_kernels_server() {
    if !has(&["curl", "python3"]) {
        return;
    }
    let Some(machine) = machine("cli") else { return };
    let (folder, bytes) = folder();
    let server = [&SERVER[..], &["8000", "--bind", "::"]].concat();
    let _server = Running::saying(&machine, &server, folder.path(), "Serving HTTP");
    for url in ["http://10.77.0.1:8000/film", "http://[fd77::1]:8000/film"] {
        good(run(&machine, &exec(&["--tun", "st1"], &curl(url, "copy")), folder.path()));
        fetched(folder.path(), &bytes, url);
    }
    if has(&["tshark"]) {
        // tshark puts a page together, and takes long for a large one.
        fs::write(folder.path().join("page"), noise(2_000_000)).unwrap();
        let capture = folder.path().join("exec.pcapng");
        let options = ["--tun", "st1", "--pcap", capture.to_str().unwrap()];
        good(run(&machine, &exec(&options, &curl("http://[fd77::1]:8000/page", "copy")), folder.path()));
        assert!(tshark(&capture, "ipv6 && tcp.len > 0") > 1000);
        assert_eq!(
            tshark(&capture, "_ws.malformed || tcp.checksum.status == \"Bad\" || frame.len > 1514"),
            0
        );
    }
    // Loopback is the kernel's, and so is what nobody has named: there is no way to it here.
    let local = exec(&["--tun", "st1"], &["curl", "-sSf", "http://127.0.0.1:8000/"]);
    assert!(good(run(&machine, &local, folder.path())).contains("film"));
    let refused = exec(&["--tun", "st1"], &["curl", "-sS", "http://10.77.0.1:9/"]);
    let output = run(&machine, &refused, folder.path());
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Breaks: programs on an Ethernet that is there: neighbours, the router to all else, old TCPs, captures.
#[test]
fn a_curl_on_an_ethernet_reaches_beyond_its_router() {
    if !has(&["curl", "python3"]) {
        return;
    }
    let Some((a, b)) = machine("ea").and_then(|a| Some((a, machine("eb")?))) else { return };
    let veth = format!("link add far0 type veth peer name far0 netns {}\nlink set far0 up\n", b.name());
    a.configure(&veth).unwrap();
    b.configure("link set far0 up\n").unwrap();
    // The server is the router, too.
    a.configure("addr add 10.77.1.1/24 dev far0\naddr add 192.0.2.1/32 dev lo\n").unwrap();
    let (folder, bytes) = (tempfile::tempdir().unwrap(), noise(10_000_000));
    fs::write(folder.path().join("film"), &bytes).unwrap();
    let server = [&SERVER[..], &["8000"]].concat();
    let _server = Running::saying(&a, &server, folder.path(), "Serving HTTP");
    libraries();
    for (profile, url) in
        [("linux-2.6.17", "http://10.77.1.1:8000/film"), ("farpace", "http://192.0.2.1:8000/film")]
    {
        let options =
            ["--iface", "far0", "--addr", "10.77.1.2/24", "--gateway", "10.77.1.1", "--profile", profile];
        let client = [&[FARPACE, "exec"], &options[..], &["--"], &curl(url, "copy")].concat();
        good(run(&b, &client, folder.path()));
        fetched(folder.path(), &bytes, url);
    }
}
