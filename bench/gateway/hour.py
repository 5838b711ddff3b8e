#!/usr/bin/env python3
"""Real time with faults: no byte may change, and no connection may end, unless a gateway was killed while it lived.

    bench/gateway/hour.py target/release/farpace                     an hour, half of it with a gateway alone, half with a pair
    bench/gateway/hour.py target/release/farpace --minutes 10 --seed 7

Needs root. Eight readers fetch files of 1 kB to 10 MB in both directions over a link of 100 Mbit/s, 20 ms and 0.1 % loss, all the time.
Every 10 to 30 s something happens: a gateway is ended and started again, killed, stopped, reads its configuration again, or the link
is silent for one or two seconds. At the end the gateways are ended, and nothing of them may be left. Exit code 1: something was wrong.
"""
import argparse
import collections
import os
import random
import signal
import sys
import tempfile
import threading
import time

from topology import CLIENT, PORT, SERVER, Sender, Site, both, run

FLAGS = both("--rate 100mbit --delay 10ms --queue 500kB --loss 0.001")
READERS = 8
# So long after a killed gateway was started again a connection may still hear of it.
AFTER_KILL = 20


class Hour:
    def __init__(self, site, mode, draw):
        self.site, self.mode, self.draw = site, mode, draw
        self.done, self.failed = collections.Counter(), []
        self.kills = []  # (when, until): connections that lived then may end
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.gateways = self.start_all()

    def start_all(self):
        if self.mode == "alone":
            self.up = {self.site.a: ("gateway", "up", "--lan", "lan0", "--wan", "wan0")}
            return {self.site.a: self.site.gateway()}
        b, a = self.site.pair()
        self.up = {
            node: ("gateway", "up", "--lan", "lan0", "--peer", f"{self.site.directory}/{peer}.conf", "--via", "wan0")
            for node, peer in ((self.site.b, "a"), (self.site.a, "b"))
        }
        return {self.site.b: b, self.site.a: a}

    def restart(self, node):
        self.gateways[node] = self.site.start(node, self.site.farpace, *self.up[node])

    def read(self, number):
        draw = random.Random(f"{self.draw.random()}{number}")
        while not self.over.is_set():
            begun = time.monotonic()
            size = int(10 ** draw.uniform(3, 7))
            namespace, to = draw.choice([(self.site.client, SERVER), (self.site.server, CLIENT)])
            try:
                self.site.fetch(namespace, "cubic", size, (to, PORT))
                outcome = "whole"
                self.done["bytes"] += size
            except (OSError, RuntimeError) as error:
                ended = time.monotonic()
                with self.lock:
                    excused = any(begun < until and ended > at for at, until in self.kills)
                # Other bytes, or an end in order before the last one, has no excuse.
                if excused and isinstance(error, OSError):
                    outcome = "ended by a kill"
                else:
                    outcome = "failed"
                    self.failed.append(f"{size} B to {to} after {ended - begun:.1f} s: {error}")
            self.done[outcome] += 1

    def fault(self):
        node = self.draw.choice(list(self.gateways))
        child = self.gateways[node]
        what = self.draw.choice(["restart", "kill", "stop", "reload", "cut", "cut"])
        if what == "restart":
            self.site.end(child)
            self.restart(node)
        elif what in ("kill", "stop"):
            began = time.monotonic()
            with self.lock:
                self.kills.append((began, began + 600))
            child.send_signal(signal.SIGKILL if what == "kill" else signal.SIGSTOP)
            child.wait(10)
            self.site.children.remove(child)
            time.sleep(1)
            self.restart(node)
            with self.lock:
                self.kills[-1] = (began, time.monotonic() + AFTER_KILL)
        elif what == "reload":
            child.send_signal(signal.SIGHUP)
        else:
            # Silence. If the interface went down, the kernel of router b would answer with "host unreachable", which ends handshakes.
            emulator = self.site.children[0]
            emulator.send_signal(signal.SIGSTOP)
            time.sleep(self.draw.uniform(1, 2))
            emulator.send_signal(signal.SIGCONT)
        self.done[what] += 1

    def memory(self):
        """MB of each gateway."""
        sizes = []
        for child in self.gateways.values():
            with open(f"/proc/{child.pid}/status") as file:
                line = next(line for line in file if line.startswith("VmRSS"))
            sizes.append(int(line.split()[1]) // 1024)
        return sizes

    def go(self, seconds):
        readers = [threading.Thread(target=self.read, args=(n,)) for n in range(READERS)]
        for reader in readers:
            reader.start()
        end = time.monotonic() + seconds
        told = time.monotonic()
        while time.monotonic() < end and not self.failed:
            self.over.wait(self.draw.uniform(10, 30))
            self.fault()
            if time.monotonic() - told > 60:
                told = time.monotonic()
                left = max(0, end - told) / 60
                print(f"{self.mode}: {dict(self.done)}, memory {self.memory()} MB, {left:.0f} min left", flush=True)
        self.over.set()
        for reader in readers:
            reader.join()
        for child in self.gateways.values():
            self.site.end(child)
        time.sleep(1)
        for node in self.gateways:
            rules = run("ip", "-n", node, "rule").splitlines()
            if len(rules) != 3:
                self.failed.append(f"rules are left on a router: {rules}")
        print(f"{self.mode}: {dict(self.done)}", flush=True)
        return self.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("farpace", help="the command, built for release")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--only", choices=["alone", "pair"])
    args = parser.parse_args()
    modes = [args.only] if args.only else ["alone", "pair"]
    print(f"seed {args.seed}", flush=True)
    failed = []
    for mode in modes:
        with tempfile.TemporaryDirectory() as directory:
            site = Site(os.path.abspath(args.farpace), directory, [FLAGS])
            try:
                for host, address in ((site.client, CLIENT), (site.server, SERVER)):
                    Sender(host, address)
                failed += Hour(site, mode, random.Random(args.seed)).go(args.minutes * 60 / len(modes))
            finally:
                site.close()
    for line in failed:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
