//! Programs of several processes: children of fork, servers that fork, and what children run.

use crate::harness::*;
use crate::lives::{ECHO, says, serves};
use std::path::Path;
use std::time::{Duration, Instant};

/// Breaks: a child of fork cannot use its parent's sockets, or make its own; what it runs has not inherited
/// them; its parent loses them.
#[test]
fn children_use_the_sockets_of_their_parent() {
    let code = r#"
import os, select, socket, subprocess, sys
def answers(s, what):
    s.sendall(what); got = b''
    while len(got) < len(what): got += s.recv(1 << 20)
    assert got == what
def child(work):
    pid = os.fork()
    if pid == 0:
        try: work()
        except BaseException:
            import traceback; traceback.print_exc(); os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
s = socket.create_connection(('10.77.0.1', 5001))
def uses():
    answers(s, b'child'); answers(s, bytes(range(256)) * 800)
    assert s.getpeername() == ('10.77.0.1', 5001) and s.getsockname()[0] == '10.77.0.2'
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    poll = select.epoll(); poll.register(s, select.EPOLLIN); assert not poll.poll(0)
    s.sendall(b'x'); assert poll.poll(20) and s.recv(9) == b'x' and not poll.poll(0)
    s.settimeout(0.1)
    try: s.recv(1); raise SystemExit('no timeout')
    except TimeoutError: s.settimeout(None)
    t = s.dup(); s.close(); answers(t, b'copy'); t.close()
def makes():
    t = socket.create_connection(('fd77::1', 5001)); answers(t, b'own')
    t.shutdown(socket.SHUT_WR); assert t.recv(1) == b''
    assert socket.socket().connect_ex(('10.77.0.1', 9)) == 111
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.sendto(b'datagram', ('10.77.0.1', 5001))
    assert u.recvfrom(100) == (b'datagram', ('10.77.0.1', 5001))
    child(lambda: answers(s, b'grandchild'))
child(uses); answers(s, b'parent'); child(makes); answers(s, b'parent')
# what is run: by fork and exec, with a socket as a file; and by vfork, with one as its input
own = "import socket; t = socket.create_connection(('10.77.0.1', 5001)); t.sendall(b'x'); assert t.recv(1) == b'x'; print('own')"
def runs():
    os.dup2(s.fileno(), 0); os.dup2(s.fileno(), 1)
    os.execlp('sh', 'sh', '-c', 'echo hello; read a; test "$a" = hello')
child(runs)
run = f"import socket; s = socket.socket(fileno=0); s.sendall(b'ran'); print(s.recv(9), s.getpeername()); {own}"
print(subprocess.run([sys.executable, '-c', run], stdin=s, capture_output=True, text=True).stdout, end='')
print(subprocess.run([sys.executable, '-c', own], capture_output=True, text=True).stdout, end='')
answers(s, b'at last')
print('well')
"#;
    says("fork", code, "b'ran' ('10.77.0.1', 5001)\nown\nown\nwell\n");
}

/// Breaks: servers that fork for each connection, that have workers, or that run a program for each: inetd,
/// ForkingTCPServer and the like; peers do not hear of the end, or the server keeps descriptors of
/// connections that are over.
#[test]
fn servers_fork() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("serve") else { return };
    let server = r#"
import os, signal, socket, socketserver, threading
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline()
        self.wfile.write(line + bytes(200_000))
class Server(socketserver.ForkingTCPServer): request_queue_size = 100
server = Server(('0.0.0.0', 7000), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
workers = socket.create_server(('0.0.0.0', 7001), backlog=100)
for _ in range(3):
    if os.fork() == 0:
        while True:
            c, who = workers.accept(); c.sendall(b'%d' % os.getpid()); c.close()
inetd = socket.create_server(('0.0.0.0', 7002), backlog=100)
count = socket.create_server(('0.0.0.0', 7003))
def counts():
    while True:
        c, _ = count.accept(); c.sendall(b'%d' % len(os.listdir('/proc/self/fd'))); c.close()
threading.Thread(target=counts, daemon=True).start()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print('ready')
while True:
    c, _ = inetd.accept()
    if os.fork() == 0:
        os.dup2(c.fileno(), 0); os.dup2(c.fileno(), 1)
        os.execlp('sh', 'sh', '-c', 'read a; echo "got $a"; cat')
    c.close()
"#;
    let _server = serves(&machine, server);
    let client = r#"
import socket, time
def ask(port, what, shut=False):
    s = socket.create_connection(('10.77.0.2', port), 20); s.sendall(what)
    if shut: s.shutdown(socket.SHUT_WR)
    got = b''
    while data := s.recv(65536): got += data
    return got
def count(): return int(ask(7003, b''))
ask(7000, b'\n'); ask(7002, b'\n', True); time.sleep(0.3); before = count()
for _ in range(30): assert ask(7000, b'hello\n') == b'hello\n' + bytes(200_000)
assert len({ask(7001, b'') for _ in range(100)}) > 1
for _ in range(15): assert ask(7002, b'one\ntwo\n' + bytes(100_000), True) == b'got one\ntwo\n' + bytes(100_000)
# some are on their way out
for _ in range(100):
    if count() <= before + 10: break
    time.sleep(0.05)
assert count() <= before + 10, (before, count())
print('well')
"#;
    let output = run(&machine, &["python3", "-c", client], Path::new("/"));
    assert_eq!(good(output), "well\n");
}

/// Breaks: a fork while other threads are in the middle of calls leaves the child with locks that nobody will
/// ever release.
#[test]
fn a_fork_in_the_middle_of_calls_does_not_hang() {
    let code = r#"
import os, socket, threading, time
stop = False
def busy():
    while not stop:
        s = socket.socket(); s.connect(('10.77.0.1', 5001)); s.sendall(b'x' * 100); s.recv(100); s.close()
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.sendto(b'x', ('10.77.0.1', 5001)); u.close()
s = socket.create_connection(('10.77.0.1', 5001))
threads = [threading.Thread(target=busy) for _ in range(4)]
for t in threads: t.start()
for n in range(100):
    pid = os.fork()
    if pid == 0:
        s.sendall(b'c'); t = socket.socket(); t.close(); os._exit(0 if s.recv(1) == b'c' else 1)
    for _ in range(2000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done: break
        time.sleep(0.005)
    assert done and status == 0, (n, done, status)
stop = True
for t in threads: t.join()
print('well')
"#;
    says("storm", code, "well\n");
}

/// Breaks: children lose their sockets when their parent ends, or wait for ever when it is killed.
#[test]
fn a_parent_that_ends_waits_and_one_that_is_killed_does_not() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("ends") else { return };
    let here = Path::new("/");
    let _echo = Running::saying(&machine, &["python3", "-c", ECHO], here, "ready");
    let code = r#"
import ctypes, os, signal, socket, sys, time
s = socket.create_connection(('10.77.0.1', 5001))
if sys.argv[1] == 'daemon': assert ctypes.CDLL(None).daemon(0, 1) == 0 and os.getcwd() == '/' and os.getpid() == os.getsid(0)
elif os.fork():
    if sys.argv[1] == 'kill': time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == '_exit': os._exit(0)
    sys.exit(0)
time.sleep(1)
try: s.sendall(b'late'); print(s.recv(4))
except OSError as e: print(e.errno)
"#;
    for (how, expected) in
        [("exit", "b'late'\n"), ("_exit", "b'late'\n"), ("daemon", "b'late'\n"), ("kill", "100\n")]
    {
        let words = exec(&["--tun", "st0"], &["python3", "-c", code, how]);
        let begun = Instant::now();
        let output = run(&machine, &words, here);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{how}");
        assert_eq!(output.status.success(), how != "kill");
        assert!(begun.elapsed() < Duration::from_secs(20), "{how}");
    }
}
