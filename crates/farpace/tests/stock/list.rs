//! `farpace ss`, and ACK requests between live hosts, switched on from the command line.

use crate::harness::*;
use farpace::live::Namespace;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Sends single short segments, each when the one before is acknowledged, and then stays.
const CLIENT: &str = r#"
import fcntl, socket, struct, sys, termios, time
s = socket.create_connection((sys.argv[1], 7))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(60):
    s.sendall(b'hello')
    while struct.unpack('i', fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]: time.sleep(0.0005)
listener = socket.create_server(('0.0.0.0', 8080))
print('done')
time.sleep(1000)
"#;

/// A command whose control sockets are in `folder`.
fn in_folder<'a>(variable: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["env", variable], words].concat()
}

fn list(machine: &Namespace, variable: &str, more: &[&str]) -> Value {
    let words = in_folder(variable, &[&[FARPACE, "ss", "--json"], more].concat());
    serde_json::from_str(&good(run(machine, &words, Path::new("/")))).unwrap()
}

/// The hosts of a name. Other tests have hosts at the same time.
fn hosts<'a>(list: &'a Value, name: &str) -> Vec<&'a Value> {
    list["hosts"].as_array().unwrap().iter().filter(|host| host["name"] == name).collect()
}

/// The connection of a host from or to port 7, by the name of the host.
fn connection<'a>(list: &'a Value, name: &str) -> &'a Value {
    let at_7 = |end: &Value| end.as_str().is_some_and(|end| end.ends_with(":7"));
    let is_it = |row: &&Value| row["state"] == "ESTAB" && (at_7(&row["local"]) || at_7(&row["peer"]));
    let mut rows = hosts(list, name).into_iter().flat_map(|host| host["sockets"].as_array().unwrap());
    rows.find(is_it).unwrap_or_else(|| panic!("{name}: {list}"))
}

/// Breaks: `--set ack_control` of `up` and `exec` does nothing, between two farpace hosts or towards a
/// kernel; or `farpace ss` does not show what hosts have and what they asked.
#[test]
fn requests_are_seen_between_live_hosts_and_towards_a_kernel() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("ss") else { return };
    let folder = tempfile::tempdir().unwrap();
    let variable = format!("XDG_RUNTIME_DIR={}", folder.path().display());
    machine.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap().unwrap();
    let sink = "import socket; l = socket.create_server(('0.0.0.0', 7)); print('ready'); all = []\nwhile \
                True: all.append(l.accept())";
    let _kernel = Running::saying(&machine, &["python3", "-c", sink], folder.path(), "ready");
    let up = [FARPACE, "up", "--tun", "st1", "--addr", "10.78.0.2/24", "--set", "ack_control=safe"];
    let up = in_folder(&variable, &[&up[..], &["--serve", "discard:7"]].concat());
    let _up = Running::saying(&machine, &up, folder.path(), "Ctrl-C");
    let client = |set: &'static str, to: &'static str| {
        let options = ["--tun", "st0", "--route", "10.78.0.0/24", "--set", set];
        let words = exec(&options, &["python3", "-c", CLIENT, to]);
        Running::saying(&machine, &in_folder(&variable, &words), folder.path(), "done")
    };
    // Both farpace's, with the kernel as the router between them.
    let running = client("ack_control=safe", "10.78.0.2");
    let found = list(&machine, &variable, &[]);
    let (asks, answers) = (connection(&found, "python3"), connection(&found, "up"));
    let count = |row: &Value, key: &str| row["acks"][key].as_u64().unwrap();
    assert!(count(asks, "asked") > 0 && count(asks, "confirmed") > 0, "{asks}");
    assert!(count(answers, "requests") > 0 && count(answers, "confirmations") > 0, "{answers}");
    assert_eq!(asks["local"], answers["peer"]);
    assert_eq!((&asks["info"]["bytes_acked"], &asks["send_q"]), (&301.into(), &0.into()), "{asks}");
    // As a table, and listeners.
    let words = in_folder(&variable, &[FARPACE, "ss", "--all"]);
    let text = good(run(&machine, &words, Path::new("/")));
    for wanted in
        ["ack_requests:", "ack_answers:", "bytes_acked:301", "0.0.0.0:8080", "LISTEN", "python3 (pid "]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let listeners = list(&machine, &variable, &["--listening"]);
    assert!(listeners.to_string().contains("8080") && !listeners.to_string().contains("ESTAB"));
    drop(running);
    // A kernel, which knows nothing of requests.
    for (set, asked) in [("ack_control=unilateral", true), ("ack_control=off", false)] {
        let _running = client(set, "10.77.0.1");
        let found = list(&machine, &variable, &[]);
        let row = connection(&found, "python3");
        assert_eq!((count(row, "asked") > 0, count(row, "confirmed") > 0), (asked, asked), "{row}");
    }
}

/// Breaks: `farpace ss` leaves UDP sockets out, or does not tell them from TCP.
#[test]
fn udp_sockets_are_listed() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("ssu") else { return };
    let folder = tempfile::tempdir().unwrap();
    let variable = format!("XDG_RUNTIME_DIR={}", folder.path().display());
    let code = r#"
import socket, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('0.0.0.0', 5300)); u.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2000)
c = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); c.connect(('fd77::1', 53))
l = socket.create_server(('0.0.0.0', 8080))
print('done')
time.sleep(1000)
"#;
    let words = exec(&["--tun", "st0"], &["python3", "-c", code]);
    let _running = Running::saying(&machine, &in_folder(&variable, &words), folder.path(), "done");
    let send = "import socket; u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range(2000): \
                u.sendto(bytes(100), ('10.77.0.2', 5300))";
    good(run(&machine, &["python3", "-c", send], folder.path()));
    let rows = |more: &[&str]| {
        let found = list(&machine, &variable, more);
        let rows = hosts(&found, "python3")[0]["sockets"].as_array().unwrap().clone();
        let shown =
            |row: &Value| format!("{} {} {}", row["protocol"], row["state"], row["local"]).replace('"', "");
        (rows.iter().map(shown).collect::<Vec<_>>(), rows)
    };
    let (shown, all) = rows(&["-u", "--all"]);
    assert!(shown.len() == 2 && shown[0] == "udp UNCONN 0.0.0.0:5300", "{shown:?}");
    assert!(shown[1].starts_with("udp ESTAB [fd77::2]:") && all[1]["peer"] == "[fd77::1]:53", "{all:?}");
    assert!(all[0]["recv_q"].as_u64().unwrap() > 1000 && all[0]["dropped"].as_u64().unwrap() > 0, "{all:?}");
    assert!(all[0]["info"].is_null());
    assert_eq!(rows(&["-t", "--all"]).0, ["tcp LISTEN 0.0.0.0:8080"]);
    assert_eq!(rows(&["--listening"]).0, ["tcp LISTEN 0.0.0.0:8080", "udp UNCONN 0.0.0.0:5300"]);
    assert_eq!(rows(&["-tu"]).0.len(), 1, "connections alone");
    let text = |more: &[&str]| {
        let words = in_folder(&variable, &[&[FARPACE, "ss"], more].concat());
        good(run(&machine, &words, Path::new("/")))
    };
    let mixed = text(&["-a"]);
    for wanted in ["Netid State", "tcp   LISTEN", "udp   UNCONN", "udp   ESTAB", "dropped:"] {
        assert!(mixed.contains(wanted), "{wanted}: {mixed}");
    }
    let alone = text(&["-ua"]);
    assert!(alone.contains("\nState") && !alone.contains("LISTEN") && alone.contains("UNCONN"), "{alone}");
}

/// Breaks: others on the machine read the list, or stop those who may; processes that were killed leave
/// sockets for ever.
#[test]
fn control_sockets_are_for_their_user_alone() {
    if !has(&["setpriv", "perl"]) {
        return;
    }
    let Some(machine) = machine("sk") else { return };
    let folder = tempfile::tempdir().unwrap();
    // The folder above is open: that of the sockets is not.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let variable = format!("XDG_RUNTIME_DIR={}", folder.path().display());
    let up = in_folder(&variable, &[FARPACE, "up", "--tun", "st0", "--addr", "10.77.0.2/24"]);
    let _up = Running::saying(&machine, &up, folder.path(), "Ctrl-C");
    let sockets = folder.path().join("farpace-hosts");
    let files = || fs::read_dir(&sockets).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let [socket] = &files()[..] else { panic!("{:?}", files()) };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&sockets), mode(socket)), (0o700, 0o600));
    // Peers that take nothing are let go one after the other.
    let idle: Vec<_> = (0..20).map(|_| UnixStream::connect(socket).unwrap()).collect();
    assert_eq!(hosts(&list(&machine, &variable, &[]), "up").len(), 1);
    drop(idle);
    // What a killed process left.
    drop(UnixListener::bind(sockets.join("1-killed-0.sock")).unwrap());
    assert_eq!(files().len(), 2);
    assert_eq!(hosts(&list(&machine, &variable, &["--listening"]), "up").len(), 1);
    assert_eq!(files().len(), 1);
    // Somebody else sees nothing, even through a door that was left open.
    fs::set_permissions(&sockets, Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(socket, Permissions::from_mode(0o777)).unwrap();
    let code =
        "my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print sysread($s, my $b, 99), \"\\n\"";
    let other =
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "perl", "-MIO::Socket::UNIX"];
    let output =
        run(&machine, &[&other[..], &["-e", code, socket.to_str().unwrap()]].concat(), folder.path());
    assert_eq!(good(output), "0\n");
}
