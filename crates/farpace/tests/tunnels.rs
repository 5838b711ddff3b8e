//! `farpace forward`, `perf`, and several paths, as people run them, over loopback with a script in ssh's
//! place.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farpace::live::Wait;
use farpace::live::device::UdpTunnel;
use farpace::live::device::udp_tunnel::{SecretKey, WireguardFile};
use farpace::live::socket::{SocketOptions, Stack};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FARPACE: &str = env!("CARGO_BIN_EXE_farpace");

/// A script in ssh's place: it runs the command, after a line of a login script.
fn fake_ssh(place: &Path) -> String {
    let script = place.join("fake-ssh");
    fs::write(&script, "#!/bin/sh\necho Welcome\nshift\nexec sh -c \"$*\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

fn farpace(ssh: &str, args: &[&str]) -> Command {
    let mut command = Command::new(FARPACE);
    command.arg(args[0]).args(["--ssh-command", ssh, "--remote-command", FARPACE]).args(&args[1..]);
    // As ssh says by which address it came: the only one that loopback takes from a socket that is bound to
    // it.
    command.env("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22").env_remove("FARPACE_TICKET");
    command
}

/// Ends a command that waits for Ctrl-C.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Breaks: what is sent to a forwarded port arrives changed, the end of one direction ends both, or a host
/// that cannot be reached is not told.
#[test]
fn ports_are_forwarded_both_ways() {
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path());
    // It answers what it got when it has got all of it.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = server.accept() {
            std::thread::spawn(move || {
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                stream.write_all(&all).unwrap();
            });
        }
    });
    for stack in ["farpace", "kernel"] {
        let (port, nowhere) = (free_port(), free_port());
        let rules = [format!("{port}:127.0.0.1:{to}"), format!("{nowhere}:127.0.0.1:1")];
        let mut command =
            farpace(&ssh, &["forward", "-L", &rules[0], "-L", &rules[1], "--stack", stack, "me@127.0.0.1"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let _running = Running(child);
        let said = errors.next().unwrap().unwrap();
        assert!(said.starts_with("By "), "{said}");
        assert!(
            errors.next().unwrap().unwrap().contains(&format!("127.0.0.1:{port} leads to 127.0.0.1:{to}"))
        );
        let data: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                    let mut writer = stream.try_clone().unwrap();
                    let sent = data.clone();
                    let writing = std::thread::spawn(move || {
                        writer.write_all(&sent).unwrap();
                        writer.shutdown(Shutdown::Write).unwrap();
                    });
                    let mut back = Vec::new();
                    stream.read_to_end(&mut back).unwrap();
                    writing.join().unwrap();
                    assert!(back == data, "{stack}: {} of {} B came back", back.len(), data.len());
                });
            }
        });
        let mut refused = TcpStream::connect(("127.0.0.1", nowhere)).unwrap();
        let ended = refused.read(&mut [0; 16]).map_err(|error| error.kind());
        assert_eq!(ended, Err(ErrorKind::ConnectionReset), "{stack}");
        assert!(errors.any(|line| line.unwrap().contains("127.0.0.1:1: cannot connect")));
    }
}

/// Reads what comes, and how it ends.
fn read_all(mut from: &TcpStream) -> (usize, Option<ErrorKind>) {
    from.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut all = Vec::new();
    let end = from.read_to_end(&mut all).err().map(|error| error.kind());
    (all.len(), end)
}

fn reset(stream: TcpStream) {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
}

/// Breaks: a program at one end of a forwarded connection takes a reset of the other, or the end of the
/// command, for an orderly end; or a reset discards the data before it.
#[test]
fn resets_are_forwarded_both_ways() {
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap().port();
    for stack in ["farpace", "kernel"] {
        let port = free_port();
        let rule = format!("{port}:127.0.0.1:{to}");
        let mut command = farpace(&ssh, &["forward", "-L", &rule, "--stack", stack, "me@127.0.0.1"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let running = Running(child);
        assert!(errors.by_ref().any(|line| line.unwrap().contains("leads to")));
        let connected = || {
            // What the client says reaches the server without an answer.
            let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
            client.write_all(b"hello").unwrap();
            let (mut server, _) = server.accept().unwrap();
            server.read_exact(&mut [0; 5]).unwrap();
            (client, server)
        };
        for by_server in [false, true] {
            let (client, server) = connected();
            let (mut from, to) = if by_server { (server, client) } else { (client, server) };
            from.write_all(&[7; 100_000]).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            reset(from);
            let ended = read_all(&to);
            assert_eq!(ended, (100_000, Some(ErrorKind::ConnectionReset)), "{stack}, {by_server}");
        }
        let (client, server) = connected();
        drop(running);
        assert_eq!(read_all(&client), (0, Some(ErrorKind::ConnectionReset)), "{stack}");
        assert_eq!(read_all(&server), (0, Some(ErrorKind::ConnectionReset)), "{stack}");
    }
}

/// Breaks: the test measures nothing, the other direction, or says what limits without numbers.
#[test]
fn throughput_is_measured_and_explained() {
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path());
    for (args, carrier, limit) in [
        (&["--time", "1"][..], "farpace", None),
        (&["--time", "1", "--reverse"], "farpace", None),
        (&["--time", "1", "--stack", "kernel"], "tls", None),
        (&["--time", "2", "--limit", "20mbit"], "farpace", Some("cap")),
        (&["--time", "2", "--limit", "20mbit", "--reverse"], "farpace", Some("cap")),
    ] {
        let all = [&["perf", "127.0.0.1", "--json"], args].concat();
        let output = farpace(&ssh, &all).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(result["bytes"].as_u64().unwrap() > 1_000_000, "{args:?}: {result}");
        assert_eq!(result["carrier"], carrier);
        assert!(result["sentence"].as_str().unwrap().starts_with("Limited by "), "{result}");
        if let Some(limit) = limit {
            assert_eq!(result["limit"], limit, "{args:?}: {result}");
            let rate = result["rate_bit_s"].as_f64().unwrap();
            assert!((10e6..25e6).contains(&rate), "{args:?}: {rate}");
        }
        if carrier == "farpace" {
            assert!(result["sender"]["segments"].as_u64().unwrap() > 10, "{args:?}: {result}");
        }
    }
}

/// A program in the place of ssh that starts the far end here, and the file with its process number.
fn numbered_ssh(folder: &Path) -> (PathBuf, PathBuf) {
    let (script, number) = (folder.join("fake-ssh"), folder.join("pid"));
    fs::write(&script, format!("#!/bin/sh\nshift\necho $$ > {}\nexec sh -c \"exec $*\"\n", number.display()))
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    (script, number)
}

/// The exit code of a program that ends within this time; otherwise it is killed.
fn exit_code(mut child: Child, within: Duration) -> Option<i32> {
    let end = Instant::now() + within;
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if Instant::now() > end => break None,
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    code
}

/// Breaks: a test on a path that carries nothing any more cannot be interrupted.
#[test]
fn a_test_that_stands_still_can_be_interrupted() {
    let tools = tempfile::tempdir().unwrap();
    let (script, number) = numbered_ssh(tools.path());
    for way in [&["--time", "60"][..], &["--time", "60", "--reverse"]] {
        let args = [&["perf", "127.0.0.1", "--json"], way].concat();
        let child = farpace(&script.display().to_string(), &args).stdin(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let far = fs::read_to_string(&number).unwrap();
        signal("-STOP", &far);
        std::thread::sleep(Duration::from_secs(1));
        signal("-INT", &child.id().to_string());
        let code = exit_code(child, Duration::from_secs(12));
        let _ = Command::new("kill").args(["-KILL", far.trim()]).stderr(Stdio::null()).status();
        assert_eq!(code, Some(130), "{way:?}");
    }
}

/// Breaks: a forwarded port falls silent with its tunnel and nobody is told why, or the user is told again
/// and again, or not that it is over; or connections do not survive a short outage.
#[test]
fn an_outage_of_a_forwarding_tunnel_is_told() {
    let tools = tempfile::tempdir().unwrap();
    let (script, number) = numbered_ssh(tools.path());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free_port();
    let rule = format!("{port}:127.0.0.1:{}", server.local_addr().unwrap().port());
    let args = ["forward", "-L", &rule, "--stack", "farpace", "me@127.0.0.1"];
    let mut command = farpace(&script.display().to_string(), &args);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running(child);
    assert!(errors.by_ref().any(|line| line.unwrap().contains("leads to")));
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.write_all(b"hello").unwrap();
    let (mut served, _) = server.accept().unwrap();
    served.read_exact(&mut [0; 5]).unwrap();
    let far = fs::read_to_string(&number).unwrap();
    signal("-STOP", &far);
    client.write_all(b"again").unwrap();
    let told = errors.next().unwrap().unwrap();
    // Longer than it takes to be told twice.
    std::thread::sleep(Duration::from_secs(2));
    signal("-CONT", &far);
    let over = errors.next().unwrap().unwrap();
    assert!(told.starts_with("No answer from me@127.0.0.1 for "), "{told}");
    assert!(told.contains("new ones are reset after 20 s"), "{told}");
    assert!(over.starts_with("me@127.0.0.1 answers again, after "), "{over}");
    served.read_exact(&mut [0; 5]).unwrap();
    drop(running);
    assert_eq!(errors.next().map(Result::unwrap), None);
}

/// Breaks: while ssh does not get anywhere, the command cannot be interrupted.
#[test]
fn a_command_whose_ssh_hangs_can_be_interrupted() {
    let tools = tempfile::tempdir().unwrap();
    let script = tools.path().join("fake-ssh");
    fs::write(&script, "#!/bin/sh\nexec sleep 300\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let film = tools.path().join("film");
    fs::write(&film, "film").unwrap();
    for args in [
        &["copy", film.to_str().unwrap(), "me@127.0.0.1:there"][..],
        &["forward", "-L", &format!("{}:127.0.0.1:1", free_port()), "me@127.0.0.1"],
        &["perf", "me@127.0.0.1"],
    ] {
        let child = farpace(&script.display().to_string(), args).stdin(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let code = exit_code(child, Duration::from_secs(15));
        assert_eq!(code, Some(130), "{args:?}");
    }
}

/// Breaks: a test whose far end was killed waits for a minute, blames the path, and calls it wrong usage.
#[test]
fn a_test_ends_with_its_far_end() {
    let tools = tempfile::tempdir().unwrap();
    let (script, number) = numbered_ssh(tools.path());
    for way in [&["--time", "40"][..], &["--time", "40", "--reverse"]] {
        let args = [&["perf", "127.0.0.1"], way].concat();
        let mut command = farpace(&script.display().to_string(), &args);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let far = fs::read_to_string(&number).unwrap();
        assert!(Command::new("kill").args(["-KILL", far.trim()]).status().unwrap().success());
        let begun = Instant::now();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && errors.contains("the far end is gone"),
            "{way:?}: {errors}"
        );
        assert!(begun.elapsed() < Duration::from_secs(20), "{way:?}: {:?}", begun.elapsed());
    }
}

/// Breaks: several paths carry nothing, or one of them is never used, or a path that is not there is not
/// told.
#[test]
fn several_paths_are_used_at_once() {
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path());
    let via = ["perf", "127.0.0.1", "--json", "--time", "2", "--via", "lo", "--via", "127.0.0.1"];
    let output = farpace(&ssh, &via).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["way"].as_str().unwrap().contains("in 2 WireGuard tunnels"), "{result}");
    for link in 0..2 {
        assert!(result["links"][link][1].as_u64().unwrap() > 1_000_000, "{result}");
    }
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(here.path().join("film"), vec![7; 3_000_000]).unwrap();
    let (film, target) = (here.path().join("film"), format!("127.0.0.1:{}", there.path().display()));
    let copy = ["copy", film.to_str().unwrap(), &target, "--via", "lo", "--via", "127.0.0.1"];
    let output = farpace(&ssh, &copy).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("in 2 WireGuard tunnels"), "{errors}");
    assert_eq!(fs::read(there.path().join("film")).unwrap(), vec![7; 3_000_000]);
    let wrong = ["perf", "127.0.0.1", "--time", "1", "--via", "nosuchnic0"];
    let output = farpace(&ssh, &wrong).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("nosuchnic0"), "{errors}");
}

/// Breaks: a host behind WireGuard needs root, is not reached by a peer of its file, or its keys may lie
/// about.
#[test]
fn a_host_is_behind_wireguard_as_a_file_says() {
    let place = tempfile::tempdir().unwrap();
    let (ours, theirs) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
    let text = |own: &SecretKey, address: &str, peer: &SecretKey, rest: &str| {
        let key = STANDARD.encode(own.to_bytes());
        let peer = peer.public();
        format!(
            "[Interface]\nPrivateKey = {key}\nAddress = {address}/24\nDNS = 10.9.0.53\n[Peer]\nPublicKey = \
             {peer}\n{rest}\n"
        )
    };
    let path = place.path().join("wg0.conf");
    fs::write(&path, text(&ours, "10.9.0.1", &theirs, "AllowedIPs = 10.9.0.2/32")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let up = || {
        let mut command = Command::new(FARPACE);
        command.args(["up", "--json", "--serve", "echo", "--wireguard"]).arg(&path);
        command
    };
    let refused = up().output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && error.contains("chmod 600"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let mut child = Running(up().stdout(Stdio::piped()).spawn().unwrap());
    let mut out = BufReader::new(child.0.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let about: serde_json::Value = serde_json::from_str(&line).unwrap();
    let device = about["up"]["device"].as_str().unwrap();
    let port: u16 = device.split_once("UDP port ").unwrap().1.split(',').next().unwrap().parse().unwrap();
    // What `wg-quick` would take is what the other end takes.
    let rest = format!("AllowedIPs = 10.9.0.1/32\nEndpoint = 127.0.0.1:{port}");
    let file: WireguardFile = text(&theirs, "10.9.0.2", &ours, &rest).parse().unwrap();
    let mut device = UdpTunnel::open(&file.config).unwrap();
    device.dial(Duration::from_secs(20), &|| false).unwrap();
    let stack = Stack::on_device(Box::new(device), &file.config.addresses, Wait::Sleep).unwrap();
    let options = SocketOptions::profile("farpace").unwrap();
    let mut stream = stack.connect(("10.9.0.1", 7), &options).unwrap();
    let sent: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (mut writer, bytes) = (stream.clone(), sent.clone());
    let writing = std::thread::spawn(move || {
        writer.write_all(&bytes).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    writing.join().unwrap();
    assert!(back == sent, "{} of {} B came back", back.len(), sent.len());
}

/// A copy of 20 MB at 8 Mbit/s that has gone on for a second, and the process number of its far end.
fn slow_copy(tools: &Path, timeout: &str) -> (Child, String) {
    let (script, number) = numbered_ssh(tools);
    let film = tools.join("film");
    fs::write(&film, vec![7; 20_000_000]).unwrap();
    let place = format!("127.0.0.1:{}/there", tools.display());
    let args = ["copy", film.to_str().unwrap(), &place, "--limit", "8mbit", "--timeout", timeout];
    let mut command = farpace(&script.display().to_string(), &args);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !number.exists() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    (child, fs::read_to_string(&number).unwrap().trim().to_owned())
}

fn signal(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
}

/// Breaks: a copy whose other end has fallen silent ends seconds after its timeout, because ssh does not.
#[test]
fn a_silent_copy_ends_at_its_timeout() {
    let tools = tempfile::tempdir().unwrap();
    let (mut child, far) = slow_copy(tools.path(), "4");
    signal("-STOP", &far);
    // How late this machine wakes who sleeps.
    let (begun, mut lateness) = (Instant::now(), Duration::ZERO);
    while child.try_wait().unwrap().is_none() {
        let (asleep, step) = (Instant::now(), Duration::from_millis(20));
        std::thread::sleep(step);
        lateness = lateness.max(asleep.elapsed() - step);
    }
    let late = begun.elapsed().saturating_sub(Duration::from_secs(4));
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("nothing came from the other side for 4 s"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
    // A copy wakes many times until it has ended.
    assert!(late < Duration::from_millis(2_500) + lateness * 20, "{late:?} late, the machine {lateness:?}");
}

/// Breaks: the far end of a copy whose near end was killed stays until its timeout, or says that it was
/// interrupted.
#[test]
fn a_far_end_says_that_its_near_end_is_gone() {
    let tools = tempfile::tempdir().unwrap();
    let (mut child, far) = slow_copy(tools.path(), "60");
    let errors = child.stderr.take().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    // The far end has it, too.
    let errors: Vec<String> = BufReader::new(errors).lines().map(Result::unwrap).collect();
    let text = errors.join("\n");
    assert!(begun.elapsed() < Duration::from_secs(40), "{far} stays: {text}");
    assert!(
        text.contains("ssh has ended, and nothing moved for 5 s") && !text.contains("interrupted"),
        "{text}"
    );
}
