#!/usr/bin/env python3
"""How fast `farpace send` and `recv` move files over loopback: many small files, one large one, and one with holes.

    bench/transfer.py [--farpace target/release/farpace] [--dir DIR] [--token] [--runs 3]

Both ends run on this machine, and files come from and go to DIR (default: a directory of its own in $TMPDIR). Figures are
the sender's own, of the best of some runs: what disturbs a run only makes it slower. The processor time is that of both ends
together; it changes less on a busy machine. Prints a line for each load; --json as one object.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile


def small(folder, count=20_000, size=1_000):
    tree = os.path.join(folder, "small")
    for n in range(count):
        part = os.path.join(tree, f"{n // 500:03}")
        os.makedirs(part, exist_ok=True)
        with open(os.path.join(part, f"{n:06}"), "wb") as file:
            file.write(os.urandom(size))
    return tree


def large(folder, size=2_000_000_000):
    path = os.path.join(folder, "large")
    block = os.urandom(1_000_000)
    with open(path, "wb") as file:
        for n in range(size // len(block)):
            file.write(n.to_bytes(8, "big") + block[8:])
    return path


def sparse(folder, size=1 << 40, islands=100):
    path = os.path.join(folder, "sparse")
    with open(path, "wb") as file:
        file.truncate(size)
        for n in range(islands):
            file.seek(size // islands * n + 12_345)
            file.write(os.urandom(10_000))
    return path


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def transfer(farpace, source, folder, token, limit):
    into = os.path.join(folder, "into")
    shutil.rmtree(into, ignore_errors=True)
    os.mkdir(into)
    env = dict(os.environ, XDG_STATE_HOME=os.path.join(folder, "state"))
    env.pop("FARPACE_TOKEN", None)
    extra = ["--token", "bench"] if token else []
    before = processor()
    receiver = subprocess.Popen([farpace, "recv", "--insecure", "--once", "--listen", "127.0.0.1:0", "--dir", into, *extra],
                                stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=env)
    try:
        port = receiver.stderr.readline().split()[2]
        sender = subprocess.run([farpace, "send", "--insecure", source, port, "--json", "--quiet", *extra], env=env,
                                capture_output=True, text=True, timeout=limit)
        if sender.returncode != 0:
            sys.exit(f"the transfer failed: {sender.stderr}")
        receiver.wait(timeout=60)
        return {"elapsed_s": json.loads(sender.stdout)["elapsed_s"], "cpu_s": processor() - before}
    except subprocess.TimeoutExpired:
        return None
    finally:
        if receiver.poll() is None:
            receiver.kill()
            receiver.wait()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--farpace", default="target/release/farpace")
    options.add_argument("--dir")
    options.add_argument("--token", action="store_true", help="with a token: the receiver knows the sender")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--loads", default="small,large,sparse")
    options.add_argument("--limit", type=float, default=120, help="seconds for one run at most")
    options.add_argument("--json", action="store_true")
    args = options.parse_args()
    farpace = os.path.abspath(args.farpace)
    results = {}
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="farpace-bench-") as folder:
        for load in args.loads.split(","):
            source = {"small": small, "large": large, "sparse": sparse}[load](folder)
            runs = [transfer(farpace, source, folder, args.token, args.limit) for _ in range(args.runs)]
            whole = all(runs)
            best = {key: min(run[key] for run in runs) for key in ("elapsed_s", "cpu_s")} if whole else None
            results[load] = {"best": best, "runs": runs}
            if not args.json:
                said = f"{best['elapsed_s']:8.3f} s {best['cpu_s']:8.3f} s of processors" if whole else "not in time"
                print(f"{load:7} {said}", flush=True)
            shutil.rmtree(source, ignore_errors=True) if os.path.isdir(source) else os.remove(source)
    if args.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
