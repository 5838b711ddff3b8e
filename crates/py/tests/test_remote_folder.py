"""Studies in a folder that a URL names. Each test says what breaks if it fails."""

import json
import time

import fsspec
import polars
import pytest

import farpace
from farpace import remote_folder

SCENARIO = {
    "title": "Two hosts",
    "duration": "20 s",
    "hosts": {"a": {}, "b": {}},
    "links": [{"name": "wan", "between": ["a", "b"], "rate": "50 Mbit/s", "delay": "5 ms"}],
    "flows": [{"name": "bulk", "from": "a", "to": "b", "size": "100 kB"}],
}
VARY = {"links.wan.delay": ["1 ms", "5 ms", "20 ms"]}


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    """A URL with nothing behind it, and its file system."""
    if request.param == "file":
        yield f"file://{tmp_path}/bucket/study", fsspec.filesystem("file"), f"{tmp_path}/bucket/study"
        return
    system = fsspec.filesystem("memory")
    yield "memory://bucket/study", system, "/bucket/study"
    system.rm("/bucket", recursive=True)


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    """Where sweeps work; nothing may be left there."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def sweep(url, **more):
    return farpace.sweep(SCENARIO, VARY, out=url, **more)


def test_a_study_at_a_url_has_the_rows_of_a_local_one(place, tmp_path, copies):
    """Breaks: a study that is stored, read again or continued at a URL differs from one on disk, or leaves files."""
    url, system, path = place
    study = sweep(url, seeds=2)
    assert study.path == url and study.summary["runs"] == 6
    there = {name.rpartition("/")[2] for name in system.ls(path, detail=False)}
    assert there == {"study.json", "scenario.toml", "runs.parquet"}
    local = sweep(tmp_path / "local", seeds=2)
    assert study.summary["digest"] == local.summary["digest"]
    with fsspec.open(study.data_set, "rb") as file:
        assert polars.read_parquet(file.read()).equals(polars.read_parquet(local.data_set))
    # Opened by its URL, and continued by another process: only what is new is made.
    before = system.cat_file(f"{path}/runs.parquet")
    assert polars.DataFrame(farpace.Study(url + "/").points).height == 3
    assert sweep(url, seeds=2).summary["runs"] == 6
    assert system.cat_file(f"{path}/runs.parquet") == before
    assert sweep(url, seeds=3).summary["runs"] == 9
    del study
    assert not [entry for entry in copies.iterdir() if any(entry.iterdir())]


def test_finished_runs_are_stored_while_others_are_made(place, monkeypatch):
    """Breaks: a machine that fails in the middle of a study loses all of its runs."""
    url, system, path = place
    monkeypatch.setattr(remote_folder, "STORE_EVERY_S", 0.02)
    seen = []

    class Slow(farpace.Control):
        def on_start(self, window, event):
            time.sleep(0.3)
            seen.append(system.exists(f"{path}/journal") and system.cat_file(f"{path}/journal").count(b'"run":'))

        def on_ack(self, window, ack):
            window.cwnd_segments += ack.acked_segments

    sweep(url, jobs=1, controls={"slow": Slow}, **{"flows.*.sender.congestion": "slow"})
    assert max(map(int, seen)) >= 1


def test_shards_have_folders_of_their_own(place):
    """Breaks: machines that make one study together overwrite each other's runs."""
    url, system, path = place
    runs = sum(sweep(url, seeds=4, shard=f"{n}/2").summary["runs"] for n in (1, 2))
    assert runs == 12
    assert system.exists(f"{path}/shard-1-of-2/runs.parquet") and system.exists(f"{path}/shard-2-of-2/study.json")


def test_one_sweep_at_a_time_has_the_folder(place):
    """Breaks: two sweeps write into one folder, or one that was killed keeps it for ever."""
    url, system, path = place
    with remote_folder.RemoteFolder(url):
        with pytest.raises(ValueError, match=r"in use by process \d+ of .*its lock ends after 300 s"):
            sweep(url)
    system.pipe_file(f"{path}/.lock", json.dumps({"token": "x", "renewed": time.time() - 301}).encode())
    assert sweep(url).summary["runs"] == 3
    assert not system.exists(f"{path}/.lock")


def test_a_sweep_that_loses_its_folder_says_so(place, monkeypatch):
    """Breaks: two sweeps that both believe to have the folder mix their files."""
    url, system, path = place
    monkeypatch.setattr(remote_folder, "STORE_EVERY_S", 0.02)
    with pytest.raises(OSError, match="was taken over by process 7 of elsewhere.*are in "):
        with remote_folder.RemoteFolder(url):
            system.pipe_file(f"{path}/.lock", json.dumps({"token": "x", "host": "elsewhere", "process": 7}).encode())
            time.sleep(0.3)
    assert not system.exists(f"{path}/study.json")


def test_errors_name_the_url(place):
    """Breaks: messages about folders that nobody knows; files of others that are overwritten."""
    url, system, path = place
    with pytest.raises(ValueError, match="has no study|no study") as missing:
        farpace.Study(url)
    assert url in str(missing.value)
    system.makedirs(path, exist_ok=True)
    system.pipe_file(f"{path}/thesis.tex", b"\\begin")
    with pytest.raises(ValueError, match="other files and no study"):
        sweep(url)
    assert system.cat_file(f"{path}/thesis.tex") == b"\\begin" and not system.exists(f"{path}/.lock")
    other = url + "-of-another-scenario"
    sweep(other)
    with pytest.raises(ValueError) as scenario:
        farpace.sweep(SCENARIO, VARY, out=other, links__wan__rate="10 Mbit/s")
    assert other in str(scenario.value) and "copies" not in str(scenario.value)


def test_what_cannot_be_stored_stays_here(place, copies, monkeypatch):
    """Breaks: a store that fails at the end loses the study."""
    url, system, path = place
    store = remote_folder.RemoteFolder._store

    def fails(self):
        store(self) if self._path != path else (_ for _ in ()).throw(PermissionError("read only"))

    monkeypatch.setattr(remote_folder.RemoteFolder, "_store", fails)
    with pytest.raises(OSError, match="read only. Its runs are in"):
        sweep(url)
    (kept,) = [entry for entry in copies.iterdir() if (entry / "runs.parquet").exists()]
    assert farpace.Study(kept).summary["runs"] == 3
