"""Steps the Gymnasium environments of one process: datacom starts it and speaks with it through shared memory.

  host.py MODULE:CALLABLE SOCKET MODEL
  host.py MODULE:CALLABLE SOCKET MODEL MEMORY SLOTS OBSERVATION ACTION Q X [COST...]

The first answer is "k" and the environment's facts, as text of a datacom.v1.PythonTask; of its control-affine model only if MODEL is 1. The
second form then serves. SOCKET and MEMORY are file descriptors. A message names slots, as uint32. The answer "k" says that the environments of
all of them have done what their slots ask for; "r" and a text, that the environment is refused; "f" and a text, that it failed. A slot is a row
of float64 in MEMORY: SLOT_HEAD numbers, the action, then the observation with the numbers of the model (common/tasks/python/python_model.h).
Needs Python 3.8 and NumPy.
"""

import sys

sys.path[:] = [folder for folder in sys.path if folder]  # a file in the working directory replaces no module that is imported here

import hashlib
import importlib
import inspect
import json
import mmap
import os
import pathlib
import random
import re
import select
import signal
import socket
import struct
import sysconfig
import threading
import time
import traceback
from collections.abc import Iterable, Mapping

try:
    import numpy as np
except ImportError:
    np = None  # main says so

sys.path.insert(0, os.getcwd())  # from here on as for every script

MAKE, RESET, STEP = range(1, 4)
OPERATION, SEED, REWARD, COST, TERMINATED, TRUNCATED, SUCCESS, SLOT_HEAD = 0, 1, 2, 3, 4, 5, 6, 8
TRIED_STEPS = 10  # of two equal environments, which tell whether it is repeatable
NEAR = 1e-6  # how far an episode may differ from one that is taken for the same
TWO_DIFFER = "two environments differ after the same seed and actions"
KEEPS = ("its second episode differs from its first after the same seed and actions: what it keeps between episodes, as a running mean, each process has "
         "for itself, the evaluation too")
KEPT_NUMBERS = 16  # of an observation of the first look
MOST_STEPS = 1_000_000  # of an episode
MOST_BOUND = 1e6  # of an action
LARGEST = 1e18  # of every other number (common/transitions/check_columns.h)
MOST_FILES = 300  # that are named one by one
MODEL = 'give it dynamics(observation), which takes one observation and returns q, f and G, or put these into info["dynamics"]'
OR_NONE = "or train with an algorithm that reads no model, as --algorithm lag_sac"
LONGEST_ANSWER = 100_000  # bytes; of an error: a tenth


class Refused(Exception):
    """Something that the environment has to change; the message says what."""


def load(name):
    module, _, attribute = name.partition(":")
    if re.search(r"-v\d+$", name):
        raise Refused(f"{name} is a name of Gymnasium's registry: write a function that returns gymnasium.make(...), and name its MODULE:FUNCTION")
    if not attribute or not module.partition(".")[0]:
        raise Refused(f'"{name}" is not MODULE:CALLABLE')
    if module == "__main__":
        raise Refused(f"{name}: a notebook or script is no module that another process finds: write the environment into a file and name FILE:{attribute}")
    if module.endswith(".py") and os.path.isfile(module):
        folder, names = pathlib.Path(module).absolute().parent, [pathlib.Path(module).stem]
        while (folder / "__init__.py").is_file():  # a module of a package is known by the package's name
            folder, names = folder.parent, [folder.name, *names]
        raise Refused(f"{module} is a file: run the command in {folder}, or set PYTHONPATH, and name {'.'.join(names)}:{attribute}")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module + ".").startswith(error.name + "."):
            raise Refused(f"there is no module {error.name}: run the command in its folder, or set PYTHONPATH") from None
        raise
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise Refused(f"the module {module}, {getattr(sys.modules[module], '__file__', None) or 'which has no file'}, has no {attribute}")
        found = getattr(found, part)
    if not callable(found):
        raise Refused(f"{attribute} is not callable")
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise Refused(f"{attribute} cannot be called without arguments, {error}: write a function that gives them, and name that one") from None
    except ValueError:  # its signature is not known
        pass
    return found


def layers(environment):
    """The environment and what it wraps, the outermost first."""
    found = []
    while environment is not None and all(environment is not one for one in found):
        found.append(environment)
        environment = getattr(environment, "__dict__", {}).get("env")
    return found


def stating(environment, name):
    """The first layer that has an attribute, and its value; the environment and None if there is none."""
    for layer in layers(environment):
        if name in getattr(layer, "__dict__", {}) or hasattr(type(layer), name):
            try:
                value = getattr(layer, name)
            except Exception:  # a property that cannot be read, as one that a class leaves to others, states nothing
                continue
            if value is not None:
                return layer, value
    return environment, None


def find(environment, name):
    return stating(environment, name)[1]


def numbers_of(value, what):
    """A copy, as one row, of a number, or of an array, list or tensor of numbers."""
    try:
        numbers = np.asarray(value)
        if numbers.dtype.kind in "SUc":
            raise TypeError(f"it has the type {numbers.dtype}")
        return numbers.astype(np.float64).ravel()
    except (TypeError, ValueError, RuntimeError) as error:
        raise Refused(f"{what} is a {type(value).__name__}, no array of numbers: {error}") from None


def flat(value, size, what):
    """As many numbers, perhaps in the memory of the value."""
    try:
        numbers = np.asarray(value, np.float64).ravel()
    except (TypeError, ValueError, RuntimeError):
        numbers = numbers_of(value, what)  # says why
    if numbers.size != size:
        raise Refused(f"{what} has {numbers.size} numbers, not {size}")
    return numbers


def scalar(value, what):
    """Of a number, or of an array or tensor of one number."""
    try:
        number = value.item() if hasattr(value, "item") else value
        if isinstance(number, (str, bytes)):
            raise TypeError
        return float(number)
    except (TypeError, ValueError, RuntimeError):
        raise Refused(f"{what} is {value!r}, no number") from None


def flag(value, what):
    """Whether a truth value is true; None is not."""
    if isinstance(value, (bool, np.bool_, type(None))):
        return bool(value)
    number = scalar(value, what)
    if number != number:
        raise Refused(f"{what} is {value!r}, neither true nor false")
    return number != 0


def check_finite(values, what):
    numbers = np.ravel(values)
    wrong = np.flatnonzero(~(np.abs(numbers) <= LARGEST))
    if wrong.size:
        raise Refused(f"{what} is not finite or above {LARGEST:g}: number {wrong[0]} is {numbers[wrong[0]]:g}")


def takes_one(function):
    """Whether it is a function of exactly one positional argument."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [one for one in taken if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL)]
    return len(positional) == 1 and positional[0].kind != positional[0].VAR_POSITIONAL and all(
        one.kind != one.KEYWORD_ONLY or one.default is not one.empty for one in taken)


def changes(environment, inner, spaces):
    """The innermost layer outside of `inner` that takes other actions or gives other observations than it; None if there is none."""
    outside = layers(environment)[:layers(environment).index(inner)]
    for space, kind in spaces.items():
        own = getattr(inner, space, None)
        for layer in reversed(outside) if hasattr(own, "low") else []:  # what is no Box gets the flat observation
            if kind in {one.__name__ for one in type(layer).__mro__} or getattr(layer, space, own) != own:
                return layer
    return None


def term(given, name):
    """Of a model; None if it has none."""
    return given.get(name) if hasattr(given, "get") else getattr(given, name, None)


class Terms:
    """Reads the control-affine model from env.dynamics(observation), or from info["dynamics"]."""

    def __init__(self, environment):
        layer, found = stating(environment, "dynamics")
        self._evaluate, self._lack = None, "it states none"
        self.inner = None  # the layer whose model it is, if others lie around it
        if callable(found) and takes_one(found):
            wrapper = changes(environment, layer, {"action_space": "ActionWrapper", "observation_space": "ObservationWrapper"})
            if wrapper is None:
                self._evaluate = found
                if layer is not environment and hasattr(layer, "step") and hasattr(getattr(layer, "observation_space", None), "low"):
                    self.inner = layer  # what is no Box gets the flat observation
            else:
                self._lack = (f"its dynamics is that of {type(layer).__name__}, whose actions or observations {type(wrapper).__name__} changes, "
                              "so that f and G would not belong to them")
        elif found is not None:
            self._lack = f"its dynamics is a {type(found).__name__} that does not take exactly one observation"
        self.in_info = self._evaluate is None

    def __call__(self, observation, info):
        """q, x, x_dot, f, G; None if there is no model."""
        given = info.get("dynamics") if self.in_info else self._evaluate(observation)
        if given is None:
            return None
        terms = {}
        for name in ("q", "x", "x_dot", "f", "G"):
            value = term(given, name)
            if value is None and name in ("q", "f", "G"):
                raise Refused(f"its dynamics have no {name}: {MODEL}; {OR_NONE}")
            terms[name] = np.zeros(0) if value is None else value
        return terms

    def source(self):
        return 'info["dynamics"]' if self.in_info else "dynamics(observation)"

    def lack(self):
        """Why there is no model."""
        return f"{self._lack}; {MODEL}"


def named_costs(info):
    """The keys "cost/NAME" of an info, in its order."""
    return [key for key in info if isinstance(key, str) and key.startswith("cost/")]


def checked_cost(given, source, info):
    """The cost, which is not below a named one."""
    cost = scalar(given, "its cost")
    for name in named_costs(info):
        value = scalar(info[name], name)
        if value > cost + 1e-6 * max(1.0, abs(value)):  # float32 and float64 may differ
            raise Refused(f"its cost, {source}, is {cost:g}, but {name} is {value:g}; make it the largest named cost")
    return cost


def dictionary(info):
    if not isinstance(info, (Mapping, type(None))):
        raise Refused(f"its info is a {type(info).__name__}, no dictionary")
    return {} if info is None else info


class Environment:
    """One environment. Its methods return what a slot holds."""

    opened = []  # and not closed

    def __init__(self, make):
        self.env = make()
        self.opened.append(self)
        for name in ("reset", "step", "action_space", "observation_space"):
            if not hasattr(self.env, name):
                raise Refused(f"the environment, a {type(self.env).__name__}, has no {name}")
        try:
            inspect.signature(self.env.reset).bind(seed=0)
        except TypeError as error:
            raise Refused(f"reset cannot be called as Gymnasium does, reset(seed=0): {error}") from None
        except ValueError:  # its signature is not known
            pass
        self.terms = Terms(self.env)
        self.bounds = bounds(self.env.action_space)
        self.action_type = getattr(self.env.action_space, "dtype", None) or np.float32
        self.action_shape = getattr(self.env.action_space, "shape", None) or ()
        self.cost_from = None
        # Whether an info has observations in the form of those that step returns.
        wrapped = {one.__name__ for layer in layers(self.env) for one in type(layer).__mro__}
        self.comparable = not wrapped & {"ObservationWrapper", "NormalizeObservation"}  # the second was none of the first until Gymnasium 1.0

    def reset(self, seed):
        """observation, cost, success, info; without info["cost"] the cost is the largest named one, or 0"""
        outcome = self.env.reset(seed=seed)
        if not (isinstance(outcome, tuple) and len(outcome) == 2):
            raise Refused("reset returns no pair of observation and info, as Gymnasium asks for")
        if not all(map(np.array_equal, self.bounds, bounds(self.env.action_space))):
            raise Refused(f"its action space is {self.env.action_space} after reset(seed={seed}), not as before: actions of -1 to 1 stand for its bounds, so "
                          "they must stay")
        observation, info = outcome[0], dictionary(outcome[1])
        given = info["cost"] if "cost" in info else max((scalar(info[name], name) for name in named_costs(info)), default=0)
        cost = checked_cost(given, 'info["cost"] after reset', info)
        check_finite(cost, f"its cost after reset(seed={seed})")
        return observation, cost, success(info), info

    def step(self, action):
        """observation, reward, cost, terminated, truncated, success, info"""
        outcome = self.env.step(action.astype(self.action_type).reshape(self.action_shape))
        values = len(outcome) if isinstance(outcome, (tuple, list)) else None
        if values == 6:  # Safety-Gymnasium
            observation, reward, cost, terminated, truncated, info = outcome
            info, self.cost_from = dictionary(info), "the third value of step"
        elif values == 5:
            observation, reward, terminated, truncated, info = outcome
            info = dictionary(info)
            if "cost" not in info:
                raise Refused('the info of step has no "cost": put a number there, above 0 for a violation, or return six values')
            cost, self.cost_from = info["cost"], 'info["cost"]'
        else:
            raise Refused(f"step returns {f'a {type(outcome).__name__}' if values is None else values}, not 5 values or, with the cost after the reward, 6")
        terminated, truncated = flag(terminated, "terminated"), flag(truncated, "truncated")
        if terminated or truncated:
            self.check_end(observation, info)
        return observation, scalar(reward, "its reward"), checked_cost(cost, self.cost_from, info), terminated, truncated, success(info), info

    def check_end(self, observation, info):
        """Refuses an environment that has reset itself: at the end of an episode its info has another last observation than it returns."""
        for name in ("final_obs", "final_observation") if self.comparable else ():
            try:
                final, last = (np.asarray(one.tolist() if hasattr(one, "tolist") else one, np.float64).ravel() for one in (info.get(name), observation))
            except (TypeError, ValueError, RuntimeError):  # another form, which tells nothing
                continue
            if final.size == last.size and np.all(np.isfinite(final)) and not np.allclose(final, last):  # a type may have rounded
                raise Refused(f"it resets itself: its info has {name} at the end of an episode, so its observation is that of the next one; leave "
                              "this to datacom")

    def close(self):
        self.opened.remove(self)
        try:
            if hasattr(self.env, "close"):
                self.env.close()
        except Exception:  # it has nothing to do with the training
            traceback.print_exc()


def success(info):
    return flag(info.get("success", info.get("is_success")), 'its success')


def record(layer, read):
    """A list to which each later call of the layer's step or reset adds read(action, what it returned). The action of a reset is None."""
    calls, step, reset = [], layer.step, layer.reset

    def recorded_step(action, *more, **named):
        given = np.array(action)  # a copy, as it is now
        layer.step = step  # so that a copy which the layer makes of itself now is not recorded
        outcome = step(action, *more, **named)
        layer.step = recorded_step
        calls.append(read(given, outcome))
        return outcome

    def recorded_reset(*given, **named):
        outcome = reset(*given, **named)
        calls.append(read(None, outcome))
        return outcome

    layer.step, layer.reset = recorded_step, recorded_reset
    return calls


def observed(action, outcome):
    """For `record`: the observation and, of a step, the action."""
    return [numbers_of(outcome[0], "its observation"), *([] if action is None else [numbers_of(action, "an action")])]


def controlled(action, outcome):
    """For `record`: the action, and G in the info."""
    info = outcome[-1]
    G = term(info.get("dynamics") if isinstance(info, Mapping) else None, "G")
    return np.ravel(action), None if G is None else numbers_of(G, "G of its dynamics")


class Host:
    def __init__(self, name, seen, memory, slots, observation, action, q, x, costs):
        self.make = load(name)
        self.sizes = {"q": q, "x": x, "x_dot": x, "f": q, "G": q * action}
        self.has_model = q + x > 0
        self.observation, self.costs, self.seen = observation, ["cost/" + cost for cost in costs], seen  # a single one is in `seen` only
        stride = SLOT_HEAD + action + observation + sum(self.sizes.values()) + len(costs)
        numbers = np.frombuffer(mmap.mmap(memory, slots * stride * 8), np.float64).reshape(slots, stride)
        self.heads = numbers[:, :SLOT_HEAD]
        self.actions = numbers[:, SLOT_HEAD:SLOT_HEAD + action]
        self.states = numbers[:, SLOT_HEAD + action:]
        self.environments = {}

    def write(self, slot, environment, observation, info):
        for name in named_costs(info):
            if name not in self.seen:  # it has no column, so the records would leave it out
                raise Refused(f"its info has {name} of {info[name]!r}, which the first look did not see; put every named cost into the info of every step")
        state, at = self.states[slot], self.observation
        state[:at] = flat(observation, at, "its observation")
        if self.has_model:
            terms = environment.terms(observation, info)
            if terms is None:
                raise Refused("its dynamics are missing after this step")
            for name, size in self.sizes.items():
                state[at:at + size] = flat(terms[name], size, f"{name} of its dynamics")
                at += size
        state[at:] = [scalar(info.get(cost, 0.0), cost) for cost in self.costs]

    def run(self, slot):
        head = self.heads[slot]
        if head[OPERATION] == STEP:
            environment = self.environments[slot]
            observation, *result, info = environment.step(self.actions[slot])
            self.write(slot, environment, observation, info)
            head[REWARD:SUCCESS + 1] = result
        elif head[OPERATION] == RESET:
            environment = self.environments[slot]
            observation, cost, succeeded, info = environment.reset(int(head[SEED]))
            self.write(slot, environment, observation, info)
            check_finite(self.states[slot], f"its observation, or its dynamics, after reset(seed={int(head[SEED])})")
            head[REWARD:SUCCESS + 1] = 0, cost, 0, 0, succeeded
        else:
            self.environments[slot] = Environment(self.make)

    def serve(self, connection):
        while message := connection.recv(1 << 18):
            for (slot,) in struct.iter_unpack("=I", message):
                self.run(slot)
            connection.send(b"k")


def time_limit(env):
    """The steps of an episode and what states them; or None and why nothing does."""
    limits = [getattr(layer, "_max_episode_steps", None) for layer in layers(env) if type(layer).__name__.endswith("TimeLimit")]
    stated = {"max_episode_steps": find(env, "max_episode_steps"), "TimeLimit": min((one for one in limits if one is not None), default=None),
              "spec.max_episode_steps": getattr(find(env, "spec"), "max_episode_steps", None)}
    stated = {what: value for what, value in stated.items() if value is not None}
    for what, value in stated.items():
        if not is_number(value) or not 1 <= value <= MOST_STEPS or value != int(value):
            raise Refused(f"its time limit is {value} steps, not 1 to {MOST_STEPS:,} ({what})")
    if len(set(stated.values())) == 1:
        return int(next(iter(stated.values()))), next(iter(stated))
    if stated:
        return None, "it states several: " + ", ".join(f"{what} {value}" for what, value in stated.items())
    other = [name for name in ("horizon", "_max_episode_steps") if find(env, name) is not None]
    return None, "; ".join(["it states none", *(f"its {name} of {find(env, name)!r} may mean something else" for name in other)])


def is_number(value):
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def control_period(env):
    """The seconds of a step and what states them; or None and why nothing does."""
    period, dt, metadata = find(env, "control_dt"), find(env, "dt"), find(env, "metadata")
    rate = metadata.get("render_fps") if isinstance(metadata, Mapping) else None  # another form states no rate
    rate = rate if is_number(rate) and rate > 0 else None
    what = "control_dt"
    if period is None and is_number(dt) and (rate is None or abs(dt * rate - 1) < 0.01):
        period, what = dt, "dt"
    if period is not None:
        if not is_number(period) or not 0 < period < float("inf"):
            raise Refused(f"its {what} is {period!r}, no seconds above 0")
        return float(period), what
    other = [text for text, value in ((f"its dt is {dt!r}", dt), (f"its render_fps of {rate} is a film's", rate)) if value is not None]
    return None, "; ".join(["it states none", *other])


def bounds(space):
    """Copies of both: an environment may change its own."""
    return [np.array(getattr(space, side, ()), np.float64).ravel() for side in ("low", "high")]


def describe(space):
    """Shape, type and bounds."""
    low, high = bounds(space)
    if np.all(low == low[:1]) and np.all(high == high[:1]):
        low, high = low[:1], high[:1]
    within = " to ".join(" ".join(f"{value:.9g}" for value in side) for side in (low, high))
    if low.size > 8:
        within = "bounds " + hashlib.sha256(within.encode()).hexdigest()[:16]
    return f"{tuple(map(int, space.shape))} {space.dtype}, {within}"


def check_spaces(environment):
    space = environment.env.action_space
    if np.dtype(environment.action_type).kind in "iub":
        raise Refused(f"its action space, {space}, has whole numbers; wrap the environment so that it takes real ones")
    low, high = environment.bounds
    if low.size == 0 or not np.all(np.isfinite(low) & np.isfinite(high) & (low < high)):
        raise Refused(f"its action space, {space}, is no Box with finite bounds, each low one below its high one")
    if max(abs(low).max(), abs(high).max()) > MOST_BOUND:
        raise Refused(f"its action space, {space}, has a bound beyond {MOST_BOUND:,.0f}; actions of -1 to 1 stand for its bounds, so state "
                      "those that a policy needs")
    if not hasattr(environment.env.observation_space, "low"):
        raise Refused(f"its observation space, {environment.env.observation_space}, is no Box; wrap the environment in gymnasium.wrappers.FlattenObservation")


def kept(observation):
    """The numbers of an observation; of a long one sums that each number changes."""
    if observation.size <= KEPT_NUMBERS:
        return observation.tolist()
    return [float(np.sum(observation * np.cos((k + 1) * np.arange(1, observation.size + 1)))) for k in range(KEPT_NUMBERS)]


def texts(env, attribute):
    """A list of texts that an environment may have."""
    given = find(env, attribute)
    if isinstance(given, (str, bytes)) or not isinstance(given, (Iterable, type(None))):
        raise Refused(f"its {attribute} is {given!r}, no list of names")
    return [] if given is None else [str(one) for one in given]


def digest(file):
    sums = hashlib.sha256()
    with open(file, "rb") as stream:
        while block := stream.read(1 << 20):
            sums.update(block)
    return sums.hexdigest()


def code(name, env):
    """The files of the environment's code and those that it names, each with its SHA-256, and the versions of what it runs on."""
    versioned = {"numpy", "gymnasium"}
    named = {name.partition(":")[0]} | {one.__module__ for layer in layers(env) for one in type(layer).__mro__}
    library = sysconfig.get_paths()["stdlib"] + os.sep
    files = {}
    for module, loaded in sorted(sys.modules.items()):
        file = inspect.getattr_static(loaded, "__file__", None)  # some modules load, or fail, when they are asked
        if not isinstance(file, str) or not os.path.isfile(file) or module.partition(".")[0] in versioned:
            continue
        installed, of_python = {"site-packages", "dist-packages"} & set(file.split(os.sep)), file.startswith(library)
        if module in named if installed else not of_python:
            below = module.split(".")[:-1] if not os.path.basename(file).startswith("__init__.") else module.split(".")
            # An interpreter that is no virtual environment has its packages below its library (common/tasks/python/identity.cc).
            files["/".join([*(["site-packages"] if of_python else []), *below, os.path.basename(file)])] = digest(file)
    folder = os.path.dirname(getattr(sys.modules[name.partition(":")[0]], "__file__", None) or "")
    for file in texts(env, "environment_files"):
        if not os.path.isfile(file):
            raise Refused(f"its environment_files has {file}, which is no file")
        files[os.path.relpath(file, folder or None)] = digest(file)
    if len(files) > MOST_FILES:
        files = {f"{len(files)} files": hashlib.sha256(json.dumps(files).encode()).hexdigest()}
    versions = {root: getattr(sys.modules.get(root), "__version__", None) for root in versioned | {module.partition(".")[0] for module in named}}
    return {"file": [{"name": file, "sha256": digest} for file, digest in files.items()], "interpreter": sys.executable,
            "version": ["python " + ".".join(map(str, sys.version_info[:3]))] + [
                f"{root} {version}" for root, version in sorted(versions.items()) if isinstance(version, str)]}


def generators(environment):
    """The random generators in modules, Python's and NumPy's own too, and in the classes of an environment: who has them, and under which name."""
    owners = [*sys.modules.values(), *(one for layer in layers(environment) for one in type(layer).__mro__)]
    return [(owner, name) for owner in owners for name, value in attributes(owner) if is_generator(value)]


def attributes(owner):
    """Names and values of a module or class, without asking it: some modules load, or fail, when they are asked."""
    try:
        return list(object.__getattribute__(owner, "__dict__").items())
    except AttributeError:  # of something else in sys.modules
        return []


def is_generator(value):
    return isinstance(value, (random.Random, np.random.RandomState, np.random.Generator)) and not isinstance(value, random.SystemRandom)


def state_of(generator):
    """Its state, and a function that gives it to the generator again."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state, lambda state: setattr(generator.bit_generator, "state", state)
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(), generator.set_state
    return generator.getstate(), generator.setstate


def apart(shared, call, argument):
    """What a call gives, which leaves the random generators that all of this process shares as they were."""
    torch = sys.modules.get("torch")
    kept = [(owner, name, value, *state_of(value)) for owner, name in shared if is_generator(value := getattr(owner, name, None))]
    kept_torch = torch.get_rng_state() if hasattr(torch, "get_rng_state") else None
    result = call(argument)
    for owner, name, value, state, put in kept:
        put(state)
        if getattr(owner, name, None) is not value:  # a reset may make a new one
            setattr(owner, name, value)
    if kept_torch is not None:
        torch.set_rng_state(kept_torch)
    return result


def episode(environment, actions, twin, seed, others):
    """The numbers of an episode of the first look, in which the twin is reset with a seed and takes other actions, apart."""
    shared = generators(environment.env)
    given = [numbers_of(environment.reset(0)[0], "its observation")]
    apart(shared, twin.reset, seed)
    twin_ended = False
    for action, other in zip(actions, others):
        observation, *rest, _ = environment.step(action)
        given.append(np.append(numbers_of(observation, "its observation"), rest))
        if any(rest[2:4]):
            break
        twin_ended = twin_ended or any(apart(shared, twin.step, other)[3:5])
    return given


def alike(one, other, tolerance):
    return len(one) == len(other) and all(a.size == b.size and np.allclose(a, b, tolerance, tolerance) for a, b in zip(one, other))


def check_apart(environment, actions, twin, mirrored):
    """Refuses an environment whose episode depends on what the twin does."""
    own, moved, moved_again, own_again = (episode(environment, actions, twin, *other) for other in ((0, actions), (1, mirrored), (1, mirrored), (0, actions)))
    if alike(own, own_again, NEAR) and alike(moved, moved_again, NEAR) and not alike(own, moved, NEAR):
        raise Refused("its environments change each other: what one observes depends on what another in the same process does; keep all that changes in "
                      "the object that is made, not in its class, its module or a simulator that all use")


def look(environment, twin, first, info, check_model, check_inner, serves):
    """What two equal environments do after a reset that gave `first` and `info`: numbers, why they are not repeatable, the named costs of all infos."""
    same = np.array_equal(first, numbers_of(twin.reset(0)[0], "its observation"))
    given, names = [first], []
    actions = np.random.default_rng(0).uniform(*environment.bounds, (TRIED_STEPS, int(np.prod(environment.action_shape))))
    for action in actions:
        one, other = environment.step(action), twin.step(action)
        last = flat(one[0], first.size, "the observation of a step")
        named = {cost: scalar(one[-1][cost], cost) for cost in named_costs(one[-1])}
        for what, value in {"its observation": last, "its reward": one[1], "its cost": one[2], **named}.items():
            check_finite(value, what)
        given.append(np.append(last, one[1:-1]))
        names += named
        taken = action.astype(environment.action_type)
        check_model(one[0], one[-1], taken)
        check_inner(last, taken)
        same = same and np.array_equal(given[-1], np.append(numbers_of(other[0], "its observation"), other[1:-1]))
        if one[3] or one[4] or not same:
            break

    mirrored, changed = sum(environment.bounds) - actions, None
    if not same or not alike(given, episode(environment, actions, twin, 1, mirrored), 0):
        changed = KEEPS if same else TWO_DIFFER
        if not serves:
            check_apart(environment, actions, twin, mirrored)
    steps = np.array(given[1:])
    seen = {} if changed else {"observation": kept(first) + kept(steps[-1, :first.size]), "reward": steps[:, first.size].tolist(),
                               "cost": steps[:, first.size + 1].tolist()}
    return changed, seen, list(dict.fromkeys([*names, *named_costs(info)]))


def model_sizes(terms, action_shape):
    """Of q and x; of no model 0 and 0."""
    if terms is None:
        return 0, 0
    q, x = (numbers_of(terms[term], f"{term} of its dynamics").size for term in ("q", "x"))
    actions = int(np.prod(action_shape))
    for term, size in {"q": q, "x": x, "x_dot": x, "f": q, "G": q * actions}.items():
        check_finite(flat(terms[term], size, f"{term} of its dynamics"), f"{term} of its dynamics")
    if q == 0:
        raise Refused(f"q of its dynamics has no numbers: {MODEL}; {OR_NONE}")
    shape = np.shape(terms["G"])
    allowed = [[size for size in one if size != 1] for one in ((q * actions,), (q, actions), (q, *action_shape))]
    if [size for size in shape if size != 1] not in allowed:
        raise Refused(f"G of its dynamics has the shape {tuple(shape)}, not {(q, actions)}: a row for each number of q, a column for each action")
    return q, x


def facts(name, with_model, serves=False):
    """What datacom must know of the environment: fields of a datacom.v1.PythonTask with their values, and the named costs of the first look. A process
    that then serves looks less closely, as one has done so before."""
    make = load(name)
    environment, twin = Environment(make), Environment(make)
    env = environment.env
    if {id(one) for one in layers(env) if hasattr(one, "step")} & {id(one) for one in layers(twin.env)}:
        raise Refused("it gives the same environment at every call, while several are stepped side by side: it must make a new one")
    check_spaces(environment)
    low, high = environment.bounds
    inner = environment.terms.inner if with_model else None
    calls = record(inner, observed) if inner is not None else []
    # A wrapper may hand on an info whose model is that of other actions.
    within = [one for one in layers(env)[1:] if hasattr(one, "step") and hasattr(getattr(one, "action_space", None), "low")]
    given = [(one, record(one, controlled)) for one in (within if with_model and environment.terms.in_info else [])]
    observation, _, _, info = environment.reset(0)
    first = numbers_of(observation, "its observation")
    if first.size != (size := int(np.prod(env.observation_space.shape))):
        raise Refused(f"its observation has {first.size} numbers, its observation space, {env.observation_space}, {size}")
    check_finite(first, "its observation after reset(seed=0)")

    def sizes(observation, info):
        return model_sizes(environment.terms(observation, info) if with_model else None, environment.action_shape)

    def check_model(observation, info, action):
        if (found := sizes(observation, info)) != (q, x):
            raise Refused(f"its dynamics have a q of {q} and an x of {x} numbers after reset, {found[0]} and {found[1]} after a step: {MODEL}; {OR_NONE}")
        for layer, calls in given if q else []:
            inner, G = calls[-1] if calls else (action, None)
            if G is not None and not alike([inner], [action], NEAR) and np.array_equal(G, numbers_of(term(info["dynamics"], "G"), "G of its dynamics")):
                raise Refused(f'info["dynamics"] is that of {type(layer).__name__}, whose actions a wrapper changes: put it into the info outside of that; '
                              f"{OR_NONE}")

    def check_inner(*outer):
        if calls and any(a.size != b.size or not np.allclose(a, b, NEAR, NEAR) for a, b in zip(calls[-1], outer)):
            raise Refused(f"its dynamics is that of {type(inner).__name__}, but a wrapper around that changes observations or actions, so that f and G would "
                          f"not belong to them: give dynamics to the outermost one; {OR_NONE}")

    q, x = sizes(observation, info)
    check_inner(first)
    without_model = environment.terms.lack() if with_model and q == 0 else None
    not_repeatable, seen, named = look(environment, twin, first, info, check_model, check_inner, serves)
    costs = [cost[len("cost/"):] for cost in named] if len(named) > 1 else []  # a single one is the cost itself
    (horizon, horizon_from), (period, period_from) = time_limit(env), control_period(env)
    identity = {"observation_space": describe(env.observation_space), "action_space": describe(env.action_space), **seen, **code(name, env)}
    environment.close()
    twin.close()

    said = [f"observations: {first.size}, {identity['observation_space']}, from observation_space",
            f"actions: {low.size}, {identity['action_space']}, from action_space; step gets this shape",
            f"time limit: {horizon} steps, from {horizon_from}" if horizon else f"time limit: {horizon_from}",
            f"control period: {period:g} s, from {period_from}" if period else f"control period: {period_from}",
            f"cost: {environment.cost_from}, above 0 is a violation" + (f"; named, from info: {', '.join(costs)}" if costs else ""),
            f"control-affine model: q of {q} and x of {x} numbers, from {environment.terms.source()}" if q else
            "control-affine model: " + (without_model or "not asked for").partition(";")[0],
            "repeatable: " + (f"no, {not_repeatable}" if not_repeatable else "yes"),
            f"code: {', '.join(one['name'] for one in identity['file'][:8])}; {', '.join(identity['version'])}; {sys.executable}"]
    return {"environment": name, "observation": first.size, "observation_name": texts(env, "observation_names"),
            "action_low": low.tolist(), "action_high": high.tolist(), "action_name": texts(env, "action_names"),
            "horizon": horizon, "without_horizon": None if horizon else horizon_from,
            "control_dt": period, "without_control_dt": None if period else period_from, "cost": costs,
            "q": q, "x": x, "without_model": without_model, "repeatable": not not_repeatable, "identity": identity, "fact": said}, named


def lines_of(fields):
    for field, value in fields.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            if isinstance(one, dict):
                yield f"{field} {{"
                yield from lines_of(one)
                yield "}"
            else:
                yield f"{field}: {json.dumps(one, ensure_ascii=False)}"


def as_text(fields):
    text = "\n".join(lines_of(fields)).encode(errors="replace")
    if len(text) > LONGEST_ANSWER:
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
    name, descriptor, with_model, *rest = sys.argv[1:]
    del sys.argv[1:]  # they are no arguments of the environment
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the peer, which ends this process in its own time
    connection = socket.socket(fileno=int(descriptor))
    connection.set_inheritable(False)
    os.register_at_fork(after_in_child=connection.close)  # or the peer would not see the end of this process
    os.register_at_fork(after_in_child=Environment.opened.clear)  # they are this process's
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()

    def answer(kind, text):
        connection.send(kind + text.encode(errors="replace")[:LONGEST_ANSWER // 10])

    try:
        if np is None:
            raise Refused(f"{sys.executable} has no NumPy")
        told, named = facts(name, with_model == "1", bool(rest))
        connection.send(b"k" + as_text(told))
        if rest:
            memory, slots, observation, action, q, x = map(int, rest[:6])
            Host(name, named, memory, slots, observation, action, q, x, rest[6:]).serve(connection)
    except Refused as error:
        answer(b"r", f"{name}: {error}")
        return 2
    except (BrokenPipeError, ConnectionResetError):
        return 1
    except BaseException as error:  # SystemExit, too
        if connection.fileno() < 0:  # a process that the environment has forked ends
            raise
        answer(b"f", f"{name} raised {type(error).__name__}: {error} ({last_frame(error)})")
        traceback.print_exc()
        return 1
    finally:
        for environment in list(Environment.opened):
            environment.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0
