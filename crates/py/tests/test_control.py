"""Congestion controls written in Python. Each test says what breaks if it fails."""

import functools
import math
import threading
import types

import numpy
import polars
import pytest

import farpace
from farpace import control_digest

SCENARIO = {
    "title": "Two hosts",
    "duration": "20 s",
    "hosts": {"a": {}, "b": {}},
    "links": [{"name": "wan", "between": ["a", "b"], "rate": "100 Mbit/s", "delay": "5 ms", "queue": "125 kB"}],
    "flows": [{"name": "bulk", "from": "a", "to": "b", "size": "20 MB", "sender": {"congestion": "mine"}}],
}


class Reno(farpace.Control):
    """RFC 5681 by segments."""

    ssthresh = math.inf

    def on_ack(self, window, ack):
        if ack.state == "recovery":
            return
        slow = window.cwnd_segments < self.ssthresh
        window.cwnd_segments += ack.acked_segments / (1 if slow else window.cwnd_segments)

    def on_congestion(self, window, event):
        self.ssthresh = window.cwnd_segments = max(window.cwnd_segments / 2, 2)

    def on_timeout(self, window, event):
        self.ssthresh, window.cwnd_segments = max(window.cwnd_segments / 2, 2), 1


def flow(result):
    return result.summary["flows"][0]


def test_a_control_in_python_steers_a_flow_and_repeats():
    """Breaks: the bridge: another window than the control's, calls in another order, runs that do not repeat."""
    result = farpace.run(SCENARIO, controls={"mine": Reno}, trace=True)
    assert result.summary["status"] == "complete"
    own = farpace.run(SCENARIO, flows__bulk__sender__congestion="reno")
    assert flow(result)["goodput_bit_s"] == pytest.approx(flow(own)["goodput_bit_s"], rel=0.02)
    again = farpace.run(SCENARIO, controls={"mine": Reno}, trace=True)
    assert again.summary == result.summary
    assert polars.DataFrame(again.trace).equals(polars.DataFrame(result.trace))


def test_what_a_control_is_told():
    """Breaks: numbers of an ACK or an event, their units, or who is told of what."""
    seen = []

    class Watcher(Reno):
        def __init__(self):
            self.kinds, self.delivered, self.lost, self.last_s, self.rounds = [], 0, 0, 0.0, 0
            seen.append(self)

        def on_start(self, window, event):
            assert (event.kind, event.flow) == ("start", "bulk") and event.idle_s is None
            assert event.rtt_s == pytest.approx(0.010, rel=0.01) and isinstance(event.seed, int)
            assert (window.cwnd_segments, window.mss_bytes, window.pacing_rate_bit_s) == (10, 1448, None)
            window.cwnd_bytes = 20 * 1448
            assert window.cwnd_segments == 20
            self.kinds.append(event.kind)

        def on_ack(self, window, ack):
            assert ack.now_s >= self.last_s and ack.now_ns == round(ack.now_s * 1e9)
            assert ack.mss_bytes == 1448 and 0 <= ack.in_flight_segments <= ack.in_flight_before_segments + 1000
            assert ack.rtt_s is None or 0.010 <= ack.min_rtt_s <= ack.rtt_s < 0.2
            assert ack.state in ("open", "disorder", "recovery", "loss", "cwr")
            assert not ack.ece and ack.marked_segments == 0
            if ack.delivery_rate_bit_s is not None and self.rounds > 2:
                assert ack.delivery_rate_bit_s < 110e6
            self.last_s = ack.now_s
            assert ack.total_delivered_segments == self.delivered + ack.delivered_segments
            self.delivered += ack.delivered_segments
            self.lost += ack.lost_segments
            assert ack.round_count == self.rounds + ack.round_start
            self.rounds = ack.round_count
            super().on_ack(window, ack)

        def on_congestion(self, window, event):
            assert event.flight_segments > 10
            self.kinds.append(event.kind)
            super().on_congestion(window, event)

        def on_recovered(self, window, event):
            self.kinds.append(event.kind)

    result = farpace.run(SCENARIO, controls={"mine": Watcher})
    (watcher,) = seen
    assert watcher.kinds[:3] == ["start", "loss", "recovered"]
    # The last ACKs may come when everything has been delivered, and the run is over.
    assert 0.99 < watcher.delivered / (20e6 / 1448) <= 1.01
    assert watcher.lost == flow(result)["retransmissions"] and 20 < watcher.rounds < 1000


def test_marks_reach_a_control():
    """Breaks: on_congestion for marks (ECN), which no recovery goes with."""
    kinds = []

    class Marked(Reno):
        def on_congestion(self, window, event):
            kinds.append(event.kind)
            super().on_congestion(window, event)

    link = {**SCENARIO["links"][0], "queue": "500 kB", "aqm": {"codel": {"ecn": True}}}
    flow = {**SCENARIO["flows"][0], "sender": {"congestion": "mine", "ecn": "on"}, "receiver": {"ecn": "on"}}
    farpace.run({**SCENARIO, "links": [link], "flows": [flow]}, controls={"mine": Marked})
    assert "ecn" in kinds


def test_a_pacing_rate_holds():
    """Breaks: the pacing rate of a control, or its unit."""

    class Paced:
        def on_ack(self, window, ack):
            window.cwnd_segments, window.pacing_rate_bit_s = 500, 40e6

    assert flow(farpace.run(SCENARIO, controls={"mine": Paced}))["goodput_bit_s"] == pytest.approx(40e6, rel=0.03)


def test_a_control_that_never_opens_the_window():
    """Breaks: a run with a window of nothing ends when its time is over."""

    class Closed:
        def on_ack(self, window, ack):
            window.cwnd_segments = 0
            assert window.cwnd_segments == 1

    result = farpace.run(SCENARIO, controls={"mine": Closed}, duration="3 s")
    assert result.summary["status"] != "complete" and flow(result)["delivered_bytes"] < 200_000


@pytest.mark.parametrize("value", [math.nan, math.inf, -1])
def test_windows_and_rates_that_are_none(value):
    """Breaks: a window or a rate that is no number reaches the engine, or the place of the mistake is not named."""

    class Wrong(Reno):
        def on_ack(self, window, ack):
            window.cwnd_segments = value

    with pytest.raises(ValueError, match="cwnd_segments = .*finite number of segments") as raised:
        farpace.run(SCENARIO, controls={"mine": Wrong})
    notes = " ".join(getattr(raised.value, "__notes__", []))
    assert "on_ack of the control `mine` for flow `bulk`" in notes or not hasattr(raised.value, "add_note")

    class WrongRate(Reno):
        def on_start(self, window, event):
            window.pacing_rate_bit_s = value

    with pytest.raises(ValueError, match="pacing_rate_bit_s = .* to 1e15 bit/s"):
        farpace.run(SCENARIO, controls={"mine": WrongRate})


def test_exceptions_end_the_run():
    """Breaks: an exception in a control, or in its making, which must be raised by run as it is, and soon."""
    calls = []

    class Mistake(Exception):
        pass

    class Failing(Reno):
        def on_congestion(self, window, event):
            calls.append(event.now_s)
            raise Mistake("the model is wrong")

    with pytest.raises(Mistake, match="the model is wrong"):
        farpace.run(SCENARIO, controls={"mine": Failing})
    assert len(calls) == 1

    def fails():
        raise KeyError("weights")

    with pytest.raises(KeyError, match="weights"):
        farpace.run(SCENARIO, controls={"mine": fails})


def test_mistakes_in_names_help():
    """Breaks: a control that is not one, not given, not used or named like another, without what would be right."""
    with pytest.raises(ValueError, match='did you mean "mind"'):
        farpace.run(SCENARIO, controls={"mind": Reno})
    with pytest.raises(ValueError, match='unknown word "mine"'):
        farpace.run(SCENARIO)
    with pytest.raises(ValueError, match="no flow has the control `other`"):
        farpace.run(SCENARIO, controls={"mine": Reno, "other": Reno})
    with pytest.raises(ValueError, match="one of farpace's own"):
        farpace.run(SCENARIO, controls={"mine": Reno, "cubic": Reno})
    with pytest.raises(TypeError, match="is no class"):
        farpace.run(SCENARIO, controls={"mine": 7})
    with pytest.raises(TypeError, match="no method on_ack"):
        farpace.run(SCENARIO, controls={"mine": object})
    with pytest.raises(ValueError, match="modern"):
        farpace.run(SCENARIO, controls={"mine": Reno}, flows__bulk__sender__profile="newreno")
    kept = farpace.Scenario(SCENARIO, controls=["mine"])
    assert farpace.run(kept, controls={"mine": Reno}).summary["status"] == "complete"
    with pytest.raises(ValueError, match="congestion control of your own, `mine`"):
        farpace.run(kept)


def test_controls_by_share():
    """Breaks: a control in the parts of a workload, with one object for each connection."""
    made = []

    class Counted(Reno):
        def on_start(self, window, event):
            made.append(event.flow)

    bulk = {**SCENARIO["flows"][0], "count": 4, "size": "1 MB", "sender": {}}
    bulk["mix"] = [
        {"name": "own", "share": 0.5, "sender": {"congestion": "mine"}},
        {"name": "cubic", "share": 0.5, "sender": {"congestion": "cubic"}},
    ]
    result = farpace.run({**SCENARIO, "flows": [bulk]}, controls={"mine": Counted})
    assert result.summary["status"] == "complete" and len(made) == len(set(made)) == 2


def _named_globals(text):
    scope = {"__name__": "mine", "farpace": farpace}
    exec(text, scope)
    return scope["Mine"]


def _controls_by(how, share):
    """Controls that differ in a number alone, and have it in another place each."""

    class Base(farpace.Control):
        def __init__(self, share=0.5):
            self.share = share

        def on_ack(self, window, ack):
            window.cwnd_segments += self.share * ack.acked_segments

    class Default(Base):
        def __init__(self, share=share):
            super().__init__(share)

    class Closure(Base):
        def on_ack(self, window, ack):
            window.cwnd_segments += share * ack.acked_segments

    class Container(Base):
        parameters = {"shares": [{"share": share}]}

    class Object(Base):
        inner = types.SimpleNamespace(share=share)

    class Factory:
        __slots__ = ("share",)

        def __init__(self):
            self.share = share

        def __call__(self):
            return Base(self.share)

    def keyword(*, value=share):
        return Base(value)

    def helped():
        return keyword()

    if how == "global":
        text = f"SHARES = {{'a': {share}}}\ndef helper(): return SHARES['a']\n"
        return _named_globals(text + "class Mine(farpace.Control):\n def on_ack(self, w, a): helper()\n")
    return {
        "default": Default,
        "closure": Closure,
        "container": Container,
        "object": Object,
        "callable": Factory(),
        "bound": Factory().__call__,
        "keyword": keyword,
        "inner": helped,
        "partial": functools.partial(Base, share),
        "partial keyword": functools.partial(Base, share=share),
        "array": functools.partial(Base, numpy.array([share])),
    }[how]


@pytest.mark.parametrize(
    "how",
    "default closure container object callable bound keyword inner partial array global".split() + ["partial keyword"],
)
def test_controls_with_other_numbers_are_others(how):
    """Breaks: a study takes the runs of one control for those of another, which differs in a number."""
    one, same, other = (control_digest.digest(_controls_by(how, share)) for share in (0.1, 0.1, 0.9))
    assert one == same != other


def test_what_cannot_be_digested_is_run_again(tmp_path):
    """Breaks: runs of a control with a part of which nothing is known are reused, or nobody hears of it."""
    lock = threading.Lock()

    class Locked(Reno):
        def on_start(self, window, event):
            with lock:
                super().on_start(window, event)

    with pytest.raises(control_digest.UnknownPart, match="`lock`, which on_start.* is an object of _thread.lock"):
        control_digest.digest(Locked)
    short = SCENARIO | {"flows": [SCENARIO["flows"][0] | {"size": "100 kB"}]}
    keys = []
    for _ in range(2):
        with pytest.warns(UserWarning, match="control `mine` cannot be told from another one: `lock`"):
            study = farpace.sweep(short, {"links.wan.delay": ["1 ms"]}, out=tmp_path / "s", controls={"mine": Locked})
        keys += polars.read_parquet(study.data_set)["run"].to_list()
    assert len(keys) == len(set(keys)) == 2


def test_a_study_compares_a_control_with_others(tmp_path):
    """Breaks: controls of one's own in studies: as values beside others, kept runs of another code, errors that
    are lost."""
    short = SCENARIO | {"flows": [SCENARIO["flows"][0] | {"size": "1 MB"}]}
    vary = {"flows.bulk.sender.congestion": ["mine", "cubic"]}

    def study(control, **more):
        return farpace.sweep(short, vary, out=tmp_path / "study", seeds=2, controls={"mine": control}, **more)

    rows = polars.read_parquet(study(Reno).data_set)
    assert sorted(rows["congestion"].to_list()) == ["cubic", "cubic", "mine", "mine"]
    assert set(rows["status"]) == {"complete"}
    # A module counts by name: a list in the closure would be part of the control.
    seen = types.ModuleType("seen")
    seen.made = made = []

    class Counted(Reno):
        def __init__(self):
            seen.made.append(self)

    study(Counted)
    assert len(made) == 2, "other code, so its runs are made again, and those of cubic are not"
    study(Counted)
    assert len(made) == 2, "the same code, so its runs are there"

    class Slower(Counted):
        def on_congestion(self, window, event):
            self.ssthresh = window.cwnd_segments = max(window.cwnd_segments / 4, 2)

    study(Slower)
    assert len(made) == 4

    assert len(polars.read_parquet(study(Slower).data_set)) == 4, "rows of the other code are gone"

    # The scenario names it, and something else varies.
    made.clear()
    delays = farpace.sweep(
        short, {"links.wan.delay": ["1 ms", "2 ms"]}, out=tmp_path / "named", controls={"mine": Counted}
    )
    assert len(made) == 2 and set(polars.read_parquet(delays.data_set)["congestion"]) == {"mine"}

    class Broken(Reno):
        def on_ack(self, window, ack):
            raise KeyError("mine is broken")

    with pytest.raises(KeyError, match="mine is broken"):
        study(Broken)
    with pytest.raises(ValueError, match="no flow has the control `other`"):
        farpace.sweep(short, vary, out=tmp_path / "other", controls={"mine": Reno, "other": Reno})
    with pytest.raises(ValueError, match="this machine alone"):
        study(Reno, backend="ray")
    with pytest.raises(ValueError, match="controls="):
        farpace.sweep(farpace.Scenario(short, controls=["mine"]), vary, out=tmp_path / "none")


def test_a_pacing_rate_is_in_force_or_refused():
    """Breaks: a pacing rate is silently raised, so that a control reads another one than is in force."""
    seen = []

    class Paced(Reno):
        def on_start(self, window, event):
            slowest = window.mss_bytes * 8 / 0.2
            for refused in (1, slowest - 1):
                with pytest.raises(ValueError, match=f"from {slowest:.0f} bit/s, a segment of {window.mss_bytes} B"):
                    window.pacing_rate_bit_s = refused
            window.pacing_rate_bit_s = slowest
            seen.append((window.pacing_rate_bit_s, slowest))

    short = SCENARIO | {"flows": [SCENARIO["flows"][0] | {"size": "100 kB"}]}
    made = flow(farpace.run(short, controls={"mine": Paced}))
    assert [read for read, _ in seen] == [slowest for _, slowest in seen] and len(seen) == 1
    assert made["goodput_bit_s"] < 1.1 * seen[0][1]
