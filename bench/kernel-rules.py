#!/usr/bin/env python3
"""What the rules of `farpace kernel up --to` change on policed paths, alone and together: short transfers, kernel to kernel.

    bench/kernel-rules.py [--paths tight,wide,outage] [--transfers 12] [--size 500000]

As root, after: cargo build --release -p farpace --features kernel. A row: transfers one after the other, each over a new connection;
the time of one (median, most), the longest time in which nothing came, segments sent again, retransmission timeouts.
"""

import argparse
import ctypes
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FARPACE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release" / "farpace"

PATH = """title = "A policed path"
duration = "600 s"
[hosts.a]
[hosts.b]
[[links]]
name = "l"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "40 ms"
forward = {{ {forward} }}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "1 MB"
"""
PATHS = {
    # A burst of 20 segments: slow start loses whole flights, and retransmissions too.
    "tight": 'policer = { rate = "2 Mbit/s", burst = "30 kB" }',
    "wide": 'policer = { rate = "20 Mbit/s", burst = "500 kB" }',
    # Nothing passes for four seconds: timeouts double.
    "outage": 'policer = { rate = "2 Mbit/s", burst = "30 kB" }, outages = [{ at = "3 s", lasts = "4 s" }, { at = "15 s", lasts = "4 s" }]',
}
RULES = {
    "cubic": None,
    "rto-min=20ms": "control=kernel,rto-min=20ms",
    "rto-max=1s": "control=kernel,rto-max=1s",
    "initial-window=32": "control=kernel,initial-window=32",
    "the three": "control=kernel,rto-min=20ms,rto-max=1s,initial-window=32",
    "farpace": "control=farpace",
    "farpace and the first two": "control=farpace,rto-min=20ms,rto-max=1s",
    "star": "control=star",
}


def enter(name):
    with open(f"/run/netns/{name}") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


def counters():
    """Timeouts and retransmissions of this thread's namespace."""
    found = {}
    for file in ("netstat", "snmp"):
        lines = open(f"/proc/thread-self/net/{file}").read().splitlines()
        for names, values in zip(lines[::2], lines[1::2]):
            found.update(zip(names.split()[1:], map(int, values.split()[1:])))
    return found["TCPTimeouts"], found["RetransSegs"]


def trial(transfers, size):
    """Inside of `farpace lab up`: the transfers, their result as a line of JSON."""
    a, b = os.environ["FARPACE_NS_a"], os.environ["FARPACE_NS_b"]
    shown = subprocess.run(["ip", "-n", b, "-j", "-4", "addr", "show", "dev", "far0"], check=True, capture_output=True)
    address = json.loads(shown.stdout)[0]["addr_info"][0]["local"]
    enter(b)
    listener = socket.create_server((address, 7))
    stops = [0.0]

    def serve():
        while True:
            peer, _ = listener.accept()
            last = time.monotonic()
            while peer.recv(1 << 16):
                now = time.monotonic()
                stops.append(now - last)
                last = now
            peer.close()

    threading.Thread(target=serve, daemon=True).start()
    enter(a)
    # Connections know nothing of those before.
    subprocess.run(["ip", "netns", "exec", a, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"], check=True)
    before, times = counters(), []
    for _ in range(transfers):
        begun = time.monotonic()
        with socket.create_connection((address, 7)) as sender:
            sender.sendall(b"x" * size)
            sender.shutdown(socket.SHUT_WR)
            sender.settimeout(120)
            sender.recv(1)
        times.append(time.monotonic() - begun)
    after = counters()
    times.sort()
    print(json.dumps([times[len(times) // 2], times[-1], max(stops), after[1] - before[1], after[0] - before[0]]), flush=True)


def measured(scenario, rule, transfers, size):
    up = None
    if rule:
        up = subprocess.Popen([FARPACE, "kernel", "up", "--to", f"10.0.0.0/8,{rule}"], stdout=subprocess.PIPE, text=True)
        up.stdout.readline()
    try:
        lab = ["chrt", "-f", "10", FARPACE, "lab", "up", scenario, "--wait", "sleep", "--json", "--"]
        inside = ["chrt", "-o", "0", sys.executable, __file__, "--trial", str(transfers), str(size)]
        lines = subprocess.run([*lab, *inside], capture_output=True, check=True, text=True).stdout
        first, rest = lines.split("\n", 1)
        return json.loads(first), json.loads(rest)["accuracy"]["p99_us"]
    finally:
        if up:
            up.send_signal(2)
            up.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paths", default=",".join(PATHS))
    parser.add_argument("--transfers", type=int, default=12)
    parser.add_argument("--size", type=int, default=500_000)
    options = parser.parse_args()
    print("| path | rule | median s | most s | longest stop s | sent again | timeouts | late, 99 %, us |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for path in options.paths.split(","):
            scenario = pathlib.Path(folder) / f"{path}.toml"
            scenario.write_text(PATH.format(forward=PATHS[path]))
            for name, rule in RULES.items():
                (median, most, stop, again, timeouts), late = measured(scenario, rule, options.transfers, options.size)
                print(f"| {path} | {name} | {median:.2f} | {most:.2f} | {stop:.2f} | {again} | {timeouts} | {late:.0f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trial"]:
        trial(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
