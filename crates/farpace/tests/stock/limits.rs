//! What `farpace exec` cannot do, and says so; and how its programs end.

use crate::harness::*;
use farpace::live::Namespace;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

/// A Python program on farpace, in `folder`.
fn python(on: &Namespace, code: &str, folder: &Path) -> Output {
    run(on, &exec(&["--tun", "st0"], &["python3", "-c", code]), folder)
}
fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Breaks: the last megabytes of programs that end as soon as they have written, which the kernel would go on
/// to send.
#[test]
fn what_was_written_arrives_after_the_program_has_ended() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("end") else { return };
    let listener = machine.within(|| TcpListener::bind("0.0.0.0:5001").unwrap()).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut stream, mut got) = (listener.accept().unwrap().0, Vec::new());
        stream.read_to_end(&mut got).map(|_| got.len())
    });
    let code =
        "import socket; s = socket.create_connection(('10.77.0.1', 5001)); s.sendall(bytes(20_000_000))";
    let output = python(&machine, code, Path::new("/"));
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(reader.join().unwrap().unwrap(), 20_000_000);
}

/// Breaks: every kind of call that programs use beside read and write.
#[test]
fn calls_of_every_kind_reach_farpace() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("calls") else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("film"), noise(3_000_000)).unwrap();
    let code = r#"
import array, fcntl, os, select, socket, struct, termios, threading
film = open('film', 'rb').read()
kernels = socket.create_server(('127.0.0.1', 0))   # the kernel's, as all of loopback
assert kernels.getsockname()[1] != 0
s = socket.create_connection(('10.77.0.1', 5001))
assert s.getpeername() == ('10.77.0.1', 5001) and s.getsockname()[0] == '10.77.0.2'
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
# sendfile, and an event loop that reads
with open('film', 'rb') as f:
    poll = select.epoll()
    poll.register(s, select.EPOLLIN)
    got = bytearray()
    def send():
        assert s.sendfile(f) == len(film)
        s.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=send); t.start()
    while True:
        assert poll.poll(20)
        data = s.recv(1 << 20)
        if not data: break
        got += data
    t.join()
assert bytes(got) == film
s.close()
# parts, messages, and a look
s = socket.create_connection(('10.77.0.1', 5001))
assert s.sendmsg([b'ab', b'', b'cde']) == 5
assert os.writev(s.fileno(), [b'f', b'gh']) == 3
while True:
    waiting = struct.unpack('i', fcntl.ioctl(s, termios.FIONREAD, bytes(4)))[0]
    if waiting == 8: break
    select.select([s], [], [], 1)
assert s.recv(3, socket.MSG_PEEK) == b'abc'
parts = [bytearray(3), bytearray(2)]
assert s.recvmsg_into(parts)[0] == 5 and bytes(parts[0] + parts[1]) == b'abcde'
assert os.readv(s.fileno(), parts) == 3 and parts[0] == b'fgh'
s.settimeout(0.2)
try: s.recv(1); raise SystemExit('no timeout')
except TimeoutError: pass
s.close()
# datagrams
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.sendto(b'hello', ('10.77.0.1', 5002))
assert u.recvfrom(100) == (b'hello', ('10.77.0.1', 5002))
assert u.sendmsg([b'a', b'b'], [], 0, ('10.77.0.1', 5002)) == 2
assert u.recvmsg(100)[0] == b'ab'
# a port that nobody has chosen
l = socket.create_server(('10.77.0.2', 0)); assert l.getsockname()[1] != 0
l6 = socket.socket(socket.AF_INET6); l6.listen(); assert l6.getsockname()[1] != 0
# closed by a call that nobody hears of: the number is a file's
s = socket.create_connection(('10.77.0.1', 5001)); number = s.detach()
import ctypes, platform
ctypes.CDLL(None).syscall({'x86_64': 3, 'aarch64': 57}[platform.machine()], number)
again = os.open('film', os.O_RDONLY); assert again == number
import time; time.sleep(0.1)
assert os.read(again, 10) == film[:10]
# unix sockets are the kernel's
a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
print('well')
"#;
    let machine_of_kernel = r#"
import socket, threading
def echo(s):
    while data := s.recv(65536):
        s.sendall(data)
    s.close()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('0.0.0.0', 5002))
def datagrams():
    while True:
        data, who = u.recvfrom(65536); u.sendto(data, who)
threading.Thread(target=datagrams, daemon=True).start()
l = socket.create_server(('0.0.0.0', 5001))
print('ready')
while True:
    threading.Thread(target=echo, args=(l.accept()[0],), daemon=True).start()
"#;
    let _echo = Running::saying(&machine, &["python3", "-c", machine_of_kernel], folder.path(), "ready");
    let output = python(&machine, code, folder.path());
    assert_eq!(good(output), "well\n");
}

/// Breaks: whoever asks for what cannot be does not learn why, or the program runs by the kernel unnoticed.
#[test]
fn what_cannot_be_is_said() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("no") else { return };
    let folder = tempfile::tempdir().unwrap();
    let said = |options: &[&str], program: &[&str]| {
        let output = run(&machine, &exec(options, program), folder.path());
        (output.status.code(), errors(&output))
    };
    let refused = |options: &[&str], program: &[&str], why: &str| {
        let (code, error) = said(options, program);
        assert!(code == Some(2) && error.contains(why), "{code:?} {error}");
    };
    refused(&[], &["no-such-program"], "no program `no-such-program`");
    refused(&["--profile", "x"], &["true"], "farpace profiles");
    refused(&["--iface", "nowhere"], &["true"], "ip link");
    refused(&["--pcap", "/no/such/folder/x"], &["true"], "cannot write");
    refused(&["--route", "10.0.0.0"], &["true"], "no network");
    fs::write(folder.path().join("text"), "hello").unwrap();
    refused(&[], &["./text"], "no program of this machine");
    // Rights. The program's folder may be closed to others: a copy is not.
    for name in ["farpace", "libfarpace.so", "libfarpace_preload.so"] {
        let copy = folder.path().join(name);
        fs::copy(Path::new(FARPACE).parent().unwrap().join(name), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let nobody =
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "./farpace", "exec", "true"];
    let output = run(&machine, &nobody, folder.path());
    let error = errors(&output);
    assert!(output.status.code() == Some(2) && error.contains("run it as root"), "{error}");
    // A device that is taken: before the program begins, and by whoever comes second in one program.
    let holder = exec(&["--tun", "st0"], &["python3", "-m", "http.server", "8000"]);
    let holding = Running::saying(&machine, &holder, folder.path(), "Serving HTTP");
    listening(&machine, "10.77.0.2:8000");
    refused(&["--tun", "st0"], &["true"], "`10.77.0.2` is in use by process");
    drop(holding);
    let first =
        "import socket, time; l = socket.create_server(('10.77.0.2', 80)); print('listens'); time.sleep(20)";
    let second = "import socket; socket.create_connection(('10.77.0.1', 9))";
    let script = format!(
        "python3 -c \"{first}\" > said & until grep -q listens said; do sleep 0.1; done; python3 \
         -c \"{second}\"; kill $!; wait"
    );
    let (_, error) = said(&["--tun", "st1"], &["sh", "-c", &script]);
    assert!(error.contains("farpace exec: cannot bring the host up") && error.contains("st1"), "{error}");
    // The exit code is the program's.
    let (code, error) = said(&["--tun", "st2"], &["sh", "-c", "exit 7"]);
    assert_eq!(code, Some(7), "{error}");
}

/// Breaks: a program hangs for ever when its device is taken away.
#[test]
fn a_program_learns_that_its_device_is_gone() {
    if !has(&["python3", "ip"]) {
        return;
    }
    let Some(machine) = machine("gone") else { return };
    let sink = "import socket; l = socket.create_server(('0.0.0.0', 5001)); print('ready'); s, _ = \
                l.accept()\nwhile s.recv(99999): pass";
    let here = Path::new("/");
    let _sink = Running::saying(&machine, &["python3", "-c", sink], here, "ready");
    let code = r#"
import socket, subprocess, errno
s = socket.create_connection(('10.77.0.1', 5001))
s.sendall(bytes(3_000_000))
subprocess.run(['ip', 'link', 'delete', 'st0'], check=True)
try:
    while True: s.sendall(bytes(100_000))
except OSError as e: print(errno.errorcode[e.errno])
"#;
    assert_eq!(good(python(&machine, code, here)), "ENETDOWN\n");
}
