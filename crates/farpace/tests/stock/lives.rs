//! The lives of descriptors: copies, many of them, both families on one, and what goes beside the bytes.

use crate::harness::*;
use farpace::live::Namespace;
use std::path::Path;

/// On the kernel's side: TCP and UDP at port 5001 of both families send back what comes.
pub const ECHO: &str = r#"
import socket, threading
def echo(s):
    try:
        while data := s.recv(65536):
            s.sendall(data)
    except OSError: pass
    s.close()
def datagrams(u):
    while True:
        data, who = u.recvfrom(65536); u.sendto(data, who)
def streams(l):
    while True:
        threading.Thread(target=echo, args=(l.accept()[0],), daemon=True).start()
u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); u.bind(('::', 5001))
l = socket.create_server(('::', 5001), family=socket.AF_INET6, dualstack_ipv6=True, backlog=100)
threading.Thread(target=datagrams, args=(u,), daemon=True).start()
print('ready')
streams(l)
"#;

/// A Python program on farpace, with that echo on the kernel's side, says what is expected.
pub fn says(what: &str, code: &str, expected: &str) {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine(what) else { return };
    let here = Path::new("/");
    let _echo = Running::saying(&machine, &["python3", "-c", ECHO], here, "ready");
    // No other test lists its sockets: a connection of a lister is a descriptor of the program for a moment.
    let folder = tempfile::tempdir().unwrap();
    let alone = format!("XDG_RUNTIME_DIR={}", folder.path().display());
    let program = exec(&["--tun", "st0"], &["python3", "-c", code]);
    let output = run(&machine, &[&["env", &alone], &program[..]].concat(), here);
    assert_eq!(good(output), expected);
}

/// A Python server on farpace, until this is dropped.
pub fn serves(machine: &Namespace, code: &str) -> Running {
    Running::saying(machine, &exec(&["--tun", "st0"], &["python3", "-c", code]), Path::new("/"), "ready")
}

/// Breaks: dup, dup2 and F_DUPFD of a socket: the copy is good for nothing, or the first close ends the
/// connection for all.
#[test]
fn a_socket_lives_until_its_last_descriptor_is_closed() {
    let code = r#"
import fcntl, os, select, socket
def answers(s, what):
    s.sendall(what); got = b''
    while len(got) < len(what): got += s.recv(100)
    assert got == what
a = socket.create_connection(('10.77.0.1', 5001))
b = a.dup()
answers(b, b'copy'); answers(a, b'first')
poll = select.epoll(); poll.register(b, select.EPOLLIN)
a.sendall(b'x'); assert poll.poll(20) and a.recv(1) == b'x' and not poll.poll(0)
a.close(); answers(b, b'after the first was closed'); assert b.getpeername() == ('10.77.0.1', 5001)
# over a file's number, and with a number that is at least so high
f = os.open('/dev/null', os.O_RDONLY)
os.dup2(b.fileno(), f); c = socket.socket(fileno=f)
d = socket.socket(fileno=fcntl.fcntl(b.fileno(), fcntl.F_DUPFD_CLOEXEC, 100)); assert d.fileno() >= 100
b.close(); answers(c, b'dup2'); c.close(); answers(d, b'F_DUPFD')
# a copy over another socket closes that
e = socket.create_connection(('10.77.0.1', 5001))
os.dup2(d.fileno(), e.fileno()); d.close(); answers(e, b'over'); e.close()
# before it is known whose the socket is
s = socket.socket(); t = s.dup(); s.connect(('10.77.0.1', 5001)); answers(t, b'early'); s.close(); answers(t, b'late')
# a file over a socket
os.dup2(os.open('/dev/null', os.O_RDONLY), t.fileno()); assert os.read(t.fileno(), 1) == b''
l = socket.create_server(('10.77.0.2', 7001)); m = l.dup(); l.close(); m.listen(); m.close()
l = socket.create_server(('10.77.0.2', 7001))
print('well')
"#;
    says("dup", code, "well\n");
}

/// Breaks: descriptors or ports that a closed socket keeps: a program that opens many sockets, one after the
/// other, runs out of them.
#[test]
fn descriptors_are_free_again_after_close() {
    let code = r#"
import ctypes, os, platform, socket, time
def count(): return len(os.listdir('/proc/self/fd'))
def tcp(close):
    s = socket.create_connection(('10.77.0.1', 5001)); s.sendall(b'x'); assert s.recv(1) == b'x'; close(s)
def udp(close):
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.sendto(b'x', ('10.77.0.1', 5001)); assert u.recv(9) == b'x'; close(u)
def heard(close):
    s = socket.create_connection(('10.77.0.1', 5001)); s.shutdown(socket.SHUT_WR); assert s.recv(1) == b''; close(s)
def refused(close):
    s = socket.socket(); assert s.connect_ex(('10.77.0.1', 9)) != 0; close(s)
def by_range(s):
    n = s.detach(); os.closerange(n, n + 1)
def silently(s):
    assert ctypes.CDLL(None).syscall({'x86_64': 3, 'aarch64': 57}[platform.machine()], s.detach()) == 0
tcp(socket.socket.close)
for kind, times in (tcp, 400), (udp, 400), (heard, 100), (refused, 100):
    for close in socket.socket.close, by_range, silently:
        before = count()
        for _ in range(times if close == socket.socket.close else times // 8): kind(close)
        for _ in range(100):
            if count() <= before: break
            time.sleep(0.05)
        assert count() <= before, (kind, close, before, count())
print('well')
"#;
    says("free", code, "well\n");
}

/// Breaks: a program that closes a number twice, as iperf3 does, closes what the library has opened
/// meanwhile.
#[test]
fn a_second_close_of_a_number_hits_nothing() {
    let code = r#"
import os, socket, time
def close_twice(s, u):
    numbers = s.detach(), u.detach()
    for n in numbers: os.close(n)
    time.sleep(0.02)
    for n in numbers:
        try: os.close(n); raise SystemExit(f'{n} was taken')
        except OSError as e: assert e.errno == 9
other = socket.create_connection(('10.77.0.1', 5001))
for _ in range(20):
    s = socket.create_connection(('10.77.0.1', 5001)); u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.sendto(b'x', ('10.77.0.1', 5001))
    third = socket.create_connection(('10.77.0.1', 5001)); third.shutdown(socket.SHUT_WR)
    close_twice(s, u); third.close()
    other.sendall(b'x'); assert other.recv(1) == b'x'
print('well')
"#;
    says("twice", code, "well\n");
}

/// Breaks: when a peer closes, the library has a new descriptor under the lowest free number for a moment,
/// and a program that closes this number, as with a second close, closes it.
#[test]
fn a_free_number_stays_free_when_a_peer_closes() {
    let code = r#"
import os, socket, time
for _ in range(60):
    sockets = [socket.create_connection(('10.77.0.1', 5001)) for _ in range(8)]
    free = os.dup(0); os.close(free)
    for s in sockets: s.shutdown(socket.SHUT_WR)
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        for n in free + 1, free:
            try: os.close(n); raise SystemExit(f'{n} was taken')
            except OSError as e: assert e.errno == 9
    for s in sockets:
        assert s.recv(1) == b''; s.close()
print('well')
"#;
    says("taken", code, "well\n");
}

/// Breaks: a server at `::` hears IPv6 alone, or one that asks for that hears IPv4 as well; TCP or UDP.
#[test]
fn both_families_are_heard_by_one_socket() {
    if !has(&["python3"]) {
        return;
    }
    let Some(machine) = machine("dual") else { return };
    let server = r#"
import socket, threading
def stream(only, port):
    l = socket.socket(socket.AF_INET6); l.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    l.bind(('::', port)); l.listen()
    while True:
        s, who = l.accept(); s.sendall(who[0].encode()); s.close()
def datagram(only, port):
    u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); u.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    u.bind(('::', port))
    if port == 6000: print('ready')
    while True:
        _, who = u.recvfrom(100); u.sendto(who[0].encode(), who)
for what in (stream, 0, 7000), (stream, 1, 7001), (datagram, 1, 6001):
    threading.Thread(target=what[0], args=what[1:], daemon=True).start()
datagram(0, 6000)
"#;
    let _server = serves(&machine, server);
    let client = r#"
import socket, time
V4, V6 = '10.77.0.2', 'fd77::2'
def tcp(to, port):
    for _ in range(100):
        try: s = socket.create_connection((to, port), 5); break
        except ConnectionRefusedError: time.sleep(0.02)
    else: return None
    return s.recv(100).decode()
def udp(to, port):
    u = socket.socket(socket.AF_INET6 if ':' in to else socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(2); u.connect((to, port))
    for _ in range(100):
        try: u.send(b'x'); return u.recv(100).decode()
        except ConnectionRefusedError: time.sleep(0.02)
    return None
for ask, both, only in (tcp, 7000, 7001), (udp, 6000, 6001):
    print(ask(V4, both), ask(V6, both), ask(V6, only), ask(V4, only))
"#;
    let output = run(&machine, &["python3", "-c", client], Path::new("/"));
    assert_eq!(good(output), "::ffff:10.77.0.1 fd77::1 fd77::1 None\n".repeat(2));
}

/// Breaks: what goes beside the bytes of messages: where a datagram came to, its hops and class, when it
/// came; and what a sender says.
#[test]
fn control_messages_pass() {
    let code = r#"
import socket, struct, time
IP_PKTINFO, IP_RECVTTL, IP_RECVTOS, SO_TIMESTAMP = 8, 12, 13, 29
IPV6_RECVPKTINFO, IPV6_PKTINFO, IPV6_RECVHOPLIMIT, IPV6_HOPLIMIT, IPV6_RECVTCLASS, IPV6_TCLASS = 49, 50, 51, 52, 66, 67
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for level, name in (socket.IPPROTO_IP, IP_PKTINFO), (socket.IPPROTO_IP, IP_RECVTTL), (socket.IPPROTO_IP, IP_RECVTOS), (socket.SOL_SOCKET, SO_TIMESTAMP):
    u.setsockopt(level, name, 1)
info = struct.pack('i4s4s', 0, socket.inet_aton('10.77.0.2'), bytes(4))
assert u.sendmsg([b'he', b'llo'], [(socket.IPPROTO_IP, IP_PKTINFO, info), (socket.IPPROTO_IP, socket.IP_TTL, struct.pack('i', 9))], 0, ('10.77.0.1', 5001)) == 5
data, control, flags, who = u.recvmsg(100, 200)
assert (data, flags, who) == (b'hello', 0, ('10.77.0.1', 5001)), (data, flags, who)
got = {(level, kind): data for level, kind, data in control}
assert got[0, IP_PKTINFO][8:] == socket.inet_aton('10.77.0.2') and struct.unpack('i', got[0, 2])[0] == 64 and got[0, 1] == b'\0', got
assert abs(struct.unpack('qq', got[socket.SOL_SOCKET, SO_TIMESTAMP])[0] - time.time()) < 60
u.sendto(b'y', ('10.77.0.1', 5001)); assert u.recvmsg(100, 20)[2] & socket.MSG_CTRUNC
u.sendto(bytes(50), ('10.77.0.1', 5001)); data, _, flags, _ = u.recvmsg(10); assert len(data) == 10 and flags & socket.MSG_TRUNC
v = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for name in IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS: v.setsockopt(socket.IPPROTO_IPV6, name, 1)
v.sendto(b'six', ('fd77::1', 5001)); data, control, flags, who = v.recvmsg(100, 200)
got = {kind: data for level, kind, data in control if level == socket.IPPROTO_IPV6}
assert data == b'six' and got[IPV6_PKTINFO][:16] == socket.inet_pton(socket.AF_INET6, 'fd77::2'), got
assert struct.unpack('i', got[IPV6_HOPLIMIT])[0] == 64 and struct.unpack('i', got[IPV6_TCLASS])[0] == 0
try: u.sendmsg([b'x'], [(socket.IPPROTO_IP, socket.IP_TTL, struct.pack('i', 999))], 0, ('10.77.0.1', 5001)); raise SystemExit('a TTL of 999')
except OSError as e: assert e.errno == 22
# of a stream: how much is left (TCP_INQ)
s = socket.create_connection(('10.77.0.1', 5001)); s.setsockopt(socket.IPPROTO_TCP, 36, 1); s.sendall(b'abcdef')
while len(s.recv(6, socket.MSG_PEEK)) < 6: pass
data, control, flags, _ = s.recvmsg(2, 100); assert data == b'ab' and [(l, k, struct.unpack('i', d)[0]) for l, k, d in control] == [(6, 36, 4)]
print('well')
"#;
    says("ctl", code, "well\n");
}
