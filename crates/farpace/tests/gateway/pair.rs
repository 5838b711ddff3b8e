//! What passes a pair of gateways.

use crate::harness::*;
use crate::sites::{self, Sites};
use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const SERVER: &str = sites::SERVER;
const SERVER6: &str = sites::SERVER6;

/// Breaks: a connection through both gateways loses or reorders bytes, or the server sees another address;
/// one of the links is not used; strict reverse-path filters of the LAN drop what comes from the peer.
#[test]
fn bytes_pass_over_both_links_under_the_addresses_of_the_hosts() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(2, false);
    for at in 0..2 {
        sites.sysctl(at, "net/ipv4/conf/lan0/rp_filter", "1");
    }
    let [a, b] = sites.pair();
    let mut open = Vec::new();
    for address in [SERVER, SERVER6] {
        let listener = sites.listen(address);
        let (near, far) = sites.connect(&listener);
        assert_eq!(far.peer_addr().unwrap(), near.local_addr().unwrap());
        if address == SERVER {
            assert_eq!(far.peer_addr().unwrap().ip().to_string(), sites::CLIENT);
        }
        exchange(&near, &far, 0, 20_000_000);
        open.push((near, far));
    }
    for at in 0..2 {
        assert_eq!(sites.split(at), 2);
        let status = sites.status(at);
        for path in status["peer"]["paths"].as_array().unwrap() {
            assert!(path["frames"]["sent"].as_u64().unwrap() > 100, "{path}");
            assert!(path["sent_bytes"].as_u64().unwrap() > 100_000, "{path}");
        }
        assert_eq!(status["peer"]["packets"]["foreign"], 0, "{status}");
    }
    drop(open);
    a.end();
    b.end();
    (0..2).for_each(|at| sites.assert_clean(at));
}

/// Breaks: datagrams, pings or fragments do not pass, or not through the tunnel; they do not precede TCP.
#[test]
fn everything_else_passes_unsplit() {
    if !has_rights() {
        return;
    }
    // The kernel knows no way: what arrives has come through the tunnel.
    let sites = Sites::new(2, false);
    let [a, b] = sites.pair();
    for address in [SERVER, SERVER6] {
        assert!(sites.pings(address), "{address}");
    }
    let far = sites.server.within(|| UdpSocket::bind((SERVER, 7000)).unwrap()).unwrap();
    let near = sites.client.within(|| UdpSocket::bind((sites::CLIENT, 0)).unwrap()).unwrap();
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    }
    // What is longer than the tunnel bears is told so to the host, which cuts what it sends then.
    for len in [0, 100, 1_390, 1_420, 1_472, 5_000] {
        let sent: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let mut room = vec![0; 10_000];
        let mut pass = |from: &UdpSocket, to: &UdpSocket, at: std::net::SocketAddr| {
            let since = std::time::Instant::now();
            loop {
                from.send_to(&sent, at).unwrap();
                match to.recv_from(&mut room) {
                    Ok((n, source)) => {
                        assert_eq!((&room[..n], source), (&sent[..], from.local_addr().unwrap()));
                        return;
                    }
                    Err(error) => assert!(since.elapsed() < STEP_TIMEOUT, "{len} B: {error}"),
                }
            }
        };
        pass(&near, &far, far.local_addr().unwrap());
        pass(&far, &near, near.local_addr().unwrap());
    }
    let status = sites.status(0);
    assert!(status["peer"]["priority"]["sent"].as_u64().unwrap() >= 8, "{}", status["peer"]);
    assert_eq!(sites.split(0), 0);
    a.end();
    b.end();
}

/// Breaks: a refused connection looks accepted, or a reset or a FIN of one host does not reach the other.
#[test]
fn endings_pass_both_gateways() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, false);
    let [a, b] = sites.pair();
    let refused = sites.try_connect(SERVER, STEP_TIMEOUT).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let listener = sites.listen(SERVER);
    assert_endings_pass(|| sites.connect(&listener));
    for at in 0..2 {
        sites.until(at, "nothing is left of the connections", |status| status["totals"]["connections"] == 0);
    }
    a.end();
    b.end();
}

/// Breaks: a transfer ends when one of the links is cut, bytes are lost, or the link is not used again.
#[test]
fn a_transfer_outlives_a_link_that_is_cut() {
    if !has_rights() {
        return;
    }
    const BYTES: usize = 60_000_000;
    let sites = Sites::new(2, false);
    let [a, b] = sites.pair();
    let listener = sites.listen(SERVER);
    let (near, mut far) = sites.connect(&listener);
    let mut at = 0;
    for (link, state) in [(0, "down"), (0, "up"), (1, "down")] {
        let sender = send(near.try_clone().unwrap(), at, BYTES, false);
        receive(&mut far, at, BYTES / 3);
        sites.routers[1].configure(&format!("link set l{link} {state}\n")).unwrap();
        receive(&mut far, at + BYTES / 3, BYTES - BYTES / 3);
        sender.join().unwrap();
        sites.wait_for_paths(if state == "up" { 2 } else { 1 });
        at += BYTES;
    }
    exchange(&near, &far, at, 100_000);
    assert_eq!((sites.split(0), sites.split(1)), (1, 1));
    a.end();
    b.end();
}

/// Breaks: whoever has other keys is let in, or a gateway takes strangers for its peer.
#[test]
fn wrong_keys_are_refused() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, false);
    let [_, of_a] = sites.keys("right");
    let [wrong, _] = sites.keys("wrong");
    let b = sites.gateway(1, &of_a, &[]);
    let a = sites.gateway(0, &wrong, &[]);
    sites.until(1, "a stranger was rejected", |status| {
        status["peer"]["paths"][0]["rejected_datagrams"].as_u64().unwrap() > 0
    });
    for at in 0..2 {
        let peer = &sites.status(at)["peer"];
        assert_eq!((&peer["heard"], &peer["caught"]), (&false.into(), &false.into()), "{peer}");
        assert_eq!((&peer["paths"][0]["proven"], &peer["paths"][0]["up"]), (&false.into(), &false.into()));
    }
    let check = sites.farpace(0, &["gateway", "check"]);
    assert_eq!(check.status.code(), Some(1));
    let text = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(text.contains("not heard yet") && text.contains("farpace gateway keys"), "{text}");
    a.end();
    b.end();
}

/// Breaks: datagrams of strangers, and replays, disturb a pair.
#[test]
fn datagrams_of_strangers_do_nothing() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, false);
    let [a, b] = sites.pair();
    let before = sites.status(1)["peer"]["paths"][0]["rejected_datagrams"].as_u64().unwrap();
    let listener = sites.listen(SERVER);
    let (near, far) = sites.connect(&listener);
    let stranger = sites.routers[0].within(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    let mut seed = 1_u32;
    for number in 0..500_usize {
        // The types of WireGuard's messages, with anything behind them.
        let len = [0, 1, 32, 64, 92, 148, 200, 1_400][number % 8];
        let mut bytes: Vec<u8> = (0..len)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        if len >= 4 {
            bytes[..4].copy_from_slice(&[(number % 5) as u8, 0, 0, 0]);
        }
        let _ = stranger.send_to(&bytes, "172.16.0.2:51820");
        if number % 100 == 0 {
            exchange(&near, &far, 100_000 * (number / 100), 100_000);
        }
    }
    sites.until(1, "they were rejected", |status| {
        status["peer"]["paths"][0]["rejected_datagrams"].as_u64().unwrap() > before + 100
    });
    exchange(&near, &far, 500_000, 100_000);
    let status = sites.status(1);
    assert_eq!((&status["peer"]["paths"][0]["moves"], sites.split(1)), (&0.into(), 1), "{}", status["peer"]);
    a.end();
    b.end();
}

/// Breaks: after `kill -9` of one gateway new connections do not pass by the kernel, because the other one
/// still sends into the tunnel; something is left over; or the pair does not come back.
#[test]
fn a_killed_gateway_leaves_forwarding_at_both_sites() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(2, true);
    let [of_b, of_a] = sites.keys("keys");
    let b = sites.gateway(1, &of_a, &[]);
    let a = sites.gateway(0, &of_b, &[]);
    sites.wait_for_paths(2);
    let listener = sites.listen(SERVER);
    let (near, far) = sites.connect(&listener);
    exchange(&near, &far, 0, 1_000_000);
    a.signal(nix::sys::signal::Signal::SIGKILL);
    a.wait();
    sites.assert_clean(0);
    let doctor = sites.farpace(0, &["doctor", "--json"]);
    assert!(!String::from_utf8_lossy(&doctor.stdout).contains("gateway"), "something is left over");
    sites.until(1, "the peer is down", |status| status["peer"]["caught"] == false);
    let (near, far) = sites.connect(&listener);
    exchange(&near, &far, 0, 1_000_000);
    assert_eq!(sites.split(1), 1);
    let a = sites.gateway(0, &of_b, &[]);
    sites.wait_for_paths(2);
    exchange(&near, &far, 7, 1_000_000);
    let (near, far) = sites.connect(&listener);
    exchange(&near, &far, 0, 1_000_000);
    assert_eq!((sites.split(0), sites.split(1)), (1, 2));
    a.end();
    b.end();
    (0..2).for_each(|at| sites.assert_clean(at));
}

/// Breaks: an orderly end of one gateway in the middle of transfers resets connections, because the other one
/// still has bytes for it; it waits without need; or the pair does not split again after it.
#[test]
fn a_stop_and_a_start_of_either_gateway_lose_nothing() {
    if !has_rights() {
        return;
    }
    const BYTES: usize = 60_000_000;
    let sites = Sites::new(1, true);
    for at in [0, 1] {
        let slow = "tc qdisc add dev l0 root tbf rate 200mbit burst 64kb latency 50ms";
        let slow = sites.on_router(at, &slow.split(' ').collect::<Vec<_>>()).status().unwrap();
        assert!(slow.success());
    }
    let keys = sites.keys("keys");
    let start = |at: usize| sites.gateway(at, &keys[at], &[]);
    let b = start(1);
    let mut pair = [Some(start(0)), Some(b)];
    sites.wait_for_paths(1);
    let listener = sites.listen(SERVER);
    // One of them, the other one, and both at once.
    for ended in [&[0][..], &[1], &[0, 1]] {
        let (mut near, mut far) = sites.connect(&listener);
        let senders = [&near, &far].map(|end| send(end.try_clone().unwrap(), 0, BYTES, false));
        let readers = [
            std::thread::spawn(move || receive(&mut near, 0, BYTES)),
            std::thread::spawn(move || receive(&mut far, 0, BYTES)),
        ];
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!([0, 1].map(|at| sites.status(at)["totals"]["connections"] == 1), [true; 2]);
        let since = std::time::Instant::now();
        let ends: Vec<_> = ended
            .iter()
            .map(|at| pair[*at].take().unwrap())
            .map(|gateway| std::thread::spawn(move || gateway.end()))
            .collect();
        let ends: Vec<_> = ends.into_iter().map(|end| end.join().unwrap()).collect();
        let lasted = since.elapsed();
        assert!(lasted < Duration::from_secs(10), "{ended:?}: {lasted:?}");
        for end in ends {
            assert_eq!((&end["connections"], &end["cut"]), (&0.into(), &0.into()), "{ended:?}: {end}");
        }
        if let [one] = ended {
            sites.until(1 - one, "the peer is down", |status| status["peer"]["caught"] == false);
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        for at in ended.iter().rev() {
            pair[*at] = Some(start(*at));
        }
        sites.wait_for_paths(1);
        let split = [0, 1].map(|at| sites.split(at));
        let (near, far) = sites.connect(&listener);
        exchange(&near, &far, 0, 100_000);
        assert_eq!([0, 1].map(|at| sites.split(at)), split.map(|count| count + 1));
    }
    for gateway in pair.into_iter().flatten() {
        let since = std::time::Instant::now();
        gateway.end();
        assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    }
}

/// Breaks: a host waits for ever for bytes that were lost with the gateway of the other site, when that is
/// back, though the other host was reset; or a connection that lost nothing ends.
#[test]
fn hosts_hear_of_what_a_killed_gateway_has_lost() {
    if !has_rights() {
        return;
    }
    // The gateway is back before the peer has given it up, and after that.
    for away in [0, 4] {
        // The kernel knows no way.
        let sites = Sites::new(1, false);
        let [of_b, of_a] = sites.keys("keys");
        let b = sites.gateway(1, &of_a, &[]);
        let a = sites.gateway(0, &of_b, &[]);
        sites.wait_for_paths(1);
        let listener = sites.listen(SERVER);
        let (whole, far_whole) = sites.connect(&listener);
        exchange(&whole, &far_whole, 0, 10_000);
        let (mut near, mut far) = sites.connect(&listener);
        exchange(&near, &far, 0, 10_000);
        sites.routers[0].configure("link set l0 down\n").unwrap();
        near.write_all(&[7; 100_000]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        a.signal(nix::sys::signal::Signal::SIGKILL);
        a.wait();
        let ended = read_some(&mut near, &mut [0; 10]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
        std::thread::sleep(Duration::from_secs(away));
        sites.routers[0].configure("link set l0 up\n").unwrap();
        let a = sites.gateway(0, &of_b, &[]);
        sites.wait_for_paths(1);
        let mut all = Vec::new();
        assert_eq!(far.read_to_end(&mut all).unwrap_err().kind(), ErrorKind::ConnectionReset, "{away} s");
        exchange(&whole, &far_whole, 10_000, 100_000);
        a.end();
        b.end();
    }
}

/// Breaks: after a restart of the gateway that waits for the other one, the pair is away for 15 s, because
/// the other one goes on with keys that nobody knows any more.
#[test]
fn a_gateway_that_waits_is_back_soon() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(2, false);
    // The one that waits is at b.
    let [of_b, of_a] = sites.keys("keys");
    let b = sites.gateway(1, &of_a, &[]);
    let a = sites.gateway(0, &of_b, &[]);
    sites.wait_for_paths(2);
    b.signal(nix::sys::signal::Signal::SIGKILL);
    b.wait();
    let b = sites.gateway(1, &of_a, &[]);
    let began = std::time::Instant::now();
    sites.wait_for_paths(2);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    a.end();
    b.end();
}

/// Breaks: a peer that is down opens the way for unencrypted traffic though it is to be held.
#[test]
fn traffic_is_held_if_it_is_to_be() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, true);
    let [of_b, _] = sites.keys("keys");
    let file = sites.files.path().join("gateway.toml");
    std::fs::write(&file, "peer_down = \"hold\"\n").unwrap();
    let a = sites.gateway(0, &of_b, &["--config", file.to_str().unwrap()]);
    assert_eq!(sites.status(0)["peer"]["caught"], true);
    let _listener = sites.listen(SERVER);
    assert!(sites.try_connect(SERVER, Duration::from_millis(1_500)).is_err());
    a.end();
    assert!(sites.try_connect(SERVER, STEP_TIMEOUT).is_ok());
}

/// Breaks: `peer_down = "hold"` that is read again while the peer is down does not hold its traffic, or
/// "pass" does not let it pass again.
#[test]
fn a_reload_holds_traffic_and_lets_it_pass() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, true);
    let [of_b, _] = sites.keys("keys");
    let file = sites.files.path().join("gateway.toml");
    std::fs::write(&file, "").unwrap();
    let a = sites.gateway(0, &of_b, &["--config", file.to_str().unwrap()]);
    assert_eq!(sites.status(0)["peer"]["caught"], false);
    let _listener = sites.listen(SERVER);
    assert!(sites.try_connect(SERVER, STEP_TIMEOUT).is_ok());
    std::fs::write(&file, "peer_down = \"hold\"\n").unwrap();
    a.signal(nix::sys::signal::Signal::SIGHUP);
    sites.until(0, "traffic is held", |status| status["peer"]["caught"] == true);
    assert!(sites.try_connect(SERVER, Duration::from_millis(1_500)).is_err());
    std::fs::write(&file, "peer_down = \"pass\"\n").unwrap();
    a.signal(nix::sys::signal::Signal::SIGHUP);
    sites.until(0, "traffic passes", |status| status["peer"]["caught"] == false);
    assert!(sites.try_connect(SERVER, STEP_TIMEOUT).is_ok());
    a.end();
    sites.assert_clean(0);
}

/// Breaks: a gateway ends when the rules that lead to a peer cannot be taken away, says nothing of it, or
/// does not try again.
#[test]
fn rules_that_stay_do_not_end_the_gateway() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, true);
    let folder = sites.files.path();
    let fails = folder.join("fails");
    let ip = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"];
    let ip = ip.iter().find(|path| std::path::Path::new(path).exists()).unwrap();
    // The rules are taken away by `ip -force -batch -`.
    let script = format!(
        "#!/bin/sh\nif [ -e {} ]; then for word; do if [ \"$word\" = -force ]; then\n\
         echo 'RTNETLINK answers: Device or resource busy' >&2; exit 1; fi; done; fi\nexec {ip} \"$@\"\n",
        fails.display()
    );
    let tool = folder.join("ip");
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("PATH={}:{}", folder.display(), std::env::var("PATH").unwrap());
    let [of_b, of_a] = sites.keys("keys");
    let b = sites.gateway(1, &of_a, &[]);
    let a = sites.gateway_by(0, &["env", &search], &of_b, &[]);
    sites.wait_for_paths(1);
    std::fs::write(&fails, "").unwrap();
    b.signal(nix::sys::signal::Signal::SIGKILL);
    b.wait();
    sites.until(0, "the failure is told", |status| {
        let said = status["rules_error"].as_str().unwrap_or_default();
        said.contains("Device or resource busy") && status["peer"]["caught"] == true
    });
    std::fs::remove_file(&fails).unwrap();
    sites.until(0, "the rules are gone", |status| {
        status["rules_error"].is_null() && status["peer"]["caught"] == false
    });
    let _listener = sites.listen(SERVER);
    assert!(sites.try_connect(SERVER, STEP_TIMEOUT).is_ok());
    a.end();
    sites.assert_clean(0);
}

/// Breaks: a gateway does not start while the name of its peer is not found, does not say so, or does not
/// look for it again.
#[test]
fn a_name_may_be_found_later() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, false);
    let [of_b, of_a] = sites.keys_with("keys", "b=10.2.0.0/24,fd02::/64", &["peer.example.net".to_owned()]);
    let b = sites.gateway(1, &of_a, &[]);
    let [hosts, nothing] = ["hosts", "nothing"].map(|name| sites.files.path().join(name));
    [&hosts, &nothing].iter().for_each(|file| std::fs::write(file, "").unwrap());
    // `ip netns exec` has given the process mounts of its own.
    let script = format!(
        "mount --bind {} /etc/hosts && mount --bind {} /etc/resolv.conf && exec \"$@\"",
        hosts.display(),
        nothing.display()
    );
    let a = sites.gateway_by(0, &["sh", "-c", &script, "sh"], &of_b, &[]);
    let found = a.up["up"]["peer"]["paths"][0]["found"].as_str().unwrap();
    assert!(found.contains("`peer.example.net:51820` is not found"), "{found}");
    let path = &sites.status(0)["peer"]["paths"][0];
    assert!(path["endpoint_error"].as_str().unwrap().contains("is not found"), "{path}");
    std::fs::write(&hosts, "172.16.0.2 peer.example.net\n").unwrap();
    sites.wait_for_paths(1);
    let path = &sites.status(0)["peer"]["paths"][0];
    assert_eq!((&path["endpoint_error"], &path["endpoint"]), (&().into(), &"172.16.0.2:51820".into()));
    assert!(sites.pings(SERVER));
    a.end();
    b.end();
}

/// Breaks: other users can read the keys, a file that they can read is used, or `check` does not say that the
/// peer does not answer.
#[test]
fn files_of_peers_are_for_one_user() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, false);
    let [of_b, of_a] = sites.keys("keys");
    for file in [&of_b, &of_a] {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let peer = of_b.to_str().unwrap();
    let words = ["gateway", "check", "--lan", "lan0", "--peer", peer, "--via", "l0"];
    let silent = sites.farpace(0, &words);
    let text = String::from_utf8_lossy(&silent.stdout).into_owned();
    assert!(silent.status.code() == Some(1) && text.contains("no answer to a WireGuard handshake"), "{text}");
    let b = sites.gateway(1, &of_a, &[]);
    let heard = sites.farpace(0, &words);
    let text = String::from_utf8_lossy(&heard.stdout).into_owned();
    assert!(heard.status.success() && text.contains("172.16.0.2:51820 answers"), "{text}");
    b.end();
    std::fs::set_permissions(&of_b, std::fs::Permissions::from_mode(0o644)).unwrap();
    let up = sites.farpace(0, &["gateway", "up", "--lan", "lan0", "--peer", peer]);
    let error = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(up.status.code() == Some(2) && error.contains("chmod 600"), "{error}");
}
