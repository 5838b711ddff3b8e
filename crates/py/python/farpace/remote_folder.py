"""Studies in a folder that a URL names, such as ``s3://bucket/study``: any URL that fsspec opens.

A sweep works in a copy on this machine (in the folder for temporary files). It fetches what the folder has, and stores what has changed every few seconds
and at the end. Every file appears whole. A study that was begun elsewhere goes on here, and the reverse.
"""

from __future__ import annotations

import contextlib as _contextlib
import json as _json
import os as _os
import shutil as _shutil
import socket as _socket
import tempfile as _tempfile
import threading as _threading
import time as _time
import uuid as _uuid
import warnings as _warnings
from pathlib import Path as _Path

#: The files of a study, in the order in which they are stored: the runs of the journal are removed when the data set
#: has them (docs/sweep.md).
FILES = ("study.json", "scenario.toml", "runs.parquet", "journal")
#: How often changed files are stored.
STORE_EVERY_S = 10.0
#: A lock that was not renewed for this long belongs to a process that is gone.
STALE_S = 300.0
_LOCK = ".lock"


def is_url(out) -> bool:
    """True for what names no path of this machine."""
    return isinstance(out, str) and "://" in out


def file_system(url: str):
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as error:
        if error.name != "fsspec":
            raise
        raise ModuleNotFoundError(
            f"{url} is a URL, which needs fsspec: pip install 'farpace[url]' (and s3fs for s3://, gcsfs for gs://)",
            name="fsspec",
        ) from None
    system, path = url_to_fs(url, use_listings_cache=False)
    return system, path.rstrip("/")


def fetch(system, path: str, into: _Path) -> None:
    """Copies the files of a study to this machine. A file that is not there is left out."""
    into.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        with _contextlib.suppress(FileNotFoundError):
            (into / name).write_bytes(system.cat_file(f"{path}/{name}"))


class RemoteFolder:
    """The folder of a sweep that is made in ``local``, or of its shard of this name; a context. One process at a time
    has it.
    """

    def __init__(self, url: str, shard: str | None = None):
        self.url = url.rstrip("/") if shard is None else f"{url.rstrip('/')}/{shard}"
        self._shard = shard
        self._system, self._path = file_system(self.url)
        self._owner = {"token": _uuid.uuid4().hex, "host": _socket.gethostname(), "process": _os.getpid()}
        self._stored: dict[str, tuple[int, int]] = {}
        self._done = _threading.Event()
        self._lost: str | None = None
        self.out: _Path | None = None
        self._storing = _threading.Thread(target=self._store_always, name="farpace-store", daemon=True)

    def __enter__(self) -> RemoteFolder:
        self._lock()
        try:
            self.out = _Path(_tempfile.mkdtemp(prefix="farpace-study-"))
            self.local = self.out / (self._shard or "")
            fetch(self._system, self._path, self.local)
            self._refuse_foreign()
            self._stored = {name: mark for name in FILES if (mark := self._mark(name))}
        except BaseException:
            if self.out is not None:
                _shutil.rmtree(self.out, ignore_errors=True)
            self._unlock()
            raise
        self._storing.start()
        return self

    def named(self, error: ValueError) -> ValueError:
        """An error of the sweep that names the URL instead of the copy."""
        return ValueError(str(error).replace(str(self.local), self.url))

    def __exit__(self, kind, error, trace) -> None:
        self._done.set()
        self._storing.join()
        if self._lost is None:
            try:
                self._store()
            except Exception as failure:
                raise OSError(
                    f"the study cannot be stored at {self.url}: {failure}. Its runs are in {self.local}: copy the files "
                    "there, or continue the sweep with that folder as `out`"
                ) from failure
            self._unlock()
            _shutil.rmtree(self.out, ignore_errors=True)
        elif error is None:
            raise OSError(f"{self._lost}. The runs of this sweep are in {self.local}")

    def _refuse_foreign(self) -> None:
        if (self.local / "study.json").exists():
            return
        with _contextlib.suppress(FileNotFoundError):
            names = [_os.path.basename(str(entry).rstrip("/")) for entry in self._system.ls(self._path, detail=False)]
            foreign = [name for name in names if not name.startswith((".", "shard-"))]
            if foreign:
                raise ValueError(f"{self.url} has other files and no study ({foreign[0]}): name another folder")

    def _mark(self, name: str) -> tuple[int, int] | None:
        try:
            found = (self.local / name).stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size

    def _store(self) -> None:
        for name in FILES:
            mark = self._mark(name)
            if mark is not None and mark != self._stored.get(name):
                # A line of the journal that is not whole yet is stored with the next one.
                self._system.pipe_file(f"{self._path}/{name}", (self.local / name).read_bytes())
                self._stored[name] = mark
            elif mark is None and name in self._stored:
                with _contextlib.suppress(FileNotFoundError):
                    self._system.rm_file(f"{self._path}/{name}")
                del self._stored[name]

    def _store_always(self) -> None:
        warned = False
        while not self._done.wait(STORE_EVERY_S):
            try:
                found = self._read_lock()
                if found is None or found.get("token") != self._owner["token"]:
                    self._lost = f"{self.url} was taken over by {_named(found)}"
                    return
                self._write_lock()
                self._store()
                warned = False
            except Exception as error:
                if not warned:
                    _warnings.warn(f"cannot store the study at {self.url} for now: {error}", RuntimeWarning, stacklevel=1)
                warned = True

    def _lock(self) -> None:
        found = self._read_lock()
        if found is not None and _time.time() - found.get("renewed", 0.0) < STALE_S:
            raise ValueError(
                f"{self.url} is in use by {_named(found)}: wait for it; if it is gone, its lock ends after "
                f"{STALE_S:.0f} s"
            )
        if found is not None:
            self._system.rm_file(f"{self._path}/{_LOCK}")
        self._system.makedirs(self._path, exist_ok=True)
        try:
            self._write_lock(mode="create")
        except FileExistsError:
            raise ValueError(f"{self.url} was taken by {_named(self._read_lock())} just now") from None
        # Not every store makes a file only if there is none: who is written last has it.
        found = self._read_lock()
        if found is None or found.get("token") != self._owner["token"]:
            raise ValueError(f"{self.url} was taken by {_named(found)} just now")

    def _write_lock(self, **mode) -> None:
        text = _json.dumps({**self._owner, "renewed": _time.time()})
        self._system.pipe_file(f"{self._path}/{_LOCK}", text.encode(), **mode)

    def _read_lock(self) -> dict | None:
        try:
            found = _json.loads(self._system.cat_file(f"{self._path}/{_LOCK}"))
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _unlock(self) -> None:
        with _contextlib.suppress(FileNotFoundError):
            self._system.rm_file(f"{self._path}/{_LOCK}")


def _named(owner: dict | None) -> str:
    owner = owner or {}
    return f"process {owner.get('process', '?')} of {owner.get('host', 'another machine')}"
