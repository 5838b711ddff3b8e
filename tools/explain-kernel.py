#!/usr/bin/env python3
"""Verdicts of `farpace explain` on the kernel's own TCP: namespaces, a router and two emulators, captures at three places.

The cases are fixed (--list), or drawn at random (--random N): a cause, and a path on which that cause decides.

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

from explain_kernel import draw, judge, network, programs
from explain_kernel.cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
CONTROLS = ("cubic", "reno", "bbr")
# Also possible: farpace's own control, which a program with the feature `kernel` loads.
FARPACE = "farpace"
ROW = "{:22} {:7} {:21} {:21} {:21} {:21} {:8} {:13} {:13} {:13} {:12}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", default="", metavar="CASE,...",
                        help="all without it; --list names them; a drawn case such as policer~12")
    parser.add_argument("controls", nargs="?", default=",".join(CONTROLS), metavar="CONTROL,...",
                        help=f"%(default)s; {FARPACE} is possible, too, with a program that has the feature kernel")
    parser.add_argument("--random", type=int, metavar="N",
                        help="draws N cases instead, numbered from the seed on, each with one control")
    parser.add_argument("--list", action="store_true", help="names the cases and what is expected of them, and ends")
    parser.add_argument("--keep", metavar="DIR", help="keeps the captures, and what the kernel said")
    parser.add_argument("--judge", metavar="DIR", help="judges captures that were kept, and sends nothing")
    parser.add_argument("--damage", choices=sorted(judge.DAMAGES), help="judges copies of the captures from which packets are missing")
    parser.add_argument("--prefix", default="fpx", help="begins the names of namespaces: two runs at once need two (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what the emulators draw at random comes from it (%(default)s)")
    parser.add_argument("--farpace", default=os.environ.get("FARPACE", os.path.join(HERE, "../target/release/farpace")),
                        metavar="PROGRAM", help="%(default)s")
    options = parser.parse_args()
    if options.random is not None and (options.cases or options.random < 1):
        parser.error("--random draws cases itself, one at least: leave CASE out ('' before a CONTROL)")
    options.cases = options.cases.split(",") if options.cases else list(CASES)
    options.controls = options.controls.split(",")
    if options.random:
        options.cases = draw.names(options.random, options.seed)
    known = [*CASES, *(f"{family}~NUMBER" for family in draw.FAMILIES)]
    if strange := [name for name in options.cases if name not in CASES and not draw.is_name(name)]:
        parser.error(f"no case is called {', '.join(strange)}; there are {', '.join(known)}")
    if strange := [name for name in options.controls if name not in (*CONTROLS, FARPACE)]:
        parser.error(f"no congestion control is called {', '.join(strange)}; there are {', '.join(CONTROLS)}, {FARPACE}")
    return options


def transfers(options):
    """Pairs of a case and a congestion control: all of them; of drawn cases, each family has each control in turn."""
    if options.random:
        turn = len(draw.FAMILIES)
        return [(name, options.controls[(n + n // turn) % len(options.controls)]) for n, name in enumerate(options.cases)]
    return [(name, control) for control in options.controls for name in options.cases]


def one(net, name, control, options, folder):
    """The kernel's figures of a transfer whose captures are in the folder that is returned."""
    case = draw.find(name)
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
        with network.control_loaded(options.farpace, net and FARPACE in options.controls):
            for name, control in transfers(options):
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
