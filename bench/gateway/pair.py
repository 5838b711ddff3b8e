#!/usr/bin/env python3
"""What a pair of gateways makes of several links, for stock TCP (CUBIC) at both ends.

    bench/gateway/pair.py target/release/farpace rate               one connection over two links of 20 Mbit/s, 20 and 40 ms
    bench/gateway/pair.py target/release/farpace cut                how long it stops when one of the links is cut, or the other
    bench/gateway/pair.py target/release/farpace geo                a geostationary link with bit errors, beside the kernel alone
    bench/gateway/pair.py target/release/farpace voice              delays of datagrams beside a download, through the pair and beside it

Needs root: it makes network namespaces, client - gateway a - links - gateway b - server, each link an emulator (`farpace emulate`) in a
namespace of its own. Times are round trips. Data goes from the server to the client. A rate is that of the payload from the first
byte to the last second, without the start (2 s); the sum of two links of 20 Mbit/s leaves 37.2 Mbit/s for payload in packets of
1440 B inside.
"""
import argparse
import json
import os
import signal
import socket
import statistics
import struct
import subprocess
import tempfile
import threading
import time

from run import Server, choose, inside, run, stream

CLIENT, SERVER = "10.1.0.2", "10.2.0.2"
PORT = 8001
TWO = ["--rate 20mbit --delay 10ms --queue 100kB", "--rate 20mbit --delay 20ms --queue 200kB"]
GEO = ["--rate 50mbit --delay 280ms --queue 3.5MB --ber 1e-7"]


class Pair:
    """Both sites. The kernel's routes lead over the first link."""

    def __init__(self, farpace, directory, links):
        self.farpace, self.directory, self.children = farpace, directory, []
        pid = os.getpid()
        self.client, self.a, self.b, self.server = (f"fpp{pid}{n}" for n in "cabs")
        self.links = [f"fpp{pid}l{n}" for n in range(len(links))]
        self.names = [self.client, self.a, self.b, self.server, *self.links]
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self.wire(links)

    def connect(self, one, name, other, other_name):
        run("ip", "link", "add", name, "netns", one, "type", "veth", "peer", "name", other_name, "netns", other)
        run("ip", "-n", one, "link", "set", name, "up")
        run("ip", "-n", other, "link", "set", other_name, "up")

    def wire(self, links):
        for site, host, router in ((1, self.client, self.a), (2, self.server, self.b)):
            self.connect(host, "eth0", router, "lan0")
            run("ip", "-n", host, "addr", "add", f"10.{site}.0.2/24", "dev", "eth0")
            run("ip", "-n", router, "addr", "add", f"10.{site}.0.1/24", "dev", "lan0")
            run("ip", "-n", host, "route", "add", "default", "via", f"10.{site}.0.1")
        for number, (name, flags) in enumerate(zip(self.links, links)):
            self.connect(self.a, f"l{number}", name, "in0")
            self.connect(name, "out0", self.b, f"l{number}")
            run("ip", "-n", self.a, "addr", "add", f"172.16.{number}.1/24", "dev", f"l{number}")
            run("ip", "-n", self.b, "addr", "add", f"172.16.{number}.2/24", "dev", f"l{number}")
            both = flags.split() + [w + "-back" if w.startswith("--") else w for w in flags.split()]
            self.start(name, "emulate", "in0", "out0", *both)
        run("ip", "-n", self.a, "route", "add", "10.2.0.0/24", "via", "172.16.0.2")
        run("ip", "-n", self.b, "route", "add", "10.1.0.0/24", "via", "172.16.0.1")
        for name in self.names:
            for key, value in (
                ("net.ipv4.ip_forward", "1"),
                ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
                ("net.ipv4.tcp_wmem", "4096 131072 67108864"),
            ):
                run("ip", "netns", "exec", name, "sysctl", "-qw", f"{key}={value}")
        run("ip", "netns", "exec", self.client, "ping", "-c", "2", "-W", "5", SERVER)

    def start(self, namespace, *words):
        environment = {**os.environ, "FARPACE_STATE": f"{self.directory}/state-{namespace}"}
        child = subprocess.Popen(
            ["ip", "netns", "exec", namespace, self.farpace, *words], stdout=subprocess.DEVNULL, env=environment
        )
        self.children.append(child)
        time.sleep(0.8)
        if child.poll() is not None:
            raise RuntimeError(f"{' '.join(words)} has ended")
        return child

    def gateways(self):
        """Both, when all paths are up."""
        words = ["gateway", "keys", "a=10.1.0.0/24", "b=10.2.0.0/24", "--paths", str(len(self.links)), "--out", self.directory]
        for number in range(len(self.links)):
            words += ["--endpoint", f"b=172.16.{number}.2"]
        run(self.farpace, *words, "--force")
        via = [word for number in range(len(self.links)) for word in ("--via", f"l{number}")]
        up = ["gateway", "up", "--lan", "lan0"]
        self.start(self.b, *up, "--peer", f"{self.directory}/a.conf", *via)
        self.start(self.a, *up, "--peer", f"{self.directory}/b.conf", *via)
        for namespace in (self.a, self.b):
            while not self.is_up(namespace):
                time.sleep(0.2)
        # The rates of the paths are measured by what is sent.
        time.sleep(2)

    def is_up(self, namespace):
        try:
            return all(path["up"] for path in self.status(namespace)["peer"]["paths"])
        except subprocess.CalledProcessError:
            return False  # it dials first

    def status(self, namespace):
        environment = {**os.environ, "FARPACE_STATE": f"{self.directory}/state-{namespace}"}
        text = run("ip", "netns", "exec", namespace, self.farpace, "gateway", "status", "--json", env=environment)
        return json.loads(text)["gateways"][0]

    def close(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
            child.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def download(pair, seconds, at=None):
    """Arrivals (time, bytes) of one connection; `at` is called after half of the time."""
    arrivals = []

    def act():
        with socket.socket() as sock:
            sock.settimeout(60)
            choose(sock, "cubic")
            sock.connect((SERVER, PORT))
            sock.sendall(struct.pack("!Q", 250_000_000))
            data, place, begun, done = stream(250_000_000), 0, time.monotonic(), at is None
            while time.monotonic() - begun < seconds:
                piece = sock.recv(1 << 18)
                if piece != data[place : place + len(piece)]:
                    raise RuntimeError(f"wrong bytes after {place}")
                place += len(piece)
                arrivals.append((time.monotonic() - begun, len(piece)))
                if not done and time.monotonic() - begun > seconds / 2:
                    done = True
                    threading.Thread(target=at).start()
        return None

    inside(pair.client, act)
    return arrivals


def goodput(arrivals, begin, end):
    return sum(n for at, n in arrivals if begin <= at < end) * 8e-6 / (end - begin)


def with_pair(args, links, gateways, act):
    with tempfile.TemporaryDirectory() as directory:
        pair = Pair(args.farpace, directory, links)
        try:
            server = Server(pair.server, SERVER)
            server.congestion = "cubic"
            if gateways:
                pair.gateways()
            return act(pair)
        finally:
            pair.close()


def rate(args):
    results = []
    for links, name in ((TWO[:1], "20 ms alone"), (TWO[1:], "40 ms alone"), (TWO, "both")):
        rates = []
        for _ in range(args.runs):
            arrivals = with_pair(args, links, True, lambda pair: download(pair, args.seconds))
            rates.append(goodput(arrivals, 2, args.seconds))
        results.append({"links": name, "mbit_s": rates})
        print(f"{name:12} {statistics.median(rates):6.2f} Mbit/s  {[round(r, 2) for r in rates]}", flush=True)
    alone = sum(statistics.median(row["mbit_s"]) for row in results[:2])
    print(f"both of the sum: {statistics.median(results[2]['mbit_s']) / alone:.3f}")


def cut(args):
    for link in (0, 1):
        stops = []
        for _ in range(args.runs):

            def act(pair):
                when = []

                def at():
                    when.append(time.monotonic())
                    run("ip", "-n", pair.links[link], "link", "set", "out0", "down")

                arrivals = download(pair, args.seconds, at)
                times = [at for at, _ in arrivals if at > args.seconds / 2 - 0.05]
                gap = max(b - a for a, b in zip(times, times[1:]))
                return gap * 1e3, goodput(arrivals, args.seconds / 2 + 2, args.seconds)

            stops.append(with_pair(args, TWO, True, act))
        longest = [round(gap) for gap, _ in stops]
        print(f"cut of link {link + 1}: stops {longest} ms, afterwards {[round(r, 1) for _, r in stops]} Mbit/s", flush=True)


def geo(args):
    for gateways in (False, True):
        rates = []
        for _ in range(args.runs):
            arrivals = with_pair(args, GEO, gateways, lambda pair: download(pair, args.seconds))
            rates.append(goodput(arrivals, 0, args.seconds))
        name = "pair" if gateways else "kernel CUBIC"
        print(f"{name:12} {statistics.median(rates):6.2f} Mbit/s  {[round(r, 2) for r in rates]}", flush=True)


def voice(args):
    """Round trips of 50 datagrams of 160 B a second, beside a download in the same direction as the answers."""
    for gateways in (False, True):

        def act(pair):
            echo = inside(pair.server, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            echo.bind((SERVER, 7000))
            threading.Thread(target=lambda: reflect(echo), daemon=True).start()
            bulk = threading.Thread(target=download, args=(pair, args.seconds), daemon=True)
            bulk.start()
            time.sleep(3)
            delays = inside(pair.client, lambda: talk(args.seconds - 4))
            bulk.join()
            return delays

        delays = sorted(with_pair(args, TWO[:1], gateways, act))
        p99 = delays[int(len(delays) * 0.99)]
        name = "pair" if gateways else "kernel"
        print(f"{name:8} median {statistics.median(delays):6.1f} ms, 99 % {p99:6.1f} ms, {len(delays)} answers", flush=True)


def reflect(sock):
    while True:
        data, peer = sock.recvfrom(2000)
        sock.sendto(data, peer)


def talk(seconds):
    delays, end = [], time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        while time.monotonic() < end:
            begun = time.monotonic()
            sock.sendto(bytes(160), (SERVER, 7000))
            try:
                sock.recv(2000)
                delays.append((time.monotonic() - begun) * 1e3)
            except TimeoutError:
                pass
            time.sleep(max(0, 0.02 - (time.monotonic() - begun)))
    return delays


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("farpace", help="the command, built for release")
    parser.add_argument("what", choices=["rate", "cut", "geo", "voice"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12)
    args = parser.parse_args()
    args.farpace = os.path.abspath(args.farpace)
    {"rate": rate, "cut": cut, "geo": geo, "voice": voice}[args.what](args)


if __name__ == "__main__":
    main()
