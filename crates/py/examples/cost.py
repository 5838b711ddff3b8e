"""What a congestion control in Python costs, and how many steps a second the environment makes.

    target/python/bin/python crates/py/examples/cost.py

Times are those of the processor, so that other programs change little; those of the vectors are of the clock.
"""

import statistics
import time

import gymnasium
import numpy

import farpace
import farpace.gym

RUNS = 5


def scenario(congestion, rate="1 Gbit/s", size="400 MB"):
    return {
        "title": "Cost",
        "duration": "60 s",
        "hosts": {"a": {}, "b": {}},
        "links": [{"name": "wan", "between": ["a", "b"], "rate": rate, "delay": "5 ms", "queue": "2 MB"}],
        "flows": [{"name": "bulk", "from": "a", "to": "b", "size": size, "sender": {"congestion": congestion}}],
    }


class Nothing:
    """The window that fills the path, set once."""

    def on_start(self, window, event):
        window.cwnd_segments = 1000

    def on_ack(self, window, ack):
        pass


class Reno(farpace.Control):
    """RFC 5681 by segments."""

    ssthresh = float("inf")

    def on_ack(self, window, ack):
        if ack.state != "recovery":
            slow = window.cwnd_segments < self.ssthresh
            window.cwnd_segments += ack.acked_segments / (1 if slow else window.cwnd_segments)

    def on_congestion(self, window, event):
        self.ssthresh = window.cwnd_segments = max(window.cwnd_segments / 2, 2)


def cost(run):
    """Seconds of processor for a run: the median."""
    spent = []
    for _ in range(RUNS):
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return statistics.median(spent)


def controls():
    segments = 400e6 / 1448
    print("control                segments/s   us more per ACK")
    base = None
    for name, congestion, own in (
        ("reno (Rust)", "reno", None),
        ("nothing (Python)", "own", {"own": Nothing}),
        ("reno (Python)", "own", {"own": Reno}),
    ):
        spent = cost(lambda: farpace.run(scenario(congestion), controls=own))
        base = spent if base is None else base
        # The receiver acknowledges every second segment.
        print(f"{name:20} {segments / spent:12,.0f} {(spent - base) / (segments / 2) * 1e6:12.2f}")


def environments():
    print("environment                          steps/s")
    hold = numpy.zeros(1, numpy.float32)
    for name, settings in (
        ("20 Mbit/s, 40 ms (default)", {}),
        ("1 Gbit/s, 10 ms", {"scenario": scenario("reno", size="100 GB")}),
    ):
        for window in (10, 69 if not settings else 860):

            def fixed(action, target, window=window):
                target.cwnd_segments = window

            arguments = {**settings, "action": fixed, "action_space": gymnasium.spaces.Box(-1.0, 1.0, (1,))}
            env = farpace.gym.CongestionEnv(**arguments)

            def roll():
                env.reset(seed=1)
                for _ in range(200):
                    env.step(hold)

            print(f"{name + f', {window} segments':36} {200 / cost(roll):8,.0f}")
        for kind in (gymnasium.vector.SyncVectorEnv, farpace.gym.ThreadVectorEnv):
            envs = kind([lambda: farpace.gym.CongestionEnv(**arguments) for _ in range(4)])
            envs.reset(seed=1)
            actions = numpy.zeros((4, 1), numpy.float32)
            envs.step(actions)
            begin = time.perf_counter()
            for _ in range(200):
                envs.step(actions)
            rate = 4 * 200 / (time.perf_counter() - begin)
            print(f"{name + ', ' + kind.__name__ + ' of 4':48} {rate:8,.0f} by the clock")
            envs.close()


controls()
environments()
