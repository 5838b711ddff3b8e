"""TCP over far networks: runs in virtual time, studies of many runs, and analyses of captures.

>>> import farpace
>>> result = farpace.run("wan.toml", links__wan__delay="20 ms")
>>> result.summary["flows"][0]["goodput_bit_s"]
>>> polars.DataFrame(result.flows)

Paths of the scenario are keyword arguments, with two underscores for each dot; where a part is no word of Python, give
a dictionary: ``farpace.run("wan.toml", **{"flows.*.sender.congestion": "bbr3"})``. Values are text as behind ``--set``,
numbers (of NumPy, too), lists and dictionaries.
"""

from __future__ import annotations

import copyreg as _copyreg
import html as _html
import json as _json
import operator as _operator
import os as _os
import tempfile as _tempfile
import uuid as _uuid
import warnings as _warnings
from collections.abc import Iterable as _Iterable
from math import inf as _inf
from math import isfinite as _isfinite
from pathlib import Path as _Path
from types import SimpleNamespace as _Options

from . import _farpace, cc
from . import control_digest as _control_digest
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


def _plain(value, where: str):
    """A value without types of NumPy and the like, as JSON and TOML have it."""
    if isinstance(value, (bool, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, _os.PathLike):
        return _os.fspath(value)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where or 'the scenario'}: the key {key!r} is no text")
        return {str(key): _plain(inner, f"{where}.{key}" if where else key) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{where}.{place}") for place, inner in enumerate(value)]
    if value is None:
        raise ValueError(f"{where}: None is no value of a scenario: leave the key out")
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return _plain(value.tolist(), where)
    try:
        whole = _operator.index(value)
    except TypeError:
        pass
    else:
        if not -(2**63) <= whole < 2**63:
            raise ValueError(f"{where}: {whole} is too large: whole numbers are below 2^63")
        return whole
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: {value!r} is no value of a scenario") from None
    if not _isfinite(number):
        raise ValueError(f"{where}: {number} is no value of a scenario: numbers are finite")
    return number


def _inline(value) -> str:
    """A plain value as inline TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)} = {_inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _quoted(value) if isinstance(value, str) else _json.dumps(value)


def _quoted(text: str) -> str:
    # Strings of JSON are strings of TOML, but for one control character.
    return _json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(path: str, value) -> str:
    """A value as TOML, or as the text that stands for it."""
    made = _plain(value, path)
    return made if isinstance(made, str) else _inline(made)


def _element(path: str, value) -> str:
    """A value of a list, which commas separate: text with a comma or a quote in it is quoted, ranges are not."""
    made = _value(path, value)
    is_literal = made[:1] in tuple("\"'[{") and made[-1:] in tuple("\"']}")
    return _quoted(made) if not is_literal and any(mark in made for mark in ",\"'[]{}") else made


def _toml(scenario: dict) -> str:
    return _farpace.to_toml(_json.dumps(_plain(scenario, "")))


def _settings(settings: dict) -> list[tuple[str, str]]:
    named = [(path.replace("__", "."), value) for path, value in settings.items()]
    return [(path, _value(path, value)) for path, value in named]


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


def _table(ipc: bytes) -> Table:
    return Table.from_ipc(ipc)


# Results of a pool of processes come back by pickle.
_copyreg.pickle(Table, lambda table: (_table, (table.to_ipc(),)))


class Result:
    """What came of a run. It can be pickled, so that a pool of processes can make runs."""

    def __init__(self, run):
        self._run = run
        self._summary = None

    def __getstate__(self) -> dict:
        run = self._run
        return {"summary_json": run.summary_json, "flows": run.flows, "trace": run.trace}

    def __setstate__(self, state: dict) -> None:
        self.__init__(_Options(**state))

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
        more = len(self.summary["flows"]) - 50
        more = f"<p>{more} further flows are in <code>flows</code>.</p>" if more > 0 else ""
        heads = ("flow", "from", "to", "profile", "completion [s]", "goodput [Mbit/s]", "sent again")
        return (
            f"<p>{_html.escape(self.summary['verdict'])}</p><table><thead><tr>"
            + "".join(f"<th>{head}</th>" for head in heads)
            + f"</tr></thead><tbody>{rows}</tbody></table>{more}"
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
    path = path.replace("__", ".")
    if isinstance(values, (dict, bytes)) or not isinstance(values, (str, _Iterable)):
        raise TypeError(f"{path}: {values!r} is no list of values, and no range like '5ms..300ms*7'")
    words = values if isinstance(values, str) else ",".join(_element(path, value) for value in values)
    return f"{path}={words}"


def _part(name: str, value, form: str, parse):
    """A number, or text of the form of the command's option."""
    try:
        return parse(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {value!r}: expected {form}") from None


def _share(value) -> float:
    """0.02, or 2%."""
    return float(value.strip().removesuffix("%")) / 100 if isinstance(value, str) and "%" in value else float(value)


def _text(value) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value) -> int:
    count = _operator.index(value)
    if count < 0:
        raise ValueError
    return count


def _version(name: str, make) -> str:
    """Identifies a control, so that runs of another one are not taken for its own."""
    try:
        return _control_digest.digest(make)
    except _control_digest.UnknownPart as error:
        _warnings.warn(
            f"the control `{name}` cannot be told from another one: {error}. Its runs are made again each time, also "
            "those of a sweep that was interrupted",
            stacklevel=3,
        )
        return _uuid.uuid4().hex


def sweep(
    scenario,
    vary: dict,
    *,
    out: str | _os.PathLike,
    seeds: int = 1,
    samples: str | None = None,
    stop_at: float | str | None = None,
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
    others. When a control changes, its runs are made again: its code, default values, closures, attributes, the
    arguments of a partial, and the values, functions and classes of its own module that it uses. Other modules count
    by name: say ``restart=True`` when they change. Where a part cannot be digested, such as an open file, the runs of
    the control are made again each time, with a warning that names the part. They run on this machine alone.

    ``backend="ray"`` makes the runs on a Ray cluster: that of ``address`` (``HOST:PORT``), or the one to which this
    program is connected, or the one of this machine. The rows are the same.

    ``out`` may be a URL that fsspec opens, such as ``s3://bucket/study``: the runs are made in a copy on this machine,
    which is stored there every ten seconds and at the end.
    """
    if not isinstance(vary, dict):
        raise TypeError("vary is a dictionary: values or a range by path, as in {'links.wan.delay': '5ms..300ms*7'}")
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs = {jobs}: at least one run is made at a time")
    if backend not in ("local", "ray"):
        raise ValueError(f"there is no backend {backend!r}: there are 'local' and 'ray'")
    if backend == "local" and address is not None:
        raise ValueError("an address is one of a Ray cluster: say backend=\"ray\" too")
    seeds = _part("seeds", seeds, "a whole number", _count)
    if samples is not None:
        samples = _part("samples", samples, "'lhs:200' or 'sobol:256'", _text)
    if stop_at is not None:
        stop_at = _part("stop_at", stop_at, "a part of the mean, as in 0.02 or '2%'", _share)
    if shard is not None:
        shard = _part("shard", shard, "a part of a number of parts, as in '3/16'", _text)
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
        versioned = [(name, make, _version(name, make)) for name, make in controls.items()]

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
    if not files:
        raise ValueError("explain needs at least one capture, trace or log")
    return _json.loads(_farpace.explain_json([_Path(file) for file in files]))


def schema() -> dict:
    """The JSON schema of scenarios."""
    return _json.loads(_farpace.schema())
