"""Congestion controls."""

from __future__ import annotations

import json as _json

from . import _farpace


def compare(path, *, only: list[str] | None = None, seeds: int = 3, time: str | None = None) -> dict:
    """All congestion controls, or ``only`` some, on one path: ``satellite``, ``lfn``, ``policed``, ``lossy``, or a
    scenario. What ``farpace cc compare --json`` prints (docs/json.md).
    """
    from . import Scenario, _scenario

    if isinstance(only, str):
        raise TypeError(f"only = {only!r}: give a list of names, as in [{only!r}]")
    if seeds < 1:
        raise ValueError(f"seeds = {seeds}: a comparison needs at least one")
    named = isinstance(path, str) and not path.endswith(".toml")
    source = None if named else _scenario(path)
    if source is not None and source._set:
        raise ValueError("a scenario with replaced values cannot be compared: write them into its text")
    name = path if named else source.name
    return _json.loads(_farpace.compare(str(name), source, list(only or []), seeds, time))
