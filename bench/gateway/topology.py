"""Hosts, routers and emulated links in network namespaces, for the benchmarks of the gateway.

    client - router a - links - router b - server

Each link is a `farpace emulate` in a namespace of its own; the kernel's routes lead over the first one. Without links, router a is
connected with the server. Needs root. Python's standard library alone, nginx and curl for pages.
"""
import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
CLIENT, SERVER = "10.1.0.2", "10.2.0.2"
# Where a client of HAProxy on router a has to connect: from the LAN, and from beyond the links.
PROXY_LAN, PROXY_FAR = "10.1.0.1", "172.16.0.1"
PORT, PAGE_PORT, ECHO_PORT = 8001, 8080, 8007
PAGE_OBJECTS, PAGE_CONNECTIONS = 100, 6


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, capture_output=True, **more).stdout


def stream(size):
    """Bytes that are no repetition of a segment or a buffer."""
    block = bytes((n % 251) ^ (n // 251 % 241) for n in range(251 * 241))
    return (block * (size // len(block) + 1))[:size]


def both(there, back=None):
    """Flags of the emulator for one direction and the other; without `back` both are alike."""
    return there.split() + [word + "-back" if word.startswith("--") else word for word in (back or there).split()]


def page_sizes():
    """Bytes of the objects of a page: log-normal, 12 kB in the median, 1.95 MB together. Always the same."""
    draw = random.Random(1)
    return [int(min(max(draw.lognormvariate(9.4, 1.1), 200), 400_000)) for _ in range(PAGE_OBJECTS)]


def enter(namespace):
    """This thread is in the namespace from now on."""
    with open(f"/run/netns/{namespace}") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def inside(namespace, act):
    """What `act` returns, in a thread of its own in the namespace."""
    result, failed = [], []

    def body():
        try:
            enter(namespace)
            result.append(act())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return result[0]


def choose(sock, congestion):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())


class Sender:
    """Sends as many bytes as it is asked for."""

    def __init__(self, namespace, address):
        self.listener = inside(namespace, lambda: socket.create_server((address, PORT), backlog=200))
        self.use("cubic")
        self.data = memoryview(stream(256 << 20))
        threading.Thread(target=self.serve, daemon=True).start()

    def use(self, congestion):
        """Of new connections, from their beginning: one that has begun with bbr stays paced."""
        choose(self.listener, congestion)

    def serve(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(sock,), daemon=True).start()

    def answer(self, sock):
        with sock:
            asked = b""
            try:
                while len(asked) < 8:
                    piece = sock.recv(8 - len(asked))
                    if not piece:
                        return
                    asked += piece
                (size,) = struct.unpack("!Q", asked)
                sock.sendall(self.data[:size])
            except ConnectionError:
                pass  # the reader has seen enough, or a gateway was killed


def echo(namespace, address):
    """Returns what comes over each connection, at once."""
    listener = inside(namespace, lambda: socket.create_server((address, ECHO_PORT), backlog=20))

    def answer(sock):
        with sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while piece := sock.recv(1 << 16):
                sock.sendall(piece)

    def serve():
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


class Chatter:
    """Ten times a second 100 B and their echo over one connection, as of a terminal, until it is ended."""

    def __init__(self, namespace, to):
        self.seconds, self.ended = [], threading.Event()
        self.thread = threading.Thread(target=lambda: inside(namespace, lambda: self.talk(to)), daemon=True)
        self.thread.start()

    def talk(self, to):
        with socket.create_connection(to, timeout=60) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.ended.wait(0.1):
                begun, left = time.monotonic(), 100
                sock.sendall(bytes(left))
                while left:
                    piece = sock.recv(left)
                    if not piece:
                        raise RuntimeError("the echo has ended")
                    left -= len(piece)
                self.seconds.append(time.monotonic() - begun)

    def end(self):
        self.ended.set()
        self.thread.join()
        return self.seconds


class Site:
    """`links` are the flags of the emulators."""

    def __init__(self, farpace, directory, links):
        self.farpace, self.directory, self.children = farpace, directory, []
        pid = os.getpid()
        self.client, self.a, self.b, self.server = (f"fpg{pid}{n}" for n in "cabs")
        self.links = [f"fpg{pid}l{n}" for n in range(len(links))]
        self.names = [self.client, self.a, *([self.b] if links else []), self.server, *self.links]
        for name in self.names:
            run("ip", "netns", "add", name)
        try:
            self.wire(links)
        except BaseException:
            self.close()
            raise

    def wire(self, links):
        for name in self.names:
            run("ip", "-n", name, "link", "set", "lo", "up")
            for key, value in (
                ("ip_forward", "1"),
                ("tcp_rmem", "4096 131072 67108864"),
                ("tcp_wmem", "4096 131072 67108864"),
            ):
                run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.{key}={value}")
        self.connect(self.client, "eth0", self.a, "lan0")
        self.connect(self.server, "eth0", *((self.b, "lan0") if links else (self.a, "wan0")))
        far = (self.b, "lan0") if links else (self.a, "wan0")
        for number, host, (router, interface) in ((1, self.client, (self.a, "lan0")), (2, self.server, far)):
            run("ip", "-n", host, "addr", "add", f"10.{number}.0.2/24", "dev", "eth0")
            run("ip", "-n", router, "addr", "add", f"10.{number}.0.1/24", "dev", interface)
            run("ip", "-n", host, "route", "add", "default", "via", f"10.{number}.0.1")
        for number, (name, flags) in enumerate(zip(self.links, links)):
            self.connect(self.a, f"wan{number}", name, "in0")
            self.connect(name, "out0", self.b, f"wan{number}")
            run("ip", "-n", self.a, "addr", "add", f"172.16.{number}.1/24", "dev", f"wan{number}")
            run("ip", "-n", self.b, "addr", "add", f"172.16.{number}.2/24", "dev", f"wan{number}")
            self.start(name, self.farpace, "emulate", "in0", "out0", *flags)
        if links:
            run("ip", "-n", self.a, "route", "add", "10.2.0.0/24", "via", "172.16.0.2")
            run("ip", "-n", self.b, "route", "add", "10.1.0.0/24", "via", "172.16.0.1")
        # Neighbours are known before the first SYN: a repeated one would begin with a window of one segment.
        for name, address in ((self.client, SERVER), (self.server, CLIENT)):
            run("ip", "netns", "exec", name, "ping", "-c", "2", "-W", "5", address)

    def connect(self, one, name, other, other_name):
        run("ip", "link", "add", name, "netns", one, "type", "veth", "peer", "name", other_name, "netns", other)
        for namespace, interface in ((one, name), (other, other_name)):
            run("ip", "-n", namespace, "link", "set", interface, "up")
            if shutil.which("ethtool"):
                run("ip", "netns", "exec", namespace, "ethtool", "-K", interface, "gro", "on")

    def environment(self, namespace):
        return {**os.environ, "FARPACE_STATE": f"{self.directory}/state-{namespace}"}

    def start(self, namespace, *words):
        child = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.environment(namespace),
        )
        self.children.append(child)
        time.sleep(1.2)
        if child.poll() is not None:
            raise RuntimeError(f"{' '.join(words)} has ended")
        return child

    def end(self, child):
        child.send_signal(signal.SIGTERM)
        child.wait()
        self.children.remove(child)

    def close(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
            child.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def gateway(self, *words):
        """A gateway on router a."""
        return self.start(
            self.a, self.farpace, "gateway", "up", "--lan", "lan0", "--wan", "wan0", *words
        )

    def pair(self):
        """Gateways on both routers, when all paths are up."""
        count = len(self.links)
        words = ["gateway", "keys", "a=10.1.0.0/24", "b=10.2.0.0/24", "--paths", str(count), "--out", self.directory]
        for number in range(count):
            words += ["--endpoint", f"b=172.16.{number}.2"]
        run(self.farpace, *words, "--force")
        via = [word for number in range(count) for word in ("--via", f"wan{number}")]
        up = [self.farpace, "gateway", "up", "--lan", "lan0"]
        children = [
            self.start(self.b, *up, "--peer", f"{self.directory}/a.conf", *via),
            self.start(self.a, *up, "--peer", f"{self.directory}/b.conf", *via),
        ]
        for namespace in (self.a, self.b):
            while not self.is_up(namespace):
                time.sleep(0.2)
        # The rates of the paths are measured by what is sent.
        time.sleep(2)
        return children

    def is_up(self, namespace):
        try:
            return all(path["up"] for path in self.status(namespace)["peer"]["paths"])
        except subprocess.CalledProcessError:
            return False  # it dials first

    def status(self, namespace):
        return json.loads(self.status_text(namespace, "--json"))["gateways"][0]

    def status_text(self, namespace, *words):
        words = ["ip", "netns", "exec", namespace, self.farpace, "gateway", "status", *words]
        return run(*words, env=self.environment(namespace))

    def haproxy(self, ways):
        """HAProxy on router a, with BBR: what comes to a port is connected with an address and a port."""
        config = f"{self.directory}/haproxy.cfg"
        with open(config, "w") as file:
            file.write(
                "global\n  nosplice\ndefaults\n  mode tcp\n  timeout connect 60s\n  timeout client 600s\n  timeout server 600s\n"
            )
            for port, (address, there) in ways.items():
                file.write(f"listen port{port}\n  bind *:{port}\n  server far {address}:{there}\n")
        run("ip", "netns", "exec", self.a, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=bbr")
        return self.start(self.a, "haproxy", "-db", "-f", config)

    def set_congestion(self, name):
        """Of new connections at both ends: by routes, because a namespace may not choose all controls as its default."""
        for number, host in ((1, self.client), (2, self.server)):
            run("ip", "-n", host, "route", "replace", "default", "via", f"10.{number}.0.1", "congctl", name)

    def fetch(self, namespace, congestion, size, to):
        """Seconds from the SYN to the last byte."""

        def act():
            begun = time.monotonic()
            with socket.socket() as sock:
                sock.settimeout(600)
                choose(sock, congestion)
                sock.connect(to)
                sock.sendall(struct.pack("!Q", size))
                digest, got = hashlib.blake2b(), 0
                while piece := sock.recv(1 << 20):
                    digest.update(piece)
                    got += len(piece)
            elapsed = time.monotonic() - begun
            if digest.digest() != hashlib.blake2b(stream(size)).digest():
                raise RuntimeError(f"{got} bytes of {size} differ")
            return elapsed

        return inside(namespace, act)

    def serve_page(self, namespace):
        """nginx, with the objects of a page. False if a program for it is missing."""
        if not (shutil.which("nginx") and shutil.which("curl")):
            print("nginx or curl is not installed: no pages", file=sys.stderr)
            return False
        folder = f"{self.directory}/page"
        os.makedirs(folder, exist_ok=True)
        os.chmod(self.directory, 0o755)  # for nginx's workers
        for number, size in enumerate(page_sizes()):
            with open(f"{folder}/{number}", "wb") as file:
                file.write(stream(size))
        with open(f"{self.directory}/page.conf", "w") as file:
            file.write(
                f"daemon off; pid {self.directory}/page.pid; error_log /dev/null;\nevents {{ worker_connections 512; }}\n"
                f"http {{ access_log off; server {{ listen {PAGE_PORT}; root {folder}; }} }}\n"
            )
        self.start(namespace, "nginx", "-c", f"{self.directory}/page.conf")
        return True

    def load_page(self, namespace, to):
        """Seconds in which curl has all objects of the page, by six connections, like a browser with HTTP/1.1."""
        config = f"{self.directory}/page.curl"
        with open(config, "w") as file:
            for number in range(PAGE_OBJECTS):
                file.write(f'url = "http://{to[0]}:{to[1]}/{number}"\noutput = "{self.directory}/got-{number}"\n')
        begun = time.monotonic()
        run(
            *("ip", "netns", "exec", namespace, "curl", "--silent", "--fail", "--max-time", "600"),
            *("--parallel", "--parallel-max", str(PAGE_CONNECTIONS), "--config", config),
        )
        elapsed = time.monotonic() - begun
        for number, size in enumerate(page_sizes()):
            if (got := os.path.getsize(f"{self.directory}/got-{number}")) != size:
                raise RuntimeError(f"{got} bytes of {size} in object {number}")
        return elapsed
