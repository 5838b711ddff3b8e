#!/usr/bin/env python3
"""Pacing classes beside each other: `farpace kernel up --classes`, `farpace pacing up`, and htb or fq as an administrator sets them.

    bench/kernel-classes.py [--rates 10,100,500] [--ways kernel,kernel-gso,pacing,htb,htb-frames,fq] [--seconds 8]

As root, with iperf3 and tcpdump, after: cargo build --release -p farpace --features kernel. Two namespaces on a veth pair, one TCP
connection of the kernel (cubic) for each rate. `farpace pacing report` judges a capture at the receiver, of 2 s in the middle.
Processor time is that of sender, receiver and farpace, by a control group, for a gigabyte of frames; the kernel's timers count for whoever they
interrupt.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import routes

ROOT = pathlib.Path(__file__).resolve().parent.parent
FARPACE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release" / "farpace"
A, B = "fpbench-a", "fpbench-b"
MOUNTS = [line.split() for line in open("/proc/self/mounts")]
GROUP = pathlib.Path(next(words[1] for words in MOUNTS if words[2] == "cgroup2")) / "fpbench"


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, **more).stdout


def within(name, *words):
    return ["nsenter", f"--net=/run/netns/{name}", *[str(w) for w in words]]


def busy():
    """Processor time of this process's control group, seconds."""
    lines = (GROUP / "cpu.stat").read_text().split()
    return int(lines[lines.index("usage_usec") + 1]) / 1e6


def make():
    for name in (A, B):
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "-n", A, "link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", B)
    run("ip", "-n", A, "link", "set", "eth1", "up")
    run("ip", "-n", B, "link", "set", "eth1", "up")
    run("ip", "-n", B, "address", "add", "10.9.0.2/24", "dev", "eth1")


def unmake():
    for name in (A, B):
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def started(words, says):
    """A command that runs until it is interrupted, once it has said so on either of its outputs."""
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in child.stdout:
        if says in line:
            return child
    raise SystemExit(f"{words}: it did not start")


def set_up(way, mbit, folder):
    """Paces what leaves by eth1; what runs for it."""
    address = lambda: run("ip", "-n", A, "address", "add", "10.9.0.1/24", "dev", "eth1")
    tc = lambda *words: run("tc", "-n", A, *words)
    if way.startswith("kernel"):
        address()
        file = folder / "pacing.toml"
        file.write_text(f'default = "a"\nlimit = "200 packets"\n[[classes]]\nname = "a"\nrate = "{mbit} Mbit/s"\n')
        more = ["--keep-super-segments"] if way == "kernel-gso" else []
        child = started(within(A, FARPACE, "kernel", "up", "--classes", file, "--dev", "eth1", *more), "Ctrl-C")
        return child
    if way == "pacing":
        words = ["pacing", "up", "--iface", "eth1", "--addr", "10.9.0.1/24", "--rate", f"{mbit}mbit", "--line", "10gbit"]
        return started(within(A, FARPACE, *words), "Ctrl-C")
    address()
    if way.startswith("htb"):
        if way == "htb-frames":
            run("ip", "-n", A, "link", "set", "eth1", "gso_max_segs", 1)
        tc("qdisc", "add", "dev", "eth1", "root", "handle", "1:", "htb", "default", "1")
        tc("class", "add", "dev", "eth1", "parent", "1:", "classid", "1:1", "htb", "rate", f"{mbit}mbit")
    else:
        tc("qdisc", "add", "dev", "eth1", "root", "fq", "maxrate", f"{mbit}mbit")
    return None


def measure(way, mbit, seconds, folder):
    make()
    server = child = None
    try:
        child = set_up(way, mbit, folder)
        routes.choose(A, "cubic")
        server = subprocess.Popen(within(B, "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
        time.sleep(1)
        capture = folder / "trace.pcap"
        client = subprocess.Popen(
            within(A, "iperf3", "-c", "10.9.0.2", "-t", seconds, "-J", "-C", "cubic"), stdout=subprocess.PIPE, text=True
        )
        # Processor time without the capture, then a capture.
        time.sleep(1)
        count = lambda: int(within_file(B, "/sys/class/net/eth1/statistics/rx_bytes"))
        begun, bytes_before = busy(), count()
        time.sleep(seconds - 5)
        used, carried = busy() - begun, count() - bytes_before
        dump = subprocess.Popen(
            within(B, "tcpdump", "-i", "eth1", "-s", 96, "-B", 65536, "--time-stamp-precision=nano", "-w", capture, "tcp"),
            stderr=subprocess.DEVNULL,
        )
        time.sleep(2.5)
        dump.send_signal(2)
        dump.wait()
        result = json.loads(client.communicate()[0])
        report = json.loads(
            run(FARPACE, "pacing", "report", capture, "--flow", "dst 10.9.0.2:5201", "--rate", f"{mbit} Mbit/s", "--json",
                "--out", folder / "report")
        )
        late = None
        if way.startswith("kernel"):
            status = json.loads(run(FARPACE, "kernel", "status", "--json"))
            late = status["devices"][0]["classes"][0]
        return result, report, used / (carried / 1e9), late
    finally:
        for process in (child, server):
            if process and process.poll() is None:
                process.send_signal(2)
                process.wait()
        unmake()


def within_file(name, path):
    return run("ip", "netns", "exec", name, "cat", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="10,100,500")
    parser.add_argument("--ways", default="kernel,kernel-gso,pacing,htb,htb-frames,fq")
    parser.add_argument("--seconds", type=int, default=8)
    args = parser.parse_args()
    GROUP.mkdir(exist_ok=True)
    (GROUP / "cgroup.procs").write_text(str(os.getpid()))
    print("| Mbit/s | way | mean rate | gaps: least, median, most us | queue, frames | longest train | CPU s/GB | late p99, most us |")
    print("|---|---|---|---|---|---|---|---|")
    for mbit in args.rates.split(","):
        for way in args.ways.split(","):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    _, report, cost, late = measure(way, int(mbit), args.seconds, pathlib.Path(folder))
                except subprocess.CalledProcessError as error:
                    print(f"| {mbit} | {way} | not here: {(error.stderr or '').strip()[:80]} | | | | | |", flush=True)
                    continue
            flow = report["captures"][0]["flows"][0]
            gaps, queue = flow["intervals"], flow["burstiness_at_rate"]
            us = lambda ns: f"{ns / 1e3:.3g}"
            lateness = f"{late['late_p99_s'] * 1e6:.0f}, {late['late_most_s'] * 1e6:.0f}" if late else ""
            print(
                f"| {mbit} | {way} | {flow['mean_bit_s'] / 1e6:.4f} | {us(gaps['least_ns'])}, {us(gaps['median_ns'])}, "
                f"{us(gaps['most_ns'])} | {queue['bytes'] / 1518:.2f} | {flow['longest_train']['packets']} | {cost:.2f} | {lateness} |",
                flush=True,
            )
    (GROUP.parent / "cgroup.procs").write_text(str(os.getpid()))
    GROUP.rmdir()


if __name__ == "__main__":
    main()
