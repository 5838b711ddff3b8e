#!/usr/bin/env python3
"""How fast one file crosses paths, by farpace's tunnel, by its TLS (over the kernel's BBR), and by others: scp, rsync over ssh,
wireguard-go with the kernel's TCP, and the kernel's TCP alone (CUBIC, BBR, in the clear); and bytes of memory for ten seconds: farpace
perf through the tunnel, iperf3 in the clear (CUBIC).

    bench/tunnel/run.py target/release/farpace                     all paths and contenders
    bench/tunnel/run.py target/release/farpace --path long --runs 3
    bench/tunnel/run.py target/release/farpace --json

Needs root: it makes network namespaces. Contenders that are not installed (sshd, rsync, wireguard-go, iperf3) are left out, with a line that
says so. All runs of a path are made in turn, so that what disturbs the machine disturbs all of them; the median is told. The last
column of a path is what the lab says that it allows: the same scenario in virtual time, with profile farpace.
"""
import argparse
import base64
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import routes

SCENARIO = """
title = "{name}"
description = "A path of bench/tunnel."
duration = "300 s"
[hosts.a]
[hosts.b]
[[links]]
name = "path"
between = ["a", "b"]
{link}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "{size} MB"
sender = {{ profile = "farpace" }}
receiver = {{ profile = "farpace" }}
"""

# Name, size of the file in MB, the link. None: a pair of interfaces with nothing between.
PATHS = {
    "loopback": (1000, None),
    "veth": (1000, None),
    "long 0.01 %": (200, 'rate = "200 Mbit/s"\ndelay = "100 ms"\nqueue = "2.5 MB"\nforward = { loss = 0.0001 }'),
    "long 1 %": (100, 'rate = "200 Mbit/s"\ndelay = "100 ms"\nqueue = "2.5 MB"\nforward = { loss = 0.01 }'),
    "satellite": (40, 'rate = "50 Mbit/s"\ndelay = "280 ms"\nqueue = "3.5 MB"\nforward = { bit_errors = 1e-7 }'),
    "policed": (
        40,
        'rate = "1 Gbit/s"\ndelay = "20 ms"\nforward = { policer = { rate = "50 Mbit/s", burst = "100 kB" } }',
    ),
}
CONTENDERS = ["farpace", "farpace tls", "scp", "rsync", "wireguard-go", "cubic", "bbr", "perf", "iperf3"]


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, capture_output=True, **more).stdout


class Site:
    """Two namespaces, what runs in them, and a directory; all of it goes at the end."""

    def __init__(self, farpace, near, far, addresses, directory):
        self.farpace, self.near, self.far = farpace, near, far
        self.address, self.directory = addresses, directory
        self.children = []

    def inside(self, namespace, *words):
        return [*(["ip", "netns", "exec", namespace] if namespace else []), *words]

    def start(self, namespace, *words, **more):
        child = subprocess.Popen(self.inside(namespace, *words), text=True, stderr=subprocess.DEVNULL, **more)
        self.children.append(child)
        return child

    def end(self, child):
        child.send_signal(signal.SIGTERM)
        child.wait()
        self.children.remove(child)

    def close(self):
        for child in list(self.children):
            self.end(child)

    def tcp(self, congestion):
        for namespace in filter(None, {self.near, self.far}):
            for key in ("tcp_rmem", "tcp_wmem"):
                run(*self.inside(namespace, "sysctl", "-qw", f"net.ipv4.{key}=4096 131072 67108864"))
            routes.choose(namespace, congestion)

    # Contenders: each moves the file once and returns seconds, or None where it is not there.

    def send(self, to, recv_words, send_words):
        into = tempfile.mkdtemp(dir=self.directory)
        receiver = self.start(
            self.far, self.farpace, "recv", "--once", "--dir", into, *recv_words, stdout=subprocess.PIPE
        )
        ticket = receiver.stdout.readline().strip() if to is None else to
        if to is not None:
            time.sleep(0.5)
        words = [self.farpace, "send", f"{self.directory}/film", ticket, "--json", "--quiet", *send_words]
        out = run(*self.inside(self.near, *words))
        receiver.wait()
        self.children.remove(receiver)
        shutil.rmtree(into)
        return json.loads(out)["elapsed_s"]

    def tunnel(self, stack):
        # TLS runs over the kernel's TCP: the same control for each run, and one that bears losses.
        self.tcp("bbr")
        return self.send(None, ["--listen", f"{self.address}:7077"], ["--stack", stack])

    def clear(self, congestion, address=None):
        self.tcp(congestion)
        address = address or self.address
        at = f"{address}:7077"
        options = ["--insecure", "--stack", "kernel"]
        return self.send(at, ["--listen", at, "--open", *options], options)

    def ssh(self, program):
        if not shutil.which("sshd") or not shutil.which(program):
            return None
        self.tcp("cubic")
        keys = f"{self.directory}/ssh"
        if not os.path.exists(keys):
            os.makedirs(keys, mode=0o700)
            os.makedirs("/run/sshd", exist_ok=True)
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{keys}/host")
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{keys}/user")
            shutil.copy(f"{keys}/user.pub", f"{keys}/authorized")
        daemon = self.start(
            self.far, shutil.which("sshd"), "-D", "-f", "/dev/null", "-p", "2222", "-h", f"{keys}/host",
            "-o", f"AuthorizedKeysFile={keys}/authorized", "-o", "StrictModes=no", "-o", f"PidFile={keys}/pid",
            "-o", "Subsystem=sftp internal-sftp",
        )  # fmt: skip
        time.sleep(0.7)
        options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        options += ["-i", f"{keys}/user"]
        into = tempfile.mkdtemp(dir=self.directory)
        user = os.environ.get("USER", "root")
        begun = time.monotonic()
        if program == "scp":
            words = ["scp", "-q", "-P", "2222", *options, f"{self.directory}/film", f"{user}@{self.address}:{into}"]
        else:
            shell = " ".join(["ssh", "-p", "2222", *options])
            words = ["rsync", "-W", "-e", shell, f"{self.directory}/film", f"{user}@{self.address}:{into}/"]
        run(*self.inside(self.near, *words))
        elapsed = time.monotonic() - begun
        self.end(daemon)
        shutil.rmtree(into)
        return elapsed

    def wireguard(self):
        if not shutil.which("wireguard-go") or self.near is None:
            return None
        # RFC 7748 §6.1: known keys are good enough for a test.
        secret = {"a": "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=", "b": "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os="}
        public = {"a": "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", "b": "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="}
        def hexed(key):
            return base64.b64decode(key).hex()

        children = []
        for me, other, namespace in (("a", "b", self.near), ("b", "a", self.far)):
            children.append(self.start(namespace, "wireguard-go", "-f", f"fpbench{me}", stdout=subprocess.DEVNULL))
            control = f"/var/run/wireguard/fpbench{me}.sock"
            for _ in range(100):
                if os.path.exists(control):
                    break
                time.sleep(0.05)
            endpoint = f"endpoint={self.address}:51820\npersistent_keepalive_interval=25\n" if me == "a" else ""
            text = (
                f"set=1\nprivate_key={hexed(secret[me])}\nlisten_port={51820 if me == 'b' else 0}\n"
                f"public_key={hexed(public[other])}\n{endpoint}allowed_ip=10.99.0.0/24\n\n"
            )
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(control)
                line.send(text.encode())
                assert line.recv(64).startswith(b"errno=0")
            number = 1 if me == "a" else 2
            for words in (f"addr add 10.99.0.{number}/24 dev fpbench{me}", f"link set fpbench{me} mtu 1420 up"):
                run(*self.inside(namespace, "ip", *words.split()))
        time.sleep(1)
        elapsed = self.clear("cubic", "10.99.0.2")
        for child in children:
            self.end(child)
        return elapsed

    def perf(self, size):
        ssh = f"{self.directory}/ssh-there"
        with open(ssh, "w") as file:
            there = " ".join(self.inside(self.far))
            file.write(f"#!/bin/sh\nshift\nSSH_CONNECTION='{self.address} 1 {self.address} 22' exec {there} sh -c \"$*\"\n")
        os.chmod(ssh, 0o755)
        words = [self.farpace, "perf", "there", "--ssh-command", ssh, "--remote-command", self.farpace, "--json", "--quiet"]
        out = run(*self.inside(self.near, *words, "--stack", "farpace"))
        return size * 8e6 / json.loads(out)["rate_bit_s"]

    def iperf3(self, size):
        if not shutil.which("iperf3"):
            return None
        self.tcp("cubic")
        server = self.start(self.far, "iperf3", "-s", "-1", stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        out = run(*self.inside(self.near, "iperf3", "-c", self.address, "-C", "cubic", "-t", "10", "-J"))
        server.wait()
        self.children.remove(server)
        return size * 8e6 / json.loads(out)["end"]["sum_received"]["bits_per_second"]

    def contend(self, name, size):
        return {
            "farpace": lambda: self.tunnel("farpace"),
            "farpace tls": lambda: self.tunnel("kernel"),
            "scp": lambda: self.ssh("scp"),
            "rsync": lambda: self.ssh("rsync"),
            "wireguard-go": self.wireguard,
            "cubic": lambda: self.clear("cubic"),
            "bbr": lambda: self.clear("bbr"),
            "perf": lambda: self.perf(size),
            "iperf3": lambda: self.iperf3(size),
        }[name]()


def trial(options, name):
    """All contenders on the path at hand, as many times as wanted."""
    size, _ = PATHS[name]
    directory = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    near, far = os.environ.get("FARPACE_NS_a"), os.environ.get("FARPACE_NS_b")
    address = os.environ.get("BENCH_ADDRESS", "127.0.0.1")
    site = Site(options.farpace, near, far, address, directory)
    times = {contender: [] for contender in options.only}
    try:
        subprocess.run(["head", "-c", str(size * 1_000_000), "/dev/urandom"], stdout=open(f"{directory}/film", "wb"))
        for _ in range(options.runs):
            for contender in options.only:
                try:
                    elapsed = site.contend(contender, size)
                except (subprocess.CalledProcessError, AssertionError) as error:
                    detail = getattr(error, "stderr", "") or str(error)
                    print(f"{name}: {contender} failed: {detail.strip()[-300:]}", file=sys.stderr)
                    elapsed = None
                if elapsed:
                    times[contender].append(elapsed)
    finally:
        site.close()
        shutil.rmtree(directory)
    rates = {c: [size * 8 / t for t in all] for c, all in times.items() if all}
    print(json.dumps(rates))


# The lab has no tunnel, but what it costs: Ethernet's 24 bytes beyond the frame, and 60 of IPv4, UDP and WireGuard.
TUNNEL = ('\noverhead = "84 B"', ", mss = 1400")
SEEDS = 9


def lab(options, name):
    """What the lab says that the path allows to TCP in a tunnel, in Mbit/s: the median of some seeds."""
    size, link = PATHS[name]
    if link is None:
        return None
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/path.toml"
        with open(path, "w") as file:
            overhead, mss = TUNNEL
            text = SCENARIO.format(name=name, link=link + overhead, size=size)
            file.write(text.replace('profile = "farpace"', f'profile = "farpace"{mss}'))
        rates = []
        for seed in range(1, SEEDS + 1):
            words = [options.farpace, "run", path, "--set", f"seed={seed}", "--json", "--out", f"{directory}/{seed}"]
            rates.append(json.loads(run(*words))["flows"][0]["goodput_bit_s"] / 1e6)
        return statistics.median(rates)


def measure(options, name):
    """Runs this script again inside of the path."""
    _, link = PATHS[name]
    again = [sys.executable, os.path.abspath(__file__), options.farpace, "--inside", name, "--runs", str(options.runs)]
    again += [word for contender in options.only for word in ("--only", contender)]
    if name == "loopback":
        out = run(*again, env={**os.environ, "BENCH_ADDRESS": "127.0.0.1"})
        return json.loads(out.splitlines()[-1])
    if link is None:
        names = [f"fpbench{os.getpid()}{end}" for end in "ab"]
        try:
            for namespace in names:
                run("ip", "netns", "add", namespace)
                run("ip", "-n", namespace, "link", "set", "lo", "up")
            run("ip", "-n", names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", names[1])
            for number, (namespace, device) in enumerate(zip(names, ("v0", "v1")), 1):
                run("ip", "-n", namespace, "addr", "add", f"10.98.0.{number}/24", "dev", device)
                run("ip", "-n", namespace, "link", "set", device, "up")
            env = {**os.environ, "FARPACE_NS_a": names[0], "FARPACE_NS_b": names[1], "BENCH_ADDRESS": "10.98.0.2"}
            out = run(*again, env=env)
        finally:
            for namespace in names:
                subprocess.run(["ip", "netns", "del", namespace], check=False)
        return json.loads(out.splitlines()[-1])
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/fpbench.toml"
        with open(path, "w") as file:
            file.write(SCENARIO.format(name=name, link=link, size=PATHS[name][0]))
        inner = f"{directory}/inner.sh"
        with open(inner, "w") as file:
            words = " ".join(f"'{word}'" for word in again)
            file.write(
                "export BENCH_ADDRESS=$(ip -n \"$FARPACE_NS_b\" -4 -o addr show scope global | "
                "awk '{split($4, a, \"/\"); print a[1]; exit}')\n"
                f"exec {words}\n"
            )
        out = run(options.farpace, "lab", "up", path, "--quiet", "--", "sh", inner)
        return json.loads([line for line in out.splitlines() if line.startswith("{")][-1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("farpace", help="the program")
    options.add_argument("--path", action="append", choices=list(PATHS), help="only this path; may be repeated")
    options.add_argument("--only", action="append", choices=CONTENDERS, help="only this contender; may be repeated")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--json", action="store_true")
    options.add_argument("--inside", choices=list(PATHS), help=argparse.SUPPRESS)
    options = options.parse_args()
    options.farpace = os.path.abspath(options.farpace)
    options.only = options.only or CONTENDERS
    if options.inside:
        return trial(options, options.inside)
    table = {}
    for name in options.path or PATHS:
        table[name] = {"allowed": lab(options, name), **measure(options, name)}
        print(name, {k: v if not isinstance(v, list) else round(statistics.median(v)) for k, v in table[name].items()},
              file=sys.stderr)
    if options.json:
        print(json.dumps(table))
        return
    print("| path | " + " | ".join(options.only) + " | the lab allows |")
    print("|---" * (len(options.only) + 2) + "|")
    for name, rates in table.items():
        cells = [f"{statistics.median(rates[c]):.0f}" if c in rates else "-" for c in options.only]
        allowed = f"{rates['allowed']:.0f}" if rates["allowed"] else "-"
        print(f"| {name} | " + " | ".join(cells) + f" | {allowed} |")


if __name__ == "__main__":
    main()
