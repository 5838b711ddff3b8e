"""Chooses the congestion control of all connections of a network namespace, by its routes (`ip route ... congctl`).

`iperf3 -C` chooses it after the connection has been made. Where the default of the host is bbr, the connection is paced then, whatever
control it has: Linux does not take pacing back. And a namespace may not choose a default that the host does not allow to all users.
"""

import subprocess


def choose(namespace: str, control: str) -> None:
    """Raises RuntimeError if the namespace has no route, and CalledProcessError if the kernel does not know the control."""
    ip = ["ip", "-n", namespace]
    routes = subprocess.run([*ip, "-4", "route", "show"], check=True, capture_output=True, text=True).stdout.splitlines()
    if not routes:
        raise RuntimeError(f"namespace {namespace} has no route that could choose {control}")
    for route in routes:
        words = route.split()
        if "congctl" in words:
            at = words.index("congctl")
            del words[at : at + 2]
        words = [word for word in words if word != "linkdown"]
        subprocess.run([*ip, "route", "replace", *words, "congctl", control], check=True)
