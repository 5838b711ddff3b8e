//! What programs of the kernel rely on without knowing it: signals, numbers of descriptors, queues.

use crate::harness::*;
use crate::lives::{says, serves};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Breaks: a program that writes to a connection that is gone, and relies on SIGPIPE to end it, goes on for
/// ever; or one that has asked for no signal, or uses a datagram socket, gets one.
#[test]
fn a_write_after_the_end_raises_sigpipe() {
    let code = r#"
import os, signal, socket, time
caught = []
signal.signal(signal.SIGPIPE, lambda *_: caught.append(1))
def gone():
    s = socket.create_connection(('10.77.0.1', 5001)); s.shutdown(socket.SHUT_WR); assert s.recv(1) == b''
    return s
def fails(call):
    caught.clear()
    try: call(); raise SystemExit('it was written')
    except BrokenPipeError: pass
    time.sleep(0)   # Python runs handlers after the next call
    return len(caught)
def all_of_them():
    s = gone()
    with open('/proc/self/exe', 'rb') as f:
        for call in (lambda: os.write(s.fileno(), b'x'), lambda: os.writev(s.fileno(), [b'x']),
                lambda: s.send(b'x'),
                lambda: s.sendmsg([b'x']), lambda: os.sendfile(s.fileno(), f.fileno(), 0, 1)):
            assert fails(call) == 1
    assert fails(lambda: s.send(b'x', socket.MSG_NOSIGNAL)) == 0
    assert fails(lambda: s.sendmsg([b'x'], [], socket.MSG_NOSIGNAL)) == 0
all_of_them()
pid = os.fork()
if pid == 0:
    try: all_of_them()
    except BaseException:
        import traceback; traceback.print_exc(); os._exit(1)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
# by default it ends the program
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL); s = gone(); os.write(s.fileno(), b'x'); os._exit(1)
assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGPIPE
print('well')
"#;
    says("pipe", code, "well\n");
}

/// Breaks: select(2) fails with more than 500 sockets, a program gets half of the descriptors that its limit
/// allows, or more than it; or it sees another limit than it has.
#[test]
fn the_numbers_of_sockets_are_those_of_the_kernel() {
    if !has(&["python3", "prlimit"]) {
        return;
    }
    let code = r#"
import os, resource, select, socket, subprocess, sys
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
assert limits == (1024, 20000), limits
assert os.sysconf('SC_OPEN_MAX') == 1024 and resource.prlimit(0, resource.RLIMIT_NOFILE) == limits
def listener():
    s = socket.socket(); s.bind(('10.77.0.2', 0)); s.listen(); return s
sockets = [listener() for _ in range(900)]
assert max(s.fileno() for s in sockets) < 1000
assert select.select(sockets, [], [], 0) == ([], [], [])
try:
    while True: sockets.append(socket.socket())
except OSError as error: assert error.errno == 24
assert len(sockets) > 1000 and max(s.fileno() for s in sockets) == 1023
try: resource.setrlimit(resource.RLIMIT_NOFILE, (20001, 20000)); raise SystemExit('above the maximum')
except ValueError: pass
print(subprocess.check_output(['sh', '-c', 'ulimit -n']).decode().strip())
"#;
    let raising = r#"
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 20000))
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2000, 20000)
def listener():
    s = socket.socket(); s.bind(('10.77.0.2', 0)); s.listen(); return s
sockets = [listener() for _ in range(1900)]
assert max(s.fileno() for s in sockets) < 2000
"#;
    let Some(machine) = machine("many") else { return };
    let words = exec(&["--tun", "st0"], &["python3", "-c", code]);
    let output = run(&machine, &[&["prlimit", "--nofile=1024:20000"], &words[..]].concat(), Path::new("/"));
    assert_eq!(good(output), "1024\n");
    let words = exec(&["--tun", "st0"], &["python3", "-c", raising]);
    good(run(&machine, &[&["prlimit", "--nofile=1024:20000"], &words[..]].concat(), Path::new("/")));
}

/// Breaks: clients that come while the accept queue is full are reset, rather than connected as soon as the
/// program accepts.
#[test]
fn a_full_accept_queue_resets_nobody() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("queue") else { return };
    let code = r#"
import socket, time
l = socket.create_server(('10.77.0.2', 7000), backlog=5)
print('ready')
time.sleep(1.5)
while True:
    s, _ = l.accept()
    s.sendall(s.recv(1)); s.close()
"#;
    let _server = serves(&machine, code);
    let client = |number: u8| {
        let mut stream = TcpStream::connect(("10.77.0.2", 7000)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        stream.write_all(&[number]).unwrap();
        let mut got = [0];
        stream.read_exact(&mut got).map(|()| got[0])
    };
    let answers: Vec<_> = machine
        .within(|| {
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..20).map(|number| scope.spawn(move || client(number))).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            })
        })
        .unwrap();
    for (number, answer) in (0..20).zip(answers) {
        assert_eq!(answer.unwrap(), number);
    }
}

/// Breaks: a socket that is bound to the host's own address says that it is bound to all.
#[test]
fn a_bound_socket_says_where_it_is() {
    let code = r#"
import socket
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
    for family, host in (socket.AF_INET, '10.77.0.2'), (socket.AF_INET6, 'fd77::2'):
        for port in 0, 7003:
            s = socket.socket(family, kind); s.bind((host, port)); at = s.getsockname()
            assert at[0] == host and at[1] > 0 and port in (0, at[1]), at
            s.close()
        s = socket.socket(family, kind); s.bind((host, 0))
        if kind == socket.SOCK_STREAM: s.listen(); assert s.getsockname()[0] == host
        s.close()
print('well')
"#;
    says("bound", code, "well\n");
}

/// Breaks: a read goes on behind the urgent byte, and the program does not learn what came before it.
#[test]
fn a_read_ends_at_the_urgent_byte() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("urgent") else { return };
    let here = Path::new("/");
    let server = r#"
import socket
l = socket.create_server(('0.0.0.0', 5001)); print('ready')
s, _ = l.accept(); s.sendall(b'ab'); s.send(b'!', socket.MSG_OOB); s.sendall(b'cd'); s.recv(1)
"#;
    let _server = Running::saying(&machine, &["python3", "-c", server], here, "ready");
    let code = r#"
import fcntl, socket, struct, termios, time
s = socket.create_connection(('10.77.0.1', 5001))
while struct.unpack('i', fcntl.ioctl(s, termios.FIONREAD, bytes(4)))[0] < 2: time.sleep(0.01)
time.sleep(0.3)
print(s.recv(10), s.recv(1, socket.MSG_OOB), s.recv(10))
"#;
    let output = run(&machine, &exec(&["--tun", "st0"], &["python3", "-c", code]), here);
    assert_eq!(good(output), "b'ab' b'!' b'cd'\n");
}

/// Breaks: a datagram to everybody on the network leaves though the program has not asked for that.
#[test]
fn broadcasts_need_an_option() {
    let code = r#"
import errno, socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('10.77.0.2', 0))
for call in (lambda: u.sendto(b'x', ('10.77.0.255', 9)), lambda: u.connect(('10.77.0.255', 9))):
    try: call(); raise SystemExit('it was sent')
    except PermissionError as error: assert error.errno == errno.EACCES
u.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
assert u.sendto(b'x', ('10.77.0.255', 9)) == 1
print('well')
"#;
    says("broadcast", code, "well\n");
}
