#!/usr/bin/env python3
"""Verdicts of `farpace explain` on the kernel's own TCP: namespaces, a router and two emulators, captures at three places.

Each row is a case, a congestion control, the dominant cause at the sender (a), at the router (c) and at the receiver (b), the
congestion control that was recognised, and what the kernel's TCP_INFO says of the same transfer (idle, limited by the receive
window, limited by the send buffer, payload sent again), each beside what the sender's capture was explained with. A verdict that is
not among those expected has a `!` behind it, and so has a time that differs from the kernel's by more than a tenth of the transfer,
and payload sent again that differs. The program fails if there is any `!`.

It needs root, tcpdump, ip, nft, and a built farpace. The emulators work in real time: on a busy machine, give them a core.
"""

import argparse
import json
import os
import sys
import tempfile

from explain_kernel import judge, network, programs
from explain_kernel.cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
CONTROLS = ("cubic", "reno", "bbr")
ROW = "{:15} {:6} {:21} {:21} {:21} {:21} {:8} {:13} {:13} {:13} {:12}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", default="", metavar="CASE,...", help="all without it; --list names them")
    parser.add_argument("controls", nargs="?", default=",".join(CONTROLS), metavar="CONTROL,...", help="%(default)s")
    parser.add_argument("--list", action="store_true", help="names the cases and what is expected of them, and ends")
    parser.add_argument("--keep", metavar="DIR", help="keeps the captures, and what the kernel said")
    parser.add_argument("--judge", metavar="DIR", help="judges captures that were kept, and sends nothing")
    parser.add_argument("--damage", choices=sorted(judge.DAMAGES), help="judges copies of the captures from which packets are missing")
    parser.add_argument("--prefix", default="fpx", help="begins the names of namespaces: two runs at once need two (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what the emulators draw at random comes from it (%(default)s)")
    parser.add_argument("--farpace", default=os.environ.get("FARPACE", os.path.join(HERE, "../target/release/farpace")),
                        metavar="PROGRAM", help="%(default)s")
    options = parser.parse_args()
    options.cases = options.cases.split(",") if options.cases else list(CASES)
    options.controls = options.controls.split(",")
    for chosen, known, what in ((options.cases, CASES, "case"), (options.controls, CONTROLS, "congestion control")):
        if strange := [name for name in chosen if name not in known]:
            parser.error(f"no {what} is called {', '.join(strange)}; there are {', '.join(known)}")
    return options


def one(net, name, control, options, folder):
    """The kernel's figures of a transfer whose captures are in the folder that is returned."""
    case = CASES[name]
    if options.judge:
        with open(f"{options.judge}/{name}-{control}/kernel.json") as file:
            return json.load(file), f"{options.judge}/{name}-{control}"
    if options.keep:
        folder = f"{options.keep}/{name}-{control}"
        os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    kernel = net.transfer(case, {"control": control, "seconds": 8, "ipv6": case.ipv6, **case.programs}, folder,
                          options.seed)
    with open(f"{folder}/kernel.json", "w") as file:
        json.dump(kernel, file)
    return kernel, folder


def main():
    options = arguments()
    if options.list:
        for name, case in CASES.items():
            print(f"{name:15} {case.expected}" + (f"; with bbr {case.with_bbr}" if case.with_bbr else ""))
        return 0
    net = None if options.judge else network.Network(options.farpace, options.prefix)
    print("kernel/explain in seconds and bytes; ! means that they disagree, or a verdict that is not expected")
    print(ROW.format("case", "sender", "expected", "a", "c", "b", "control", "idle", "window", "buffer", "sent again"), flush=True)
    score = judge.Score()
    if net:
        net.up()
    try:
        for control in options.controls:
            for name in options.cases:
                with tempfile.TemporaryDirectory() as folder:
                    kernel, kept = one(net, name, control, options, folder)
                    words = judge.judge(options, name, control, kernel, kept, folder, score)
                print(ROW.format(name, control, *words), flush=True)
    finally:
        if net:
            net.down()
    print(score.text())
    return 1 if score.wrong() else 0


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] in ("--send", "--receive"):
        {"--send": programs.send, "--receive": programs.receive}[sys.argv[1]](json.loads(sys.argv[2]))
    else:
        sys.exit(main())
