//! `farpace send`, `recv` and `copy` as people run them, over loopback: exit codes, messages, files.
//!
//! Long because its tests share a far end behind ssh that is none, and the helpers of both directions.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

const FARPACE: &str = env!("CARGO_BIN_EXE_farpace");

/// The command, its connections in the clear where it makes or takes them itself.
fn farpace(dir: &Path, args: &[&str]) -> Command {
    let mut command = encrypted(dir, args);
    if matches!(args.first(), Some(&("send" | "recv"))) {
        command.arg("--insecure");
    }
    command
}

fn encrypted(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(FARPACE);
    command.args(args).current_dir(dir);
    for variable in ["FARPACE_TOKEN", "FARPACE_TICKET", "SSH_CONNECTION"] {
        command.env_remove(variable);
    }
    // The secret by which a sender is known belongs to the tests.
    command.env("XDG_STATE_HOME", state());
    command
}

/// One for all tests of this process.
fn state() -> &'static Path {
    static STATE: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    STATE.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    told(farpace(dir, args).output().unwrap())
}

fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// A `farpace recv` at a port of its own, which ends with the test.
struct Receiver {
    child: Option<Child>,
    errors: BufReader<ChildStderr>,
    port: String,
}

impl Receiver {
    fn start(dir: &Path, args: &[&str]) -> Receiver {
        Receiver::start_at(dir, "127.0.0.1:0", args)
    }
    fn start_at(dir: &Path, at: &str, args: &[&str]) -> Receiver {
        let mut command = farpace(dir, &["recv", "--listen", at]);
        let command = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let port = line.split_whitespace().nth(2).expect(&line).to_owned();
        Receiver { child: Some(child), errors, port }
    }
    fn end(mut self) -> (i32, String, String) {
        let mut told = told(self.child.take().unwrap().wait_with_output().unwrap());
        self.errors.read_to_string(&mut told.2).unwrap();
        told
    }
    fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(step).collect()
}

struct Folders {
    here: tempfile::TempDir,
    there: tempfile::TempDir,
}

fn folders() -> Folders {
    Folders { here: tempfile::tempdir().unwrap(), there: tempfile::tempdir().unwrap() }
}

/// Breaks: the simplest transfer: bytes, summary on both sides, exit codes, explanation.
#[test]
fn a_file_and_a_tree_are_sent() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), noise(3_000_000)).unwrap();
    fs::create_dir_all(here.path().join("photos/2026")).unwrap();
    fs::write(here.path().join("photos/2026/a"), "a").unwrap();
    let receiver = Receiver::start(there.path(), &["--once"]);
    let port = receiver.port.clone();
    let (code, out, errors) = run(here.path(), &["send", "film", "photos", &port, "--explain"]);
    assert_eq!(code, 0, "{errors}");
    assert!(out.starts_with("sent 2 files, 3.00 MB in ") && out.contains("verified\nLimited by "), "{out}");
    // The verdict comes with what it was made from.
    assert!(out.contains("\n  this side  reading ") && out.contains("\n  receiver   writing "), "{out}");
    assert!(out.contains("\n  path       round trip ") && out.contains("receive window full"), "{out}");
    let (code, out, errors) = receiver.end();
    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("received 2 files, 3.00 MB"), "{out}");
    assert_eq!(fs::read(there.path().join("film")).unwrap(), noise(3_000_000));
    assert_eq!(fs::read_to_string(there.path().join("photos/2026/a")).unwrap(), "a");
}

/// Breaks: scripts that read the results.
#[test]
fn results_are_json() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), noise(100_000)).unwrap();
    let receiver = Receiver::start(there.path(), &["--once", "--json"]);
    let port = receiver.port.clone();
    let (_, out, _) = run(here.path(), &["send", "film", &port, "--json", "--limit", "50mbit"]);
    let sent: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((sent["files"].as_u64(), sent["bytes"].as_u64()), (Some(1), Some(100_000)));
    assert_eq!(sent["stack"], "kernel");
    assert!(sent["explanation"]["sentence"].as_str().unwrap().starts_with("Limited by "));
    let (_, out, _) = receiver.end();
    let received: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(received["files"].as_u64(), Some(1));
    assert!(received["from"].as_str().unwrap().starts_with("127.0.0.1:"));
}

/// Breaks: `--once` ends because of strangers: scans, browsers, people without the token.
#[test]
fn strangers_do_not_end_or_hold_up_a_receiver() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), "film").unwrap();
    let receiver = Receiver::start(there.path(), &["--once", "--token", "sesame"]);
    let port = receiver.port.clone();
    for _ in 0..5 {
        drop(TcpStream::connect(&port).unwrap());
    }
    let silent = TcpStream::connect(&port).unwrap();
    TcpStream::connect(&port).unwrap().write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let (code, _, errors) = run(here.path(), &["send", "film", &port]);
    assert!(code == 1 && errors.contains("the tokens differ"), "{code}: {errors}");
    assert!(!there.path().join("film").exists());
    let (code, _, errors) = run(here.path(), &["send", "film", &port, "--token", "sesame"]);
    assert_eq!(code, 0, "{errors}");
    drop(silent);
    assert_eq!(receiver.end().0, 0);
    assert!(there.path().join("film").exists());
}

/// Breaks: Ctrl-C loses what has arrived, or the exit code, on either side.
#[test]
fn an_interrupted_sender_and_receiver_go_on_from_there() {
    let Folders { here, there } = folders();
    let bytes = noise(6_000_000);
    fs::write(here.path().join("film"), &bytes).unwrap();
    // All go to one port: by that a sender without token is known again.
    let mut at = "127.0.0.1:0".to_owned();
    for interrupt_receiver in [false, true] {
        let receiver = Receiver::start_at(there.path(), &at, &["--once", "--json"]);
        at.clone_from(&receiver.port);
        let mut command = farpace(here.path(), &["send", "film", &receiver.port, "--limit", "20mbit"]);
        let sender = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(900));
        if interrupt_receiver {
            receiver.signal("-INT");
        } else {
            let id = sender.id().to_string();
            assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        }
        let (sent, received) = (told(sender.wait_with_output().unwrap()), receiver.end());
        let line: Value = serde_json::from_str(&received.1).unwrap();
        let why =
            if interrupt_receiver { "interrupted" } else { "the other side says: the sender was stopped" };
        assert!(line["complete"] == false && line["error"] == why, "{line}");
        assert!(line["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
        let (stopped, other) = if interrupt_receiver { (received, sent) } else { (sent, received) };
        assert!(stopped.0 == 130 && stopped.2.contains("to go on from there"), "{stopped:?}");
        assert!(other.0 == 1 && other.2.contains("was stopped"), "{other:?}");
        assert!(!there.path().join("film").exists());
    }
    let receiver = Receiver::start_at(there.path(), &at, &["--once"]);
    let (code, out, errors) = run(here.path(), &["send", "film", &receiver.port, "--json"]);
    assert_eq!(code, 0, "{errors}");
    let sent: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(sent["complete"], true, "{sent}");
    assert!(sent["spared_bytes"].as_u64().unwrap() > 1_000_000, "{sent}");
    assert_eq!(fs::read(there.path().join("film")).unwrap(), bytes);
}

/// Breaks: a peer that was killed leaves the other side waiting, or a file with a hole.
#[test]
fn a_killed_receiver_is_told_and_the_next_one_goes_on() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), noise(6_000_000)).unwrap();
    let receiver = Receiver::start(there.path(), &[]);
    let mut command = farpace(here.path(), &["send", "film", &receiver.port, "--limit", "20mbit"]);
    let sender = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(900));
    receiver.signal("-KILL");
    let (code, _, errors) = told(sender.wait_with_output().unwrap());
    assert!(code == 1 && errors.contains("run the same command again"), "{code}: {errors}");
    let again = Receiver::start(there.path(), &["--once"]);
    assert_eq!(run(here.path(), &["send", "film", &again.port]).0, 0);
    assert_eq!(fs::read(there.path().join("film")).unwrap(), noise(6_000_000));
}

/// Breaks: errors that do not say how to mend them, or wrong exit codes.
#[test]
fn failures_are_told() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), "film").unwrap();
    let receiver = Receiver::start(there.path(), &[]);
    let port = receiver.port.clone();
    let (code, _, errors) = run(there.path(), &["recv", "--listen", &port]);
    assert!(code == 2 && errors.contains("--listen"), "{code}: {errors}");
    let (code, _, errors) = run(here.path(), &["send", "nothing", &port]);
    assert!(code == 2 && errors.contains("nothing"), "{code}: {errors}");
    fs::write(there.path().join("film"), "else").unwrap();
    let (code, _, errors) = run(here.path(), &["send", "film", &port]);
    assert!(code == 1 && errors.contains("not transferred: film"), "{code}: {errors}");
    assert_eq!(fs::read_to_string(there.path().join("film")).unwrap(), "else");
    drop(receiver);
    let (code, _, errors) = run(here.path(), &["send", "film", &port]);
    assert!(code == 1 && errors.contains("is `farpace recv` running there?"), "{code}: {errors}");
    let (code, _, errors) = run(here.path(), &["send", "film", &port, "--stack", "farpace"]);
    assert!(code == 2 && errors.contains("--tun"), "{code}: {errors}");
    let (code, _, errors) = run(here.path(), &["recv", "--dir", "no/missing"]);
    assert!(code == 2 && errors.contains("cannot make the directory no/missing"), "{code}: {errors}");
}

/// Breaks: a port is open to the world because nobody thought of it, or a token that is empty is taken for
/// one.
#[test]
fn nobody_is_let_in_by_accident() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), "film").unwrap();
    for args in [
        &["recv", "--listen", "0.0.0.0:0"][..],
        &["recv", "--listen", "[::]:0"],
        &["recv", "--listen", "[::ffff:0.0.0.0]:0"],
        &["recv", "--listen", "192.0.2.1:0"],
    ] {
        let (code, _, errors) = run(there.path(), args);
        assert!(code == 2 && errors.contains("--open"), "{args:?}: {code}: {errors}");
    }
    for args in [&["recv", "--token", ""][..], &["send", "film", "127.0.0.1:1", "--token", ""]] {
        let (code, _, errors) = run(here.path(), args);
        assert!(code == 2 && errors.contains("--token is empty"), "{args:?}: {code}: {errors}");
        let told =
            told(farpace(here.path(), &args[..args.len() - 2]).env("FARPACE_TOKEN", "").output().unwrap());
        assert!(told.0 == 2 && told.2.contains("FARPACE_TOKEN is empty"), "{args:?}: {told:?}");
    }
    let (code, _, errors) = run(there.path(), &["recv", "--open", "--token", "t"]);
    assert!(code == 2 && errors.contains("give one of them"), "{code}: {errors}");
    // A port alone: from here only, until it is said otherwise.
    let listening = |args: &[&str]| {
        let mut command = farpace(there.path(), &[&["recv", "--listen", "0"], args].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        line
    };
    assert!(listening(&[]).contains("at 127.0.0.1:"));
    for args in [&["--open"][..], &["--token", "t"]] {
        let line = listening(args);
        assert!(line.contains("at [::]:") || line.contains("at 0.0.0.0:"), "{line}");
    }
}

/// Breaks: a negative value is taken for an option, so that nobody is told what is wrong with it.
#[test]
fn wrong_values_are_told_as_such() {
    let Folders { here, .. } = folders();
    fs::write(here.path().join("film"), "film").unwrap();
    for (args, why) in [
        (&["send", "film", "h", "--timeout", "-5"][..], "`-5` is not a time"),
        (&["send", "film", "h", "--timeout", "0"], "`0` is not a time"),
        (&["send", "film", "h", "--limit", "-5mbit"], "`-5 Mbit/s` is not a rate"),
        (&["send", "film", "h", "--limit", "-5"], "`-5` is not a rate"),
        (&["send", "film", "h:99999"], "with a port from 1 to 65535"),
        (&["send", "film", "h:-1"], "with a port from 1 to 65535"),
        (&["recv", "--max-transfers", "-1"], "`-1` is not a number from 1 to 256"),
        (&["recv", "--max-bytes", "-1GB"], "is not a size"),
        (&["recv", "--min-free", "-5%"], "is not a share"),
        (&["recv", "--listen", "-1"], "`-1` is neither"),
        (&["recv", "--keep-partial", "-1"], "`-1` is not a time"),
        (&["copy", "film", "h:", "--timeout", "-5"], "`-5` is not a time"),
    ] {
        let (code, _, errors) = run(here.path(), args);
        assert!(code == 2 && errors.contains(why), "{args:?}: {code}: {errors}");
    }
    // The last word is a file: the receiver was forgotten.
    fs::write(here.path().join("film.invalid"), "film").unwrap();
    let (code, _, errors) = run(here.path(), &["send", "film", "film.invalid"]);
    assert!(code == 1 && errors.contains("is a file here"), "{code}: {errors}");
    assert_eq!(errors.matches("film.invalid:7077").count(), 1, "{errors}");
}

/// A script in ssh's place: it runs the command in the other folder, after a line of a login script.
fn fake_ssh(place: &Path, there: &Path) -> String {
    let script = place.join("fake-ssh");
    let text = format!("#!/bin/sh\necho Welcome\ncd '{}'\nshift\nexec sh -c \"$*\"\n", there.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

/// Breaks: copy in either direction, directly or through ssh, under a new name or into a directory.
#[test]
fn copies_go_both_ways() {
    let Folders { here, there } = folders();
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path(), there.path());
    let bytes = noise(2_000_000);
    fs::create_dir(here.path().join("photos")).unwrap();
    fs::write(here.path().join("photos/it's one"), &bytes).unwrap();
    let ways: [(&str, &str, &[&str]); 3] = [
        ("direct", "farpace", &[]),
        ("tls", "tls", &["--stack", "kernel"]),
        ("ssh", "ssh", &["--through-ssh"]),
    ];
    for (way, stack, flags) in ways {
        let with = |args: &[&str]| {
            let mut all = vec!["copy", "--ssh-command", &ssh, "--remote-command", FARPACE, "--json"];
            all.extend(flags);
            all.extend(args);
            run(here.path(), &all)
        };
        let (code, out, errors) = with(&["photos", &format!("127.0.0.1:new {way}")]);
        assert_eq!(code, 0, "{way}: {errors}");
        let sent: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(sent["stack"], stack);
        assert_eq!(fs::read(there.path().join(format!("new {way}/it's one"))).unwrap(), bytes);
        fs::create_dir(here.path().join(format!("back {way}"))).unwrap();
        let (code, _, errors) = with(&[&format!("127.0.0.1:new {way}/it's one"), &format!("back {way}")]);
        assert_eq!(code, 0, "{way}: {errors}");
        assert_eq!(fs::read(here.path().join(format!("back {way}/it's one"))).unwrap(), bytes);
    }
    let none = run(
        here.path(),
        &["copy", "--ssh-command", &ssh, "--remote-command", "no-such-farpace", "photos", "h:"],
    );
    assert!(none.0 == 1 && none.2.contains("--or-scp"), "{none:?}");
    assert_eq!(run(here.path(), &["copy", "photos", "elsewhere"]).0, 2);
}

/// A script in ssh's place as scp calls it: options, `--`, the machine, and what is to run there; scp wants
/// `sftp`.
fn fake_ssh_of_scp(place: &Path, there: &Path) -> Option<String> {
    let server = ["/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/lib/ssh/sftp-server"];
    let server = server.into_iter().find(|path| Path::new(path).exists());
    let scp = Command::new("scp").output().is_ok();
    let Some(server) = server.filter(|_| scp) else {
        assert!(std::env::var_os("CI").is_none(), "no scp");
        std::io::stderr().write_all(b"skipped, needs scp and sftp-server\n").unwrap();
        return None;
    };
    let script = place.join("fake-ssh");
    let text = format!(
        "#!/bin/sh\ncd '{}'\nwhile [ $# -gt 0 ] && [ \"$1\" != -- ]; do last=$1; shift; done\n\
         [ \"$*\" = '-- h sftp' ] && exec {server}\nexec sh -c \"$last\"\n",
        there.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    Some(script.display().to_string())
}

/// Breaks: who asks for it does not get his files over there if farpace is not installed at the other end, or
/// does not hear that nothing was verified.
#[test]
fn scp_copies_where_farpace_is_not() {
    let Folders { here, there } = folders();
    let tools = tempfile::tempdir().unwrap();
    let Some(ssh) = fake_ssh_of_scp(tools.path(), there.path()) else { return };
    let bytes = noise(300_000);
    fs::create_dir(here.path().join("photos")).unwrap();
    fs::write(here.path().join("photos/one"), &bytes).unwrap();
    let with = |args: &[&str]| {
        let mut all = vec!["copy", "--ssh-command", &ssh, "--remote-command", "no-such-farpace", "--or-scp"];
        all.extend(args);
        run(here.path(), &all)
    };
    let (code, out, errors) = with(&["photos", "h:new", "--json"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("nothing is verified"), "{errors}");
    let said: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said, serde_json::json!({ "stack": "scp", "complete": true, "verified": false }));
    assert_eq!(fs::read(there.path().join("new/one")).unwrap(), bytes);
    let (code, _, errors) = with(&["h:new/one", "back"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(fs::read(here.path().join("back")).unwrap(), bytes);
    assert_eq!(with(&["h:nothing", "else"]).0, 1);
}

/// Runs a script as root in namespaces of its own; none: that is not possible here.
fn as_root(script: &str, dir: &Path) -> Option<(i32, String, String)> {
    let may = Command::new("unshare").args(["-m", "-n", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "no namespaces");
        // Not `eprintln!`: the harness hides it for tests that pass.
        std::io::stderr().write_all(b"skipped, needs root\n").unwrap();
        return None;
    }
    let mut command = Command::new("unshare");
    command
        .args(["-m", "-n", "--kill-child", "-f", "-p", "sh", "-euc", script])
        .current_dir(dir)
        .env("FARPACE", FARPACE)
        .env("XDG_STATE_HOME", state());
    Some(told(command.output().unwrap()))
}

/// Breaks: a full disk is not told to the sender with its cause, or what has arrived is lost.
#[test]
fn a_full_disk_is_told_to_the_sender() {
    let Folders { here, .. } = folders();
    fs::write(here.path().join("film"), noise(6_000_000)).unwrap();
    let script = "
        ip link set lo up
        mkdir disk; mount -t tmpfs -o size=3m tmpfs disk
        \"$FARPACE\" recv --insecure --dir disk --once --listen 127.0.0.1:7077 2>recv.log & receiver=$!
        until grep -q Receiving recv.log; do sleep 0.05; done
        code=0; \"$FARPACE\" send --insecure film 127.0.0.1:7077 || code=$?
        echo code $code
        code=0; wait $receiver || code=$?
        echo receiver $code
        ls -A disk; mount -o remount,size=9m disk
        \"$FARPACE\" recv --insecure --dir disk --once --listen 127.0.0.1:7077 2>recv2.log &
        until grep -q Receiving recv2.log; do sleep 0.05; done
        \"$FARPACE\" send --insecure film 127.0.0.1:7077 --json | grep spared_bytes
        cmp film disk/film && echo same";
    let Some((code, out, errors)) = as_root(script, here.path()) else { return };
    assert_eq!(code, 0, "{out}{errors}");
    assert!(errors.contains("the disk is full") && errors.contains("of 6000000 bytes"), "{errors}");
    assert!(out.contains("code 1\nreceiver 1\n.strangers.farpace-part\n") && out.contains("same"), "{out}");
    assert!(!out.contains("\"spared_bytes\": 0"), "{out}");
}

/// Breaks: who has no inodes left is told neither that nor which file has failed, and looks for free bytes.
#[test]
fn a_disk_without_inodes_is_told_to_the_sender() {
    let Folders { here, .. } = folders();
    fs::create_dir(here.path().join("many")).unwrap();
    for name in ["a", "b", "c", "d", "e", "f"] {
        fs::write(here.path().join("many").join(name), name).unwrap();
    }
    let script = "
        ip link set lo up
        mkdir disk; mount -t tmpfs -o size=9m,nr_inodes=5 tmpfs disk
        \"$FARPACE\" recv --insecure --token t --dir disk --once --listen 127.0.0.1:7077 2>recv.log &
        until grep -q Receiving recv.log; do sleep 0.05; done
        code=0; \"$FARPACE\" send --insecure --token t many 127.0.0.1:7077 || code=$?
        echo code $code";
    let Some((code, out, errors)) = as_root(script, here.path()) else { return };
    assert!(code == 0 && out.contains("code 1\n"), "{out}{errors}");
    assert!(errors.contains(": many/d: the disk has no room, or no inode"), "{errors}");
    assert!(errors.contains("free some space: what has arrived is kept"), "{errors}");
}

/// Breaks: farpace's own TCP as the carrier, to itself and to the kernel's.
#[test]
fn farpace_carries_to_farpace_and_to_the_kernel() {
    let Folders { here, .. } = folders();
    fs::write(here.path().join("film"), noise(8_000_000)).unwrap();
    let script = "
        ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward
        mkdir one two
        \"$FARPACE\" recv --insecure --dir one --once --open --stack farpace --tun fpone --addr 10.77.1.2/24 \
        2>one.log &
        until grep -q Receiving one.log; do sleep 0.05; done
        \"$FARPACE\" send --insecure film 10.77.1.2 --tun fptwo --addr 10.77.2.2/24 --explain
        cmp film one/film
        \"$FARPACE\" recv --insecure --dir two --once --open --listen 0.0.0.0:7077 2>two.log &
        until grep -q Receiving two.log; do sleep 0.05; done
        \"$FARPACE\" send --insecure film 10.77.2.1:7077 --tun fptwo --addr 10.77.2.2/24 --profile modern \
        --congestion bbr3 --json
        cmp film two/film && echo same";
    let Some((code, out, errors)) = as_root(script, here.path()) else { return };
    let logs = fs::read_to_string(here.path().join("one.log")).unwrap_or_default();
    assert_eq!(code, 0, "{out}{errors}{logs}");
    assert!(out.contains("\"stack\": \"farpace\"") && out.ends_with("same\n"), "{out}");
    assert!(
        errors.contains("farpace's TCP is 10.77.2.2 on fptwo, the kernel there is 10.77.2.1."),
        "{errors}"
    );
}

/// Breaks: without privileges there is no transfer, or nobody is told that the kernel's TCP carries it.
#[test]
fn without_a_device_the_kernel_carries() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), "film").unwrap();
    let receiver = Receiver::start(there.path(), &["--once"]);
    // A name that no device can have stands for missing privileges.
    let args = ["send", "film", &receiver.port, "--tun", "a/b", "--addr", "10.77.0.2/24"];
    let (code, _, errors) = run(here.path(), &args);
    assert!(code == 0 && errors.contains("The kernel's TCP is used, because"), "{code}: {errors}");
    let (code, _, errors) = run(here.path(), &[&args[..], &["--stack", "farpace"]].concat());
    assert!(code == 2 && errors.contains("--stack kernel"), "{code}: {errors}");
}

/// A `farpace recv` that has printed its ticket.
struct Waiting {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    ticket: String,
}

impl Waiting {
    fn start(dir: &Path, args: &[&str]) -> Waiting {
        let mut command = encrypted(dir, &[&["recv", "--listen", "127.0.0.1:0"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut ticket = String::new();
        out.read_line(&mut ticket).unwrap();
        assert!(ticket.starts_with("farpace:127.0.0.1:"), "{ticket}");
        Waiting { child, out, ticket: ticket.trim().to_owned() }
    }
    fn end(mut self) -> (i32, String, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let (mut out, mut errors) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (code, out, errors)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Breaks: a ticket does not lead from one end to the other, by either way, or files change there.
#[test]
fn a_ticket_is_enough() {
    for (stack, name) in [("auto", "farpace"), ("farpace", "farpace"), ("kernel", "tls")] {
        let Folders { here, there } = folders();
        fs::write(here.path().join("film"), noise(5_000_000)).unwrap();
        let receiver = Waiting::start(there.path(), &["--once"]);
        let args = ["send", "film", &receiver.ticket, "--json", "--stack", stack];
        let (code, out, errors) = told(encrypted(here.path(), &args).output().unwrap());
        assert_eq!(code, 0, "{stack}: {errors}");
        let sent: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(sent["stack"], name);
        let (code, out, errors) = receiver.end();
        // By where it came from, not by the address inside the tunnel.
        let from = out.starts_with("127.0.0.1:") && out.contains(": received 1 file, 5 MB");
        assert!(code == 0 && from, "{code}: {out}{errors}");
        assert_eq!(fs::read(there.path().join("film")).unwrap(), noise(5_000_000));
    }
}

/// Breaks: where UDP does not get through nothing does, or nobody is told which way was taken and why.
#[test]
fn without_udp_tls_carries_and_says_why() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), noise(100_000)).unwrap();
    let receiver = Waiting::start(there.path(), &["--once", "--stack", "kernel"]);
    let (code, _, errors) =
        told(encrypted(here.path(), &["send", "film", &receiver.ticket]).output().unwrap());
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("By TLS 1.3 over the kernel's TCP to 127.0.0.1:"), "{errors}");
    assert!(errors.contains("because UDP"), "{errors}");
    assert_eq!(receiver.end().0, 0);
}

/// Breaks: the ticket of another receiver, an old one or a changed one opens something, or it takes long to
/// be told.
#[test]
fn a_wrong_ticket_opens_nothing() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), "film").unwrap();
    let receiver = Waiting::start(there.path(), &[]);
    let other = Waiting::start(there.path(), &[]);
    let (place, _) = receiver.ticket.split_once('#').unwrap();
    let (_, keys) = other.ticket.split_once('#').unwrap();
    let wrong = format!("{place}#{keys}");
    let (code, _, errors) = told(encrypted(here.path(), &["send", "film", &wrong]).output().unwrap());
    assert!(code == 1 && errors.contains("cannot be reached"), "{code}: {errors}");
    assert!(!errors.contains(&keys[..20]), "the keys are not repeated: {errors}");
    assert!(!there.path().join("film").exists());
    for (args, said) in [
        (&["send", "film", "far.example"][..], "needs --insecure"),
        (&["send", "film", "farpace:h:1"], "not a ticket"),
        (&["send", "film"], "not a ticket"),
        (&["send", &receiver.ticket], "no file to send"),
        (&["send", "film", &receiver.ticket, "--token", "t"], "--insecure alone"),
        (&["recv", "--open"], "--insecure"),
        (&["recv", "--tun", "fp0", "--addr", "10.0.0.1/24"], "--insecure"),
        (&["recv", "--key-file", "film"], "chmod 600"),
    ] {
        let (code, _, errors) = told(encrypted(here.path(), args).output().unwrap());
        assert!(code == 2 && errors.contains(said), "{args:?}: {code}: {errors}");
    }
}

/// Breaks: other users of the machine read the keys in the list of processes, or a ticket in a file or the
/// environment is not found.
#[test]
fn the_list_of_processes_shows_no_keys() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), noise(3_000_000)).unwrap();
    let receiver = Waiting::start(there.path(), &[]);
    let (_, keys) = receiver.ticket.split_once('#').unwrap();
    let mut command = encrypted(here.path(), &["send", "film", &receiver.ticket, "--limit", "8mbit"]);
    let mut sender = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let shown = fs::read(format!("/proc/{}/cmdline", sender.id())).unwrap();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains("film") && shown.contains("xxxx") && !shown.contains(&keys[..10]), "{shown}");
    assert!(Command::new("kill").args(["-INT", &sender.id().to_string()]).status().unwrap().success());
    sender.wait().unwrap();
    fs::write(here.path().join("ticket"), format!("{}\n", receiver.ticket)).unwrap();
    let by_file = told(encrypted(here.path(), &["send", "film", "@ticket"]).output().unwrap());
    assert_eq!(by_file.0, 0, "{by_file:?}");
    fs::write(here.path().join("other"), "other").unwrap();
    fs::write(here.path().join("third"), "third").unwrap();
    for files in [&["other"][..], &["film", "third"]] {
        let mut by_variable = encrypted(here.path(), &[&["send"], files].concat());
        let by_variable = told(by_variable.env("FARPACE_TICKET", &receiver.ticket).output().unwrap());
        assert!(by_variable.0 == 0 && by_variable.1.contains("sent 1 file"), "{by_variable:?}");
    }
    assert!(there.path().join("other").exists() && there.path().join("third").exists());
}

/// Breaks: an interrupted transfer through a tunnel begins anew, or the same key file makes another ticket.
#[test]
fn transfers_with_a_ticket_go_on_and_keys_are_kept() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), noise(6_000_000)).unwrap();
    let keys = here.path().join("keys");
    let with = ["--once", "--key-file", keys.to_str().unwrap()];
    let receiver = Waiting::start(there.path(), &with);
    let mut command = encrypted(here.path(), &["send", "film", &receiver.ticket, "--limit", "20mbit"]);
    let sender = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(Command::new("kill").args(["-INT", &sender.id().to_string()]).status().unwrap().success());
    let stopped = told(sender.wait_with_output().unwrap());
    assert!(stopped.0 == 130 && stopped.2.contains("to go on from there"), "{stopped:?}");
    let first = receiver.ticket.clone();
    assert_eq!(receiver.end().0, 1);
    let again = Waiting::start(there.path(), &with);
    let keys = |ticket: &str| ticket.split_once('#').unwrap().1.to_owned();
    assert_eq!(keys(&first), keys(&again.ticket));
    let (code, out, errors) =
        told(encrypted(here.path(), &["send", "film", &again.ticket, "--json"]).output().unwrap());
    assert_eq!(code, 0, "{errors}");
    let sent: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(sent["spared_bytes"].as_u64().unwrap() > 1_000_000, "{sent}");
    assert_eq!(fs::read(there.path().join("film")).unwrap(), noise(6_000_000));
}

/// Breaks: two senders with one ticket disturb each other.
#[test]
fn two_senders_may_have_one_ticket() {
    let Folders { here, there } = folders();
    let receiver = Waiting::start(there.path(), &[]);
    std::thread::scope(|scope| {
        for n in 0..3 {
            let (here, ticket) = (&here, &receiver.ticket);
            scope.spawn(move || {
                let name = format!("film{n}");
                fs::write(here.path().join(&name), noise(2_000_000 + n)).unwrap();
                let sent = told(encrypted(here.path(), &["send", &name, ticket]).output().unwrap());
                assert_eq!(sent.0, 0, "{sent:?}");
            });
        }
    });
    for n in 0..3 {
        assert_eq!(fs::read(there.path().join(format!("film{n}"))).unwrap(), noise(2_000_000 + n));
    }
}

/// Breaks: a machine that was suspended for a while, or a process that was stopped, has lost its transfer.
#[test]
fn a_suspended_receiver_goes_on() {
    let Folders { here, there } = folders();
    fs::write(here.path().join("film"), noise(4_000_000)).unwrap();
    let receiver = Waiting::start(there.path(), &["--once"]);
    let mut command = encrypted(here.path(), &["send", "film", &receiver.ticket, "--limit", "16mbit"]);
    let sender = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let signal = |signal: &str| {
        let id = receiver.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    };
    std::thread::sleep(Duration::from_millis(700));
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(4));
    signal("-CONT");
    let sent = told(sender.wait_with_output().unwrap());
    assert_eq!(sent.0, 0, "{sent:?}");
    assert_eq!(receiver.end().0, 0);
    assert_eq!(fs::read(there.path().join("film")).unwrap(), noise(4_000_000));
}

/// Breaks: a dry run changes something, a copy deletes what it was not told to, or keeps what it was told to
/// delete.
#[test]
fn trees_are_made_the_same_and_nothing_else_is_touched() {
    let Folders { here, there } = folders();
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path(), there.path());
    for dir in ["site/sub", "site/cache"] {
        fs::create_dir_all(here.path().join(dir)).unwrap();
    }
    let old = there.path().join("site");
    fs::create_dir_all(old.join("gone/deep")).unwrap();
    fs::create_dir_all(old.join("sub")).unwrap();
    for (path, text) in
        [("site/new", "new"), ("site/sub/same", "same"), ("site/cache/x", "x"), ("site/a.bak", "b")]
    {
        fs::write(here.path().join(path), text).unwrap();
    }
    for path in ["gone/deep/file", "sub/extra", "kept.bak", "sub/same"] {
        fs::write(old.join(path), "same").unwrap();
    }
    // What is protected stays, and what it is in.
    fs::create_dir_all(old.join("archive/deep")).unwrap();
    for path in ["archive/deep/kept.bak", "archive/old"] {
        fs::write(old.join(path), "old").unwrap();
    }
    std::os::unix::fs::symlink("/etc", old.join("link")).unwrap();
    fs::write(there.path().join("beside"), "beside").unwrap();
    let with = |args: &[&str]| {
        let mut all = vec!["copy", "--ssh-command", &ssh, "--remote-command", FARPACE, "--delete"];
        all.extend(["--exclude", "*.bak", "--exclude", "cache/", "--checksum"]);
        all.extend(args);
        run(here.path(), &all)
    };
    let listed = |root: &Path| {
        let output = Command::new("find").arg(".").current_dir(root).output().unwrap();
        let mut lines: Vec<_> =
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = listed(there.path());
    let (code, out, errors) = with(&["site", "127.0.0.1:.", "--dry-run"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(listed(there.path()), before);
    assert!(out.contains("would send: site/new (3 B)\nwould send 1 file, 3 B\n"), "{out}");
    for gone in ["site/gone", "site/link", "site/sub/extra", "site/archive/old"] {
        assert!(errors.contains(&format!("would delete: {gone}\n")), "{errors}");
    }
    assert!(!errors.contains("kept.bak") && !errors.contains("beside"), "{errors}");
    let (code, _, errors) = with(&["site", "127.0.0.1:."]);
    assert!(code == 0 && errors.contains("deleted: site/gone"), "{errors}");
    let after = listed(there.path());
    let kept = ["archive", "archive/deep", "archive/deep/kept.bak", "kept.bak", "new", "sub", "sub/same"];
    let expected = kept.iter().map(|path| format!("./site/{path}"));
    let expected: Vec<_> = ["./beside", "./site"].map(str::to_owned).into_iter().chain(expected).collect();
    assert_eq!(after[1..], expected);
    assert!(Path::new("/etc/passwd").exists(), "no link is followed");
    // The other way round: what is only here goes, but for what is protected.
    fs::write(old.join("from-there"), "there").unwrap();
    fs::remove_file(old.join("new")).unwrap();
    let (code, out, errors) = with(&["127.0.0.1:site", ".", "-n"]);
    assert!(code == 0 && out.contains("would receive: site/from-there (5 B)"), "{out}{errors}");
    assert!(errors.contains("would delete: site/new\n") && here.path().join("site/new").exists(), "{errors}");
    let (code, out, errors) = with(&["127.0.0.1:site", ".", "--json", "--explain"]);
    assert!(code == 0 && errors.contains("deleted: site/new\n"), "{errors}");
    assert!(errors.contains("--explain has no effect from a host"), "{errors}");
    let got: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(got["deleted"], serde_json::json!(["site/new"]));
    assert!(here.path().join("site/from-there").exists() && !here.path().join("site/new").exists());
    assert!(here.path().join("site/a.bak").exists() && here.path().join("site/cache/x").exists());
    let (code, _, errors) = with(&["site", "127.0.0.1:.", "--exclude", "["]);
    assert!(code == 2 && errors.contains("is not a pattern"), "{code}: {errors}");
}

/// Breaks: a tree that is copied again, to go on or to be made the same, lands one directory deeper.
#[test]
fn a_slash_means_the_contents_of_a_directory() {
    let Folders { here, there } = folders();
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path(), there.path());
    fs::create_dir(here.path().join("site")).unwrap();
    fs::create_dir(there.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", there.path().join("link")).unwrap();
    let with = |args: &[&str]| {
        let all =
            ["copy", "--ssh-command", &ssh, "--remote-command", FARPACE, "--delete", "--allow-overwrite"];
        let (code, _, errors) = run(here.path(), &[&all[..], args].concat());
        assert_eq!(code, 0, "{args:?}: {errors}");
    };
    // Names need not be UTF-8.
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff");
    fs::write(here.path().join(odd), "x").unwrap();
    let mut command = farpace(here.path(), &["copy", "--ssh-command", &ssh, "--remote-command", FARPACE]);
    let (code, _, errors) = told(command.arg(odd).arg("127.0.0.1:.").output().unwrap());
    assert!(code == 0 && there.path().join(odd).exists(), "{code}: {errors}");
    for (round, target) in ["new", "new", "new/", "link"].into_iter().enumerate() {
        fs::write(here.path().join(format!("site/{round}")), "x").unwrap();
        with(&["site/", &format!("127.0.0.1:{target}")]);
        let found = there.path().join(target);
        assert!(found.join(format!("{round}")).is_file() && !found.join("site").exists(), "{target}");
    }
    fs::remove_file(here.path().join("site/0")).unwrap();
    with(&["site/", "127.0.0.1:new"]);
    assert!(!there.path().join("new/0").exists(), "it is the same tree");
    with(&["site/.", "127.0.0.1:dots"]);
    assert!(there.path().join("dots/1").is_file() && !there.path().join("dots/site").exists());
    fs::remove_file(here.path().join(odd)).unwrap();
    with(&["127.0.0.1:real/", "."]);
    assert!(here.path().join("3").is_file() && !here.path().join("site").exists(), "`.` is the tree itself");
}

/// Breaks: a directory that cannot be read here is emptied there.
#[test]
fn what_could_not_be_looked_at_is_not_deleted() {
    let Folders { here, there } = folders();
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path(), there.path());
    fs::create_dir_all(here.path().join("site/sub")).unwrap();
    // What is neither file, directory nor link cannot be sent.
    let pipe = Command::new("mkfifo").arg(here.path().join("site/sub/pipe")).status().unwrap();
    assert!(pipe.success());
    fs::create_dir_all(there.path().join("site/sub")).unwrap();
    for path in ["site/extra", "site/sub/extra"] {
        fs::write(there.path().join(path), "extra").unwrap();
    }
    let args =
        ["copy", "--ssh-command", &ssh, "--remote-command", FARPACE, "--delete", "site", "127.0.0.1:."];
    // A dry run says the same, to programs, too.
    let (code, out, errors) = run(here.path(), &[&args[..], &["-n", "--json"]].concat());
    let got: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 1 && got["dry_run"] == true && got["failed"] == 2, "{code}: {out}{errors}");
    assert_eq!(got["problems"][0]["path"], "site/sub/pipe");
    let (code, _, errors) = run(here.path(), &args);
    assert!(code == 1 && errors.contains("neither file, directory nor link"), "{code}: {errors}");
    assert!(!there.path().join("site/extra").exists(), "{errors}");
    assert!(there.path().join("site/sub/extra").exists(), "{errors}");
    assert!(errors.contains("site/sub: nothing is deleted in it"), "{errors}");
    assert!(!errors.contains("site: nothing is deleted"), "{errors}");
}

/// Breaks: a copy from another machine that is incomplete ends as if all were there; `--or-scp` replaces
/// files in a dry run; or several sources replace each other under one name.
#[test]
fn what_a_copy_leaves_out_is_told() {
    let Folders { here, there } = folders();
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path(), there.path());
    let with = |args: &[&str]| {
        let all = ["copy", "--ssh-command", &ssh, "--remote-command", FARPACE];
        run(here.path(), &[&all[..], args].concat())
    };
    fs::write(here.path().join("f"), "here").unwrap();
    fs::write(there.path().join("f"), "from there").unwrap();
    let (code, _, errors) = with(&["127.0.0.1:f", "."]);
    assert!(code == 1 && errors.contains("does not overwrite"), "{code}: {errors}");
    fs::create_dir(there.path().join("tree")).unwrap();
    assert!(Command::new("mkfifo").arg(there.path().join("tree/pipe")).status().unwrap().success());
    let (code, out, _) = with(&["127.0.0.1:tree", ".", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["failed"]), (1, &1.into()), "{out}");
    for args in [&["-n"][..], &["--delete"], &["--exclude", "x"]] {
        let (code, _, errors) = with(&[args, &["--or-scp", "f", "127.0.0.1:f"]].concat());
        assert!(code == 2 && errors.contains("scp has no"), "{code}: {errors}");
    }
    fs::write(here.path().join("g"), "g").unwrap();
    let (code, out, errors) = with(&["f", "g", "127.0.0.1:nodir", "--allow-overwrite", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(json["complete"] == false && json["error"].is_string(), "{out}");
    assert!(code != 0 && errors.contains("need a directory"), "{code}: {errors}");
    assert!(!there.path().join("nodir").exists());
    fs::write(there.path().join("-x"), "x").unwrap();
    let (code, _, errors) = with(&["127.0.0.1:-x", "."]);
    assert!(code == 0 && here.path().join("-x").exists(), "{code}: {errors}");
}

/// Breaks: the far end of a copy whose near end was killed waits on, listens, and keeps the file from the
/// next copy, for its timeout or for ever.
#[test]
fn the_far_end_of_a_copy_that_broke_ends() {
    let Folders { here, there } = folders();
    let tools = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(tools.path(), there.path());
    fs::write(here.path().join("big"), noise(20_000_000)).unwrap();
    let target = format!("broken-{}", std::process::id());
    let place = format!("127.0.0.1:{target}");
    let args =
        ["copy", "--ssh-command", &ssh, "--remote-command", FARPACE, "--limit", "20mbit", "--timeout", "300"];
    let mut near = farpace(here.path(), &[&args[..], &["big", &place]].concat());
    let mut near = near.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let partial = || {
        fs::read_dir(there.path()).unwrap().flatten().any(|entry| entry.metadata().unwrap().len() > 100_000)
    };
    let wait_until = |what: &dyn Fn() -> bool| {
        let since = Instant::now();
        while !what() {
            assert!(since.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_until(&partial);
    near.kill().unwrap();
    near.wait().unwrap();
    let far_runs = || {
        let found = Command::new("pgrep").args(["-f", &format!("target '?{target}")]).output().unwrap();
        found.status.success()
    };
    wait_until(&|| !far_runs());
}
