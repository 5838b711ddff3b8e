#!/usr/bin/env python3
"""`make bench-check`: has anything become slower? Ratios of instruction counts beside those in bench/ratios.json.

Instructions are counted with callgrind, from two numbers of steps, so that starting up does not count; who else uses the
machine does not matter. A ratio to smoltcp's segment tells a change of ours from one of compiler or machine.
Exit codes: 0 nothing is slower, 1 something is, 2 it could not be measured.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATIOS = ROOT / "bench" / "ratios.json"
STEPS = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release" / "steps"
# More than this, as a part of the ratio, is a change: layout and addresses move the counts by about 1 %.
TOLERANCE = 0.05


def instructions(work: str, steps: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(STEPS), work, str(steps)]
    run = subprocess.run(command, text=True, capture_output=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not found:
        raise RuntimeError(f"`{' '.join(command)}` failed:\n{run.stderr.strip()}")
    return int(found[1])


def per_step(work: str, steps: int) -> float:
    return (instructions(work, 3 * steps) - instructions(work, steps)) / (2 * steps)


def measure(works: dict[str, int]) -> dict[str, float]:
    """Instructions per step of each work. The longest begin first, so that no core waits for one at the end."""
    costs = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(per_step, work, works[work]): work for work in sorted(works, key=works.get, reverse=True)}
        for done in concurrent.futures.as_completed(jobs):
            costs[jobs[done]] = done.result()
            print(f"\r{len(costs)} of {len(works)} counted", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return costs


def verdict(now: float, noted: float) -> str:
    if now > noted * (1 + TOLERANCE):
        return "SLOWER"
    return "faster: note it with --write" if now < noted * (1 - TOLERANCE) else "as noted"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="note today's ratios in bench/ratios.json")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    noted = json.loads(RATIOS.read_text())
    try:
        subprocess.run(["cargo", "build", "--release", "--locked", "-q", "-p", "farpace-bench", "--bin", "steps"],
                       cwd=ROOT, check=True)
        costs = measure(noted["steps"])
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"bench-check: {error}", file=sys.stderr)
        return 2
    lines = []
    for ratio in noted["ratios"]:
        now = round(costs[ratio["of"]] / costs[ratio["to"]], 4)
        lines.append({**ratio, "now": now, "verdict": verdict(now, ratio["is"])})
    slower = any(line["verdict"] == "SLOWER" for line in lines)
    if args.json:
        print(json.dumps({"instructions_per_step": costs, "ratios": lines}, indent=2))
    else:
        print(f"{'of':<22}{'instructions':>12}   {'to':<14}{'noted':>9}{'now':>9}   verdict")
        for line in lines:
            print(f"{line['of']:<22}{costs[line['of']]:>12.0f}   {line['to']:<14}{line['is']:>9.3f}"
                  f"{line['now']:>9.3f}   {line['verdict']}")
    if args.write:
        for ratio, line in zip(noted["ratios"], lines):
            ratio["is"] = line["now"]
        RATIOS.write_text(json.dumps(noted, indent=2) + "\n")
        return 0
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
