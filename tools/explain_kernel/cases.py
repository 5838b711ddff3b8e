"""The cases: a path, what the programs do, and which cause is right at each place.

A path has two lines with a router between them. `near` lies between the sender and the router, `far` between the router and the
receiver. `firewall` has rules of nft, which the router applies to what it forwards. What no dictionary names has its default.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """One line of the emulator. Rates in Mbit/s, times in ms; a queue in ms, or as text; `forward` and `backward` in TOML."""

    delay: float = 10
    rate: float | None = None
    queue: float | str | None = None
    forward: str = ""
    backward: str = ""
    more: str = ""

    def scenario(self, name):
        text = f'title = "{name}"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = "line"\nbetween = ["a", "b"]\n'
        text += f'delay = "{self.delay * 1000:.0f} us"\n'
        if self.rate:
            text += f'rate = "{self.rate * 1000:.0f} kbit/s"\n'
        if isinstance(self.queue, str):
            text += f'queue = "{self.queue}"\n'
        elif self.queue:
            text += f'queue = "{self.rate * self.queue * 125:.0f} B"\n'
        text += f"{self.more}\n[links.forward]\n{self.forward}\n[links.backward]\n{self.backward}\n"
        # Scenarios have flows; the emulator starts none.
        return text + '[[flows]]\nname = "bulk"\nfrom = "a"\nto = "b"\nsize = "1 MB"\n'


@dataclass(frozen=True)
class Case:
    """`expected` holds the causes that are right; `at` replaces it at some places, `with_bbr` with BBR and farpace's control."""

    expected: str
    near: Line = Line(delay=5)
    far: Line = Line(delay=10)
    programs: dict = field(default_factory=dict)
    firewall: tuple = ()
    sysctl: tuple = ()
    ipv6: bool = False
    at: dict = field(default_factory=dict)
    with_bbr: str | None = None
    # Causes that must be told beside the dominant one, by place.
    finds: dict = field(default_factory=dict)

    def right(self, place, control):
        """The causes that are right, or none where the place cannot know."""
        names = self.with_bbr if control in ("bbr", "farpace") and self.with_bbr else self.expected
        return self.at.get(place, names).split()


def outage(*spans):
    return "outages = [" + ", ".join(f'{{ at = "{at} s", lasts = "{lasts} s" }}' for at, lasts in spans) + "]"


def delays(usual, *spikes, lasts=0.04):
    """Steps of the delay to `spikes` of (at in s, delay in ms), back after `lasts`."""
    steps = []
    for at, delay in spikes:
        steps += [f'{{ at = "{at * 1000:.0f} ms", delay = "{delay} ms" }}',
                  f'{{ at = "{(at + lasts) * 1000:.0f} ms", delay = "{usual} ms" }}']
    return "schedule = { steps = [" + ", ".join(steps) + "] }"


FULL = "congestion"
# Every 1.2 s, and longer than a transfer of 8 MB takes otherwise: one comes in each, whenever it begins.
SPIKES = delays(15, *((1 + 1.2 * n, 1600) for n in range(9)))
SMALL = {"size": 300_000}

CASES = {
    # The path is full, and nothing is wrong.
    "healthy": Case(FULL, Line(5, 20, 60)),
    "fast": Case(FULL, Line(5, 90, 30), Line(20)),
    "lan": Case(FULL, Line(0.3, 90, 10), Line(0.2)),
    "bloat": Case(FULL, Line(5, 10, 600), Line(15)),
    "codel": Case(FULL, Line(5, 40, "1000 packets", more="aqm = { codel = {} }"), Line(20)),
    "shared": Case(FULL, Line(5, 40, 60), Line(15), {"flows": 3}),
    "jitter": Case(FULL, Line(5, 30, 60), Line(15, forward='jitter = "4 ms"')),
    "duplicate": Case(FULL, Line(5, 30, 60), Line(15, forward="duplicate = 0.01")),
    "v6": Case(FULL, Line(5, 20, 60), ipv6=True),
    "gro": Case(FULL, Line(5, 40, 60), programs={"gro": True}),
    "download": Case(FULL, Line(5, 20, 60), programs={"download": True}),
    "satellite": Case("congestion slow_start", Line(5, 10, 600), Line(280), {"seconds": 15}),
    # Losses without a queue.
    "loss-0.1": Case("random_loss", Line(5, 80, 60), Line(25, forward="loss = 0.001"), {"seconds": 12}, with_bbr=FULL),
    "loss-1": Case("random_loss", Line(5, 50, 80, forward="loss = 0.01"), Line(15), with_bbr=FULL),
    "loss-3": Case("random_loss", Line(5, 20, 80), Line(20, forward="loss = 0.03"), with_bbr=FULL),
    "loss-nft": Case("random_loss", Line(5, 50, 80), Line(15), firewall=("numgen random mod 1000 < 8 drop",), with_bbr=FULL),
    "loss-v6": Case("random_loss", Line(5, 50, 80), Line(15, forward="loss = 0.01"), ipv6=True, with_bbr=FULL),
    "loss-gro": Case("random_loss", Line(5, 50, 80), Line(15, forward="loss = 0.01"), {"gro": True}, with_bbr=FULL),
    "loss-no-ts": Case("random_loss", Line(5, 50, 80, forward="loss = 0.01"), Line(15), sysctl=("tcp_timestamps=0",), with_bbr=FULL),
    "loss-no-sack": Case("random_loss", Line(5, 50, 80, forward="loss = 0.01"), Line(15), sysctl=("tcp_sack=0",),
                         with_bbr="congestion random_loss"),
    "burst-5": Case("burst_loss", Line(5, 50, 80), Line(15, forward="burst_loss = { begin = 0.002, end = 0.2 }"), with_bbr=FULL),
    "burst-20": Case("burst_loss", Line(5, 50, 80, forward="burst_loss = { begin = 0.0008, end = 0.05 }"), Line(25),
                     with_bbr="burst_loss congestion"),
    # Buckets and short queues.
    "policer-5": Case("policer", Line(5, 200), Line(15, forward='policer = { rate = "5 Mbit/s", burst = "30 kB" }')),
    "policer-20": Case("policer", Line(5, 200, forward='policer = { rate = "20 Mbit/s", burst = "100 kB" }'), Line(10)),
    "policer-50": Case("policer", Line(5, 200), Line(15, forward='policer = { rate = "50 Mbit/s", burst = "500 kB" }')),
    "policer-10": Case("policer", Line(5, 60, 60, forward='policer = { rate = "10 Mbit/s", burst = "1 MB" }'), Line(20)),
    "policer-nft": Case("policer", Line(5, 100, 60), Line(15),
                        firewall=("limit rate over 2000 kbytes/second burst 120 kbytes drop",)),
    "policer-v6": Case("policer", Line(5, 200), Line(15, forward='policer = { rate = "20 Mbit/s", burst = "60 kB" }'), ipv6=True),
    "fifo-10": Case("small_queue", Line(5, 100, "10 packets"), Line(25)),
    "fifo-20": Case("small_queue", Line(5, 90, "20 packets"), Line(35)),
    "fifo-5": Case("small_queue", Line(5), Line(25, 20, "5 packets")),
    "fifo-gro": Case("small_queue", Line(5, 100, "10 packets"), Line(25), {"gro": True}),
    # Pauses of the path.
    "outage": Case("outage", Line(5, 20, 60, forward=outage((3, 2)), backward=outage((3, 2))), programs={"seconds": 4}),
    "outage-forward": Case("outage", Line(5, 30, 40), Line(15, forward=outage((3, 1.5), (6, 1))), {"size": 8_000_000}),
    "handover": Case("outage burst_loss", Line(5, 30, 40), Line(15, forward=outage((2.5, 1.2), (4.5, 1.2), (6.5, 1.2)),
                                                        backward=outage((2.5, 1.2), (4.5, 1.2), (6.5, 1.2))), {"size": 4_000_000}),
    "spike": Case("spurious_timeout", Line(5, 50, 400), Line(15, forward=SPIKES), {"size": 8_000_000}),
    "spike-back": Case("spurious_timeout", Line(5, 50, 400), Line(15, backward=SPIKES),
                       {"size": 8_000_000}),
    "spike-no-ts": Case("spurious_timeout", Line(5, 50, 400), Line(15, forward=SPIKES),
                        {"size": 8_000_000}, sysctl=("tcp_timestamps=0",)),
    "spike-15": Case(FULL, Line(5, 20, 60), Line(15, forward=delays(15, (4, 400), (19, 400))), {"seconds": 22}),
    # Order, and the way back.
    "reorder": Case("reordering congestion", Line(5, 50, 60), Line(10, forward='reorder = { chance = 0.02, extra = "15 ms" }')),
    "reorder-back": Case(FULL, Line(5, 40, 60), Line(10, backward='reorder = { chance = 0.05, extra = "10 ms" }')),
    "acks-30": Case(FULL, Line(5, 50, 60), Line(15, backward="loss = 0.3")),
    "acks-60": Case(FULL, Line(5, 30, 60), Line(15, backward="loss = 0.6"), finds={"a": "ack_loss"}),
    "acks-thin": Case(FULL, Line(5, 50, 60), Line(15, backward='ack_thinning = { every = 12, hold = "8 ms" }')),
    "uplink": Case(FULL, Line(5, 50, 60), Line(15, backward='rate = "250 kbit/s"\nqueue = "30 packets"')),
    # Ends.
    "window": Case("receive_window", Line(5, 100), Line(15), {"rcvbuf": 40_000}),
    "window-8": Case("receive_window", Line(5, 100), Line(25), {"rcvbuf": 8_000}),
    "scale": Case("window_scale", Line(5, 100, 60), Line(35), sysctl=("tcp_window_scaling=0",)),
    "buffer": Case("send_buffer", Line(5, 100), Line(15), {"sndbuf": 60_000}),
    "buffer-20": Case("send_buffer", Line(5, 100), Line(30), {"sndbuf": 20_000}),
    "program": Case("sender_application", Line(5, 100), Line(15), {"write": [60_000, 0.15]}),
    "program-small": Case("sender_application", Line(5, 50), Line(15), {"write": [2_000, 0.012], "nodelay": True}),
    "program-even": Case("sender_application", Line(5, 100, 60), Line(15), {"write": [30_000, 0.03]}),
    "reader": Case("receiver_application", Line(5, 100), Line(5), {"read": [50_000, 0.1], "rcvbuf": 200_000, "size": 3_000_000}),
    "reader-stops": Case("zero_window receiver_application", Line(5, 50, 60), Line(15), {"stop": [1_000_000, 3.0], "size": 6_000_000}),
    "asked": Case("peer_application", Line(5, 50, 60), Line(15), {"download": True, "requests": [12, 40_000, 0.3]}),
    "nagle": Case("delayed_ack", Line(5, 50, 60), Line(5), {"exchanges": [60, 2]}),
    # Short transfers.
    "short": Case("slow_start", Line(5, 100), Line(95), {"size": 600_000}),
    "tail": Case("tail_loss", Line(5, 50, 60), Line(15), {"size": 60_000}, sysctl=("tcp_early_retrans=0",),
                 firewall=("tcp dport 5001 quota over 58000 bytes quota until 6000 bytes drop",)),
    "tail-probe": Case("tail_loss lost_retransmission slow_start", Line(5, 50, 60), Line(15), {"size": 60_000},
                       firewall=("tcp dport 5001 quota over 58000 bytes quota until 6000 bytes drop",)),
    "syn": Case("syn_loss", Line(5, 50, forward=outage((0, 4))), programs=SMALL, at={"c": "", "b": ""}),
    # Boxes.
    "hole": Case("mtu_black_hole", Line(5, 50, 60), Line(15, forward='mtu = { limit = "1400 B", silent = true }'), {"seconds": 6},
                 at={"b": ""}),
    "hole-probed": Case("mtu_black_hole", Line(5, 50, 60, forward='mtu = { limit = "1300 B", silent = true }'), Line(15),
                        {"size": 2_000_000}, sysctl=("tcp_mtu_probing=1",)),
    "bleached": Case(FULL, Line(5, 30, 60), Line(15), sysctl=("tcp_ecn=1",), firewall=("ip ecn set not-ect",),
                     finds={"c": "ecn_bleaching", "b": "ecn_bleaching"}),
    "stripped": Case("random_loss", Line(5, 50, 80, forward="loss = 0.01"), Line(15), firewall=("reset tcp option sack-perm",),
                     with_bbr="congestion random_loss", finds={"a": "options_stripped"}),
    "reset": Case(FULL, Line(5, 20, 60), Line(15), firewall=("tcp dport 5001 quota over 6 mbytes reject with tcp reset",),
                  finds={"a": "reset"}),
}
