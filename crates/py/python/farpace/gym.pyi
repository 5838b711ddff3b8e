from dataclasses import dataclass
from os import PathLike
from typing import Any, Callable

import gymnasium
import numpy
from gymnasium.vector import SyncVectorEnv

from . import Scenario, Window

DEFAULT_SCENARIO: dict[str, Any]

@dataclass(frozen=True, slots=True)
class Step:
    """What came of a step. Numbers are those of the step where nothing else is said."""

    now_s: float
    step_s: float
    done: bool
    out_of_time: bool
    established: bool
    cwnd_segments: int
    pacing_rate_bit_s: float | None
    in_flight_segments: int
    mss_bytes: int
    acked_segments: int
    delivered_segments: int
    lost_segments: int
    marked_segments: int
    timeouts: int
    rtt_s: float | None
    rtt_min_s: float | None
    rtt_max_s: float | None
    srtt_s: float | None
    min_rtt_s: float | None
    throughput_bit_s: float
    delivery_rate_bit_s: float | None
    loss_fraction: float
    base_rtt_s: float
    bottleneck_rate_bit_s: float | None

def default_observation(step: Step) -> numpy.ndarray: ...
def default_reward(step: Step) -> float: ...
def default_action(action: numpy.ndarray, window: Window) -> None: ...

class CongestionEnv(gymnasium.Env[Any, Any]):
    def __init__(
        self,
        scenario: Scenario | str | PathLike[str] | dict[str, Any] | None = None,
        *,
        flow: str | None = None,
        step: str | float = "rtt",
        observation: Callable[[Step], Any] = ...,
        observation_space: gymnasium.Space[Any] | None = None,
        reward: Callable[[Step], float] = ...,
        action: Callable[[Any, Window], object] = ...,
        action_space: gymnasium.Space[Any] | None = None,
        randomize: Callable[[numpy.random.Generator], dict[str, Any]] | None = None,
        max_cwnd_segments: float | None = None,
        steps: int | None = None,
        render_mode: None = None,
        **set: Any,
    ) -> None: ...
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]: ...
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]: ...
    def close(self) -> None: ...

class ThreadVectorEnv(SyncVectorEnv): ...
