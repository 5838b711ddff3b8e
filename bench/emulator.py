#!/usr/bin/env python3
"""What `farpace emulate` carries and how late its packets are: iperf3 through it, in network namespaces of its own, as root.

Each row is a line with its options; kernel TCP (cubic) at both ends. Lateness is the time from when an element let a packet
go until it was given to the interface. Build it first: make build. Exit codes: 0 all was measured, 2 it could not be.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import routes

ROOT = pathlib.Path(__file__).resolve().parent.parent
FARPACE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release" / "farpace"
LINE = ["--rate", "500mbit", "--delay", "5ms", "--queue", "20ms"]
ROWS = {
    "500 Mbit/s, --wait spin": [*LINE, "--wait", "spin"],
    "500 Mbit/s, --wait hybrid": [*LINE, "--wait", "hybrid"],
    "500 Mbit/s, --wait sleep": [*LINE, "--wait", "sleep"],
    "100 Mbit/s, --wait sleep": ["--rate", "100mbit", "--wait", "sleep"],
    "no rate": [],
    "no rate, --mode af-xdp": ["--mode", "af-xdp"],
    "no rate, --gso": ["--gso"],
}


class Site:
    """Two machines, and a third between them, each a network namespace."""

    def __init__(self):
        self.names = {place: f"emu{os.getpid()}{place}" for place in "amb"}

    def __enter__(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for place, address in (("a", "10.99.0.1/24"), ("b", "10.99.0.2/24")):
            near, far = self.names[place], self.names["m"]
            subprocess.run(["ip", "-n", near, "link", "add", "e", "type", "veth", "peer", "name", f"e{place}", "netns", far],
                           check=True)
            subprocess.run(["ip", "-n", near, "addr", "add", address, "dev", "e"], check=True)
            subprocess.run(["ip", "-n", near, "link", "set", "e", "up"], check=True)
            subprocess.run(["ip", "-n", far, "link", "set", f"e{place}", "up"], check=True)
        routes.choose(self.names["a"], "cubic")
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)

    def run(self, place, *command, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.names[place], *command], text=True, **options)


def measure(site, options, seconds):
    pipe = subprocess.PIPE
    emulator = site.run("m", FARPACE, "emulate", "ea", "eb", "--json", *options, stdout=pipe, stderr=pipe)
    server = site.run("b", "iperf3", "-s", "-1", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        client = site.run("a", "iperf3", "-c", "10.99.0.2", "-C", "cubic", "-t", str(seconds), "-J", stdout=pipe)
        said = json.loads(client.communicate(timeout=seconds + 30)[0])
        if "error" in said:
            raise RuntimeError(f"iperf3: {said['error']}")
    finally:
        server.terminate()
        server.wait()
        emulator.send_signal(signal.SIGINT)
        out, errors = emulator.communicate(timeout=30)
    if not out.strip():
        raise RuntimeError(f"farpace emulate {' '.join(options)}: {errors.strip()}")
    return said["end"]["sum_received"]["bits_per_second"], json.loads(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="of each run [default: 4]")
    parser.add_argument("--rounds", type=int, default=3, help="of all rows, one after the other [default: 3]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    found = {row: [] for row in ROWS}
    try:
        with Site() as site:
            for _ in range(args.rounds):
                for row, options in ROWS.items():
                    rate, summary = measure(site, options, args.seconds)
                    late = summary["accuracy"]
                    found[row].append({"mbit_s": rate / 1e6, "late_median_us": late["median_us"], "late_p99_us": late["p99_us"]})
                    print(".", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
    except (OSError, RuntimeError, subprocess.SubprocessError, KeyError, ValueError) as error:
        print(f"emulator: {error!r}: it needs root, iperf3 and a release build (make build)", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"{'farpace emulate ea eb':<28}{'Mbit/s':>18}{'late, median, us':>20}{'late, 99 %, us':>20}")
    for row, runs in found.items():
        def span(key):
            values = sorted(run[key] for run in runs)
            return " to ".join(f"{value:,.0f}" if value >= 100 else f"{value:.1f}" for value in (values[0], values[-1]))
        print(f"{row:<28}{span('mbit_s'):>18}{span('late_median_us'):>20}{span('late_p99_us'):>20}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
