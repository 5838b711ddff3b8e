#!/usr/bin/env python3
"""What a gateway gains on far links, beside the kernel alone: stock TCP at both ends, CUBIC or BBR, with and without `farpace gateway`.

    bench/gateway/run.py target/release/farpace                    all links
    bench/gateway/run.py target/release/farpace --link geo --runs 3
    bench/gateway/run.py target/release/farpace --lan              rates and delays of the gateway itself, without a link
    bench/gateway/run.py target/release/farpace --gain 10 --link BER  what the gateway says itself that it gains
    bench/gateway/run.py target/release/farpace --json

Needs root: it makes four network namespaces, client - router - link - server, with `farpace emulate` as the link. All contenders
take turns, so that what disturbs the host disturbs all of them; medians are told. Bulk is a download of so many MB over a new connection,
the handshake included; objects are 10 kB each, every one over a new connection, one after another. Data leaves the LAN (a host beyond the
link fetches from one of the LAN: the gateway sends over the link) or comes to it (the far host's own TCP sends over the link). HAProxy
takes part if it is installed: not transparent, as a forward to the server's port, with BBR.
"""
import argparse
import ctypes
import hashlib
import json
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

# Name: MB of bulk, objects, and flags of the emulator for the direction of the data, and for the other.
LINKS = {
    "geo 50/5, 560 ms, BER 1e-7": (
        40, 12, "--rate 50mbit --delay 280ms --queue 3.5MB --ber 1e-7", "--rate 5mbit --delay 280ms --queue 700kB --ber 1e-7",
    ),
    "geo 50/5, 560 ms, clean": (
        40, 12, "--rate 50mbit --delay 280ms --queue 3.5MB", "--rate 5mbit --delay 280ms --queue 700kB",
    ),
    "queue of 32 kB": (40, 12, "--rate 100mbit --delay 50ms --queue 32kB", "--rate 100mbit --delay 50ms --queue 1MB"),
    "dsl 20/2, 30 ms": (20, 12, "--rate 20mbit --delay 15ms --queue 250kB", "--rate 2mbit --delay 15ms --queue 100kB"),
}  # fmt: skip
CONTENDERS = ["cubic", "bbr", "gateway", "haproxy"]
OBJECT = 10_000
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
LAN, FAR = "10.0.0.2", "192.0.2.2"
SERVER_PORT = 8001
# Connections at once, without a link.
SEVERAL = 8


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, capture_output=True, **more).stdout


def stream(size):
    """Bytes that are no repetition of a segment or a buffer."""
    block = bytes((n % 251) ^ (n // 251 % 241) for n in range(251 * 241))
    return (block * (size // len(block) + 1))[:size]


def enter(namespace):
    """This thread is in the namespace from now on."""
    with open(f"/run/netns/{namespace}") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def inside(namespace, act):
    """What `act` returns, in a thread of its own in the namespace."""
    result = []

    def body():
        enter(namespace)
        result.append(act())

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if not result:
        raise RuntimeError(f"a step in {namespace} failed")
    return result[0]


def choose(sock, congestion):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())


class Server:
    """Sends as many bytes as it is asked for."""

    def __init__(self, namespace, address):
        self.congestion = "cubic"
        self.listener = inside(namespace, lambda: socket.create_server((address, SERVER_PORT), backlog=200))
        self.data = memoryview(stream(256 << 20))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(sock,), daemon=True).start()

    def answer(self, sock):
        with sock:
            choose(sock, self.congestion)
            asked = b""
            while len(asked) < 8:
                piece = sock.recv(8 - len(asked))
                if not piece:
                    return
                asked += piece
            (size,) = struct.unpack("!Q", asked)
            sock.sendall(self.data[:size])


class Site:
    def __init__(self, farpace, directory):
        self.farpace, self.directory, self.children = farpace, directory, []
        pid = os.getpid()
        self.client, self.router, self.link, self.server = (f"fpg{pid}{n}" for n in "crls")
        self.names = [self.client, self.router, self.link, self.server]
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")

    def wire(self, with_link):
        pairs = [(self.client, "eth0", self.router, "lan0")]
        if with_link:
            pairs += [(self.router, "wan0", self.link, "in0"), (self.link, "out0", self.server, "eth0")]
        else:
            pairs += [(self.router, "wan0", self.server, "eth0")]
        for a, at, b, bt in pairs:
            run("ip", "link", "add", at, "netns", a, "type", "veth", "peer", "name", bt, "netns", b)
            for name, interface in ((a, at), (b, bt)):
                run("ip", "-n", name, "link", "set", interface, "up")
                if shutil.which("ethtool"):
                    run("ip", "netns", "exec", name, "ethtool", "-K", interface, "gro", "on")
        for name, interface, address, via in (
            (self.client, "eth0", f"{LAN}/24", "10.0.0.1"),
            (self.router, "lan0", "10.0.0.1/24", None),
            (self.router, "wan0", "192.0.2.1/24", None),
            (self.server, "eth0", f"{FAR}/24", "192.0.2.1"),
        ):
            run("ip", "-n", name, "addr", "add", address, "dev", interface)
            if via:
                run("ip", "-n", name, "route", "add", "default", "via", via)
        for key, value in (
            ("net.ipv4.ip_forward", "1"),
            ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
            ("net.ipv4.tcp_wmem", "4096 131072 67108864"),
        ):
            for name in (self.client, self.router, self.server):
                run("ip", "netns", "exec", name, "sysctl", "-qw", f"{key}={value}")

    def start(self, namespace, *words):
        environment = {**os.environ, "FARPACE_STATE": f"{self.directory}/state"}
        child = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment,
        )  # fmt: skip
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
        for child in list(self.children):
            self.end(child)
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)

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

    def greet(self):
        for name, address in ((self.client, FAR), (self.server, LAN)):
            run("ip", "netns", "exec", name, "ping", "-c", "2", "-W", "5", address)

    def gateway(self, *words):
        return self.start(
            self.router, self.farpace, "gateway", "up", "--lan", "lan0", "--wan", "wan0", *words
        )

    def haproxy(self, address, ports=None):
        """Forwards port 8002, or `ports` as they are."""
        config = f"{self.directory}/haproxy.cfg"
        ways = [(port, port) for port in ports] if ports else [(8002, SERVER_PORT)]
        with open(config, "w") as file:
            file.write(
                "global\n  nosplice\ndefaults\n  mode tcp\n  timeout connect 60s\n  timeout client 600s\n  timeout server 600s\n"
            )
            for here, there in ways:
                file.write(f"listen port{here}\n  bind *:{here}\n  server far {address}:{there}\n")
        run("ip", "netns", "exec", self.router, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=bbr")
        return self.start(self.router, "haproxy", "-db", "-f", config)


def measure(site, server, contender, direction, megabytes, objects):
    """Seconds of bulk, and of each object."""
    congestion = "bbr" if contender == "bbr" else "cubic"
    server.congestion = congestion
    namespace, to = (site.server, (LAN, SERVER_PORT)) if direction == "from" else (site.client, (FAR, SERVER_PORT))
    child = None
    if contender == "gateway":
        child = site.gateway()
    elif contender == "haproxy":
        child, to = site.haproxy(to[0]), ("192.0.2.1" if direction == "from" else "10.0.0.1", 8002)
    try:
        bulk = site.fetch(namespace, congestion, megabytes * 1_000_000, to)
        small = [site.fetch(namespace, congestion, OBJECT, to) for _ in range(objects)]
    finally:
        if child:
            site.end(child)
    return bulk, small


def links(args, out):
    chosen = [(direction, name) for direction in args.direction.split(",") for name in LINKS]
    for direction, name in chosen:
        megabytes, objects, fast, slow = LINKS[name]
        if args.link and args.link not in name:
            continue
        # The emulator's first interface is the router's.
        there, back = (fast, slow) if direction == "from" else (slow, fast)
        flags = there.split() + [w + "-back" if w.startswith("--") else w for w in back.split()]
        contenders = [c for c in args.only or CONTENDERS if c != "haproxy" or shutil.which("haproxy")]
        if "haproxy" not in contenders and not args.only:
            print("haproxy is not installed: left out", file=sys.stderr)
        runs = {contender: ([], []) for contender in contenders}
        with tempfile.TemporaryDirectory() as directory:
            site = Site(args.farpace, directory)
            try:
                site.wire(True)
                server = Server(site.client, LAN) if direction == "from" else Server(site.server, FAR)
                emulator = site.start(site.link, args.farpace, "emulate", "in0", "out0", *flags)
                # Neighbours are known before the first SYN: a repeated one would begin with a window of one segment.
                site.greet()
                for _ in range(args.runs):
                    for contender in contenders:
                        bulk, small = measure(site, server, contender, direction, megabytes, objects)
                        runs[contender][0].append(bulk)
                        runs[contender][1].extend(small)
                site.end(emulator)
            finally:
                site.close()
        rows = []
        for contender, (bulk, small) in runs.items():
            small.sort()
            rows.append({
                "contender": contender,
                "bulk_s": statistics.median(bulk),
                "bulk_min_s": min(bulk),
                "bulk_max_s": max(bulk),
                "goodput_mbit_s": megabytes * 8 / statistics.median(bulk),
                "object_median_s": statistics.median(small),
                "object_p90_s": small[int(len(small) * 0.9)],
            })  # fmt: skip
        out.append({"link": name, "data": f"{direction} the LAN", "bulk_mb": megabytes, "runs": args.runs, "rows": rows})
        if not args.json:
            show(out[-1])


def show(result):
    print(f"\n{result['link']}, data {result['data']}: bulk of {result['bulk_mb']} MB, {result['runs']} runs")
    print(f"{'':10} {'bulk s':>8} {'[min-max]':>15} {'Mbit/s':>7} {'to first':>9} {'10 kB s':>8} {'p90':>7}")
    first = result["rows"][0]
    for row in result["rows"]:
        spread = f"[{row['bulk_min_s']:.1f}-{row['bulk_max_s']:.1f}]"
        print(
            f"{row['contender']:10} {row['bulk_s']:8.2f} {spread:>15} {row['goodput_mbit_s']:7.1f}"
            f" {first['bulk_s'] / row['bulk_s']:8.2f}x {row['object_median_s']:8.3f} {row['object_p90_s']:7.3f}"
        )


def gain(args, out):
    """What a gateway says itself that it gains on a link: connections from the LAN, half of them its control group."""
    for name in [name for name in LINKS if args.link in name]:
        _, _, fast, slow = LINKS[name]
        flags = fast.split() + [w + "-back" if w.startswith("--") else w for w in slow.split()]
        with tempfile.TemporaryDirectory() as directory:
            site = Site(args.farpace, directory)
            try:
                site.wire(True)
                Server(site.client, LAN)
                site.start(site.link, args.farpace, "emulate", "in0", "out0", *flags)
                site.greet()
                site.gateway("--control-group", "0.5")
                for _ in range(args.runs * 10):
                    site.fetch(site.server, "cubic", int(args.gain * 1e6), (LAN, SERVER_PORT))
                time.sleep(3)
                environment = {**os.environ, "FARPACE_STATE": f"{directory}/state"}
                words = ["ip", "netns", "exec", site.router, args.farpace, "gateway", "status"]
                text = run(*words, env=environment)
                status = json.loads(run(*words, "--json", env=environment))
            finally:
                site.close()
        out.append({"link": name, "gain": status["gateways"][0]["gain"]})
        if not args.json:
            lines = text.splitlines()
            at = next(n for n, line in enumerate(lines) if line.startswith("  gain"))
            print(f"\n{name}:", *lines[at : at + 2], sep="\n")


def processor_time(pid):
    """Seconds of processor time that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate_of(site, to, port, connections):
    """Gbit/s that arrive by so many connections together."""
    words = ["iperf3", "-c", to, "-p", str(port), "-t", "5", "-O", "1", "-J", "-C", "cubic", "-P", str(connections)]
    text = run("ip", "netns", "exec", site.client, *words)
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e9


def lan(args, out):
    """The gateway without a link: rates of one connection and of several, times of small exchanges, and the processor time of the
    gateway for a gigabyte, beside forwarding by the kernel and HAProxy."""
    contenders = {"kernel": None, "gateway, 1 thread": 1, f"gateway, {os.cpu_count()} threads": os.cpu_count()}
    if shutil.which("haproxy"):
        contenders["haproxy"] = None
    rows = {name: {"one": [], "several": [], "cost": [], "opened": []} for name in contenders}
    for turn in range(args.runs):
        for name, threads in contenders.items():
            with tempfile.TemporaryDirectory() as directory:
                site = Site(args.farpace, directory)
                try:
                    lan_turn(site, name, threads, rows[name], turn == 0)
                finally:
                    site.close()
    results = {
        name: {
            "gbit_s": statistics.median(row["one"]),
            "several_gbit_s": statistics.median(row["several"]),
            "processor_s_per_gb": statistics.median(row["cost"]) if row["cost"] else None,
            "connections_s": statistics.median(row["opened"]) if row["opened"] else None,
            "connection_us": row["connection_us"],
            "exchange_us": row["exchange_us"],
        }
        for name, row in rows.items()
    }
    out.append({"lan": results, "runs": args.runs, "connections": SEVERAL})
    if not args.json:
        print(f"\nwithout a link, medians of {args.runs} runs: Gbit/s of 1 and of {SEVERAL} connections, processor seconds of the gateway")
        print("per GB of several, new connections a second, us of a connection with 100 B, us of an exchange of 1 B")
        for name, row in results.items():
            cost, opened = row["processor_s_per_gb"], row["connections_s"]
            cost = f"{cost:7.2f}" if cost else f"{'':7}"
            opened = f"{opened:7.0f}" if opened else f"{'':7}"
            print(
                f"{name:20} {row['gbit_s']:6.2f} {row['several_gbit_s']:6.2f} {cost} {opened}"
                f" {row['connection_us']:7.0f} {row['exchange_us']:6.0f}"
            )


def new_connections(site, to, port):
    """Connections a second, each with a request and an answer of 100 B, 64 at a time: ApacheBench and nginx, if they are installed."""
    if not (shutil.which("ab") and shutil.which("nginx")):
        return None
    with open(f"{site.directory}/nginx.conf", "w") as file:
        file.write(
            f"daemon off; worker_processes auto; pid {site.directory}/nginx.pid; error_log /dev/null;\n"
            "events { worker_connections 4096; }\n"
            f"http {{ access_log off; server {{ listen {port}; keepalive_timeout 0; return 200 '{'x' * 100}'; }} }}\n"
        )
    for name in (site.client, site.router):
        for key, value in (("ip_local_port_range", "10000 65000"), ("tcp_tw_reuse", "1")):
            run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.{key}={value}")
    serving = site.start(site.server, "nginx", "-c", f"{site.directory}/nginx.conf")
    text = run("ip", "netns", "exec", site.client, "ab", "-q", "-n", "30000", "-c", "64", f"http://{to}:{port}/")
    site.end(serving)
    if "Failed requests:        0" not in text:
        raise RuntimeError(text)
    return float(text.split("Requests per second:")[1].split()[0])


def lan_turn(site, name, threads, row, is_first):
    """One run of a contender. Small exchanges are measured in the first."""
    site.wire(False)
    child, to, ports = None, FAR, (5201, SERVER_PORT, 8003, 8004)
    if threads:
        child = site.gateway("--min-rtt", "0us", "--threads", str(threads))
    elif name == "haproxy":
        child, to = site.haproxy(FAR, ports), "10.0.0.1"
    serving = site.start(site.server, "iperf3", "-s")
    time.sleep(0.2)
    row["one"].append(rate_of(site, to, ports[0], 1))
    before = processor_time(child.pid) if child else 0
    rate = rate_of(site, to, ports[0], SEVERAL)
    row["several"].append(rate)
    if child:
        # A second is left out of the rate, and not of the time.
        row["cost"].append((processor_time(child.pid) - before) / (rate / 8 * 6))
    site.end(serving)
    if (opened := new_connections(site, to, ports[3])) is not None:
        row["opened"].append(opened)
    if is_first:
        Server(site.server, FAR)
        opens = [site.fetch(site.client, "cubic", 100, (to, ports[1])) * 1e6 for _ in range(300)]
        echo(site.server)
        turns = inside(site.client, lambda: exchanges(2000, (to, ports[2])))
        row["connection_us"], row["exchange_us"] = statistics.median(opens), statistics.median(turns)
    if child:
        site.end(child)


def echo(namespace):
    listener = inside(namespace, lambda: socket.create_server((FAR, 8003)))

    def serve():
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while byte := sock.recv(1):
            sock.sendall(byte)

    threading.Thread(target=serve, daemon=True).start()


def exchanges(count, to):
    with socket.create_connection(to) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(count):
            begun = time.monotonic()
            sock.sendall(b"x")
            sock.recv(1)
            times.append((time.monotonic() - begun) * 1e6)
        return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("farpace", help="the command, built for release")
    parser.add_argument("--link", help="links whose name contains this alone")
    parser.add_argument(
        "--direction", default="from,to", help="data that leaves the LAN (from), or comes to it (to) [default: both]"
    )
    parser.add_argument("--lan", action="store_true", help="the gateway itself, without a link")
    parser.add_argument(
        "--gain", type=float, metavar="MB", help="what the gateway says itself that it gains on --link, by connections of so many MB"
    )
    parser.add_argument("--only", action="append", choices=CONTENDERS, help="this contender alone; may be repeated")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.farpace = os.path.abspath(args.farpace)
    out = []
    if args.gain and not args.link:
        parser.error("--gain needs a link: --link geo")
    (lan if args.lan else gain if args.gain else links)(args, out)
    if args.json:
        print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
