"""Studies on a Ray cluster of several node processes on this machine. Each test says what breaks if it fails."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import polars
import psutil
import pytest
import ray
from ray.cluster_utils import Cluster

import farpace
import farpace.ray
from farpace import _farpace

SCENARIO = {
    "title": "Two hosts",
    "duration": "20 s",
    "hosts": {"a": {}, "b": {}},
    "links": [
        {"name": "wan", "between": ["a", "b"], "rate": "50 Mbit/s", "delay": "5 ms", "forward": {"loss": 0.001}}
    ],
    "flows": [{"name": "bulk", "from": "a", "to": "b", "size": "100 kB"}],
}
VARY = {"links.wan.delay": "1ms..20ms*5", "flows.*.sender.congestion": ["cubic", "reno", "bbr3"]}
SEEDS = 20
#: A run of the study that is disturbed takes some ten milliseconds.
LARGE = {"flows.0.size": "10 MB", "seeds": 8}


@pytest.fixture(scope="module")
def cluster():
    """A head without processors, and nodes with one each; this program is connected to it."""
    # Ray has 15, and beside other programs waits for long.
    os.environ["RAY_worker_niceness"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(2):
            made.add_node(num_cpus=1)
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def sweep(out, **more):
    return farpace.sweep(SCENARIO, VARY, out=out, **{"seeds": SEEDS, "backend": "ray", **more})


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The study as this process makes it."""
    return sweep(tmp_path_factory.mktemp("studies") / "local", backend="local")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The same with longer runs."""
    return sweep(tmp_path_factory.mktemp("studies") / "large", backend="local", **LARGE)


def same(study, other):
    """Byte for byte."""
    assert study.summary["digest"] == other.summary["digest"]
    assert study.data_set.read_bytes() == other.data_set.read_bytes()
    assert not (study.path / "journal").exists()


def test_rows_and_digest_are_those_of_this_machine(cluster, local, tmp_path):
    """Breaks: a study on a cluster: other rows, another digest, or runs made twice."""
    study = sweep(tmp_path / "study")
    assert study.summary["status"] == {"complete": 300}
    same(study, local)
    assert polars.read_parquet(study.data_set).height == 300
    # Everything is there: no task is needed, and none is made.
    farpace.ray.work(SimpleNamespace(has_ready=lambda: False))
    same(sweep(tmp_path / "study", address=cluster.address), local)


def test_a_study_goes_on_elsewhere(cluster, local, tmp_path):
    """Breaks: a study that was begun on one machine and goes on on a cluster, or the reverse."""
    for first, then in (("local", "ray"), ("ray", "local")):
        part = sweep(tmp_path / first, backend=first, seeds=7)
        assert part.summary["runs"] == 105
        same(sweep(tmp_path / first, backend=then), local)
    shards = [sweep(tmp_path / "parts", shard=f"{n}/2").summary["runs"] for n in (1, 2)]
    assert sum(shards) == 300 and min(shards) > 100
    stopped = [sweep(tmp_path / f"stop-{b}", backend=b, stop_at=0.02) for b in ("local", "ray")]
    assert stopped[0].summary["runs"] < 300
    same(*stopped)


def disturbed(path, disturb):
    """Makes the larger study, and calls ``disturb`` when a part of it is there."""
    with ThreadPoolExecutor(1) as pool:
        study = pool.submit(lambda: sweep(path, **LARGE))
        journal = path / "journal"
        while not (journal.exists() and journal.stat().st_size > 20_000):
            assert not study.done(), study.result()
            time.sleep(0.005)
        disturb()
        assert not study.done(), "it ended before it was disturbed"
        return study.result()


def workers(node):
    """The processes of a node that make runs."""
    (raylet,) = node.all_processes["raylet"]
    children = psutil.Process(raylet.process.pid).children(recursive=True)
    return [child for child in children if any("farpace_runs" in word for word in child.cmdline())]


def test_a_lost_worker_is_replaced(cluster, large, tmp_path):
    """Breaks: a study when a process of the cluster is killed."""

    def kill():
        busy = []
        while not busy:
            busy = [worker for node in cluster.worker_nodes for worker in workers(node)]
        busy[0].kill()

    same(disturbed(tmp_path / "study", kill), large)


def test_a_lost_node_is_replaced(cluster, large, tmp_path):
    """Breaks: a study when a node of the cluster is gone, with its processes."""
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    def kill():
        while not workers(node):
            time.sleep(0.005)
        cluster.remove_node(node, allow_graceful=False)

    same(disturbed(tmp_path / "study", kill), large)


def test_a_run_that_ends_its_worker_is_a_row(cluster, tmp_path):
    """Breaks: one run that kills its process ends the study, or takes other runs with it."""

    def deadly(order, runs, run_s, batch_s):
        if any(run["seed"] == 2 and run["values"] == ["reno"] for run in json.loads(runs)):
            os._exit(3)
        return farpace.ray.farpace_runs(order, runs, run_s, batch_s)

    options = SimpleNamespace(
        set=[],
        vary=["flows.*.sender.congestion=cubic,reno"],
        seeds=3,
        out=tmp_path / "study",
        samples=None,
        stop_at=None,
        jobs=None,
        shard=None,
        retry=False,
        restart=False,
    )
    queue = _farpace.StudyQueue(farpace.Scenario(SCENARIO), options)
    farpace.ray.work(farpace.ray._OwnQueue(queue), make=deadly)
    queue.close()
    rows = polars.read_parquet(tmp_path / "study/runs.parquet")
    bad = rows.filter(polars.col("status") != "complete")
    assert (rows.height, bad["status"].to_list(), bad["seed"].to_list()) == (6, ["crashed"], [2])
    assert bad["reason"].to_list() == ["the process that made it was lost 3 times (WorkerCrashedError)"]
    # And it is made when somebody asks for it.
    vary = {"flows.*.sender.congestion": "cubic,reno"}
    again = farpace.sweep(SCENARIO, vary, out=tmp_path / "study", seeds=3, retry=True)
    assert again.summary["status"] == {"complete": 6}


def test_the_command_has_its_runs_made(cluster, local, tmp_path):
    """Breaks: `farpace sweep --ray`: the program that it starts, with the folder on the other side of two pipes."""
    options = SimpleNamespace(
        set=[],
        vary=[f"{path}={v if isinstance(v, str) else ','.join(v)}" for path, v in VARY.items()],
        seeds=SEEDS,
        out=tmp_path / "study",
        samples=None,
        stop_at=None,
        jobs=None,
        shard=None,
        retry=False,
        restart=False,
    )
    queue = _farpace.StudyQueue(farpace.Scenario(SCENARIO), options)
    words = ["--address", cluster.address, "--left", str(queue.left), "--run-limit", "3600"]
    with subprocess.Popen(
        [sys.executable, "-m", "farpace.ray", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        program.stdin.write(queue.order + b"\n")
        program.stdin.flush()
        for line in program.stdout:
            ((what, about),) = json.loads(line).items()
            if what == "add":
                queue.add(json.dumps(about).encode())
            else:
                assert what == "take"
                program.stdin.write((queue.take(about) or b"[]") + b"\n")
                program.stdin.flush()
        program.stdin.close()
    assert program.returncode == 0
    queue.close()
    same(farpace.Study(tmp_path / "study"), local)


def test_mistakes_are_answered(cluster, tmp_path):
    """Breaks: the answers to a wrong backend, address or build, and that a study survives them."""
    with pytest.raises(ValueError, match="'local' and 'ray'"):
        sweep(tmp_path / "study", backend="dask")
    with pytest.raises(ValueError, match="backend="):
        sweep(tmp_path / "study", backend="local", address="auto")
    with pytest.raises(ValueError, match="connected to the Ray cluster .* already"):
        sweep(tmp_path / "study", address="192.0.2.1:6379")

    def other_build(order, runs, run_s, batch_s):
        order = json.dumps({**json.loads(order), "farpace": "0.0.1 (older)"}).encode()
        return farpace.ray.farpace_runs(order, runs, run_s, batch_s)

    work = farpace.ray.work
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(farpace.ray, "work", lambda queue, **words: work(queue, make=other_build, **words))
        with pytest.raises(RuntimeError, match="cannot make runs: this is farpace .* made by 0.0.1"):
            sweep(tmp_path / "study")
    assert sweep(tmp_path / "study", seeds=1).summary["status"] == {"complete": 15}
