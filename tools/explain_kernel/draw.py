"""Cases that are drawn at random: a cause, and a path on which that cause decides.

A name has the cause and a number, such as `policer~12`; the same name is always the same case. The ranges are wide, and what
would leave another cause in charge is drawn again: the loss rate of a path, for example, must halve what CUBIC would reach.
"""

import random

from .cases import CASES, FULL, Case, Line, delays, outage

MSS = 1448
# What may vary beside the cause.
KINDS = ("ipv6", "gro", "timestamps", "sack", "download")


class Path:
    """A rate in Mbit/s, a round trip in ms, and on which of the two lines the rate and the impairment are."""

    def __init__(self, draw, rates=(3, 90), round_trips=(6, 200), least=0):
        """At least `least` segments of 1448 bytes are in flight on a full path."""
        while True:
            self.rate = between(draw, *rates)
            self.rtt = between(draw, *round_trips)
            self.flight = self.rate * self.rtt * 125 / MSS
            if self.flight >= least:
                break
        self.near_share = draw.uniform(0.1, 0.9)
        self.rate_is_near = draw.random() < 0.5
        self.fault_is_near = draw.random() < 0.5
        # In ms; at least 20 packets.
        self.queue = max(self.rtt * between(draw, 0.7, 2), 20 * 1500 / self.rate / 125)
        # Forty round trips, so that the start does not decide.
        self.seconds = min(max(8.0, self.rtt * 0.04), 14.0)

    def delay(self, near):
        """One way, of one of the two lines, in ms."""
        return round(self.rtt / 2 * (self.near_share if near else 1 - self.near_share), 3)

    def lines(self, forward="", backward="", more="", queue=None, rate=None):
        """The two lines. `forward` is an impairment of data, `backward` of ACKs; both are on the line of the fault."""
        lines = []
        for near in (True, False):
            delay = self.delay(near)
            has_rate, has_fault = near == self.rate_is_near, near == self.fault_is_near
            lines.append(Line(
                delay,
                (rate or self.rate) if has_rate else None,
                (queue or self.queue) if has_rate else None,
                forward if has_fault else "",
                backward if has_fault else "",
                more if has_rate else "",
            ))
        return lines


def between(draw, low, high):
    """Evenly in the logarithm."""
    return low * (high / low) ** draw.random()


def cubic_window(loss, rtt):
    """Segments in flight that CUBIC has on average (RFC 9438 §5.1, and §4.3 in Reno's region); the round trip in ms."""
    return max(1.054 * (rtt / 1e3 / loss) ** 0.75, 1.2 / loss ** 0.5)


def common(draw, kinds=KINDS):
    """What does not change the cause: address family, offload, options, who connects."""
    chosen = {"programs": {}, "sysctl": ()}
    if "ipv6" in kinds:
        chosen["ipv6"] = draw.random() < 0.2
    if "gro" in kinds and draw.random() < 0.3:
        chosen["programs"]["gro"] = True
    if "download" in kinds and draw.random() < 0.25:
        chosen["programs"]["download"] = True
    if "timestamps" in kinds and draw.random() < 0.15:
        chosen["sysctl"] += ("tcp_timestamps=0",)
    if "sack" in kinds and draw.random() < 0.05:
        chosen["sysctl"] += ("tcp_sack=0",)
    return chosen


def lossy(draw, rates, length=1.0):
    """A path, and a rate of loss events with which CUBIC reaches less than half of it, eight events at least. Each takes
    `length` segments in a row, half of the window at most: otherwise only timers would repair it."""
    while True:
        path = Path(draw, rates=rates)
        chance = between(draw, 3e-4, 0.03)
        window = cubic_window(chance, path.rtt)
        events = window / path.rtt * 1e3 * path.seconds * chance
        if window * 2 < path.flight and events >= 8 and length * 2 <= window:
            return path, chance


def case(expected, lines, chosen, seconds=None, programs=None, **more):
    own = {**chosen["programs"], **(programs or {})}
    if seconds:
        own["seconds"] = round(seconds, 1)
    return Case(expected, *lines, programs=own, sysctl=chosen["sysctl"], ipv6=chosen.get("ipv6", False),
                **more)


def full(draw):
    path = Path(draw)
    more, queue, programs, kinds = "", None, {}, KINDS
    kind = draw.choice(("fifo", "fifo", "codel", "flows"))
    if kind == "codel":
        more, queue = "aqm = { codel = {} }", "1000 packets"
    elif kind == "flows":
        programs, kinds = {"flows": draw.randint(2, 4)}, ("ipv6", "gro", "timestamps", "sack")
    # CUBIC's HyStart may leave slow start early; on a long path the rest of the growth takes seconds.
    expected = FULL if path.rtt < 80 else "congestion slow_start"
    return case(expected, path.lines(more=more, queue=queue), common(draw, kinds), path.seconds, programs)


def noisy(draw):
    """A full path whose noise costs nothing."""
    path = Path(draw, rates=(5, 60), round_trips=(10, 90))
    # ACKs are cumulative: the loss of some costs nothing.
    kind = draw.choice(("ack-loss", "thinning", "jitter", "duplicates", "order of ACKs"))
    forward, backward = {
        "ack-loss": ("", f"loss = {between(draw, 0.05, 0.5):.3f}"),
        "thinning": ("", f'ack_thinning = {{ every = {draw.randint(4, 16)}, hold = "{between(draw, 1, 8):.1f} ms" }}'),
        "jitter": (f'jitter = "{path.rtt * between(draw, 0.02, 0.15):.1f} ms"', ""),
        "duplicates": (f"duplicate = {between(draw, 0.001, 0.02):.4f}", ""),
        "order of ACKs": ("", f'reorder = {{ chance = 0.03, extra = "{path.rtt / 3:.1f} ms" }}'),
    }[kind]
    return case(FULL, path.lines(forward, backward), common(draw, ("ipv6", "gro", "download")), path.seconds)


def random_loss(draw):
    path, chance = lossy(draw, (8, 90))
    chosen = common(draw)
    calm = "congestion random_loss" if "tcp_sack=0" in chosen["sysctl"] else FULL
    if draw.random() < 0.2:
        rule = (f"numgen random mod 10000 < {max(round(chance * 1e4), 3)} drop",)
        return case("random_loss", path.lines(), chosen, path.seconds, firewall=rule, with_bbr=calm)
    return case("random_loss", path.lines(f"loss = {chance:.5f}"), chosen, path.seconds, with_bbr=calm)


def burst_loss(draw):
    length = between(draw, 4, 20)
    path, chance = lossy(draw, (10, 90), length)
    # The emulator's bursts end with packets, not with time: a sender that waits for its timer prolongs one.
    return case("burst_loss outage", path.lines(f"burst_loss = {{ begin = {chance:.5f}, end = {1 / length:.4f} }}"), common(draw), path.seconds,
                with_bbr="burst_loss outage congestion")


def policer(draw):
    path = Path(draw, rates=(2, 45), round_trips=(6, 120))
    line = path.rate * between(draw, 2.5, 5)
    # From a few packets to a third of a second.
    burst = between(draw, 15e3, max(20e3, path.rate * 125 * 300))
    chosen = common(draw)
    lines = path.lines(f'policer = {{ rate = "{path.rate * 1000:.0f} kbit/s", burst = "{burst:.0f} B" }}', rate=line, queue=60)
    if draw.random() < 0.25:
        rule = (f"limit rate over {path.rate * 1e6 / 8 / 1024:.0f} kbytes/second burst {burst / 1024:.0f} kbytes drop",)
        return case("policer", path.lines(rate=line, queue=60), chosen, path.seconds, firewall=rule)
    return case("policer", lines, chosen, path.seconds)


def small_queue(draw):
    path = Path(draw, rates=(15, 90), round_trips=(20, 150), least=60)
    packets = round(between(draw, 5, max(6, path.flight * 0.12)))
    return case("small_queue", path.lines(queue=f"{packets} packets"), common(draw, ("ipv6", "gro", "timestamps", "download")),
                path.seconds, with_bbr="small_queue congestion")


def pause(draw):
    """Silence of two seconds or more in a transfer of three."""
    path = Path(draw, rates=(5, 60), round_trips=(10, 90))
    span = (round(draw.uniform(2.6, 3.2), 2), round(draw.uniform(2.2, 4.5), 2))
    backward = outage(span) if draw.random() < 0.5 else ""
    return case("outage", path.lines(outage(span), backward), common(draw, ("ipv6", "gro", "timestamps")), 2.6)


def receive_window(draw):
    path = Path(draw, rates=(10, 90), round_trips=(15, 200), least=40)
    size = between(draw, 8_000, max(9_000, path.flight * MSS * 0.3))
    return case("receive_window", path.lines(), common(draw, ("ipv6", "gro", "timestamps")), 5, {"rcvbuf": round(size)})


def send_buffer(draw):
    path = Path(draw, rates=(10, 90), round_trips=(15, 200), least=60)
    # The kernel doubles it; overhead takes about half.
    size = between(draw, 15_000, max(16_000, path.flight * MSS * 0.2))
    # Elsewhere a buffer and a program that pauses are not told apart with certainty, as `explain` says.
    far = "send_buffer sender_application"
    return case("send_buffer", path.lines(), common(draw, ("ipv6", "gro", "timestamps")), 5, {"sndbuf": round(size)},
                at={"c": far, "b": far})


def sender_application(draw):
    path = Path(draw, rates=(10, 90), round_trips=(8, 100))
    every = between(draw, 20, 600)
    portion = max(3_000, path.rate * 125 * every * draw.uniform(0.08, 0.45))
    # It holds what the program writes at once: nothing is lost.
    queue = max(path.queue, portion * 1.2 / path.rate / 125)
    return case("sender_application", path.lines(queue=queue), common(draw, ("ipv6", "gro", "timestamps", "sack")), 6,
                {"write": [round(portion), round(every / 1e3, 3)]})


def receiver_application(draw):
    path = Path(draw, rates=(10, 90), round_trips=(8, 60))
    rate = path.rate * 125e3 * between(draw, 0.08, 0.4)
    portion = round(between(draw, 10_000, 100_000))
    buffer = round(max(60_000, path.flight * MSS * draw.uniform(0.8, 2)))
    # Long enough for all that the receiver's buffer takes: nothing is lost.
    queue = buffer * 2 / path.rate / 125
    return case("receiver_application zero_window", path.lines(queue=queue), common(draw, ("ipv6", "gro", "timestamps")), None,
                {"read": [portion, portion / rate], "rcvbuf": buffer, "size": round(rate * 6)})


def reordering(draw):
    path = Path(draw, rates=(10, 60), round_trips=(12, 60))
    extra = path.rtt * draw.uniform(0.25, 0.9)
    fault = f'reorder = {{ chance = {between(draw, 0.005, 0.05):.4f}, extra = "{extra:.1f} ms" }}'
    return case("reordering congestion", path.lines(fault), common(draw, ("ipv6", "gro", "timestamps")), path.seconds)


def slow_start(draw):
    path = Path(draw, rates=(20, 90), round_trips=(60, 250), least=150)
    return case("slow_start", path.lines(), common(draw, ("ipv6", "gro", "timestamps")), None,
                {"size": round(path.flight * MSS * draw.uniform(0.3, 1))})


def spurious_timeout(draw):
    path = Path(draw, rates=(20, 60), round_trips=(20, 60))
    spikes = delays(path.delay(path.fault_is_near), *((1 + 1.2 * n, round(between(draw, 1200, 2200))) for n in range(9)))
    way = ("", spikes) if draw.random() < 0.5 else (spikes, "")
    # All ACKs that a pause held come at once, and what they release may overflow the queue.
    far = "spurious_timeout congestion"
    return case("spurious_timeout", path.lines(*way, queue=400), common(draw, ("ipv6", "gro")), None, {"size": 8_000_000},
                at={"c": far, "b": far})


def mtu_black_hole(draw):
    path = Path(draw, rates=(10, 60), round_trips=(10, 90))
    nowhere = {"b": "", "c": ""} if path.fault_is_near else {"b": ""}
    return case("mtu_black_hole", path.lines(f'mtu = {{ limit = "{draw.randint(1000, 1460)} B", silent = true }}'),
                common(draw, ("gro", "timestamps")), 6, at=nowhere)


FAMILIES = {draws.__name__: draws for draws in (
    full, noisy, random_loss, burst_loss, policer, small_queue, pause, receive_window, send_buffer, sender_application,
    receiver_application, reordering, slow_start, spurious_timeout, mtu_black_hole)}


def is_name(name):
    family, _, number = name.partition("~")
    return family in FAMILIES and number.isdigit()


def find(name):
    """The case of a name: one of the fixed cases, or one that is drawn."""
    if name in CASES:
        return CASES[name]
    family, number = name.split("~")
    return FAMILIES[family](random.Random(f"{family} {int(number)}"))


def names(count, seed):
    """`count` names, each family in turn, numbered from `seed` on."""
    families = list(FAMILIES)
    return [f"{families[n % len(families)]}~{seed + n // len(families)}" for n in range(count)]
