"""Steps the Gymnasium environments of one process: datacom starts it and speaks with it through shared memory.

  host.py MODULE:CALLABLE SOCKET                      answers with the environment's facts, as text of a datacom.v1.PythonTask
  host.py MODULE:CALLABLE SOCKET MEMORY SLOTS OBSERVATION ACTION Q X [COST...]

SOCKET and MEMORY are file descriptors. A message names slots, as uint32. The answer "k" says that the environments of all of them have done
what their slots ask for; "r" and a text, that the environment is refused; "f" and a text, that it failed. A slot is a row of float64 in MEMORY:
SLOT_HEAD numbers, the action, then the observation with the numbers of the model (common/tasks/python/python_model.h). Needs Python 3.8 and
NumPy.
"""

import sys

sys.path[:] = [folder for folder in sys.path if folder]  # a file in the working directory replaces no module that is imported here

import importlib
import json
import mmap
import os
import select
import signal
import socket
import struct
import threading
import time
import traceback

try:
    import numpy as np
except ImportError:
    np = None  # main says so

sys.path.insert(0, os.getcwd())  # from here on as for every script

MAKE, RESET, STEP = range(1, 4)
OPERATION, SEED, REWARD, COST, TERMINATED, TRUNCATED, SUCCESS, SLOT_HEAD = 0, 1, 2, 3, 4, 5, 6, 8
TRIED_STEPS = 10  # of two equal environments, which tell whether it is repeatable
MOST_STEPS = 1_000_000  # of an episode
LONGEST_ANSWER = 100_000  # bytes; of an error: a tenth


class Refused(Exception):
    """Something that the environment has to change; the message says what."""


def load(name):
    module, _, attribute = name.partition(":")
    if not attribute:
        raise Refused(f'"{name}" is not MODULE:CALLABLE')
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or (module + ".").startswith(error.name + "."):
            raise Refused(f"there is no module {error.name}: run the command in its folder, or set PYTHONPATH") from None
        raise
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise Refused(f"the module {module} has no {attribute}")
        found = getattr(found, part)
    if not callable(found):
        raise Refused(f"{attribute} is not callable")
    return found


def find(environment, *names):
    """The first of these attributes that the environment or something that it wraps has; None if there is none."""
    while environment is not None:
        for name in names:
            if name in getattr(environment, "__dict__", {}) or hasattr(type(environment), name):
                value = getattr(environment, name)
                if value is not None:
                    return value
        environment = getattr(environment, "__dict__", {}).get("env")
    return None


def flat(value, size, what):
    numbers = np.asarray(value, np.float64).ravel()
    if numbers.size != size:
        raise Refused(f"{what} has {numbers.size} numbers, not {size}")
    return numbers


def scalar(value, what):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Refused(f"{what} is {value!r}, no number") from None


def check_finite(numbers, what):
    if not np.all(np.isfinite(numbers)):
        raise Refused(f"{what} is not finite: {numbers}")


class Terms:
    """Reads the control-affine model from env.dynamics(observation), or from info["dynamics"]."""

    def __init__(self, environment):
        self._evaluate = find(environment, "dynamics")

    def __call__(self, observation, info):
        """q, x, x_dot, f, G; None if there is no model."""
        given = info.get("dynamics") if self._evaluate is None else self._evaluate(observation)
        if given is None:
            return None
        get = given.get if hasattr(given, "get") else lambda name, default=None: getattr(given, name, default)
        terms = {}
        for name in ("q", "x", "x_dot", "f", "G"):
            value = get(name, None)
            if value is None and name in ("q", "f", "G"):
                raise Refused(f"its dynamics have no {name}")
            terms[name] = np.zeros(0) if value is None else value
        return terms


class Environment:
    """One environment. Its methods return what a slot holds."""

    def __init__(self, make):
        self.env = make()
        for name in ("reset", "step", "action_space", "observation_space"):
            if not hasattr(self.env, name):
                raise Refused(f"the environment, a {type(self.env).__name__}, has no {name}")
        self.terms = Terms(self.env)
        self.action_type = getattr(self.env.action_space, "dtype", None) or np.float32

    def reset(self, seed):
        outcome = self.env.reset(seed=seed)
        if not (isinstance(outcome, tuple) and len(outcome) == 2):
            raise Refused("reset returns no pair of observation and info, as Gymnasium asks for")
        observation, info = outcome
        return observation, info or {}

    def step(self, action):
        """observation, reward, cost, terminated, truncated, info"""
        outcome = self.env.step(action.astype(self.action_type))
        if len(outcome) == 6:  # Safety-Gymnasium
            return outcome
        if len(outcome) != 5:
            raise Refused(f"step returns {len(outcome)} values, not 5 or, with the cost after the reward, 6")
        observation, reward, terminated, truncated, info = outcome
        if not info or "cost" not in info:
            raise Refused('the info of step has no "cost": put a number there, above 0 for a violation, or return six values')
        return observation, reward, info["cost"], terminated, truncated, info

    def close(self):
        try:
            if hasattr(self.env, "close"):
                self.env.close()
        except Exception:  # it has nothing to do with the training
            traceback.print_exc()


def success(info):
    return bool(info.get("success", info.get("is_success", False)))


class Host:
    def __init__(self, name, memory, slots, observation, action, q, x, costs):
        self.make = load(name)
        self.sizes = {"q": q, "x": x, "x_dot": x, "f": q, "G": q * action}
        self.has_model = q + x > 0
        self.observation, self.costs = observation, ["cost/" + cost for cost in costs]
        width = observation + sum(self.sizes.values()) + len(costs)
        stride = SLOT_HEAD + action + width
        numbers = np.frombuffer(mmap.mmap(memory, slots * stride * 8), np.float64).reshape(slots, stride)
        self.heads = numbers[:, :SLOT_HEAD]
        self.actions = numbers[:, SLOT_HEAD:SLOT_HEAD + action]
        self.states = numbers[:, SLOT_HEAD + action:]
        self.environments = {}

    def write(self, slot, environment, observation, info):
        state, at = self.states[slot], self.observation
        state[:at] = flat(observation, at, "its observation")
        if self.has_model:
            terms = environment.terms(observation, info)
            if terms is None:
                raise Refused("its dynamics are missing after this step")
            for name, size in self.sizes.items():
                state[at:at + size] = flat(terms[name], size, f"{name} of its dynamics")
                at += size
        for cost in self.costs:
            state[at] = scalar(info.get(cost, 0.0), cost)
            at += 1

    def run(self, slot):
        head = self.heads[slot]
        operation = int(head[OPERATION])
        if operation == STEP:
            environment = self.environments[slot]
            observation, reward, cost, terminated, truncated, info = environment.step(self.actions[slot])
            self.write(slot, environment, observation, info)
            head[REWARD:SUCCESS + 1] = scalar(reward, "its reward"), scalar(cost, "its cost"), bool(terminated), bool(truncated), success(info)
        elif operation == RESET:
            environment = self.environments[slot]
            observation, info = environment.reset(int(head[SEED]))
            self.write(slot, environment, observation, info)
            check_finite(self.states[slot], f"its observation, or its dynamics, after reset(seed={int(head[SEED])})")
            head[REWARD:SUCCESS + 1] = 0, scalar(info.get("cost", 0), "its cost"), 0, 0, success(info)
        else:
            self.environments[slot] = Environment(self.make)

    def serve(self, connection):
        while True:
            message = connection.recv(1 << 18)
            if not message:
                return
            for (slot,) in struct.iter_unpack("=I", message):
                self.run(slot)
            connection.send(b"k")

    def close(self):
        for environment in self.environments.values():
            environment.close()


def facts(name):
    """What datacom must know of the environment: fields of a datacom.v1.PythonTask and their values."""
    make = load(name)
    environment, twin = Environment(make), Environment(make)
    space = environment.env.action_space
    if np.issubdtype(environment.action_type, np.integer):
        raise Refused(f"its action space, {space}, has whole numbers; wrap the environment so that it takes real ones")
    low, high = (np.asarray(getattr(space, side, ()), np.float64).ravel() for side in ("low", "high"))
    if low.size == 0 or not np.all(np.isfinite(low) & np.isfinite(high) & (low < high)):
        raise Refused(f"its action space, {space}, is no Box with finite bounds")
    if not hasattr(environment.env.observation_space, "low"):
        raise Refused(f"its observation space, {environment.env.observation_space}, is no Box; "
                      "wrap the environment in gymnasium.wrappers.FlattenObservation")
    observation, info = environment.reset(0)
    first = np.asarray(observation, np.float64).ravel()
    check_finite(first, "its observation after reset(seed=0)")
    terms = environment.terms(observation, info)
    q, x = (0, 0) if terms is None else (np.size(terms["q"]), np.size(terms["x"]))
    if terms is not None:
        for term, size in {"q": q, "x": x, "x_dot": x, "f": q, "G": q * low.size}.items():
            check_finite(flat(terms[term], size, f"{term} of its dynamics"), f"{term} of its dynamics")
    repeatable = np.array_equal(first, np.asarray(twin.reset(0)[0], np.float64).ravel())
    actions = np.random.default_rng(0).uniform(low, high, (TRIED_STEPS, low.size))
    costs = []
    for action in actions:
        one, other = environment.step(action), twin.step(action)
        numbers = flat(one[0], first.size, "the observation of a step")
        for what, value in (("its observation", numbers), ("its reward", scalar(one[1], "its reward")), ("its cost", scalar(one[2], "its cost"))):
            check_finite(value, what)
        costs = costs or [key[5:] for key in one[5] if key.startswith("cost/")]
        same = np.array_equal(numbers, np.asarray(other[0], np.float64).ravel()) and [float(value) for value in one[1:5]] == [
            float(value) for value in other[1:5]]
        repeatable = repeatable and same
        if one[3] or one[4] or not same:
            break
    spec = find(environment.env, "spec")
    horizon = find(environment.env, "max_episode_steps", "_max_episode_steps", "horizon") or getattr(spec, "max_episode_steps", None)
    if horizon is not None and not 1 <= int(horizon) <= MOST_STEPS:
        raise Refused(f"its time limit is {horizon} steps, not 1 to {MOST_STEPS:,}")
    period = find(environment.env, "control_dt", "dt")
    if period is None:
        rate = (find(environment.env, "metadata") or {}).get("render_fps")
        if not rate:
            raise Refused("it states no control period: give it an attribute control_dt, in seconds")
        period = 1 / rate
    environment.close()
    twin.close()

    def names(attribute):
        given = find(environment.env, attribute)
        return [] if given is None else [str(one) for one in given]

    return {"environment": name, "observation": first.size, "observation_name": names("observation_names"),
            "action_low": low.tolist(), "action_high": high.tolist(), "action_name": names("action_names"),
            "horizon": None if horizon is None else int(horizon), "control_dt": float(period), "cost": costs if len(costs) > 1 else [],
            "q": int(q), "x": int(x), "repeatable": bool(repeatable)}


def as_text(fields):
    lines = []
    for field, value in fields.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            lines.append(f"{field}: {json.dumps(one, ensure_ascii=False)}")
    text = "\n".join(lines)
    if len(text.encode()) > LONGEST_ANSWER:
        raise Refused("its names have too many characters")
    return text


def end_with(connection):
    """Ends this process, and what it has started, when its peer is gone, even if an environment never returns."""
    poll = select.poll()
    poll.register(connection, 0)  # only hang-ups
    poll.poll()
    time.sleep(5)  # for environments that close in good order
    os.killpg(0, signal.SIGKILL)  # this process leads its group


def last_frame(error):
    """Where an error arose, for a message of one line."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?"


def main():
    name, descriptor, *rest = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the peer, which ends this process in its own time
    connection = socket.socket(fileno=int(descriptor))
    connection.set_inheritable(False)
    os.register_at_fork(after_in_child=connection.close)  # or the peer would not see the end of this process
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()
    host = None

    def answer(kind, text):
        connection.send(kind + text.encode(errors="replace")[:LONGEST_ANSWER // 10])

    try:
        if np is None:
            raise Refused(f"{sys.executable} has no NumPy")
        if rest:
            memory, slots, observation, action, q, x = map(int, rest[:6])
            host = Host(name, memory, slots, observation, action, q, x, rest[6:])
            host.serve(connection)
        else:
            connection.send(b"k" + as_text(facts(name)).encode())
    except Refused as error:
        answer(b"r", f"{name}: {error}")
        return 2
    except (BrokenPipeError, ConnectionResetError):
        return 1
    except Exception as error:
        traceback.print_exc()
        answer(b"f", f"{name} raised {type(error).__name__}: {error} ({last_frame(error)})")
        return 1
    finally:
        if host is not None:
            host.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0
