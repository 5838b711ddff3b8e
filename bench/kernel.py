#!/usr/bin/env python3
"""`farpace kernel` beside the kernel's own congestion controls, over paths of the lab: goodput of iperf3, kernel to kernel.

    bench/kernel.py [--controls cubic,bbr,farpace,star] [--paths satellite,lossy,small-queue,policed,leo]

As root, with iperf3, after: cargo build --release -p farpace --features kernel. The network runs with real-time priority
(chrt), so that other programs do not make packets late; a line says how late they were. Beside each figure stands the
lab's, for the same path and time with the same control (`linux` for cubic).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import routes

ROOT = pathlib.Path(__file__).resolve().parent.parent
FARPACE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release" / "farpace"

POLICED = """title = "A policed path"
duration = "100 s"
[hosts.a]
[hosts.b]
[[links]]
name = "l"
between = ["a", "b"]
rate = "200 Mbit/s"
delay = "10 ms"
forward = { policer = { rate = "20 Mbit/s", burst = "500 kB" } }
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "40 MB"
receiver = { window = "1000 packets" }
"""

# Seconds, and what lets the lab's receiver not be the limit.
PATHS = {
    "satellite": (60, 'receive_buffer="16 MB"'),
    "lossy": (20, 'window="20000 packets"'),
    "small-queue": (20, 'window="20000 packets"'),
    "policed": (20, 'window="20000 packets"'),
    "leo": (58, 'window="20000 packets"'),
}
LAB = {
    "cubic": ["profile=linux"],
    "bbr": ["congestion=bbr1"],
    "farpace": ["profile=farpace"],
    "star": ["congestion=star-robust"],
}
BUFFERS = ["net.ipv4.tcp_rmem=4096 131072 67108864", "net.ipv4.tcp_wmem=4096 65536 67108864", "net.ipv4.tcp_no_metrics_save=1"]


def trial(control: str, seconds: int) -> None:
    """Inside of `farpace lab up`: one transfer, its result as a line of JSON."""
    a, b = os.environ["FARPACE_NS_a"], os.environ["FARPACE_NS_b"]
    within = lambda name, *words: ["ip", "netns", "exec", name, *words]
    for name in (a, b):
        subprocess.run(within(name, "sysctl", "-qw", *BUFFERS), check=True)
    routes.choose(a, control)
    shown = subprocess.run(["ip", "-n", b, "-j", "-4", "addr", "show", "dev", "far0"], check=True, capture_output=True)
    address = json.loads(shown.stdout)[0]["addr_info"][0]["local"]
    with subprocess.Popen(within(b, "iperf3", "-s", "-1", "--forceflush"), stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        client = within(a, "iperf3", "-c", address, "-C", control, "-t", str(seconds), "-J")
        ended = json.loads(subprocess.run(client, capture_output=True, check=True).stdout)["end"]
        server.communicate()
    sent = ended["streams"][0]["sender"]
    print(json.dumps([ended["sum_received"]["bits_per_second"] / 1e6, sent["retransmits"], sent["mean_rtt"] / 1e3]))


def measured(scenario: pathlib.Path, control: str, seconds: int) -> tuple[list[float], float]:
    lab = ["chrt", "-f", "10", FARPACE, "lab", "up", scenario, "--wait", "sleep", "--json", "--"]
    inside = ["chrt", "-o", "0", sys.executable, __file__, "--trial", control, str(seconds)]
    lines = subprocess.run([*lab, *inside], capture_output=True, check=True, text=True).stdout
    first, rest = lines.split("\n", 1)
    return json.loads(first), json.loads(rest)["accuracy"]["p99_us"]


def predicted(scenario: pathlib.Path, control: str, seconds: int, receiver: str) -> float:
    words = [f'duration="{seconds} s"', 'flows.bulk.size="4 GB"', f"flows.bulk.receiver.{receiver}"]
    words += [f"flows.bulk.sender.{word}" for word in LAB[control]]
    sets = [word for one in words for word in ("--set", one)]
    run = subprocess.run([FARPACE, "run", scenario, *sets, "--json", "--no-report"], capture_output=True, text=True)
    return json.loads(run.stdout)["flows"][0]["delivered_bytes"] * 8e-6 / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--controls", default="cubic,bbr,farpace,star")
    parser.add_argument("--paths", default=",".join(PATHS))
    options = parser.parse_args()
    subprocess.run([FARPACE, "kernel", "up", "--stay"], check=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            policed = pathlib.Path(folder) / "policed.toml"
            policed.write_text(POLICED)
            print("| path | control | Mbit/s | lab | sent again | RTT, ms | late, 99 %, us |\n|---|---|---|---|---|---|---|")
            for path in options.paths.split(","):
                seconds, receiver = PATHS[path]
                scenario = policed if path == "policed" else ROOT / f"scenarios/gallery/{path}.toml"
                for control in options.controls.split(","):
                    lab = predicted(scenario, control, seconds, receiver)
                    (rate, again, rtt), late = measured(scenario, control, seconds)
                    print(f"| {path} | {control} | {rate:.2f} | {lab:.2f} | {again} | {rtt:.1f} | {late:.0f} |", flush=True)
    finally:
        subprocess.run([FARPACE, "kernel", "down"], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trial"]:
        trial(sys.argv[2], int(sys.argv[3]))
    else:
        main()
