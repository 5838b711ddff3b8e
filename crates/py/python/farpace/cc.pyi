from os import PathLike
from typing import Any

from . import Scenario

def compare(
    path: str | PathLike[str] | Scenario | dict[str, Any],
    *,
    only: list[str] | None = None,
    seeds: int = 3,
    time: str | None = None,
) -> dict[str, Any]: ...
