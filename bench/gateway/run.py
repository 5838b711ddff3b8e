#!/usr/bin/env python3
"""What gateways gain on far links, beside the kernel alone: stock TCP at both ends, CUBIC or BBR, with a gateway, a pair, or none.

    bench/gateway/run.py target/release/farpace                    all links
    bench/gateway/run.py target/release/farpace --link geo --runs 3
    bench/gateway/run.py target/release/farpace --lan              rates and delays of the gateway itself, without a link
    bench/gateway/run.py target/release/farpace --gain 10 --link BER  what the gateway says itself that it gains
    bench/gateway/run.py target/release/farpace --json > all.json
    bench/gateway/picture.py all.json gateway.svg                  a picture of each link

Needs root: it makes network namespaces, client - router - links - router - server, with `farpace emulate` as each link. All
contenders take turns, so that what disturbs the host disturbs all of them. Bulk is a download of so many MB over a new connection,
the handshake included; objects are 10 kB each, every one over a new connection, one after another; a page is 100 objects, 1.95 MB
together, from nginx to curl by six connections; an echo is that of 100 B over a connection of its own while the bulk is under way,
ten times a second, in the direction of the data and back. Data leaves the LAN (a host beyond the link fetches from one of the LAN: the
gateway sends over the link) or comes to it (the far host's own TCP sends over the link, unless there is a pair). Over several links
the kernel takes the first one. HAProxy takes part if it is installed: not transparent, as a forward to the server's port, with BBR.
"""
import argparse
import json
import math
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

from topology import (
    CLIENT, ECHO_PORT, PAGE_PORT, PORT, PROXY_FAR, PROXY_LAN, SERVER, Chatter, Sender, Site, both, echo, inside, run,
)  # fmt: skip


@dataclass
class Way:
    """Flags of the emulator of one link for the direction of the data, for the other one, and for both."""

    fast: str
    slow: str
    also: str = ""

    def flags(self, direction):
        # The emulator's first interface is that of the LAN's router.
        there, back = (self.fast, self.slow) if direction == "from" else (self.slow, self.fast)
        return [*both(there, back), *self.also.split()]


@dataclass
class Path:
    """What is between the routers, the MB of bulk, the objects of a run, and the Mbit/s of all links together."""

    bulk: int
    objects: int
    rate: float
    ways: list[Way]


# Hand-overs of a satellite network: each 15 s the path is 15 ms longer or shorter, after 100 ms without a link.
HAND_OVERS = '--set links.line.schedule={period="30s",steps=[{at="15s",delay="35ms"}]} ' + " ".join(
    f"--outage {at}s-{at}.1s" for at in range(15, 900, 15)
)
DSL = Way("--rate 20mbit --delay 15ms --queue 250kB", "--rate 2mbit --delay 15ms --queue 100kB")
PATHS = {
    "geo 50/5, 560 ms, BER 1e-7": Path(40, 12, 50, [
        Way("--rate 50mbit --delay 280ms --queue 3.5MB --ber 1e-7", "--rate 5mbit --delay 280ms --queue 700kB --ber 1e-7"),
    ]),
    "geo 50/5, 560 ms, clean": Path(40, 12, 50, [
        Way("--rate 50mbit --delay 280ms --queue 3.5MB", "--rate 5mbit --delay 280ms --queue 700kB"),
    ]),
    "leo 100/20, 40 or 70 ms, 0.1 % loss, hand-overs": Path(200, 40, 100, [
        Way("--rate 100mbit --delay 20ms --queue 1MB --loss 0.001", "--rate 20mbit --delay 20ms --queue 300kB --loss 0.001", HAND_OVERS),
    ]),
    "policed to 500 Mbit/s, 10 ms": Path(250, 40, 500, [
        Way("--rate 1gbit --delay 5ms --queue 1MB --police 500mbit --police-burst 16MB", "--rate 1gbit --delay 5ms --queue 1MB"),
    ]),
    "queue of 32 kB, 100 Mbit/s, 100 ms": Path(40, 12, 100, [
        Way("--rate 100mbit --delay 50ms --queue 32kB", "--rate 100mbit --delay 50ms --queue 1MB"),
    ]),
    "dsl 20/2, 30 ms": Path(20, 12, 20, [DSL]),
    "dsl 20/2, geo 50/5 with BER 1e-7, mobile 30/10 of 60 ms": Path(200, 12, 100, [
        DSL,
        Way("--rate 50mbit --delay 280ms --queue 3.5MB --ber 1e-7", "--rate 5mbit --delay 280ms --queue 700kB --ber 1e-7"),
        Way("--rate 30mbit --delay 30ms --queue 500kB --jitter 8ms", "--rate 10mbit --delay 30ms --queue 200kB --jitter 8ms"),
    ]),
}  # fmt: skip
CONTENDERS = ["cubic", "bbr", "gateway", "pair", "haproxy"]
OBJECT = 10_000
# Connections at once, without a link.
SEVERAL = 8


def measure(site, sender, contender, direction, path, has_pages):
    """Seconds of bulk, of each object, of a page, and of each echo."""
    congestion = "bbr" if contender == "bbr" else "cubic"
    sender.use(congestion)
    site.set_congestion(congestion)
    reader, at = (site.server, CLIENT) if direction == "from" else (site.client, SERVER)
    to, page_at, echo_at, children = (at, PORT), (at, PAGE_PORT), (at, ECHO_PORT), []
    if contender == "gateway":
        children = [site.gateway()]
    elif contender == "pair":
        children = site.pair()
    elif contender == "haproxy":
        children = [site.haproxy({8002: to, 8003: page_at, 8004: echo_at})]
        proxy = PROXY_FAR if direction == "from" else PROXY_LAN
        to, page_at, echo_at = (proxy, 8002), (proxy, 8003), (proxy, 8004)
    try:
        chatter = Chatter(reader, echo_at)
        bulk = site.fetch(reader, congestion, path.bulk * 1_000_000, to)
        echoes = chatter.end()
        objects = [site.fetch(reader, congestion, OBJECT, to) for _ in range(path.objects)]
        pages = [site.load_page(reader, page_at)] if has_pages else []
    finally:
        for child in reversed(children):
            site.end(child)
    return bulk, objects, pages, echoes


def contenders_of(args, path):
    """A gateway alone, and a proxy, use one link: over several there is the pair beside the kernel."""
    named = args.only or CONTENDERS
    if "haproxy" in named and not shutil.which("haproxy"):
        print("haproxy is not installed: left out", file=sys.stderr)
        named = [name for name in named if name != "haproxy"]
    return named if len(path.ways) == 1 else [name for name in named if name not in ("gateway", "haproxy")]


def links(args, out):
    chosen = [(direction, name) for direction in args.direction.split(",") for name in PATHS]
    for direction, name in chosen:
        path = PATHS[name]
        if args.link and args.link not in name:
            continue
        runs = {contender: ([], [], [], []) for contender in contenders_of(args, path)}
        with tempfile.TemporaryDirectory() as directory:
            site = Site(args.farpace, directory, [way.flags(direction) for way in path.ways])
            try:
                host, address = (site.client, CLIENT) if direction == "from" else (site.server, SERVER)
                sender, has_pages = Sender(host, address), site.serve_page(host)
                echo(host, address)
                for turn in range(args.runs):
                    for contender, kept in runs.items():
                        print(f"{name}, {direction}: run {turn + 1} of {args.runs}, {contender}", file=sys.stderr)
                        bulk, objects, pages, echoes = measure(site, sender, contender, direction, path, has_pages)
                        kept[0].append(bulk)
                        kept[1].extend(objects)
                        kept[2].extend(pages)
                        kept[3].extend(echoes)
            finally:
                site.close()
        rows = [
            {
                "contender": contender,
                "goodput_mbit_s": path.bulk * 8 / statistics.median(bulk),
                "bulk_s": sorted(bulk),
                "object_s": sorted(objects),
                "page_s": sorted(pages),
                "echo_s": sorted(echoes),
            }
            for contender, (bulk, objects, pages, echoes) in runs.items()
        ]
        out.append({
            "link": name,
            "data": f"{direction} the LAN",
            "bulk_mb": path.bulk,
            "rate_mbit_s": path.rate,
            "runs": args.runs,
            "rows": rows,
        })  # fmt: skip
        if not args.json:
            show(out[-1])


def spread(values):
    return f"[{values[0]:.1f}-{values[-1]:.1f}]" if values else ""


def quantile(values, part):
    """Of sorted values; NaN if there are none."""
    return values[min(int(len(values) * part), len(values) - 1)] if values else math.nan


def show(result):
    print(f"\n{result['link']}, data {result['data']}: bulk of {result['bulk_mb']} MB, {result['runs']} runs", flush=True)
    print(
        f"{'':8} {'bulk s':>7} {'[min-max]':>15} {'Mbit/s':>7} {'to first':>9} {'10 kB s':>8} {'p90':>7}"
        f" {'page s':>7} {'[min-max]':>15} {'echo ms':>8} {'p90':>7}"
    )
    first = statistics.median(result["rows"][0]["bulk_s"])
    for row in result["rows"]:
        bulk, objects, pages, echoes = row["bulk_s"], row["object_s"], row["page_s"], row["echo_s"]
        print(
            f"{row['contender']:8} {statistics.median(bulk):7.2f} {spread(bulk):>15} {row['goodput_mbit_s']:7.1f}"
            f" {first / statistics.median(bulk):8.2f}x {quantile(objects, 0.5):8.3f} {quantile(objects, 0.9):7.3f}"
            f" {quantile(pages, 0.5):7.2f} {spread(pages):>15}"
            f" {quantile(echoes, 0.5) * 1e3:8.1f} {quantile(echoes, 0.9) * 1e3:7.1f}",
            flush=True,
        )


def gain(args, out):
    """What a gateway says itself that it gains on a link: connections from the LAN, half of them its control group."""
    for name in [name for name in PATHS if args.link in name]:
        with tempfile.TemporaryDirectory() as directory:
            site = Site(args.farpace, directory, [way.flags("from") for way in PATHS[name].ways])
            try:
                Sender(site.client, CLIENT)
                site.gateway("--control-group", "0.5")
                for _ in range(args.runs * 10):
                    site.fetch(site.server, "cubic", int(args.gain * 1e6), (CLIENT, PORT))
                time.sleep(3)
                text, status = site.status_text(site.a), site.status(site.a)
            finally:
                site.close()
        out.append({"link": name, "gain": status["gain"]})
        if not args.json:
            lines = text.splitlines()
            at = next(n for n, line in enumerate(lines) if line.startswith("  gain"))
            print(f"\n{name}:", *lines[at : at + 2], sep="\n")


def processor_time(pid):
    """Seconds of processor time that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate_of(site, to, port, connections):
    """Gbit/s that arrive by so many connections together."""
    words = ["iperf3", "-c", to, "-p", str(port), "-t", "5", "-O", "1", "-J", "-C", "cubic", "-P", str(connections)]
    text = run("ip", "netns", "exec", site.client, *words)
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e9


def lan(args, out):
    """The gateway without a link: rates of one connection and of several, times of small exchanges, and the processor time of the
    gateway for a gigabyte, beside forwarding by the kernel and HAProxy."""
    contenders = {"kernel": None, "gateway, 1 thread": 1, f"gateway, {os.cpu_count()} threads": os.cpu_count()}
    if shutil.which("haproxy"):
        contenders["haproxy"] = None
    rows = {name: {"one": [], "several": [], "cost": [], "opened": []} for name in contenders}
    for turn in range(args.runs):
        for name, threads in contenders.items():
            with tempfile.TemporaryDirectory() as directory:
                site = Site(args.farpace, directory, [])
                try:
                    lan_turn(site, name, threads, rows[name], turn == 0)
                finally:
                    site.close()
    results = {
        name: {
            "gbit_s": statistics.median(row["one"]),
            "several_gbit_s": statistics.median(row["several"]),
            "processor_s_per_gb": statistics.median(row["cost"]) if row["cost"] else None,
            "connections_s": statistics.median(row["opened"]) if row["opened"] else None,
            "connection_us": row["connection_us"],
            "exchange_us": row["exchange_us"],
        }
        for name, row in rows.items()
    }
    out.append({"lan": results, "runs": args.runs, "connections": SEVERAL})
    if not args.json:
        print(f"\nwithout a link, medians of {args.runs} runs: Gbit/s of 1 and of {SEVERAL} connections, processor seconds of the gateway")
        print("per GB of several, new connections a second, us of a connection with 100 B, us of an exchange of 1 B")
        for name, row in results.items():
            cost, opened = row["processor_s_per_gb"], row["connections_s"]
            cost = f"{cost:7.2f}" if cost else f"{'':7}"
            opened = f"{opened:7.0f}" if opened else f"{'':7}"
            print(
                f"{name:20} {row['gbit_s']:6.2f} {row['several_gbit_s']:6.2f} {cost} {opened}"
                f" {row['connection_us']:7.0f} {row['exchange_us']:6.0f}"
            )


def new_connections(site, to, port):
    """Connections a second, each with a request and an answer of 100 B, 64 at a time: ApacheBench and nginx, if they are installed."""
    if not (shutil.which("ab") and shutil.which("nginx")):
        return None
    with open(f"{site.directory}/nginx.conf", "w") as file:
        file.write(
            f"daemon off; worker_processes auto; pid {site.directory}/nginx.pid; error_log /dev/null;\n"
            "events { worker_connections 4096; }\n"
            f"http {{ access_log off; server {{ listen {port}; keepalive_timeout 0; return 200 '{'x' * 100}'; }} }}\n"
        )
    for name in (site.client, site.a):
        for key, value in (("ip_local_port_range", "10000 65000"), ("tcp_tw_reuse", "1")):
            run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.{key}={value}")
    serving = site.start(site.server, "nginx", "-c", f"{site.directory}/nginx.conf")
    text = run("ip", "netns", "exec", site.client, "ab", "-q", "-n", "30000", "-c", "64", f"http://{to}:{port}/")
    site.end(serving)
    if "Failed requests:        0" not in text:
        raise RuntimeError(text)
    return float(text.split("Requests per second:")[1].split()[0])


def lan_turn(site, name, threads, row, is_first):
    """One run of a contender. Small exchanges are measured in the first."""
    child, to, ports = None, SERVER, (5201, PORT, ECHO_PORT, 8004)
    if threads:
        child = site.gateway("--min-rtt", "0us", "--threads", str(threads))
    elif name == "haproxy":
        child, to = site.haproxy({port: (SERVER, port) for port in ports}), PROXY_LAN
    serving = site.start(site.server, "iperf3", "-s")
    time.sleep(0.2)
    row["one"].append(rate_of(site, to, ports[0], 1))
    before = processor_time(child.pid) if child else 0
    rate = rate_of(site, to, ports[0], SEVERAL)
    row["several"].append(rate)
    if child:
        # A second is left out of the rate, and not of the time.
        row["cost"].append((processor_time(child.pid) - before) / (rate / 8 * 6))
    site.end(serving)
    if (opened := new_connections(site, to, ports[3])) is not None:
        row["opened"].append(opened)
    if is_first:
        Sender(site.server, SERVER)
        opens = [site.fetch(site.client, "cubic", 100, (to, ports[1])) * 1e6 for _ in range(300)]
        echo(site.server, SERVER)
        turns = inside(site.client, lambda: exchanges(2000, (to, ports[2])))
        row["connection_us"], row["exchange_us"] = statistics.median(opens), statistics.median(turns)
    if child:
        site.end(child)


def exchanges(count, to):
    with socket.create_connection(to) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(count):
            begun = time.monotonic()
            sock.sendall(b"x")
            sock.recv(1)
            times.append((time.monotonic() - begun) * 1e6)
        return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("farpace", help="the command, built for release")
    parser.add_argument("--link", help="links whose name contains this alone")
    parser.add_argument(
        "--direction", default="from,to", help="data that leaves the LAN (from), or comes to it (to) [default: both]"
    )
    parser.add_argument("--lan", action="store_true", help="the gateway itself, without a link")
    parser.add_argument(
        "--gain", type=float, metavar="MB", help="what the gateway says itself that it gains on --link, by connections of so many MB"
    )
    parser.add_argument("--only", action="append", choices=CONTENDERS, help="this contender alone; may be repeated")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.farpace = os.path.abspath(args.farpace)
    out = []
    if args.gain and not args.link:
        parser.error("--gain needs a link: --link geo")
    (lan if args.lan else gain if args.gain else links)(args, out)
    if args.json:
        print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
