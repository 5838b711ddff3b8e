#!/usr/bin/env python3
"""Prints the coverage of each crate from the summary of `cargo llvm-cov report --json --summary-only`."""

import collections
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> None:
    files = json.loads(pathlib.Path(sys.argv[1]).read_text())["data"][0]["files"]
    crates = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in files:
        parts = pathlib.Path(file["filename"]).relative_to(ROOT).parts
        name = parts[1] if parts[0] == "crates" else parts[0]
        lines, functions = file["summary"]["lines"], file["summary"]["functions"]
        counts = (lines["covered"], lines["count"], functions["covered"], functions["count"])
        for key in (name, "all"):
            crates[key] = [a + b for a, b in zip(crates[key], counts)]
    print(f"{'crate':<12}{'lines':>9}{'run':>9}{'':>8}{'functions':>11}{'run':>8}")
    for name, (run, lines, called, functions) in sorted(crates.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{name:<12}{lines:>9}{run:>9}{100 * run / max(lines, 1):>6.1f} %{functions:>11}{called:>8}"
              f"{100 * called / max(functions, 1):>6.1f} %")


if __name__ == "__main__":
    main()
