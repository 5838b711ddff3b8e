"""The sending and the receiving program of a transfer."""

import json
import socket
import struct
import threading
import time

PORT = 5001
# Fields of struct tcp_info (linux/tcp.h): offset, format.
INFO = {"min_rtt": (148, "I"), "resent": (208, "Q"), "busy": (168, "Q"), "rwnd": (176, "Q"), "sndbuf": (184, "Q")}
ESTABLISHED, FIN_WAIT1 = 1, 4


def connected(options, here, listens, peer):
    """A connection: of the end that listens, or of the one that connects to `peer`."""
    family = socket.AF_INET6 if options["ipv6"] else socket.AF_INET
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options["control"].encode())
    if options.get("nodelay"):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if size := options.get(here):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF if here == "sndbuf" else socket.SO_RCVBUF, size)
    s.settimeout(60)
    if not listens:
        # On a busy machine the other end begins to listen late.
        for _ in range(20):
            try:
                s.connect((peer, PORT))
                return s
            except ConnectionRefusedError:
                time.sleep(0.5)
        raise SystemExit(f"{peer} does not listen")
    s.bind(("", PORT))
    s.listen(8)
    return s


def tcp_info(s):
    """What the kernel says of a connection, and its state."""
    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return {"state": info[0], **{name: struct.unpack_from(form, info, at)[0] for name, (at, form) in INFO.items()}}


def write(s, options):
    """Writes what the options want; how often it paused."""
    size, pause = options.get("write", [65_536, 0])
    end, sent, whole = time.time() + options["seconds"], 0, options.get("size")
    pauses = 0
    if exchange := options.get("exchanges"):
        for _ in range(exchange[0]):
            for _ in range(exchange[1]):
                s.sendall(b"x" * 300)
                time.sleep(0.001)
            s.recv(16)
        return 0
    if requests := options.get("requests"):
        for _ in range(requests[0]):
            s.recv(64)
            s.sendall(b"x" * requests[1])
        return 0
    while sent < whole if whole else time.time() < end:
        chunk = b"x" * min(size, whole - sent if whole else size)
        s.sendall(chunk)
        sent += len(chunk)
        if pause:
            time.sleep(pause)
            pauses += 1
    return pauses


def send(options):
    begun = time.time()
    s = connected(options, "sndbuf", options.get("download"), options["peer"])
    if options.get("download"):
        s, _ = s.accept()
        # The handshake, of a round trip, is over.
        begun = time.time() - tcp_info(s)["min_rtt"] / 1e6
    others = [connected(options, "sndbuf", False, options["peer"]) for _ in range(options.get("flows", 1) - 1)]
    threads = [threading.Thread(target=write, args=(other, options)) for other in others]
    for thread in threads:
        thread.start()
    pauses = 0
    try:
        pauses = write(s, options)
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    # Until all is acknowledged; a transfer that hangs is left.
    end = time.time() + 20
    while (told := tcp_info(s))["state"] in (ESTABLISHED, FIN_WAIT1):
        if time.time() > end or options.get("size") is None and time.time() > begun + options["seconds"] + 6:
            break
        time.sleep(0.002)
    print(json.dumps({"took": time.time() - begun, "pauses": pauses, **told}), flush=True)
    for thread in threads:
        thread.join(10)


def read(connection, options):
    size, pause = options.get("read", [1 << 18, 0])
    stop, got = options.get("stop"), 0
    if requests := options.get("requests"):
        for _ in range(requests[0]):
            connection.sendall(b"?" * 64)
            left = requests[1]
            while left > 0 and (data := connection.recv(left)):
                left -= len(data)
            time.sleep(requests[2])
        return
    if exchange := options.get("exchanges"):
        for _ in range(exchange[0]):
            left = exchange[1] * 300
            while left > 0 and (data := connection.recv(left)):
                left -= len(data)
            connection.sendall(b"!" * 16)
        return
    try:
        while data := connection.recv(size):
            got += len(data)
            time.sleep(pause * len(data) / size)
            if stop and got >= stop[0]:
                time.sleep(stop[1])
                stop = None
    except OSError:
        pass


def receive(options):
    s = connected(options, "rcvbuf", not options.get("download"), options["peer"])
    if options.get("download"):
        read(s, options)
        return
    threads = []
    for _ in range(options.get("flows", 1)):
        connection, _ = s.accept()
        threads.append(threading.Thread(target=read, args=(connection, options)))
        threads[-1].start()
    for thread in threads:
        thread.join()
