#!/usr/bin/env python3
"""How a congestion control does between ends of different kinds, on random paths, beside others.

    bench/ends.py target/release/farpace [--paths 60] [--seed 1] [--control farpace] [--kind KIND] [--json]

The paths of `control --random` vary the network. This varies the ends: receivers whose window grows with the transfer
or is small, programs that write in steps, and transfers in the other direction, whose data delays ACKs. For each path
it prints the completion time with the control and with cubic and bbr3, where the better of those is at least 5 % faster.
"""

import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import tempfile

OTHERS = ["cubic", "bbr3"]
KINDS = ["plain", "reverse", "reverse-bulk", "small-window", "writes"]


def flow(name, ends, size, start_ms, sender, receiver, more=""):
    return (f'[[flows]]\nname = "{name}"\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nsize = "{size:.0f} B"\n'
            f'start = "{start_ms:.1f} ms"\nsender = {{ {sender} }}\nreceiver = {{ {receiver} }}\n{more}')


def scenario(seed, wanted):
    """The kind, a description, and the text of the scenario of a seed."""
    draw = random.Random(seed)
    kind = wanted or draw.choice(KINDS)
    rate = 10 ** draw.uniform(0.5, 2.3) * 1e6
    rtt = 10 ** draw.uniform(1.0, 2.8) / 1e3
    bdp = rate * rtt / 8
    queue = max(10_000, bdp * 10 ** draw.uniform(-1, 0.5))
    loss = draw.choice([0, 0, 0, 1e-4, 1e-3])
    size = min(max(300e3, rate / 8 * draw.uniform(2, 10)), 60e6)
    text = (f'title = "{kind}"\nseed = {seed}\nduration = "200 s"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = "wan"\n'
            f'between = ["a", "b"]\nrate = "{rate:.0f} bit/s"\ndelay = "{rtt / 2 * 1e3:.3f} ms"\nqueue = "{queue:.0f} B"\n'
            f"forward.loss = {loss}\n")
    receiver, more = 'profile = "linux"', ""
    if kind == "small-window":
        receiver += f', receive_buffer = "{bdp * draw.uniform(0.5, 3) + 20_000:.0f} B"'
    if kind == "writes":
        every = draw.uniform(10, 300)
        step = max(2_000, rate / 8 * every / 1e3 * draw.uniform(0.2, 1.2))
        more = f'writes = {{ size = "{step:.0f} B", every = "{every:.1f} ms" }}\n'
    text += flow("bulk", "ab", size, 1_000, 'profile = "farpace"', receiver, more)
    other = 'profile = "linux"'
    if kind == "reverse":
        start = 1_000 + rtt * 1e3 * draw.uniform(0, 3)
        text += flow("back", "ba", draw.uniform(10e3, 60e3), start, other, other)
    if kind == "reverse-bulk":
        text += flow("back", "ba", size, 1_000 + draw.uniform(-500, 500), other, other)
    about = f"{rate / 1e6:.1f} Mbit/s, {rtt * 1e3:.0f} ms, queue {queue / bdp:.2f} BDP, loss {loss}, {size / 1e6:.1f} MB"
    return kind, about, text


def measure(farpace, seed, wanted, controls, folder):
    kind, about, text = scenario(seed, wanted)
    path = os.path.join(folder, f"{seed}.toml")
    with open(path, "w") as file:
        file.write(text)
    seconds = {}
    for control in controls:
        command = [farpace, "run", path, "--no-report", "--json", "--set", f'flows.bulk.sender.congestion="{control}"']
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"seed {seed}: {done.stderr}")
        flows = json.loads(done.stdout)["flows"]
        # One that has not ended counts as the whole run.
        seconds[control] = next(f for f in flows if f["name"] == "bulk").get("completion_s") or 200
    ratio = min(seconds[other] for other in OTHERS) / seconds[controls[0]]
    return {"seed": seed, "kind": kind, "path": about, "seconds": seconds, "ratio": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("farpace")
    parser.add_argument("--paths", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--control", default="farpace")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    controls = [args.control] + OTHERS
    seeds = range(args.seed * 100_000, args.seed * 100_000 + args.paths)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(lambda seed: measure(args.farpace, seed, args.kind, controls, folder), seeds))
    rows.sort(key=lambda row: row["ratio"])
    if args.json:
        return print(json.dumps(rows, indent=2))
    for row in (row for row in rows if row["ratio"] < 0.95):
        times = ", ".join(f"{control} {time:.2f} s" for control, time in row["seconds"].items())
        print(f"{row['ratio']:.2f}  {row['kind']:12}  {row['path']}: {times}  (seed {row['seed']})")
    ratios = [row["ratio"] for row in rows]
    print(f"best of {' and '.join(OTHERS)} / {args.control}, {len(rows)} paths: least {ratios[0]:.2f}, "
          f"10 % {ratios[len(rows) // 10]:.2f}, median {ratios[len(rows) // 2]:.2f}; "
          f"below 0.95: {sum(ratio < 0.95 for ratio in ratios)}")


if __name__ == "__main__":
    main()
