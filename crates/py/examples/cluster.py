"""What a study on Ray costs: the same runs by farpace's own threads and on a cluster of node processes on this machine, by turns.

    target/python/bin/python crates/py/examples/cluster.py [--seeds N] [--size SIZE] [--pairs N] [--cores N]

Times are from the plan to the data set: on the clock, and of processors, those of the cluster's processes included. The
cluster is started and has made a small study before.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import psutil
import ray
from ray.cluster_utils import Cluster

import farpace

VARY = {"links.wan.delay": "1ms..20ms*10", "flows.*.sender.congestion": ["cubic", "reno", "bbr3", "farpace"]}


def scenario(size):
    wan = {"name": "wan", "between": ["a", "b"], "rate": "50 Mbit/s", "delay": "5 ms", "forward": {"loss": 0.001}}
    flows = [{"name": "bulk", "from": "a", "to": "b", "size": size}]
    return {"title": "Two hosts", "duration": "60 s", "hosts": {"a": {}, "b": {}}, "links": [wan], "flows": flows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--size", default="1 MB")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    words = parser.parse_args()
    # As those of the threads: Ray has 15, which costs time beside other programs.
    os.environ["RAY_worker_niceness"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(words.cores):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(words, Path(folder))
    finally:
        ray.shutdown()
        cluster.shutdown()


def measure(words, folder):
    made = scenario(words.size)

    def sweep(name, backend, seeds=words.seeds):
        began, used = time.perf_counter(), processors()
        jobs = words.cores if backend == "local" else None
        study = farpace.sweep(made, VARY, out=folder / name, seeds=seeds, backend=backend, jobs=jobs)
        return study, time.perf_counter() - began, processors() - used

    sweep("warm", "ray", 20)
    ratios, used = [], []
    for pair in range(words.pairs):
        local, local_s, local_cpu = sweep(f"local-{pair}", "local")
        far, far_s, far_cpu = sweep(f"ray-{pair}", "ray")
        assert local.data_set.read_bytes() == far.data_set.read_bytes()
        runs = local.summary["runs"]
        ratios.append(local_s / far_s)
        used.append(local_cpu / far_cpu)
        print(
            f"{runs} runs: threads {local_s:.2f} s, {local_cpu:.2f} s of processors; Ray {far_s:.2f} s, {far_cpu:.2f} s; "
            f"{100 * ratios[-1]:.1f} % and {100 * used[-1]:.1f} %; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    print(
        f"threads of Ray, medians: {100 * statistics.median(ratios):.1f} % on the clock, "
        f"{100 * statistics.median(used):.1f} % of processors; same digest {local.summary['digest']}"
    )


def processors():
    """Time of processors of this program and of the cluster, which it has started."""
    own = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in [own, *own.children(recursive=True)])


if __name__ == "__main__":
    main()
