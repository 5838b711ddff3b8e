//! Programs behind WireGuard, without privileges.

use crate::harness::{FARPACE, Running, good, has, libraries, machine, noise, run};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farpace::live::device::udp_tunnel::SecretKey;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// Breaks: programs need root for a tunnel, the endpoint is looked for inside of the tunnel, or keys are seen
/// by others.
#[test]
fn a_curl_without_privileges_reaches_a_server_behind_wireguard() {
    if !has(&["curl", "python3", "setpriv"]) {
        return;
    }
    let Some((a, b)) = machine("wa").and_then(|a| Some((a, machine("wb")?))) else { return };
    let veth = format!(
        "link add far0 type veth peer name far0 netns {}\naddr add 10.0.0.1/24 dev far0\nlink set far0 up\n",
        b.name()
    );
    a.configure(&veth).unwrap();
    b.configure("addr add 10.0.0.2/24 dev far0\nlink set far0 up\n").unwrap();
    libraries();
    let (folder, bytes) = (tempfile::tempdir().unwrap(), noise(10_000_000));
    // The program's folder may be closed to others: a copy is not.
    for name in ["farpace", "libfarpace.so", "libfarpace_preload.so"] {
        let copy = folder.path().join(name);
        fs::copy(Path::new(FARPACE).parent().unwrap().join(name), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(folder.path().join("film"), &bytes).unwrap();
    let (server, client) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
    let file = |name: &str, own: &SecretKey, address: &str, port: &str, peer: &SecretKey, rest: &str| {
        let (path, key) = (folder.path().join(name), STANDARD.encode(own.to_bytes()));
        let text = format!(
            "[Interface]\nPrivateKey = {key}\nAddress = {address}/24\n{port}[Peer]\nPublicKey = {}\n{rest}\n",
            peer.public()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    };
    file("a.conf", &server, "10.9.0.1", "ListenPort = 51820\n", &client, "AllowedIPs = 10.9.0.2/32");
    // Everything is behind the tunnel, but for what the tunnel itself sends.
    file("b.conf", &client, "10.9.0.2", "", &server, "AllowedIPs = 0.0.0.0/0\nEndpoint = 10.0.0.1:51820");
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let nobody = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "./farpace",
        "exec",
        "--wireguard",
    ];
    let serve = [&nobody[..], &["a.conf", "--", "python3", "-m", "http.server", "8000"]].concat();
    let _server = Running::saying(&a, &serve, folder.path(), "Serving HTTP");
    let curl = [
        "curl",
        "-sSf",
        "-m",
        "40",
        "--retry",
        "20",
        "--retry-connrefused",
        "--retry-delay",
        "1",
        "-o",
        "copy",
    ];
    let fetch = [&nobody[..], &["b.conf", "--"], &curl[..], &["http://10.9.0.1:8000/film"]].concat();
    good(run(&b, &fetch, folder.path()));
    assert!(fs::read(folder.path().join("copy")).unwrap() == bytes);
    // Who has the key is not asked for it in the clear, and a wrong one is told before the program begins.
    file(
        "c.conf",
        &SecretKey::generate().unwrap(),
        "10.9.0.2",
        "",
        &server,
        "AllowedIPs = 0.0.0.0/0\nEndpoint = 10.0.0.1:51820",
    );
    let refused = run(&b, &[&nobody[..], &["c.conf", "--", "true"]].concat(), folder.path());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(2) && error.contains("no answer to a WireGuard handshake"),
        "{error}"
    );
    fs::set_permissions(folder.path().join("b.conf"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(&b, &[&nobody[..], &["b.conf", "--", "true"]].concat(), folder.path());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("chmod 600"));
}
