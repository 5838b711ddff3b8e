"""The Python package. Each test says what breaks if it fails."""

import json
import math
import multiprocessing
import pickle
import struct
import threading
import time

import numpy
import polars
import pytest

import farpace

SCENARIO = {
    "title": "Two hosts",
    "duration": "20 s",
    "hosts": {"a": {}, "b": {}},
    "links": [{"name": "wan", "between": ["a", "b"], "rate": "100 Mbit/s", "delay": "5 ms"}],
    "flows": [{"name": "bulk", "from": "a", "to": "b", "size": "1 MB"}],
}


def test_a_run_gives_summary_flows_and_trace():
    """Breaks: what a run gives, or that it repeats."""
    result = farpace.run(SCENARIO, trace=True)
    assert result.summary["status"] == "complete"
    flows = polars.DataFrame(result.flows)
    assert flows["name"].to_list() == ["bulk"] and flows["delivered_bytes"].to_list() == [1_000_000]
    trace = polars.DataFrame(result.trace)
    assert trace.height == len(result.trace) > 500 and "cwnd" in trace.columns
    assert trace["time_ns"].is_sorted()
    again = farpace.run(SCENARIO, trace=True)
    assert again.summary == result.summary and polars.DataFrame(again.trace).equals(trace)
    assert len(farpace.run(SCENARIO).trace) == 0
    assert "bulk" in result._repr_html_() and "complete" not in repr(farpace.Table)


def test_results_come_back_from_a_pool_of_processes():
    """Breaks: results and tables cannot be pickled, or lose summary, flows, trace or units on the way."""
    scenarios = [farpace.Scenario(SCENARIO), farpace.Scenario(SCENARIO).set(seed=9)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        apart = pool.map(farpace.run, scenarios)
    for result, scenario in zip(apart, scenarios, strict=True):
        assert result.summary == farpace.run(scenario).summary
    here = farpace.run(SCENARIO, trace=True)
    back = pickle.loads(pickle.dumps(here))
    assert back.summary == here.summary and len(back.trace) == len(here.trace) > 500
    for got, made in (back.flows, here.flows), (back.trace, here.trace):
        assert polars.DataFrame(got).equals(polars.DataFrame(made))
    assert back._repr_html_() == here._repr_html_() and repr(back) == repr(here)
    assert len(pickle.loads(pickle.dumps(farpace.run(SCENARIO).trace))) == 0
    for bad in (b"", here.flows.to_ipc()[:100], b"\xff" * 64):
        with pytest.raises(ValueError):
            farpace.Table.from_ipc(bad)


def test_values_are_replaced_by_keywords():
    """Breaks: settings that reach the scenario under another path, or not at all."""
    slow = farpace.run(SCENARIO, links__wan__delay="50 ms", **{"flows.*.sender.congestion": "reno"})
    assert slow.summary["flows"][0]["base_rtt_s"] > 0.1
    assert "flows.*.sender.congestion=reno" in slow.summary["scenario"]["set"]
    assert farpace.run(SCENARIO, seed=9).summary["scenario"]["seed"] == 9
    assert farpace.Scenario(SCENARIO).set(seed=9)._set == [("seed", "9")]


def test_mistakes_are_value_errors_that_help():
    """Breaks: a mistake in a scenario that is not answered, or without what would be right."""
    with pytest.raises(ValueError, match="did you mean `delay`"):
        farpace.run(SCENARIO, links__wan__dealy="1 ms")
    with pytest.raises(ValueError, match="no `between`|has no"):
        farpace.Scenario({**SCENARIO, "links": [{"name": "wan"}]})
    with pytest.raises(ValueError, match="did you mean `duration`"):
        farpace.Scenario({**SCENARIO, "duratoin": "1 s"})
    with pytest.raises(FileNotFoundError):
        farpace.run("nothing.toml")
    assert "100 Mbit/s" in farpace.Scenario(SCENARIO).explain()
    assert "flows" in farpace.schema()["properties"]


def test_a_sweep_is_the_commands_study(tmp_path):
    """Breaks: studies from Python: other rows than the command's, runs made twice, tables that nobody can read."""
    vary = {"links.wan.delay": ["5 ms", "20 ms"], "flows__bulk__sender__congestion": ["cubic", "reno"]}
    study = farpace.sweep(SCENARIO, vary, out=tmp_path / "study", seeds=2)
    assert study.summary["status"] == {"complete": 8}
    points = polars.DataFrame(study.points)
    assert points["links.wan.delay"].to_list() == ["5 ms", "5 ms", "20 ms", "20 ms"]
    assert points["runs"].to_list() == [2.0] * 4
    rows = polars.read_parquet(study.data_set)
    assert rows.height == 8 and set(rows["congestion"]) == {"cubic", "reno"}
    alone = farpace.run(SCENARIO, links__wan__delay="5 ms", flows__bulk__sender__congestion="cubic")
    assert rows["goodput_bit_s"][0] == alone.summary["flows"][0]["goodput_bit_s"]
    before = study.data_set.read_bytes()
    assert farpace.sweep(SCENARIO, vary, out=tmp_path / "study", seeds=2).data_set.read_bytes() == before
    with pytest.raises(ValueError, match="another scenario"):
        farpace.sweep({**SCENARIO, "seed": 3, "duration": "9 s"}, vary, out=tmp_path / "study")
    with pytest.raises(ValueError, match="downwards"):
        farpace.sweep(SCENARIO, {"links.wan.delay": "9ms..5ms*3"}, out=tmp_path / "other")


def test_controls_are_compared():
    """Breaks: the comparison of congestion controls."""
    table = farpace.cc.compare("lossy", only=["cubic", "bbr3"], seeds=1, time="2 s")
    assert [row["name"] for row in table["congestion"]] == ["cubic", "bbr3"]
    with pytest.raises(ValueError, match="there is no path `moon`"):
        farpace.cc.compare("moon")


def frame(from_client, seq, ack, flags, payload):
    """An Ethernet frame with IPv4 and TCP, without checksums."""
    ports = (50_000, 80) if from_client else (80, 50_000)
    ends = (b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02")[:: 1 if from_client else -1]
    tcp = struct.pack("!HHIIBBHHH", *ports, seq, ack, 5 << 4, flags, 65_535, 0, 0) + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + b"".join(ends)
    return b"\2" * 6 + b"\4" * 6 + b"\x08\x00" + ip + tcp


def test_captures_are_explained(tmp_path):
    """Breaks: the analysis of captures: its numbers, or the name of a file that cannot be read."""
    syn, ack = 2, 16
    frames = [frame(True, 0, 0, syn, b""), frame(False, 0, 1, syn | ack, b""), frame(True, 1, 1, ack, b"")]
    for n in range(40):
        frames.append(frame(True, 1 + 1000 * n, 1, ack, b"x" * 1000))
        frames.append(frame(False, 1, 1001 + 1000 * n, ack, b""))
    packets = [struct.pack("<IIII", 0, 1000 * n, len(f), len(f)) + f for n, f in enumerate(frames)]
    capture = tmp_path / "slow.pcap"
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + b"".join(packets))
    (found,) = farpace.explain(capture)["captures"]
    assert (found["frames"], found["segments"], found["connections"]) == (83, 83, 1)
    with pytest.raises(ValueError, match="none.pcapng"):
        farpace.explain(tmp_path / "none.pcapng")


def test_the_lock_is_released():
    """Breaks: threads that wait for each other: while one runs a scenario, another must go on."""
    ticks = []
    running = threading.Event()

    def work():
        running.set()
        farpace.run(SCENARIO, **{"flows.0.size": "40 MB"})
        running.clear()

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    while running.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    assert len(ticks) > 10


def test_values_are_those_of_python(tmp_path):
    """Breaks: values that Python has and TOML spells otherwise: tables, numbers of NumPy, text with commas."""
    outage = [{"at": "10 ms", "lasts": "500 ms"}]
    cut = farpace.run(SCENARIO, links__wan__forward__outages=outage)
    assert flow_time(cut) > 0.5 > flow_time(farpace.run(SCENARIO))
    table = farpace.run(SCENARIO, links__wan__forward={"loss": 0.0, "outages": outage})
    assert table.summary["flows"] == cut.summary["flows"]
    assert farpace.run(SCENARIO, seed=numpy.int64(7)).summary["scenario"]["seed"] == 7
    assert farpace.run({**SCENARIO, "seed": numpy.uint8(7)}).summary["scenario"]["seed"] == 7
    loss = numpy.linspace(0, 0.01, 3)
    study = farpace.sweep(SCENARIO, {"links.wan.forward.loss": loss}, out=tmp_path / "loss", seeds=numpy.int32(1))
    assert polars.DataFrame(study.points)["links.wan.forward.loss"].to_list() == ["0.0", "0.005", "0.01"]
    titles = ["a, b", "it's", 'say "x"', "plain"]
    study = farpace.sweep(SCENARIO, {"title": titles}, out=tmp_path / "titles")
    assert [json.loads(title) if '"' in title else title for title in points_of(study)] == titles
    outages = [outage, []]
    study = farpace.sweep(SCENARIO, {"links.wan.forward.outages": outages}, out=tmp_path / "outages")
    assert study.summary["status"] == {"complete": 2}


def flow_time(result):
    return result.summary["flows"][0]["completion_s"]


def points_of(study):
    return polars.DataFrame(study.points)["title"].to_list()


@pytest.mark.parametrize(
    "error, words, call",
    [
        (ValueError, "links.wan.forward.loss: nan", lambda: farpace.run(SCENARIO, links__wan__forward__loss=math.nan)),
        (ValueError, "seed: nan", lambda: farpace.run({**SCENARIO, "seed": math.nan})),
        (ValueError, "seed: None is no value", lambda: farpace.run(SCENARIO, seed=None)),
        (ValueError, "seed: 9223372036854775808 is too large", lambda: farpace.run(SCENARIO, seed=2**63)),
        (TypeError, "seed: <object", lambda: farpace.run(SCENARIO, seed=object())),
        (TypeError, "the key 1", lambda: farpace.run({1: 2})),
        (TypeError, "vary is a dictionary", lambda: farpace.sweep(SCENARIO, ["links.wan.delay=5ms"], out="x")),
        (TypeError, "seed: 3 is no list", lambda: farpace.sweep(SCENARIO, {"seed": 3}, out="x")),
        (ValueError, "jobs = 0", lambda: farpace.sweep(SCENARIO, {"links.wan.delay": "1ms"}, out="x", jobs=0)),
        (ValueError, "seeds = 'many': expected a whole", lambda: farpace.sweep(SCENARIO, {}, out="x", seeds="many")),
        (ValueError, "samples = 5: expected 'lhs:200'", lambda: farpace.sweep(SCENARIO, {}, out="x", samples=5)),
        (ValueError, "stop_at = 'soon': expected a part", lambda: farpace.sweep(SCENARIO, {}, out="x", stop_at="soon")),
        (ValueError, r"shard = \(1, 2\): expected .* '3/16'", lambda: farpace.sweep(SCENARIO, {}, out="x", shard=(1, 2))),
        (TypeError, r"as in \['cubic'\]", lambda: farpace.cc.compare("lossy", only="cubic")),
        (ValueError, "at least one capture", lambda: farpace.explain()),
        (ValueError, "seeds = 0", lambda: farpace.cc.compare("lossy", only=["cubic"], seeds=0)),
        (
            ValueError,
            "set and varied",
            lambda: farpace.sweep(SCENARIO, {"links.wan.delay": "1ms,2ms"}, out="x", links__wan__delay="3 ms"),
        ),
    ],
)
def test_mistakes_are_named(error, words, call):
    """Breaks: a wrong value is taken, or answered with words of the inside."""
    with pytest.raises(error, match=words):
        call()


def test_a_flow_that_no_run_has_is_refused(tmp_path):
    """Breaks: the means of a flow with a mistake in its name are a table of nulls."""
    study = farpace.sweep(SCENARIO, {}, out=tmp_path / "one")
    assert polars.DataFrame(study.flow("bulk"))["goodput_mbit_s"][0] > 0
    with pytest.raises(ValueError, match="no run of the study has a flow `bluk`"):
        study.flow("bluk")


def test_a_long_table_says_what_it_leaves_out():
    """Breaks: a notebook shows 50 of many flows as if they were all."""
    one = {**SCENARIO["flows"][0], "size": "1 kB", "count": 60}
    page = farpace.run({**SCENARIO, "flows": [one]})._repr_html_()
    assert page.count("<tr>") == 51 and "10 further flows are in <code>flows</code>" in page
    assert "further" not in farpace.run(SCENARIO)._repr_html_()


def test_points_say_how_many_runs_completed(tmp_path):
    """Breaks: the mean completion time of the runs that completed passes for that of all."""
    vary = {"duration": ["50 ms", "60 s"]}
    points = polars.DataFrame(farpace.sweep(SCENARIO, vary, out=tmp_path / "cut").points)
    assert points["runs"].to_list() == [1, 1] and points["complete_runs"].to_list() == [0, 1]
    assert points["runs"].dtype == polars.Int64
    percent = farpace.sweep(SCENARIO, vary, out=tmp_path / "cut", seeds=4, stop_at="2%").summary
    assert percent["stop_at"] == 0.02 and percent["runs"] == 6
    assert points["completion_s"].is_null().to_list() == [True, False]
