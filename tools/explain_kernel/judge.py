"""Holds the verdicts of `farpace explain` against what is expected, and against TCP_INFO."""

import json
import struct
import subprocess

from .draw import find
from .network import PLACES
from .programs import ESTABLISHED, FIN_WAIT1

# What the kernel counts together, by our causes. The rest of the time is the handshake's and the programs'.
WINDOW = ("receive_window", "window_scale", "zero_window", "receiver_application")
IDLE = ("connect", "syn_loss", "sender_application", "peer_application")
# Largest difference between the kernel's times and ours, as a share of the transfer.
TOLERANCE = 0.1
# Which records of a capture are kept, by what is wrong with it.
DAMAGES = {
    "drops": lambda at, count: at % 97 != 50 and not 0.4 * count < at < 0.4 * count + 150,
    "no-handshake": lambda at, count: at >= 12,
}
NOTHING = {"dominant": "nothing", "duration_s": 0, "times": [], "findings": [], "counts": {"retransmitted_bytes": 0},
           "congestion_control": {"name": "unknown"}}


class Score:
    """Right verdicts, by congestion control and place."""

    def __init__(self):
        self.counts = {}
        self.others = 0

    def add(self, control, place, right):
        good, every = self.counts.get((control, place), (0, 0))
        self.counts[control, place] = (good + right, every + 1)

    def wrong(self):
        return self.others + sum(every - good for good, every in self.counts.values())

    def text(self):
        return "\n".join(f"{control} at {place}: {good} of {every}" for (control, place), (good, every) in self.counts.items())


def damaged(file, to, keeps):
    """A copy of a capture without the records that `keeps` does not want."""
    with open(file, "rb") as source:
        data = source.read()
    records, at = [], 24
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        records.append(data[at:at + 16 + length])
        at += 16 + length
    with open(to, "wb") as out:
        out.write(data[:24])
        out.writelines(record for number, record in enumerate(records) if keeps(number, len(records)))
    return to


def explained(farpace, file):
    """What is said of the largest flow to the port of the test."""
    out = json.loads(subprocess.run([farpace, "explain", file, "--json"], check=True, capture_output=True, text=True).stdout)
    flows = out["captures"][0]["flows"]
    return flows[0] if flows else NOTHING


def compare(kernel, flow, pause):
    """Idle, window-limited and buffer-limited time in seconds, and payload sent again: the kernel's, ours, and whether they agree.

    The kernel is busy until the last ACK of what was written before a pause; for us the program's pause begins when it has
    nothing more to send. The kernel's time of the send buffer is a part of the whole: it begins anew at each write.
    """
    took = flow["duration_s"]
    times = {t["cause"]: t["time_s"] for t in flow["times"]}

    def of(causes):
        return sum(times.get(cause, 0) for cause in causes)

    pairs = [
        (kernel["took"] - kernel["busy"] / 1e6 + kernel["pauses"] * min(kernel["min_rtt"] / 1e6, pause), of(IDLE)),
        (kernel["rwnd"] / 1e6, of(WINDOW)),
        (kernel["sndbuf"] / 1e6, of(("send_buffer",))),
    ]
    good = [abs(theirs - ours) <= TOLERANCE * took for theirs, ours in pairs]
    theirs, ours = pairs[2]
    good[2] = theirs - TOLERANCE * took <= ours and (theirs > 0) == (ours > TOLERANCE * took)
    resent = (kernel["resent"], flow["counts"]["retransmitted_bytes"])
    words = [f"{theirs:.2f}/{ours:.2f}" for theirs, ours in pairs] + [f"{resent[0]}/{resent[1]}"]
    # The kernel was asked before the end of a transfer that takes too long; the capture goes on.
    unfinished = kernel["state"] in (ESTABLISHED, FIN_WAIT1)
    good.append(resent[0] == resent[1] or unfinished and resent[0] < resent[1])
    return words, good


def judge(options, name, control, kernel, kept, folder, score):
    """The words of a row."""
    case = find(name)
    verdicts, flows = [], {}
    for place in PLACES:
        file = f"{kept}/{place}.pcap"
        if options.damage:
            file = damaged(file, f"{folder}/{place}-damaged.pcap", DAMAGES[options.damage])
        flow = flows[place] = explained(options.farpace, file)
        right = case.right(place, control)
        told = {finding["cause"] for finding in flow["findings"]}
        good = not right or flow["dominant"] in right and case.finds.get(place, flow["dominant"]) in told | {flow["dominant"]}
        if right:
            score.add(control, place, good)
        verdicts.append(flow["dominant"] + ("" if good else "!"))
    words = ["", "", "", ""]
    # The kernel's figures are of a whole transfer of one flow.
    if kernel and not options.damage and case.programs.get("flows", 1) == 1 and not case.programs.get("exchanges"):
        words, good = compare(kernel, flows["a"], case.programs.get("write", [0, 0])[1])
        score.others += good.count(False)
        words = [word + ("" if ok else "!") for word, ok in zip(words, good)]
    return [" ".join(case.right("", control))[:21], *verdicts, flows["a"]["congestion_control"]["name"], *words]
