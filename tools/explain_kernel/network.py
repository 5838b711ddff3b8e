"""Namespaces for the two ends and a router between them, with an emulator on each side of the router."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

# By end of each cable: namespace, name there, the emulator's end, hardware address.
CABLES = (("a", "a0", "ma", 1), ("c", "ca", "mca", 2), ("c", "cb", "mcb", 3), ("b", "b0", "mb", 4))
MAC = "02:00:00:00:00:0{}"
ADDRESSES = {"a0": "1", "ca": "1", "cb": "2", "b0": "2"}
HOSTS = {"a0": "1", "ca": "254", "cb": "254", "b0": "1"}
# The places of captures.
PLACES = {"a": ("a", "a0"), "c": ("c", "cb"), "b": ("b", "b0")}
DEFAULTS = ("tcp_timestamps=1", "tcp_sack=1", "tcp_window_scaling=1", "tcp_ecn=2", "tcp_early_retrans=3", "tcp_mtu_probing=0",
            "tcp_no_metrics_save=1")
SIOCETHTOOL, ETHTOOL_SGRO = 0x8946, 0x2C


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


def set_gro(interface, on):
    """Receive offload of an interface of this namespace, as `ethtool -K INTERFACE gro on` sets it."""
    import array

    value = array.array("B", struct.pack("II", ETHTOOL_SGRO, int(on)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP", interface.encode(), value.buffer_info()[0]))


@contextlib.contextmanager
def control_loaded(farpace, wanted):
    """farpace's own congestion control is in the kernel meanwhile, if it is wanted."""
    if not wanted:
        yield
        return
    loader = subprocess.Popen([farpace, "kernel", "up"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        end = time.time() + 20
        while "farpace" not in open("/proc/sys/net/ipv4/tcp_available_congestion_control").read().split():
            if loader.poll() is not None or time.time() > end:
                loader.kill()
                raise SystemExit(f"farpace kernel up does not load the control: {loader.stderr.read()}")
            time.sleep(0.1)
        yield
    finally:
        loader.send_signal(signal.SIGINT)
        loader.wait()


class Network:
    """Lives as long as a run. `prefix` begins the names of its namespaces."""

    def __init__(self, farpace, prefix):
        self.farpace, self.prefix = farpace, prefix

    def name(self, place):
        return f"{self.prefix}{place}"

    def up(self):
        self.down()
        for place in "acbm":
            run("ip", "netns", "add", self.name(place))
        for place, interface, other, number in CABLES:
            space = self.name(place)
            run("ip", "link", "add", f"{self.prefix}{interface}", "type", "veth", "peer", "name", f"{self.prefix}{other}")
            for end, to, name in ((interface, space, interface), (other, self.name("m"), other)):
                run("ip", "link", "set", "dev", f"{self.prefix}{end}", "netns", to)
                run("ip", "-n", to, "link", "set", "dev", f"{self.prefix}{end}", "name", name)
            run("ip", "-n", space, "link", "set", "dev", interface, "address", MAC.format(number))
            net, host = ADDRESSES[interface], HOSTS[interface]
            run("ip", "-n", space, "addr", "add", f"10.99.{net}.{host}/24", "dev", interface)
            run("ip", "-n", space, "addr", "add", f"fd99:{net}::{host}/64", "dev", interface, "nodad")
            run("ip", "-n", space, "link", "set", "dev", interface, "up")
            run("ip", "-n", self.name("m"), "link", "set", "dev", other, "up")
        # Neighbours are known: otherwise an outage also stops ARP, and SYNs wait in the sender instead of being lost.
        for place, interface, net, host, number in (("a", "a0", 1, 254, 2), ("c", "ca", 1, 1, 1), ("c", "cb", 2, 1, 4), ("b", "b0", 2, 254, 3)):
            for address in (f"10.99.{net}.{host}", f"fd99:{net}::{host}"):
                run("ip", "-n", self.name(place), "neigh", "replace", address, "lladdr", MAC.format(number), "dev", interface,
                    "nud", "permanent")
        for place, net in (("a", 1), ("b", 2)):
            run("ip", "-n", self.name(place), "route", "add", "default", "via", f"10.99.{net}.254")
            run("ip", "-n", self.name(place), "-6", "route", "add", "default", "via", f"fd99:{net}::254")
        self.sysctl("c", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")

    def down(self):
        for place in "acbm":
            run("ip", "netns", "del", self.name(place), check=False)

    def sysctl(self, place, *settings):
        run("ip", "netns", "exec", self.name(place), "sysctl", "-qw", *settings)

    def start(self, place, *command, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.name(place), *command], **options)

    def prepare(self, case):
        """Settings of the kernels, offloads, and the router's rules."""
        for place in "ab":
            self.sysctl(place, *(f"net.ipv4.{setting}" for setting in DEFAULTS + case.sysctl))
        script = os.path.join(os.path.dirname(__file__), "network.py")
        run("ip", "netns", "exec", self.name("b"), sys.executable, script, "b0", str(int(bool(case.programs.get("gro")))))
        nft = ("ip", "netns", "exec", self.name("c"), "nft")
        run(*nft, "flush", "ruleset")
        run(*nft, "add", "table", "inet", "box")
        run(*nft, "add", "chain", "inet", "box", "pass", "{ type filter hook forward priority 0; }")
        for rule in case.firewall:
            # Rules hold for data.
            run(*nft, "add", "rule", "inet", "box", "pass", "iifname", "ca", *rule.split())

    def transfer(self, case, options, folder, seed):
        """One transfer: captures in `folder`, and what the sending program said."""
        self.prepare(case)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        emulators = []
        for name, line, ends in (("near", case.near, ("ma", "mca")), ("far", case.far, ("mcb", "mb"))):
            with open(f"{folder}/{name}.toml", "w") as file:
                file.write(line.scenario(name))
            with open(f"{folder}/{name}.log", "w") as log:
                # Before other programs: what leaves late is not the network that was asked for.
                emulators.append(self.start("m", "chrt", "-f", "10", self.farpace, "emulate", f"a={ends[0]}", f"b={ends[1]}",
                                            "--wait", "sleep", "--seed", str(seed), "--scenario", f"{folder}/{name}.toml",
                                            stdout=log, stderr=log))
        time.sleep(1.0)
        if any(emulator.poll() is not None for emulator in emulators):
            raise SystemExit(f"an emulator has ended: see {folder}/near.log and far.log")
        captures = [
            self.start(place, "tcpdump", "-i", interface, "-s", "128", "--immediate-mode", "-U", "-w", f"{folder}/{where}.pcap",
                       "tcp", **quiet)
            for where, (place, interface) in PLACES.items()
        ]
        time.sleep(0.5)
        main = os.path.join(os.path.dirname(__file__), "..", "explain-kernel.py")
        address = {end: f"fd99:{net}::1" if case.ipv6 else f"10.99.{net}.1" for end, net in (("a", 1), ("b", 2))}
        arguments = [(end, role, {**options, "peer": address["b" if end == "a" else "a"]})
                     for end, role in (("a", "--send"), ("b", "--receive"))]
        # The end that listens begins.
        if not options.get("download"):
            arguments.reverse()
        programs = {}
        for end, role, own in arguments:
            programs[end] = self.start(end, sys.executable, main, role, json.dumps(own),
                                       stdout=subprocess.PIPE if end == "a" else None, text=True)
            time.sleep(0.3)
        for program in programs.values():
            try:
                program.wait(60)
            except subprocess.TimeoutExpired:
                program.kill()
        time.sleep(0.3)
        for program in captures + emulators:
            program.send_signal(signal.SIGINT)
        for program in captures + emulators:
            program.wait()
        return json.loads(programs["a"].stdout.read() or "{}")


if __name__ == "__main__":
    set_gro(sys.argv[1], sys.argv[2] == "1")
