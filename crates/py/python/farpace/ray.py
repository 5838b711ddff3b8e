"""Studies on a Ray cluster: ``farpace.sweep(..., backend="ray")`` and ``farpace sweep --ray ADDRESS``.

This process has the study's folder, or talks to the one that has it. It hands out runs in batches that take seconds and
keeps what comes back. A batch whose worker or node is lost is made again by Ray; if that fails too, it is divided until
the run that ends its worker is alone, and that run is a row with the reason.
"""

from __future__ import annotations

import argparse as _argparse
import contextlib as _contextlib
import json as _json
import math as _math
import os as _os
import select as _select
import socket as _socket
import sys as _sys
import time as _time

import ray as _ray
from ray import exceptions as _errors

from . import _farpace

#: What a task is to take. Ray needs about a millisecond for one.
TASK_S = 2.0
#: Tasks get shorter towards the end of a study, so that all processors end at the same time; not below this.
MIN_TASK_S = 0.05
#: Most runs of a task.
MAX_TASK_RUNS = 4096
#: How often a task is made again when its worker or node is lost.
RETRIES = 2
#: How often the number of processors is asked for: clusters grow.
_SLOTS_EVERY_S = 5.0
#: How long the head of a cluster may take to answer.
_REACH_S = 10.0
#: The longest wait for results.
_WAIT_S = 0.2

#: What Ray raises when a process is gone. Everything else is an error of the cluster, or of ours.
_LOST = (
    _errors.WorkerCrashedError,
    _errors.NodeDiedError,
    _errors.LocalRayletDiedError,
    _errors.OutOfMemoryError,
    _errors.ObjectLostError,
)


def farpace_runs(order: bytes, runs: bytes, run_s: float, batch_s: float) -> tuple[bytes, bytes | None, float]:
    """A task: records, the runs that there was no time for, and how long it took."""
    began = _time.perf_counter()
    records, rest = _farpace.make_planned(order, runs, run_s, batch_s)
    return records, rest, _time.perf_counter() - began


class _Pace:
    """How many runs are a task."""

    def __init__(self, left: int):
        self.left = left
        self._runs, self._seconds = 0.0, 0.0

    def made(self, runs: int, seconds: float) -> None:
        """So many runs have taken so long. What is new counts more."""
        self._runs, self._seconds = 0.8 * self._runs + runs, 0.8 * self._seconds + seconds

    def size(self, slots: int) -> int:
        """Runs of the next task."""
        if not self._runs:
            return 1
        one = max(self._seconds / self._runs, 1e-6)
        fair = max(_math.ceil(self.left / (3 * slots)), int(MIN_TASK_S / one))
        return max(1, min(int(TASK_S / one), fair, MAX_TASK_RUNS))


def _lost_record(run: dict, error: Exception) -> dict:
    """The row of a run that ends its worker."""
    reason = f"the process that made it was lost {RETRIES + 1} times ({type(error).__name__})"
    measured = {"ended_s": 0.0, "events": 0, "flows": []}
    return {
        "run": run["run"],
        "seed": run["seed"],
        "values": [],
        "status": "crashed",
        "reason": reason,
        "measured": measured,
    }


def _explained(error: _errors.RayTaskError) -> Exception:
    """An error that was raised in a task, with what to do."""
    text = str(error)
    if "No module named 'farpace" in text:
        return RuntimeError("a node of the cluster has no farpace: every node needs `pip install farpace ray`")
    cause = getattr(error, "cause", None)
    if isinstance(cause, ValueError):
        return RuntimeError(f"a node of the cluster cannot make runs: {cause}")
    return error


class _Cluster:
    """The tasks of a study that are under way."""

    def __init__(self, queue, jobs: int | None, run_s: float, make):
        self._queue, self._jobs, self._run_s = queue, jobs, run_s
        self._order = _ray.put(queue.order)
        self._make = _ray.remote(num_cpus=1, max_retries=RETRIES)(make)
        self._pace = _Pace(queue.left)
        self._flight: dict = {}
        self._again: list[bytes] = []
        self._slots, self._slots_at = 1, -_math.inf

    def _count_slots(self) -> int:
        if _time.monotonic() - self._slots_at > _SLOTS_EVERY_S:
            cores = int(_ray.cluster_resources().get("CPU", 0))
            self._slots = max(1, min(cores, self._jobs) if self._jobs else cores)
            self._slots_at = _time.monotonic()
        return self._slots

    def _next(self, slots: int) -> bytes | None:
        if self._again:
            return self._again.pop()
        return self._queue.take(self._pace.size(slots))

    def _submit(self, runs: bytes, count: int) -> None:
        task = self._make.remote(self._order, runs, self._run_s, 2 * TASK_S)
        self._flight[task] = runs, count

    def work(self) -> None:
        """Makes all runs."""
        while True:
            slots = self._count_slots()
            # One more for each processor, so that none waits for the next.
            depth = slots if self._jobs else 2 * slots
            while len(self._flight) < depth and (runs := self._next(slots)) is not None:
                count = runs.count(b'"run":')
                self._pace.left = max(0, self._pace.left - count)
                self._submit(runs, count)
            if not self._flight:
                return
            most = min(len(self._flight), max(1, slots // 8))
            done, _ = _ray.wait(list(self._flight), num_returns=most, timeout=_WAIT_S)
            for task in done:
                self._finish(task)
            if not self._queue.is_wanted():
                raise KeyboardInterrupt

    def _finish(self, task) -> None:
        runs, count = self._flight.pop(task)
        try:
            records, rest, seconds = _ray.get(task)
        except _errors.RayTaskError as error:
            raise _explained(error) from error
        except _LOST as error:
            self._divide(_json.loads(runs), error)
            return
        self._queue.add(records)
        if rest is not None:
            self._again.append(rest)
            left = rest.count(b'"run":')
            count -= left
            self._pace.left += left
        self._pace.made(count, seconds)

    def _divide(self, runs: list[dict], error: Exception) -> None:
        """The process that made these runs was lost again and again."""
        if len(runs) == 1:
            self._queue.add(_json.dumps([_lost_record(runs[0], error)]).encode())
            return
        middle = len(runs) // 2
        for half in (runs[:middle], runs[middle:]):
            self._pace.left += len(half)
            self._again.append(_json.dumps(half, separators=(",", ":")).encode())

    def withdraw(self) -> None:
        """Ends the tasks that are under way."""
        for task in self._flight:
            with _contextlib.suppress(Exception):
                _ray.cancel(task, force=True)


def _reach(address: str) -> None:
    """Ray asks an address that nobody has for minutes. So it is tried first."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        _socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_S).close()


@_contextlib.contextmanager
def _connected(address: str | None):
    """The connection to the cluster: that of the program if it has one."""
    if _ray.is_initialized():
        own = _ray.get_runtime_context().gcs_address
        if address not in (None, "auto", own):
            raise ValueError(f"this program is connected to the Ray cluster {own} already: call ray.shutdown() first")
        yield
        return
    try:
        _reach(address or "auto")
        _ray.init(address=address or "auto", log_to_driver=False, logging_level="WARNING")
    except (OSError, RuntimeError, ValueError) as error:
        where = "on this machine" if address in (None, "auto") else f"at {address}"
        raise ConnectionError(
            f"there is no Ray cluster {where} ({str(error).strip().splitlines()[0]}): begin one with "
            "`ray start --head`, and name it as HOST:PORT"
        ) from error
    try:
        yield
    finally:
        _ray.shutdown()


def work(queue, *, address: str | None = None, jobs: int | None = None, run_limit_s: float = 3600.0, make=farpace_runs):
    """Makes the runs of a queue on a cluster. ``make`` is the task."""
    if not queue.has_ready():
        return
    with _connected(address):
        cluster = _Cluster(queue, jobs, run_limit_s, make)
        try:
            cluster.work()
        except BaseException:
            cluster.withdraw()
            raise


class _OwnQueue:
    """The queue of a study whose folder this process has."""

    def __init__(self, queue: _farpace.StudyQueue):
        self._queue = queue
        self.order, self.left = queue.order, queue.left
        self.has_ready, self.take, self.add = queue.has_ready, queue.take, queue.add

    def is_wanted(self) -> bool:
        return True


class _FarQueue:
    """The queue of a study whose folder ``farpace sweep --ray`` has: it is on the other side of two pipes."""

    def __init__(self, read, write, left: int):
        self._read, self._write = read, write
        self.left = left
        self.order = self._line()

    def _line(self) -> bytes:
        line = self._read.readline()
        if not line.endswith(b"\n"):
            raise KeyboardInterrupt
        return line

    def _say(self, message: bytes) -> None:
        try:
            self._write.write(message + b"\n")
            self._write.flush()
        except BrokenPipeError:
            raise KeyboardInterrupt from None

    def has_ready(self) -> bool:
        return True

    def take(self, most: int) -> bytes | None:
        self._say(b'{"take":%d}' % most)
        runs = self._line().rstrip()
        return None if runs == b"[]" else runs

    def add(self, records: bytes) -> None:
        self._say(b'{"add":%b}' % records)

    def failed(self, error: BaseException) -> None:
        """Says why it cannot go on."""
        self._say(_json.dumps({"failed": str(error) or type(error).__name__}).encode())

    def is_wanted(self) -> bool:
        # Nothing is sent unasked: what can be read is the end.
        return not _select.select([self._read], [], [], 0)[0]


def sweep(source, options, *, address: str | None, run_limit_s: float):
    """Makes the runs of a study that its folder does not have yet. Returns the folder."""
    queue = _farpace.StudyQueue(source, options)
    try:
        work(_OwnQueue(queue), address=address, jobs=options.jobs, run_limit_s=run_limit_s)
    finally:
        queue.close()
    return queue.folder


def main() -> int:
    """What ``farpace sweep --ray`` starts."""
    parser = _argparse.ArgumentParser(prog="python3 -m farpace.ray", description=main.__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--left", type=int, required=True)
    parser.add_argument("--run-limit", type=float, required=True)
    parser.add_argument("--jobs", type=int)
    words = parser.parse_args()
    # Ray prints, too: what goes to standard output by mistake is no message.
    write = _os.fdopen(_os.dup(1), "wb")
    _os.dup2(2, 1)
    read = _os.fdopen(_os.dup(0), "rb")
    queue = _FarQueue(read, write, words.left)
    try:
        work(queue, address=words.address, jobs=words.jobs, run_limit_s=words.run_limit)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        with _contextlib.suppress(KeyboardInterrupt):
            queue.failed(error)
        return 1
    return 0


if __name__ == "__main__":
    # By its name, so that workers find the task in the package.
    from farpace import ray as _self

    _sys.exit(_self.main())
