"""TCP over far networks: runs in virtual time, studies of many runs, and analyses of captures.

>>> import farpace
>>> result = farpace.run("wan.toml", links__wan__delay="20 ms")
>>> result.summary["flows"][0]["goodput_bit_s"]
>>> polars.DataFrame(result.flows)

Paths of the scenario are keyword arguments, with two underscores for each dot; where a part is no word of Python, give
a dictionary: ``farpace.run("wan.toml", **{"flows.*.sender.congestion": "bbr3"})``.
"""

from __future__ import annotations

import hashlib as _hashlib
import html as _html
import json as _json
import os as _os
import tempfile as _tempfile
import types as _types
from collections.abc import Iterable as _Iterable
from math import inf as _inf
from pathlib import Path as _Path
from types import SimpleNamespace as _Options

from . import _farpace, cc
from . import remote_folder as _remote
from ._farpace import AckSample, CongestionEvent, Table, Window, __version__

__all__ = [
    "AckSample",
    "CongestionEvent",
    "Control",
    "Result",
    "Scenario",
    "Study",
    "Table",
    "Window",
    "__version__",
    "cc",
    "explain",
    "run",
    "schema",
    "sweep",
]


def _value(value) -> str:
    """A value as TOML, or as the text that stands for it."""
    if isinstance(value, str):
        return value
    return _json.dumps(value)


def _toml(scenario: dict) -> str:
    return _farpace.to_toml(_json.dumps(scenario))


def _settings(settings: dict) -> list[tuple[str, str]]:
    return [(path.replace("__", "."), _value(value)) for path, value in settings.items()]


class Scenario:
    """A scenario: TOML text, or a dictionary of the same form. It is checked when it is made; a mistake is a
    ``ValueError`` that says where it is and what would be right. ``controls`` are the names of congestion controls of your own that
    flows have, and that are given when it is run.
    """

    def __init__(
        self,
        content: str | dict,
        *,
        name: str = "scenario.toml",
        folder: str | _os.PathLike = ".",
        controls: _Iterable[str] = (),
        **set,
    ):
        self.text = content if isinstance(content, str) else _toml(content)
        self.name = name
        self.folder = _os.fspath(folder)
        self.controls = [str(control) for control in controls]
        self._set = _settings(set)
        self._words = _farpace.check(self, self._set)

    @classmethod
    def from_file(cls, path: str | _os.PathLike, *, controls: _Iterable[str] = (), **set) -> Scenario:
        """Reads a file; files that it names are looked for in its folder."""
        place = _Path(path)
        return cls(place.read_text(encoding="utf-8"), name=str(path), folder=place.parent, controls=controls, **set)

    def set(self, **set) -> Scenario:
        """The same with values replaced."""
        other = object.__new__(Scenario)
        other.text, other.name, other.folder, other.controls = self.text, self.name, self.folder, self.controls
        other._set = self._set + _settings(set)
        other._words = _farpace.check(other, other._set)
        return other

    def explain(self) -> str:
        """What it means, in words: what the path can carry, what the window allows."""
        return self._words

    def __repr__(self) -> str:
        return f"<farpace.Scenario {self.name}>"


def _scenario(scenario, controls: _Iterable[str] = ()) -> Scenario:
    """A scenario from what a function was given; its flows may name ``controls``."""
    if not isinstance(scenario, Scenario):
        # Checked later, with values replaced.
        made = object.__new__(Scenario)
        if isinstance(scenario, dict):
            made.text, made.name, made.folder = _toml(scenario), "scenario.toml", "."
        else:
            place = _Path(scenario)
            made.text, made.name, made.folder = place.read_text("utf-8"), str(scenario), _os.fspath(place.parent)
        made.controls, made._set = list(controls), []
        return made
    for name in scenario.controls:
        if name not in controls:
            raise ValueError(
                f"the scenario has a congestion control of your own, `{name}`: run it with "
                f'controls={{"{name}": ...}} to farpace.run or farpace.sweep; comparisons take none'
            )
    return scenario


class Result:
    """What came of a run."""

    def __init__(self, run):
        self._run = run
        self._summary = None

    @property
    def summary(self) -> dict:
        """What ``farpace run --json`` prints (docs/json.md)."""
        if self._summary is None:
            self._summary = _json.loads(self._run.summary_json)
        return self._summary

    @property
    def flows(self) -> Table:
        """A row for each flow."""
        return self._run.flows

    @property
    def trace(self) -> Table:
        """A row for each segment and ACK of the senders (docs/trace.md); empty without ``trace=True``."""
        return self._run.trace

    def __repr__(self) -> str:
        return f"<farpace.Result: {self.summary['verdict']}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{_html.escape(str(cell))}</td>"
                for cell in (
                    flow["name"],
                    flow["from"],
                    flow["to"],
                    flow["profile"],
                    "" if flow["completion_s"] is None else f"{flow['completion_s']:.4g}",
                    f"{flow['goodput_bit_s'] / 1e6:.4g}",
                    flow["retransmissions"],
                )
            )
            + "</tr>"
            for flow in self.summary["flows"][:50]
        )
        heads = ("flow", "from", "to", "profile", "completion [s]", "goodput [Mbit/s]", "sent again")
        return (
            f"<p>{_html.escape(self.summary['verdict'])}</p><table><thead><tr>"
            + "".join(f"<th>{head}</th>" for head in heads)
            + f"</tr></thead><tbody>{rows}</tbody></table>"
        )


class Control:
    """A congestion control in Python, to derive from. ``on_ack`` is what it must have. Each method gets the
    connection's :class:`Window`, which it sets; nothing else changes the window.
    """

    def on_start(self, window: Window, event: CongestionEvent) -> None:
        """The handshake is over; the window is the initial one (RFC 6928)."""

    def on_ack(self, window: Window, ack: AckSample) -> None:
        """An ACK has acknowledged or SACKed something, in whatever state; it comes after the other calls of the ACK."""
        raise NotImplementedError(f"{type(self).__name__} has no on_ack(self, window, ack)")

    def on_congestion(self, window: Window, event: CongestionEvent) -> None:
        """A loss was found or a mark has come: ``event.kind`` is ``loss`` or ``ecn``. Once for a window of losses."""

    def on_timeout(self, window: Window, event: CongestionEvent) -> None:
        """The retransmission timer fired: all that was in flight counts as lost."""

    def on_recovered(self, window: Window, event: CongestionEvent) -> None:
        """What was lost has arrived."""

    def on_undo(self, window: Window, event: CongestionEvent) -> None:
        """The last loss or timeout was none."""

    def on_idle(self, window: Window, event: CongestionEvent) -> None:
        """It sends again after nothing was in flight for ``event.idle_s``."""


def run(scenario, *, trace: bool = False, controls: dict | None = None, **set) -> Result:
    """Runs a scenario (a path, a dictionary, or a :class:`Scenario`) in virtual time. The lock of the interpreter is
    released meanwhile, so threads run in parallel. ``seed=7`` is a value of the scenario like any other.

    ``controls`` are congestion controls of your own by the name that flows have as ``congestion``: classes, or
    functions that return an object; one is made for each connection. See :class:`Control`. An exception that it raises
    ends the run, and is raised here.
    """
    controls = dict(controls or {})
    source = _scenario(scenario, controls)
    return Result(_farpace.run(source, source._set + _settings(set), trace, list(controls.items())))


class Study:
    """A study's folder: a path, or a URL that fsspec opens, which is read once."""

    def __init__(self, path: str | _os.PathLike):
        self.path: _Path | str = path.rstrip("/") if _remote.is_url(path) else _Path(path)
        self._local = self.path
        if isinstance(self.path, str):
            self._copy = _tempfile.TemporaryDirectory(prefix="farpace-study-")
            self._local = _Path(self._copy.name)
            _remote.fetch(*_remote.file_system(self.path), self._local)
        try:
            self._summary, self._points = _farpace.show(self._local, None)
        except ValueError as error:
            raise ValueError(str(error).replace(str(self._local), str(self.path))) from None

    @property
    def data_set(self) -> _Path | str:
        """The Parquet file with a row for each flow of each run (docs/sweep.md), as a path or as a URL."""
        return f"{self.path}/runs.parquet" if isinstance(self.path, str) else self.path / "runs.parquet"

    @property
    def summary(self) -> dict:
        """What ``farpace sweep show --json`` prints (docs/json.md)."""
        return _json.loads(self._summary)

    @property
    def points(self) -> Table:
        """A row for each point, with means over its seeds and half the widths of their 95 % intervals."""
        return self._points

    def flow(self, name: str) -> Table:
        """The same of one flow, or of the flows of a class."""
        return _farpace.show(self._local, name)[1]

    def __repr__(self) -> str:
        return f"<farpace.Study {self.path}: {self.summary['runs']} runs>"


def _vary(path: str, values) -> str:
    words = values if isinstance(values, str) else ",".join(_value(value) for value in values)
    return f"{path.replace('__', '.')}={words}"


def _code_digest(make) -> str:
    """Identifies the code of a class with its methods, or of a function with what it closes over."""
    digest = _hashlib.sha256()
    seen = set()

    def add(thing) -> None:
        if id(thing) in seen:
            return
        code = getattr(thing, "__code__", thing)
        if isinstance(code, _types.CodeType):
            digest.update(code.co_code)
            digest.update(repr(code.co_names).encode())
            for constant in code.co_consts:
                add(constant)
        elif isinstance(thing, property):
            for part in (thing.fget, thing.fset):
                add(part)
        elif isinstance(thing, (staticmethod, classmethod)):
            add(thing.__func__)
        elif isinstance(thing, type):
            seen.add(id(thing))
            for base in thing.__mro__[:-1]:
                for name, value in sorted(vars(base).items(), key=lambda item: item[0]):
                    if name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__"):
                        digest.update(name.encode())
                        add(value)
        elif isinstance(thing, (int, float, complex, str, bytes, bool, tuple, frozenset, type(None))):
            digest.update(repr(thing).encode())

    add(make)
    for value in getattr(make, "__defaults__", None) or ():
        add(value)
    for cell in getattr(make, "__closure__", None) or ():
        add(cell.cell_contents)
    return digest.hexdigest()[:32]


def sweep(
    scenario,
    vary: dict,
    *,
    out: str | _os.PathLike,
    seeds: int = 1,
    samples: str | None = None,
    stop_at: float | None = None,
    jobs: int | None = None,
    shard: str | None = None,
    retry: bool = False,
    restart: bool = False,
    backend: str = "local",
    address: str | None = None,
    controls: dict | None = None,
    **set,
) -> Study:
    """Runs a scenario many times, as ``farpace sweep`` does and into the same folder. ``vary`` has lists of values or
    ranges like ``"5ms..300ms*7"`` by path. Runs that are there are not made again.

    ``controls`` are congestion controls of your own, as in :func:`run`; ``vary`` may have their names beside those of
    others. When the code of their methods changes, their runs are made again; of code that these call, and of values
    that they read elsewhere, farpace knows nothing: say ``restart=True`` then. They run on this machine alone.

    ``backend="ray"`` makes the runs on a Ray cluster: that of ``address`` (``HOST:PORT``), or the one to which this
    program is connected, or the one of this machine. The rows are the same.

    ``out`` may be a URL that fsspec opens, such as ``s3://bucket/study``: the runs are made in a copy on this machine,
    which is stored there every ten seconds and at the end.
    """
    if backend not in ("local", "ray"):
        raise ValueError(f"there is no backend {backend!r}: there are 'local' and 'ray'")
    if backend == "local" and address is not None:
        raise ValueError("an address is one of a Ray cluster: say backend=\"ray\" too")
    controls = dict(controls or {})
    if backend == "ray" and controls:
        raise ValueError("controls in Python run on this machine alone: leave out backend=\"ray\"")
    source = _scenario(scenario, controls)
    options = _Options(
        set=source._set + _settings(set),
        vary=[_vary(path, values) for path, values in vary.items()],
        seeds=seeds,
        out=out if _remote.is_url(out) else _Path(out),
        samples=samples,
        stop_at=stop_at,
        jobs=jobs,
        shard=shard,
        retry=retry,
        restart=restart,
    )
    if backend == "local":
        versioned = [(name, make, _code_digest(make)) for name, make in controls.items()]

        def make(source, options):
            return _farpace.sweep(source, options, versioned)
    else:
        try:
            from . import ray as _cluster
        except ModuleNotFoundError as error:
            if error.name != "ray":
                raise
            raise ModuleNotFoundError("backend=\"ray\" needs Ray: pip install 'farpace[ray]'", name="ray") from None

        def make(source, options):
            return _cluster.sweep(source, options, address=address, run_limit_s=_inf)

    if not _remote.is_url(out):
        return Study(make(source, options))
    with _remote.RemoteFolder(out, shard and _farpace.shard_name(shard)) as folder:
        options.out = folder.out
        try:
            make(source, options)
        except ValueError as error:
            raise folder.named(error) from None
    return Study(folder.url)


def explain(*files: str | _os.PathLike) -> dict:
    """Why the transfers of captures took their time, as ``farpace explain --json`` prints it (docs/explain.md)."""
    return _json.loads(_farpace.explain_json([_Path(file) for file in files]))


def schema() -> dict:
    """The JSON schema of scenarios."""
    return _json.loads(_farpace.schema())
