#!/usr/bin/env python3
"""Draws what `run.py --json` has measured: a row for each link, with a dot for each run.

    bench/gateway/picture.py results.json gateway.svg

Needs matplotlib (`pip install matplotlib`). Goodput of bulk, page loads, and the times of objects and of echoes beside the bulk: a tenth
of them is shorter than the first dot, half than the second, and nine tenths than the third.
"""
import json
import sys

from run import quantile

try:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    sys.exit("matplotlib is missing: python3 -m venv .plot && .plot/bin/pip install matplotlib, then run this with .plot/bin/python")

# As on the other pages of farpace: its own colour, that of CUBIC, and that of BBR.
COLOURS = {"cubic": "#d55e00", "bbr": "#009e73", "gateway": "#0072b2", "pair": "#0072b2", "haproxy": "#767676"}
NAMES = {"cubic": "CUBIC", "bbr": "BBR", "gateway": "CUBIC, gateway", "pair": "CUBIC, pair", "haproxy": "CUBIC, HAProxy (BBR)"}


def dots(axes, at, values, colour, hollow):
    axes.plot(values, [at] * len(values), "o", ms=5, mec=colour, mfc="white" if hollow else colour, mew=1.2)
    axes.plot([min(values), max(values)], [at, at], "-", color=colour, lw=1.2, zorder=0)


def draw(results, path):
    matplotlib.rcParams.update({"font.size": 9, "font.family": "sans-serif", "svg.hashsalt": "farpace", "svg.fonttype": "none"})
    heights = [len(result["rows"]) + 2 for result in results]
    figure, grid = pyplot.subplots(
        len(results), 4, figsize=(10.5, 0.27 * sum(heights)), squeeze=False, gridspec_kw={"height_ratios": heights}, layout="constrained"
    )
    for result, row in zip(results, grid):
        names = [entry["contender"] for entry in result["rows"]]
        row[0].set_title(f"{result['link']}; data {result['data']}", loc="left", fontsize=9, fontweight="bold")
        for at, entry in enumerate(result["rows"]):
            colour, hollow = COLOURS[entry["contender"]], entry["contender"] == "pair"
            dots(row[0], at, [result["bulk_mb"] * 8 / seconds for seconds in entry["bulk_s"]], colour, hollow)
            dots(row[1], at, [quantile(entry["object_s"], part) * 1e3 for part in (0.1, 0.5, 0.9)], colour, hollow)
            if entry["page_s"]:
                dots(row[2], at, entry["page_s"], colour, hollow)
            dots(row[3], at, [quantile(entry["echo_s"], part) * 1e3 for part in (0.1, 0.5, 0.9)], colour, hollow)
        row[0].axvline(result["rate_mbit_s"], color="#767676", lw=1, ls=":")
        for axes, label in zip(row, ("goodput of bulk, Mbit/s", "object of 10 kB, ms", "page of 100 objects, s", "echo beside bulk, ms")):
            axes.set_xlabel(label, fontsize=8)
            axes.set_xlim(0, axes.dataLim.x1 * 1.06)
            axes.set_ylim(len(names) - 0.5, -0.5)
            axes.set_yticks(range(len(names)), [NAMES[name] for name in names] if axes is row[0] else [""] * len(names))
            axes.tick_params(length=2, labelsize=8)
            axes.grid(axis="x", color="#e3e3e3", lw=0.7)
            axes.set_axisbelow(True)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        draw(json.load(file), sys.argv[2])


if __name__ == "__main__":
    main()
