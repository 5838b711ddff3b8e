"""The environment for reinforcement learning. Each test says what breaks if it fails."""

import math
import pickle
import subprocess
import sys
import warnings

import gymnasium
import numpy
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import farpace
import farpace.gym
from farpace.gym import CongestionEnv, Step, ThreadVectorEnv

HOLD = numpy.zeros(1, numpy.float32)
RAISE = numpy.ones(1, numpy.float32)


def episode(env, seed, policy, steps=10_000):
    """All of an episode that can be compared."""
    observation, info = env.reset(seed=seed)
    seen = [(observation.tolist(), 0.0, info["step"])]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(policy(observation))
        seen.append((observation.tolist(), reward, info["step"]))
        if terminated or truncated:
            break
    return seen


def follow(observation):
    return numpy.array([numpy.clip(0.3 - observation[1], -1, 1)], numpy.float32)


def test_gymnasium_accepts_the_environment():
    """Breaks: the contract of gymnasium: spaces, types, seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("farpace/Congestion-v0", steps=30).unwrapped)


def test_a_seed_and_actions_give_an_episode():
    """Breaks: episodes that do not repeat, or are the same whatever the seed."""
    env = CongestionEnv(links__wan__forward__loss=0.001, steps=60)
    first = episode(env, 1, follow)
    assert episode(env, 1, follow) == first == episode(CongestionEnv(links__wan__forward__loss=0.001, steps=60), 1, follow)
    assert episode(env, 2, follow) != first
    # Random numbers go on from the last episode, as in gymnasium.
    env.reset(seed=1)
    again = [env.reset()[1]["set"] for _ in range(2)]
    env.reset(seed=1)
    assert [env.reset()[1]["set"] for _ in range(2)] == again and again[0] != again[1]


def test_defaults_tell_good_from_bad():
    """Breaks: the defaults: a policy that fills the link with little queue must earn more than extremes."""
    env = CongestionEnv(duration="6 s")

    def mean(policy):
        seen = episode(env, 1, policy, 100)
        return sum(reward for _, reward, _ in seen) / len(seen)

    good, small, large = mean(follow), mean(lambda _: HOLD), mean(lambda _: RAISE)
    assert good > 0.75 and good > small + 0.4 and good > large + 0.2, (good, small, large)


def test_steps_take_what_they_should():
    """Breaks: the length of steps, or what a step counts."""
    env = CongestionEnv(step="30 ms")
    seen = episode(env, 1, follow, 20)
    lengths = [step.step_s for _, _, step in seen[1:]]
    assert lengths == pytest.approx([0.030] * 20)
    assert episode(CongestionEnv(step=0.03), 1, follow, 20) == seen
    first = seen[0][2]
    assert first.established and first.delivered_segments == 10 and first.cwnd_segments == 10
    assert first.base_rtt_s == pytest.approx(0.0407, rel=0.01)
    assert first.bottleneck_rate_bit_s == pytest.approx(18.8e6, rel=0.01)
    env = CongestionEnv()
    steps = [step for _, _, step in episode(env, 1, follow, 100)]
    for before, step in zip(steps, steps[1:]):
        assert step.step_s == pytest.approx(max(before.srtt_s, step.base_rtt_s), abs=1e-6)
        assert step.throughput_bit_s == pytest.approx(step.delivered_segments * 1448 * 8 / step.step_s)
        assert step.rtt_s is None or step.rtt_min_s <= step.rtt_s <= step.rtt_max_s
    # 100 steps make up the time of the run, to the bit of a queue.
    assert steps[-1].now_s == pytest.approx(sum(step.step_s for step in steps))


def test_steps_do_not_change_a_run():
    """Breaks: a run that stops at steps differs from one that does not."""
    scenario = {**farpace.gym.DEFAULT_SCENARIO, "duration": "3 s"}

    class Fixed(farpace.Control):
        total = 0

        def on_start(self, window, event):
            Fixed.total = 0

        def on_ack(self, window, ack):
            Fixed.total += ack.delivered_segments
            window.cwnd_segments = 60 if ack.now_s > 0.1016 else 10

    flow = {**scenario["flows"][0], "sender": {"congestion": "fixed"}}
    farpace.run({**scenario, "flows": [flow]}, controls={"fixed": Fixed}, seed=5)

    def sixty(action, window):
        window.cwnd_segments = 60

    for step in ("rtt", "7 ms", "1 s"):
        env = CongestionEnv(scenario, step=step, action=sixty, action_space=gymnasium.spaces.Discrete(1))
        env.reset(options={"set": {"seed": 5}})
        seen = episode(env, 1, lambda _: 0)
        total = sum(step.delivered_segments for _, _, step in seen)
        # The window opens at the end of the first step.
        assert total == pytest.approx(Fixed.total, abs=60), step


def test_episodes_end():
    """Breaks: terminated and truncated, or a step after the end that is not refused."""
    env = CongestionEnv(**{"flows.bulk.size": "1 MB"})
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step"):
        env.step(HOLD)
    env.reset(seed=1)
    while True:
        _, _, terminated, truncated, info = env.step(RAISE / 4)
        if terminated or truncated:
            break
    assert terminated and not truncated and info["step"].done
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        env.step(HOLD)
    for env, last_s in ((CongestionEnv(duration="1 s"), 1.0), (CongestionEnv(steps=3), None)):
        seen = episode(env, 1, lambda _: HOLD)
        assert len(seen) == 4 if last_s is None else seen[-1][2].now_s == 1.0 and seen[-1][2].out_of_time
        with pytest.raises(RuntimeError):
            env.step(HOLD)
    env.close()
    env.close()


def test_bad_actions_are_refused():
    """Breaks: an action that is no number or has another shape reaches the run; the episode must go on after it."""
    env = CongestionEnv()
    env.reset(seed=1)
    for action, words in ((HOLD * math.nan, "not finite"), (RAISE * math.inf, "not finite"), (0.5, "shape")):
        with pytest.raises(ValueError, match=words):
            env.step(action)
    with pytest.raises(ValueError, match="shape"):
        env.step(numpy.zeros(2, numpy.float32))
    assert env.step(HOLD)[4]["step"].established

    def wrong(action, window):
        window.cwnd_segments = float(action) - 1

    env = CongestionEnv(action=wrong, action_space=gymnasium.spaces.Discrete(3))
    env.reset(seed=1)
    with pytest.raises(ValueError, match="cwnd_segments = -1"):
        env.step(0)
    assert env.step(2)[4]["step"].cwnd_segments == 1


def test_windows_have_a_limit():
    """Breaks: a policy that always raises the window, which then takes hours and gigabytes."""
    env = CongestionEnv(steps=40)
    assert max(step.cwnd_segments for _, _, step in episode(env, 1, lambda _: RAISE)) < 700
    env = CongestionEnv(steps=40, max_cwnd_segments=50)
    assert max(step.cwnd_segments for _, _, step in episode(env, 1, lambda _: RAISE)) == 50


def test_mistakes_help():
    """Breaks: wrong arguments that are not answered when the environment is made, or without what would be right."""
    for arguments, words in (
        ({"links__wan__dealy": "1 ms"}, "did you mean `delay`"),
        ({"flow": "bluk"}, "there is no flow `bluk`: there are bulk"),
        ({"step": "soon"}, "is not a time"),
        ({"step": 0}, "1e-6 to 3600 s"),
        ({"step": math.nan}, "1e-6 to 3600 s"),
        ({"steps": 0}, "at least 1 step"),
        ({"max_cwnd_segments": math.nan}, "at least 1 segment"),
        ({"observation": lambda step: 0}, "needs observation_space"),
        ({"action": lambda action, window: None}, "needs action_space"),
        ({"render_mode": "human"}, "nothing is rendered"),
        ({"flows__bulk__sender__profile": "newreno"}, "modern"),
    ):
        with pytest.raises(ValueError, match=words):
            CongestionEnv(**arguments)
    env = CongestionEnv()
    with pytest.raises(ValueError, match="no option 'sed'"):
        env.reset(options={"sed": 1})


def test_functions_of_the_user():
    """Breaks: observations, rewards, actions and random scenarios of the user."""

    def randomize(rng):
        return {"links.wan.delay": f"{rng.integers(5, 50)} ms"}

    def act(action, window):
        window.pacing_rate_bit_s = (action + 1) * 1e6
        window.cwnd_segments = 200

    env = CongestionEnv(
        observation=lambda step: numpy.array([step.srtt_s or 0], numpy.float32),
        observation_space=gymnasium.spaces.Box(0, 10, (1,), numpy.float32),
        reward=lambda step: -step.loss_fraction,
        action=act,
        action_space=gymnasium.spaces.Discrete(10),
        randomize=randomize,
        step="100 ms",
    )
    observation, info = env.reset(seed=3)
    delay_s = float(dict(info["set"])["links.wan.delay"].removesuffix(" ms")) / 1e3
    assert info["step"].base_rtt_s == pytest.approx(2 * delay_s, rel=0.1)
    assert observation.shape == (1,)
    rates = [env.step(3)[4]["step"].throughput_bit_s for _ in range(20)]
    assert rates[-1] == pytest.approx(4e6, rel=0.05)
    assert env.reset(options={"set": {"links.wan.delay": "77 ms"}})[1]["step"].base_rtt_s > 0.154


def test_one_flow_among_others():
    """Breaks: the choice of the flow, and the others, which go on by themselves."""
    scenario = {**farpace.gym.DEFAULT_SCENARIO, "duration": "10 s"}
    rival = {"name": "rival", "from": "a", "to": "b", "size": "1 GB", "sender": {"congestion": "cubic"}}
    scenario["flows"] = [rival, *scenario["flows"]]

    def forty(action, window):
        window.cwnd_segments = 40

    env = CongestionEnv(scenario, flow="bulk", action=forty, action_space=gymnasium.spaces.Discrete(1))
    seen = episode(env, 1, lambda _: 0)
    late = [step.throughput_bit_s / 18.8e6 for _, _, step in seen[-20:]]
    assert 0.1 < sum(late) / len(late) < 0.7


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vectors_of_environments(mode):
    """Breaks: vectors: other results in threads than one after the other, in each way to begin again."""

    def run(kind):
        envs = kind([lambda: CongestionEnv(steps=7) for _ in range(3)], autoreset_mode=mode)
        observation, _ = envs.reset(seed=11)
        seen = [observation.tolist()]
        for n in range(7 if mode == AutoresetMode.DISABLED else 20):
            observation, reward, terminated, truncated, _ = envs.step(numpy.full((3, 1), (n % 5) / 5, numpy.float32))
            seen.append((observation.tolist(), reward.tolist(), terminated.tolist(), truncated.tolist()))
        envs.close()
        return seen

    assert run(ThreadVectorEnv) == run(SyncVectorEnv)


def test_an_error_in_one_environment_of_a_vector():
    """Breaks: a vector in which one environment fails: the error is lost, or the others are unusable afterwards."""
    envs = ThreadVectorEnv([CongestionEnv for _ in range(2)])
    envs.reset(seed=1)
    bad = numpy.array([[0.0], [math.nan]], numpy.float32)
    with pytest.raises(ValueError, match="not finite"):
        envs.step(bad)
    assert envs.step(numpy.zeros((2, 1), numpy.float32))[0].shape == (2, 7)
    envs.close()


def test_steps_travel_between_processes():
    """Breaks: AsyncVectorEnv, which sends what a step gives from one process to another."""
    _, info = CongestionEnv().reset(seed=1)
    assert isinstance(info["step"], Step) and pickle.loads(pickle.dumps(info)) == info


def test_a_missing_gymnasium_names_the_command():
    """Breaks: the error where gymnasium is not installed."""
    code = "import sys; sys.modules['gymnasium'] = None; import farpace; import farpace.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "pip install 'farpace[gym]'" in done.stderr
