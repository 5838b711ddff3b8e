"""Reinforcement learning of congestion control: an environment for gymnasium in which time is virtual.

>>> import farpace.gym
>>> env = farpace.gym.CongestionEnv()
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

It needs gymnasium: ``pip install 'farpace[gym]'``.
"""

from __future__ import annotations

import math as _math
from collections.abc import Callable as _Callable
from concurrent.futures import ThreadPoolExecutor as _ThreadPoolExecutor
from concurrent.futures import wait as _wait
from dataclasses import dataclass as _dataclass

from . import Scenario, Window, _farpace, _scenario, _settings

try:
    import gymnasium as _gymnasium
    import numpy as _numpy
    from gymnasium.vector import AutoresetMode as _AutoresetMode
    from gymnasium.vector import SyncVectorEnv as _SyncVectorEnv
    from gymnasium.vector.utils import iterate as _iterate
except ImportError as error:
    raise ImportError(f"farpace.gym needs gymnasium ({error}): pip install 'farpace[gym]'") from error

__all__ = [
    "DEFAULT_SCENARIO",
    "CongestionEnv",
    "Step",
    "ThreadVectorEnv",
    "default_action",
    "default_observation",
    "default_reward",
]

#: A transfer that outlasts the run, alone on 20 Mbit/s and 40 ms, with a queue of one bandwidth-delay product.
DEFAULT_SCENARIO = {
    "title": "A bulk transfer to be learned on",
    "duration": "20 s",
    "hosts": {"a": {}, "b": {}},
    "links": [
        {"name": "wan", "between": ["a", "b"], "rate": "20 Mbit/s", "delay": "20 ms", "queue": "100 kB"},
    ],
    "flows": [{"name": "bulk", "from": "a", "to": "b", "size": "1 GB"}],
}

#: How much an action of 1 raises the window, and one of -1 lowers it.
_FACTOR = 1.5

_OBSERVATIONS = (
    "throughput over the bottleneck's rate",
    "mean round trip over the least, minus 1",
    "last smoothed round trip over the least, minus 1",
    "share of segments lost",
    "share of segments marked",
    "window over the bandwidth-delay product",
    "timeouts",
)


@_dataclass(frozen=True, slots=True)
class Step:
    """What came of a step. Numbers are those of the step where nothing else is said."""

    now_s: float
    """Virtual time at its end."""
    step_s: float
    """How long it took."""
    done: bool
    """The flow has delivered everything, or its connection has ended."""
    out_of_time: bool
    """The scenario's duration is over."""
    established: bool
    """The handshake is over."""
    cwnd_segments: int
    """Congestion window in force at the end."""
    pacing_rate_bit_s: float | None
    """Pacing rate in force at the end; None: as the window allows."""
    in_flight_segments: int
    """Segments in flight after the last ACK."""
    mss_bytes: int
    """Payload of a full segment."""
    acked_segments: int
    """Segments acknowledged cumulatively, without those that had been SACKed."""
    delivered_segments: int
    """Segments newly known to have arrived."""
    lost_segments: int
    """Segments found lost."""
    marked_segments: int
    """Segments that arrived marked (ECN)."""
    timeouts: int
    """Retransmission timeouts."""
    rtt_s: float | None
    """Mean round trip; none without a sample."""
    rtt_min_s: float | None
    """Least round trip."""
    rtt_max_s: float | None
    """Greatest round trip."""
    srtt_s: float | None
    """Smoothed round trip at the end."""
    min_rtt_s: float | None
    """Least round trip of the last minutes."""
    throughput_bit_s: float
    """Payload that is known to have arrived, for the time of the step."""
    delivery_rate_bit_s: float | None
    """The last rate at which the path was measured to deliver."""
    loss_fraction: float
    """Segments found lost, of those lost or delivered; 0 if there are none."""
    base_rtt_s: float
    """Round trip of the empty path, as the scenario has it."""
    bottleneck_rate_bit_s: float | None
    """Goodput that the narrowest link allows, as the scenario has it; None: no link has a rate."""


def _rate(step: Step) -> float:
    """The rate that throughput is compared with."""
    return step.bottleneck_rate_bit_s or step.delivery_rate_bit_s or 1.0


def default_observation(step: Step) -> _numpy.ndarray:
    """Seven numbers without unit, each from 0 to 10: throughput over the bottleneck's rate; mean and smoothed round
    trip over the least, minus 1; shares of segments lost and marked; the window over the bandwidth-delay product;
    timeouts.
    """
    least = min(step.min_rtt_s or _math.inf, step.srtt_s or _math.inf, step.base_rtt_s)
    delivered = step.delivered_segments
    pipe_bits = _rate(step) * step.base_rtt_s
    values = (
        step.throughput_bit_s / _rate(step),
        (step.rtt_s or step.srtt_s or least) / least - 1,
        (step.srtt_s or least) / least - 1,
        step.loss_fraction,
        step.marked_segments / delivered if delivered else 0.0,
        step.cwnd_segments * step.mss_bytes * 8 / pipe_bits if pipe_bits else 0.0,
        float(step.timeouts),
    )
    return _numpy.clip(_numpy.array(values, dtype=_numpy.float32), 0.0, 10.0)


def default_reward(step: Step) -> float:
    """Throughput over the bottleneck's rate, less half the queueing delay in round trips of the empty path (at most 1),
    less ten times the share of segments lost (at most 1). An empty queue and a full link give 1.
    """
    queueing = ((step.rtt_s or step.base_rtt_s) - step.base_rtt_s) / step.base_rtt_s
    throughput = min(step.throughput_bit_s / _rate(step), 1.5)
    return throughput - min(max(0.5 * queueing, 0.0), 1.0) - min(10.0 * step.loss_fraction, 1.0)


def default_action(action: _numpy.ndarray, window: Window) -> None:
    """Multiplies the window by 1.5 to the power of ``action[0]``, which is from -1 to 1. At least 2 segments stay."""
    factor = _FACTOR ** min(max(float(action[0]), -1.0), 1.0)
    window.cwnd_segments = max(window.cwnd_segments * factor, 2.0)


def _largest_window(step: Step) -> float:
    """Ten bandwidth-delay products; where no link has a rate, and on short paths, so many segments."""
    if step.bottleneck_rate_bit_s is None:
        return 10_000.0
    return max(10 * step.bottleneck_rate_bit_s * step.base_rtt_s / 8 / (step.mss_bytes or 1448), 100.0)


class CongestionEnv(_gymnasium.Env):
    """One flow of a scenario is steered, step by step of virtual time.

    ``flow`` is its name; the first one if it is omitted. ``step`` is ``"rtt"``, a smoothed round trip as it is when the
    step begins, or a time like ``"50 ms"`` or 0.05 (seconds). ``observation(step)`` and ``reward(step)`` get a
    :class:`Step`; ``action(action, window)`` sets the :class:`farpace.Window`, which takes effect with the next ACK.
    Other functions of the first kind need an ``observation_space``, of the last an ``action_space``.

    ``randomize(rng)`` gives values of the scenario for an episode, drawn from a ``numpy.random.Generator``:
    ``{"links.wan.delay": f"{rng.uniform(5, 100):.1f} ms"}``. No action raises the window beyond ``max_cwnd_segments``
    (omitted: ten bandwidth-delay products of the path, and at least 100), because a run with a window far beyond what
    the path holds takes long and teaches nothing. ``steps`` ends episodes after so many steps; omitted: when
    the scenario's duration is over. Other keywords replace values of the scenario, as in :func:`farpace.run`.

    An episode is terminated when the flow has delivered everything, and truncated when the time or the steps are over.
    The same seed and actions give the same episode.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        scenario=None,
        *,
        flow: str | None = None,
        step: str | float = "rtt",
        observation: _Callable = default_observation,
        observation_space: _gymnasium.Space | None = None,
        reward: _Callable = default_reward,
        action: _Callable = default_action,
        action_space: _gymnasium.Space | None = None,
        randomize: _Callable | None = None,
        max_cwnd_segments: float | None = None,
        steps: int | None = None,
        render_mode: None = None,
        **set,
    ):
        if render_mode is not None:
            raise ValueError(f"render_mode = {render_mode!r}: nothing is rendered; look at info['step'] instead")
        if observation_space is None:
            if observation is not default_observation:
                raise ValueError("an observation of your own needs observation_space=gymnasium.spaces.Box(...)")
            observation_space = _gymnasium.spaces.Box(0.0, 10.0, (len(_OBSERVATIONS),), _numpy.float32)
        if action_space is None:
            if action is not default_action:
                raise ValueError("an action of your own needs action_space=gymnasium.spaces...")
            action_space = _gymnasium.spaces.Box(-1.0, 1.0, (1,), _numpy.float32)
        if steps is not None and steps < 1:
            raise ValueError(f"steps = {steps}: an episode has at least 1 step")
        if max_cwnd_segments is not None and not max_cwnd_segments >= 1:
            raise ValueError(f"max_cwnd_segments = {max_cwnd_segments}: a window has at least 1 segment")
        self.observation_space, self.action_space = observation_space, action_space
        self._source: Scenario = _scenario(DEFAULT_SCENARIO if scenario is None else scenario)
        self._set = self._source._set + _settings(set)
        self._flow, self._step_s = flow, _seconds(step)
        self._observe, self._reward, self._act, self._randomize = observation, reward, action, randomize
        self._limit, self._taken = steps, 0
        self._max_cwnd_segments, self._most = max_cwnd_segments, 0.0
        self._episode = self._window = None
        self._over = True
        # What is wrong with scenario, flow or step is said at once.
        _farpace.Episode(self._source, self._set, flow, self._step_s)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Begins an episode, and runs it to the first ACKs. ``options`` may have ``set``, a dictionary of values of the
        scenario for this episode. The scenario's seed is drawn from the environment's random numbers, unless it is set.
        """
        super().reset(seed=seed)
        options = dict(options or {})
        chosen = options.pop("set", {})
        if options:
            raise ValueError(f"reset has no option {next(iter(options))!r}: there is `set`")
        drawn = {"seed": int(self.np_random.integers(1 << 31))}
        if self._randomize is not None:
            drawn.update(self._randomize(self.np_random))
        values = _settings(drawn) + self._set + _settings(chosen)
        self._episode = _farpace.Episode(self._source, values, self._flow, self._step_s)
        step = Step(**self._episode.begin())
        self._window = self._episode.window
        self._most = self._max_cwnd_segments or _largest_window(step)
        self._taken, self._over = 0, False
        return self._observe(step), {"step": step, "set": tuple(values)}

    def step(self, action):
        """Takes an action, and runs one step. ``info["step"]`` is the :class:`Step`."""
        if self._over:
            raise RuntimeError("the episode is over, or has not begun: call reset() before step()")
        self._check(action)
        self._act(action, self._window)
        if self._window.cwnd_segments > self._most:
            self._window.cwnd_segments = self._most
        step = Step(**self._episode.advance(self._window))
        self._taken += 1
        terminated = step.done
        truncated = not terminated and (step.out_of_time or self._taken == self._limit)
        self._over = terminated or truncated
        if self._over:
            self._episode = None
        return self._observe(step), float(self._reward(step)), terminated, truncated, {"step": step}

    def close(self):
        """Ends the run."""
        self._episode, self._over = None, True

    def _check(self, action) -> None:
        try:
            finite = bool(_numpy.all(_numpy.isfinite(_numpy.asarray(action, dtype=_numpy.float64))))
        except (TypeError, ValueError):
            return  # a dictionary or a tuple: the function that takes it has to look
        if not finite:
            raise ValueError(f"the action {action} is not finite: does the policy divide by zero?")
        shape = getattr(self.action_space, "shape", None)
        if shape is not None and _numpy.shape(action) != shape:
            raise ValueError(f"the action {action} has the shape {_numpy.shape(action)}, the action space {shape}")


class _Ahead:
    """An environment of which a call is under way: a step, or a reset."""

    def __init__(self, env, call):
        self.env, self.call = env, call

    def step(self, action):
        return self.call.result()

    def reset(self):
        return self.call.result()


class _Stepped(_Ahead):
    """A step is under way, after which the environment may have to begin again."""

    def reset(self):
        return self.env.reset()


class ThreadVectorEnv(_SyncVectorEnv):
    """Several environments that step at the same time, each in a thread: like gymnasium's SyncVectorEnv, but the lab
    runs without the interpreter's lock, so that the steps use all cores. Results are the same.
    """

    _pool = None

    def step(self, actions):
        if self._pool is None:
            self._pool = _ThreadPoolExecutor(self.num_envs, thread_name_prefix="farpace-env")
        envs, resets = self.envs, _numpy.zeros(self.num_envs, bool)
        if self.autoreset_mode == _AutoresetMode.NEXT_STEP:
            resets = self._autoreset_envs
        calls = [
            self._pool.submit(env.reset) if reset else self._pool.submit(env.step, action)
            for env, reset, action in zip(envs, resets, _iterate(self.action_space, actions))
        ]
        same_step = self.autoreset_mode == _AutoresetMode.SAME_STEP
        self.envs = [_Stepped(env, call) if same_step else _Ahead(env, call) for env, call in zip(envs, calls)]
        try:
            return super().step(actions)
        finally:
            _wait(calls)  # where one has failed too
            self.envs = envs

    def close_extras(self, **kwargs):
        super().close_extras(**kwargs)
        if self._pool is not None:
            self._pool.shutdown()


_gymnasium.register("farpace/Congestion-v0", entry_point="farpace.gym:CongestionEnv")


def _seconds(step: str | float) -> float | None:
    """The length of a step in seconds; None: a round trip."""
    if step == "rtt":
        return None
    return _farpace.seconds(step) if isinstance(step, str) else float(step)
