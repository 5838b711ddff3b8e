#!/usr/bin/env python3
"""What a pair of gateways makes of several links, for stock TCP (CUBIC) at both ends.

    bench/gateway/pair.py target/release/farpace rate               one connection over two links of 20 Mbit/s, 20 and 40 ms
    bench/gateway/pair.py target/release/farpace cut                how long it stops when one of the links is cut, or the other
    bench/gateway/pair.py target/release/farpace geo                a geostationary link with bit errors, beside the kernel alone
    bench/gateway/pair.py target/release/farpace voice              delays of datagrams beside a download, through the pair and beside it

Needs root: it makes network namespaces, client - gateway a - links - gateway b - server, each link an emulator (`farpace emulate`) in a
namespace of its own. Times are round trips. Data goes from the server to the client. A rate is that of the payload from the first
byte to the last second, without the start (2 s); the sum of two links of 20 Mbit/s leaves 37.2 Mbit/s for payload in packets of
1440 B inside.
"""
import argparse
import os
import socket
import statistics
import struct
import tempfile
import threading
import time

from topology import PORT, SERVER, Sender, Site, both, choose, inside, run, stream

# Flags of the emulator for both directions.
TWO = ["--rate 20mbit --delay 10ms --queue 100kB", "--rate 20mbit --delay 20ms --queue 200kB"]
GEO = ["--rate 50mbit --delay 280ms --queue 3.5MB --ber 1e-7"]


def download(site, seconds, at=None):
    """Arrivals (time, bytes) of one connection; `at` is called after half of the time."""
    arrivals = []

    def act():
        with socket.socket() as sock:
            sock.settimeout(60)
            choose(sock, "cubic")
            sock.connect((SERVER, PORT))
            sock.sendall(struct.pack("!Q", 250_000_000))
            data, place, begun, done = stream(250_000_000), 0, time.monotonic(), at is None
            while time.monotonic() - begun < seconds:
                piece = sock.recv(1 << 18)
                if piece != data[place : place + len(piece)]:
                    raise RuntimeError(f"wrong bytes after {place}")
                place += len(piece)
                arrivals.append((time.monotonic() - begun, len(piece)))
                if not done and time.monotonic() - begun > seconds / 2:
                    done = True
                    threading.Thread(target=at).start()
        return None

    inside(site.client, act)
    return arrivals


def goodput(arrivals, begin, end):
    return sum(n for at, n in arrivals if begin <= at < end) * 8e-6 / (end - begin)


def with_pair(args, links, gateways, act):
    with tempfile.TemporaryDirectory() as directory:
        site = Site(args.farpace, directory, [both(flags) for flags in links])
        try:
            Sender(site.server, SERVER)
            if gateways:
                site.pair()
            return act(site)
        finally:
            site.close()


def rate(args):
    results = []
    for links, name in ((TWO[:1], "20 ms alone"), (TWO[1:], "40 ms alone"), (TWO, "both")):
        rates = []
        for _ in range(args.runs):
            arrivals = with_pair(args, links, True, lambda site: download(site, args.seconds))
            rates.append(goodput(arrivals, 2, args.seconds))
        results.append({"links": name, "mbit_s": rates})
        print(f"{name:12} {statistics.median(rates):6.2f} Mbit/s  {[round(r, 2) for r in rates]}", flush=True)
    alone = sum(statistics.median(row["mbit_s"]) for row in results[:2])
    print(f"both of the sum: {statistics.median(results[2]['mbit_s']) / alone:.3f}")


def cut(args):
    for link in (0, 1):
        stops = []
        for _ in range(args.runs):

            def act(site):
                when = []

                def at():
                    when.append(time.monotonic())
                    run("ip", "-n", site.links[link], "link", "set", "out0", "down")

                arrivals = download(site, args.seconds, at)
                times = [at for at, _ in arrivals if at > args.seconds / 2 - 0.05]
                gap = max(b - a for a, b in zip(times, times[1:]))
                return gap * 1e3, goodput(arrivals, args.seconds / 2 + 2, args.seconds)

            stops.append(with_pair(args, TWO, True, act))
        longest = [round(gap) for gap, _ in stops]
        print(f"cut of link {link + 1}: stops {longest} ms, afterwards {[round(r, 1) for _, r in stops]} Mbit/s", flush=True)


def geo(args):
    for gateways in (False, True):
        rates = []
        for _ in range(args.runs):
            arrivals = with_pair(args, GEO, gateways, lambda site: download(site, args.seconds))
            rates.append(goodput(arrivals, 0, args.seconds))
        name = "pair" if gateways else "kernel CUBIC"
        print(f"{name:12} {statistics.median(rates):6.2f} Mbit/s  {[round(r, 2) for r in rates]}", flush=True)


def voice(args):
    """Round trips of 50 datagrams of 160 B a second, beside a download in the same direction as the answers."""
    for gateways in (False, True):

        def act(site):
            echo = inside(site.server, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            echo.bind((SERVER, 7000))
            threading.Thread(target=lambda: reflect(echo), daemon=True).start()
            bulk = threading.Thread(target=download, args=(site, args.seconds), daemon=True)
            bulk.start()
            time.sleep(3)
            delays = inside(site.client, lambda: talk(args.seconds - 4))
            bulk.join()
            return delays

        delays = sorted(with_pair(args, TWO[:1], gateways, act))
        p99 = delays[int(len(delays) * 0.99)]
        name = "pair" if gateways else "kernel"
        print(f"{name:8} median {statistics.median(delays):6.1f} ms, 99 % {p99:6.1f} ms, {len(delays)} answers", flush=True)


def reflect(sock):
    while True:
        data, peer = sock.recvfrom(2000)
        sock.sendto(data, peer)


def talk(seconds):
    delays, end = [], time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        while time.monotonic() < end:
            begun = time.monotonic()
            sock.sendto(bytes(160), (SERVER, 7000))
            try:
                sock.recv(2000)
                delays.append((time.monotonic() - begun) * 1e3)
            except TimeoutError:
                pass
            time.sleep(max(0, 0.02 - (time.monotonic() - begun)))
    return delays


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("farpace", help="the command, built for release")
    parser.add_argument("what", choices=["rate", "cut", "geo", "voice"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12)
    args = parser.parse_args()
    args.farpace = os.path.abspath(args.farpace)
    {"rate": rate, "cut": cut, "geo": geo, "voice": voice}[args.what](args)


if __name__ == "__main__":
    main()
