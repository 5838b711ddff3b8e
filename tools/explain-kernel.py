#!/usr/bin/env python3
"""Verdicts of `farpace explain` on the kernel's own TCP: namespaces, the emulator between them, captures at both ends.

Usage: tools/explain-kernel.py [CASE,...] [CONTROL,...]     as root; needs tcpdump, ip and target/release/farpace (or FARPACE).
KEEP=DIR keeps the captures.

Each row is a case, a congestion control, the dominant cause at the sender and at the receiver, the congestion control that was
recognised, and what the kernel's TCP_INFO says of the same transfer (idle, limited by the receive window, limited by the send
buffer, payload sent again), each beside what the sender's capture was explained with. The program fails if a verdict is not the
expected one, if a time differs from the kernel's by more than a tenth of the transfer, or if the payload sent again differs.
The emulator works in real time: on a busy machine, give it a core.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

FARPACE = os.environ.get("FARPACE", os.path.join(os.path.dirname(__file__), "../target/release/farpace"))
NAMESPACES = ("fpxa", "fpxb", "fpxm")
LINK = "links.line"
# Fields of struct tcp_info (linux/tcp.h): offset, format.
INFO = {"min_rtt": (148, "I"), "resent": (208, "Q"), "busy": (168, "Q"), "rwnd": (176, "Q"), "sndbuf": (184, "Q")}
# What the kernel counts together, by our causes. The rest of the time is the handshake's and the programs'.
WINDOW = ("receive_window", "window_scale", "zero_window", "receiver_application")
IDLE = ("connect", "syn_loss", "sender_application", "peer_application")
# Largest difference between the kernel's times and ours, as a share of the transfer.
TOLERANCE = 0.1
DROP = '{at="3s",lasts="2s"}'

# name: flags of the emulator, what the programs do, the cause that is expected
CASES = {
    "healthy": ("--rate 20mbit --delay 15ms --queue 60ms", {}, "congestion"),
    "loss": ("--rate 50mbit --delay 20ms --queue 100ms --loss 0.01", {}, "random_loss"),
    "policer": ("--rate 200mbit --delay 15ms --police 20mbit --police-burst 100kB", {}, "policer"),
    "window": ("--rate 100mbit --delay 20ms", {"rcvbuf": 40_000}, "receive_window"),
    "buffer": ("--rate 100mbit --delay 20ms", {"sndbuf": 60_000}, "send_buffer"),
    "program": ("--rate 100mbit --delay 20ms", {"write": [60_000, 0.15]}, "sender_application"),
    "reader": ("--rate 100mbit --delay 10ms", {"read": [50_000, 0.1], "rcvbuf": 200_000, "size": 3_000_000},
               "receiver_application"),
    "outage": (f"--rate 20mbit --delay 15ms --set {LINK}.forward.outages=[{DROP}] --set {LINK}.backward.outages=[{DROP}]",
               {"seconds": 4}, "outage"),
    "queue": (f'--rate 100mbit --delay 30ms --set {LINK}.queue="10packets"', {}, "small_queue"),
    "burst": (f"--rate 50mbit --delay 20ms --queue 100ms --set {LINK}.forward.burst_loss={{begin=0.002,end=0.2}}", {},
              "burst_loss"),
    "short": ("--rate 100mbit --delay 100ms", {"size": 600_000}, "slow_start"),
    "acks": ("--rate 50mbit --delay 20ms --queue 60ms --loss-back 0.3", {}, "congestion"),
    "syn": (f'--rate 50mbit --delay 15ms --set {LINK}.forward.outages=[{{at="0s",lasts="4s"}}]', {"size": 300_000},
            "syn_loss"),
}
# BBR fills the path in spite of these.
FULL_WITH_BBR = ("loss", "burst")


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


def set_up():
    tear_down()
    for name in NAMESPACES:
        run("ip", "netns", "add", name)
    for number, end, address in ((1, "a", "10.99.0.1/24"), (2, "b", "10.99.0.2/24")):
        run("ip", "link", "add", f"fpx{end}0", "type", "veth", "peer", "name", f"fpxm{end}")
        run("ip", "link", "set", f"fpx{end}0", "netns", f"fpx{end}")
        run("ip", "link", "set", f"fpxm{end}", "netns", "fpxm")
        # Fixed addresses: otherwise an outage also stops ARP, and SYNs wait in the sender instead of being lost.
        run("ip", "-n", f"fpx{end}", "link", "set", f"fpx{end}0", "address", f"02:00:00:00:00:0{number}")
        run("ip", "-n", f"fpx{end}", "addr", "add", address, "dev", f"fpx{end}0")
        run("ip", "-n", f"fpx{end}", "link", "set", f"fpx{end}0", "up")
        run("ip", "-n", "fpxm", "link", "set", f"fpxm{end}", "up")
        run("ip", "-n", f"fpx{end}", "neigh", "replace", f"10.99.0.{3 - number}", "lladdr", f"02:00:00:00:00:0{3 - number}",
            "dev", f"fpx{end}0", "nud", "permanent")


def tear_down():
    for name in NAMESPACES:
        run("ip", "netns", "del", name, check=False)


def inside(namespace, *command, **options):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], **options)


def transfer(flags, programs, control, folder):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    emulator = inside("fpxm", FARPACE, "emulate", "fpxma", "fpxmb", "--quiet", *flags.split(), **quiet)
    time.sleep(1.2)
    captures = [
        inside(f"fpx{end}", "tcpdump", "-i", f"fpx{end}0", "-s", "128", "--immediate-mode", "-U", "-w", f"{folder}/{end}.pcap", "tcp", **quiet)
        for end in "ab"
    ]
    time.sleep(0.5)
    options = json.dumps({"control": control, "seconds": 8, **programs})
    me = os.path.abspath(__file__)
    receiver = inside("fpxb", sys.executable, me, "--receive", options)
    time.sleep(0.3)
    sender = inside("fpxa", sys.executable, me, "--send", options, stdout=subprocess.PIPE, text=True)
    for program in (sender, receiver):
        try:
            program.wait(60)
        except subprocess.TimeoutExpired:
            program.kill()
    time.sleep(0.3)
    for program in (*captures, emulator):
        program.terminate()
        program.wait()
    return json.loads(sender.stdout.read())


def send(options):
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options["control"].encode())
    if "sndbuf" in options:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options["sndbuf"])
    s.settimeout(60)
    begun = time.time()
    s.connect(("10.99.0.2", 5001))
    size, pause = options.get("write", [65_536, 0])
    end, sent, whole = time.time() + options["seconds"], 0, options.get("size")
    pauses = 0
    while sent < whole if whole else time.time() < end:
        chunk = b"x" * min(size, whole - sent if whole else size)
        s.sendall(chunk)
        sent += len(chunk)
        if pause:
            time.sleep(pause)
            pauses += 1
    s.shutdown(socket.SHUT_WR)
    # The state is ESTABLISHED or FIN_WAIT1 until all is acknowledged.
    while (info := s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256))[0] in (1, 4):
        time.sleep(0.002)
    told = {name: struct.unpack_from(form, info, at)[0] for name, (at, form) in INFO.items()}
    print(json.dumps({"took": time.time() - begun, "pauses": pauses, **told}))
    s.recv(1)


def receive(options):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if "rcvbuf" in options:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["rcvbuf"])
    s.bind(("10.99.0.2", 5001))
    s.listen(1)
    s.settimeout(60)
    connection, _ = s.accept()
    size, pause = options.get("read", [1 << 18, 0])
    while data := connection.recv(size):
        time.sleep(pause * len(data) / size)


def explained(file):
    out = json.loads(run(FARPACE, "explain", file, "--json").stdout)
    flows = out["captures"][0]["flows"]
    nothing = {"dominant": "nothing", "duration_s": 0, "times": [], "counts": {"retransmitted_bytes": 0},
               "congestion_control": {"name": "unknown"}}
    return flows[0] if flows else nothing


def compare(kernel, flow):
    """Idle, window-limited and buffer-limited time in seconds, and payload sent again: the kernel's, ours, and whether they agree.

    The kernel is busy until the last ACK of what was written before a pause; for us the program's pause begins when it has
    nothing more to send. The kernel's time of the send buffer is a part of the whole: it begins anew at each write.
    """
    took = flow["duration_s"]
    times = {t["cause"]: t["time_s"] for t in flow["times"]}
    of = lambda causes: sum(times.get(cause, 0) for cause in causes)
    pairs = [
        (kernel["took"] - kernel["busy"] / 1e6 + kernel["pauses"] * kernel["min_rtt"] / 1e6, of(IDLE)),
        (kernel["rwnd"] / 1e6, of(WINDOW)),
        (kernel["sndbuf"] / 1e6, of(("send_buffer",))),
    ]
    good = [abs(theirs - ours) <= TOLERANCE * took for theirs, ours in pairs]
    theirs, ours = pairs[2]
    good[2] = theirs - TOLERANCE * took <= ours and (theirs > 0) == (ours > TOLERANCE * took)
    resent = (kernel["resent"], flow["counts"]["retransmitted_bytes"])
    words = [f"{theirs:.2f}/{ours:.2f}" for theirs, ours in pairs] + [f"{resent[0]}/{resent[1]}"]
    return [word + ("" if ok else "!") for word, ok in zip(words, good + [resent[0] == resent[1]])]


ROW = "{:9} {:6} {:21} {:21} {:21} {:8} {:12} {:12} {:12} {:12}"


def main():
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(CASES)
    controls = sys.argv[2].split(",") if len(sys.argv) > 2 else ["cubic", "reno", "bbr"]
    wrong = 0
    print("kernel/explain in seconds and bytes; ! means that they disagree")
    print(ROW.format("case", "sender", "expected", "at the sender", "at the receiver", "control", "idle", "window", "buffer", "sent again"))
    set_up()
    try:
        for control in controls:
            for name in names:
                flags, programs, expected = CASES[name]
                if control == "bbr" and name in FULL_WITH_BBR:
                    expected = "congestion"
                with tempfile.TemporaryDirectory() as folder:
                    os.chmod(folder, 0o777)
                    kernel = transfer(flags, programs, control, folder)
                    ends = [explained(f"{folder}/{end}.pcap") for end in "ab"]
                    if keep := os.environ.get("KEEP"):
                        for end in "ab":
                            shutil.copy(f"{folder}/{end}.pcap", f"{keep}/{name}-{control}-{end}.pcap")
                # A SYN that was lost leaves no trace at the receiver.
                judged = ends[:1] if expected == "syn_loss" else ends
                words = compare(kernel, ends[0])
                good = all(flow["dominant"] == expected for flow in judged) and not any("!" in word for word in words)
                wrong += not good
                recognised = ends[0]["congestion_control"]["name"]
                row = ROW.format(name, control, expected, *(flow["dominant"] for flow in ends), recognised, *words)
                print(row + ("" if good else "WRONG"), flush=True)
    finally:
        tear_down()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] in ("--send", "--receive"):
        {"--send": send, "--receive": receive}[sys.argv[1]](json.loads(sys.argv[2]))
    else:
        main()
