from os import PathLike
from pathlib import Path
from typing import Any, Iterable

from . import cc as cc

__version__: str

class Table:
    """A table that pandas, polars, pyarrow and duckdb take over without a copy."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...

class Scenario:
    text: str
    name: str
    folder: str
    def __init__(
        self, content: str | dict[str, Any], *, name: str = ..., folder: str | PathLike[str] = ..., **set: Any
    ) -> None: ...
    @classmethod
    def from_file(cls, path: str | PathLike[str], **set: Any) -> Scenario: ...
    def set(self, **set: Any) -> Scenario: ...
    def explain(self) -> str: ...

class Result:
    @property
    def summary(self) -> dict[str, Any]: ...
    @property
    def flows(self) -> Table: ...
    @property
    def trace(self) -> Table: ...

class Study:
    path: Path
    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def data_set(self) -> Path: ...
    @property
    def summary(self) -> dict[str, Any]: ...
    @property
    def points(self) -> Table: ...
    def flow(self, name: str) -> Table: ...

def run(scenario: Scenario | str | PathLike[str] | dict[str, Any], *, trace: bool = False, **set: Any) -> Result: ...
def sweep(
    scenario: Scenario | str | PathLike[str] | dict[str, Any],
    vary: dict[str, str | Iterable[Any]],
    *,
    out: str | PathLike[str],
    seeds: int = 1,
    samples: str | None = None,
    stop_at: float | None = None,
    jobs: int | None = None,
    shard: str | None = None,
    retry: bool = False,
    restart: bool = False,
    **set: Any,
) -> Study: ...
def explain(*files: str | PathLike[str]) -> dict[str, Any]: ...
def schema() -> dict[str, Any]: ...
