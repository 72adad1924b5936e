"""Tests that `task check` lets no wrong edit of a task file pass in silence, and never hangs.

Each edit is what a user may type. It must be refused with the words of the table, be found by playing the task, or be reported as a
number. A check that takes longer than PATIENCE is a hang.
"""
import os
import unittest

from running import PATIENCE, RunTest, run

assert PATIENCE > 0  # run() ends a command that hangs

MODEL = """<mujoco model="runner"><compiler angle="radian"/><option timestep="0.01"/><worldbody>
  <body name="torso" pos="0 0 0.7"><joint name="rootx" type="slide" axis="1 0 0"/><joint name="rootz" type="slide" axis="0 0 1" 
    stiffness="2000" damping="50"/><joint name="rooty" axis="0 1 0" stiffness="50" damping="5"/>
    <geom name="torso" type="capsule" fromto="-0.5 0 0 0.5 0 0" size="0.05"/>
    <body name="bthigh" pos="-0.5 0 0"><joint name="bthigh" axis="0 1 0" limited="true" range="-0.5 1" damping="6" armature="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.1 0 -0.3" size="0.05"/></body>
    <body name="fthigh" pos="0.5 0 0"><joint name="fthigh" axis="0 1 0" limited="true" range="-1 0.7" damping="4.5" armature="0.1"/>
      <geom type="capsule" fromto="0 0 0 -0.1 0 -0.3" size="0.05"/></body></body>
  <body name="rock" mocap="true" pos="3 0 0.1"><geom size="0.1" contype="0" conaffinity="0"/></body></worldbody>
  <actuator><motor name="bthigh" joint="bthigh" gear="20" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="fthigh" joint="fthigh" gear="20" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>
"""
TASK = """name: "runner"
model: "model.xml"
horizon: 100
observation { joint: "rootz" }
observation { joint: "rooty" }
observation { joint: "?thigh" }
observation { joint: "*" quantity: "velocity" }
extra { joint: "rootx" }
constant { name: "dt" value: 0.05 }
reward: "(rootx - before.rootx) / dt - 0.1 * action.bthigh^2"
cost { name: "speed" value: "rootx_velocity / 3.2 - 1" }
control { period: 0.05 }
start { joint { joint: "*" position { low: -0.1 high: 0.1 } } }
known { name: "range" joint_position: "bthigh" share: 0.95 viability_gain: 0.5 }
slice { name: "speed" x { of: "rootx_velocity" low: -1 high: 6 } y { of: "rooty" low: -1.5 high: 1.5 } }
"""
COST, EXTRA, START = "rootx_velocity / 3.2 - 1", 'extra { joint: "rootx" }', "start {"


def put(old, new):
    """An edit: replaces a text that the task has."""
    assert old in TASK, old
    return lambda text: text.replace(old, new)


def drop(word):
    return lambda text: "".join(line for line in text.splitlines(keepends=True) if not line.startswith(word))


def add(line):
    return lambda text: text + line + "\n"


def begin(line):
    return put(START, START + " " + line)


# Refused, exit code 2: the name of the edit, the edit, words of the message, and the line that it names (None: no line is wrong).
REFUSED = [
    ("a typo in a field", put("reward:", "reawrd:"), 'no field named "reawrd"', 10),
    ("a typo in a joint", put('"rooty" }', '"roooty" }'), "there are: rootx, rootz, rooty, bthigh, fthigh", 5),
    ("an unknown name in the reward", put("before.rootx", "before.rootxx"), 'unknown name "before.rootxx"', 10),
    ("an expression that breaks off", put("/ dt -", "/ dt - ("), "reward: column", 10),
    ("a negative period", put("period: 0.05", "period: -0.05"), "control.period", 12),
    ("a period that is no multiple", put("period: 0.05", "period: 0.033"), "not a multiple of the model's time step", 12),
    ("a period of 0", put("period: 0.05", "period: 0"), "control.period", 12),
    ("a horizon of 0", put("horizon: 100", "horizon: 0"), "horizon", 3),
    ("a negative horizon", put("horizon: 100", "horizon: -5"), "Expected integer", 3),
    ("a horizon of 1e9", put("horizon: 100", "horizon: 1000000000"), "horizon", 3),
    ("no cost", drop("cost"), "at least one cost is needed", None),
    ("no reward", drop("reward"), "reward", None),
    ("no observation", drop("observation"), "at least one signal is needed", None),
    ("degrees as radians in the start", put("low: -0.1 high: 0.1", "low: -10 high: 10"),
     "goes beyond the limits of joint bthigh, which are -0.5 to 1 rad", 13),
    ("low above high", put("low: -0.1 high: 0.1", "low: 0.1 high: -0.1"), "is below low", 13),
    ("a text for a number", put("value: 0.05 }", 'value: "dt" }'), "Expected double", 9),
    ("a cost that refers to itself", put(COST, "speed + 1"), 'unknown name "speed"', 11),
    ("a cost of the reward", put(COST, "reward - 1"), 'unknown name "reward"', 11),
    ("a name for two signals", put(EXTRA, EXTRA + '\nextra { name: "rootx" joint: "rootz" }'), "the name rootx is used twice", 4),
    ("a name for two costs", add('cost { name: "speed" value: "rootz" }'), "is used twice", 16),
    ("an unknown quantity", put('quantity: "velocity"', 'quantity: "speed"'), "quantity", 7),
    ("a site that is missing", put(EXTRA, EXTRA + '\nextra { site: "tip" }'), "no site of the model matches", 9),
    ("a share of 1.5", put("share: 0.95", "share: 1.5"), "known[0].share", 14),
    ("a known row of a joint without limits", put('joint_position: "bthigh"', 'joint_position: "rootx"'), "rootx", 14),
    ("a slice of an unknown number", put('of: "rooty"', 'of: "rooty_angle"'), "rooty_angle", 15),
    ("an actuator glob without a match", put("control { period", 'control { actuator: "foo*" period'), "there are: bthigh, fthigh", 12),
    ("an actuator range with low above high", put("period: 0.05 }", 'period: 0.05 range { actuator: "*" low: 1 high: -1 } }'),
     "-1 is not above low, 1", 12),
    ("a range beyond the actuator's",
     put("period: 0.05 }", 'period: 0.05 range { actuator: "*" low: -2 high: 2 } }'),
     "goes beyond the control range of actuator bthigh, which is -1 to 1", 12),
    ("velocity control of motors", put("period: 0.05 }", 'period: 0.05 mode: "velocity" }'), "actuator bthigh is no velocity servo", 12),
    ("position control of motors", put("period: 0.05 }", 'period: 0.05 mode: "position" }'), "actuator bthigh is no position servo", 12),
    ("a margin of an equation", put("share: 0.95", "value: 0.2 margin: 0.1 equality: true"), "known[0].margin: is only for inequalities", 14),
    ("a missing brace", put("control { period: 0.05 }", "control { period: 0.05 "), "task.textproto:1", None),
    ("a missing quote", put('name: "runner"', 'name: "runner'), "task.textproto:1", None),
    ("a comma for a point", put("3.2 - 1", "3,2 - 1"), "several values, separated by commas", 11),
    ("a name with a capital and a blank", put('name: "runner"', 'name: "My Robot"'), "other characters than a-z, 0-9 and _", 1),
    ("the name of a task of the register", put('name: "runner"', 'name: "cartpole"'), "is a task of the register", 1),
    ("a model that does not exist", put("model.xml", "nope.xml"), "there is no file", 2),
    ("** for ^", put("action.bthigh^2", "action.bthigh**2"), "reward: column", 10),
    ("Python's and", add('absorbing: "rootz > 1 and rooty > 2"'), 'unknown name "and"', 16),
    ("a motion of a body without mocap", add('motion { body: "torso" speed: 1 x { low: 0 high: 1 } }'), "mocap", 16),
    ("a place for a body without a free joint", begin('body { body: "torso" x { low: 0 high: 1 } }'), "neither a free joint nor mocap", 13),
    ("a keyframe that is missing", begin('keyframe: "home"'), "no key of the model matches", 13),
    ("a constant of nan", put("value: 0.05 }", "value: nan }"), "constant[0].value", 9),
    ("an infinite period", put("period: 0.05", "period: inf"), "control.period", 12),
    ("an empty file", lambda text: "", "model: must be set", None),
    ("an assignment", put(COST, "rootz = 3"), 'write "=="', 11),
    ("= for ==", add('absorbing: "rootz = 1"'), 'write "=="', 16),
    ("20,000 parentheses", put(COST, "(" * 20000 + "rootz" + ")" * 20000), "cost[0].value", 11),
    ("an unknown function", put(COST, "rnd(1)"), 'unknown name "rnd"', 11),
    ("a number for an actuator", put("action.bthigh", "action.0"), 'unknown name "action.0"', 10),
    ("a success without a name", add('success: "goal"'), 'unknown name "goal"', 16),
    ("a unit in an expression", put(COST, "rootx_velocity / 3.2 m/s - 1"), "cost[0].value: column", 11),
    ("a constant with a signal's name", put('name: "dt" value', 'name: "rootz" value'), "rootz is used twice", 4),
    ("a constant called time", put('name: "dt"', 'name: "time"'), "time is used twice", 4),
    ("before of before", put("before.rootx", "before.before.rootx"), 'unknown name "before.before.rootx"', 10),
    ("a negative gain", add("constraint_state { actuator_gain: -1 }"), "actuator_gain", 16),
    ("a package that is missing", put('"model.xml"', '"python:no_such_package/model.xml"'), "no package no_such_package", 2),
    ("a viability gain of 0", put("viability_gain: 0.5", "viability_gain: 0"), "viability_gain", 14),
    ("a joint that starts twice", begin('joint { joint: "rootz" position { low: 0 high: 0.1 } }'), "joint rootz has a start already", 13),
    ("a body that starts twice", begin('body { body: "rock" x { low: 0 high: 1 } } body { body: "rock" y { low: 0 high: 1 } }'),
     "body rock has a start already", 13),
    ("a distance that is never kept", begin('body { body: "rock" x { low: 2 high: 4 } keep { from: "torso" at_least: 50 } }'),
     "never holds: in 100 episodes", 13),
    ("a distance below 0", begin('body { body: "rock" x { low: 2 high: 4 } keep { from: "torso" at_least: -1 } }'), "at_least", 13),
    ("a signal twice", put('observation { joint: "rooty" }', 'observation { joint: "rootz" }'), "rootz is used twice", 4),
    ("axes of a joint", put('joint: "rooty" }', 'joint: "rooty" axes: "z" }'), "joints have none", 5),
    ("relative_to of a joint", put('joint: "rooty" }', 'joint: "rooty" relative_to: "torso" }'), "joints have none", 5),
]

# Found by playing, exit code 1: what is not finite.
FOUND = [
    ("a division by a constant of 0", put("value: 0.05 }", "value: 0 }"), "not always finite: reward"),
    ("the root of a negative number", put(COST, "sqrt(rootx_velocity - 9)"), "not always finite: cost speed"),
    ("0/0", put(COST, "0/0"), "not always finite: cost speed"),
    ("an overflow", put(COST, "rootx_velocity * 1e308 * 10"), "not always finite: cost speed"),
    ("an end in the first step", add('absorbing: "1"'), "every episode ends in its first step"),
    ("an end that is not a number", add('absorbing: "0/0"'), "every episode ends in its first step"),
]

# Reported, exit code 0: what the check prints.
REPORTED = [
    ("a cost that is always violated", put(COST, "5"), "starts violate it already: change start or cost"),
    ("a constant reward", put('"(rootx - before.rootx) / dt - 0.1 * action.bthigh^2"', '"0"'), "0            0  constant"),
    ("2,500 observations", lambda text: text + "".join(f'observation {{ name: "o{i}" joint: "rootz" }}\n' for i in range(2500)),
     "such rows make training slow"),
    ("episodes of one step", put("horizon: 100", "horizon: 1"), "horizon 1 steps"),
]


class WrongEditsTest(RunTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.folder, "task.textproto")
        with open(os.path.join(self.folder, "model.xml"), "w", encoding="utf-8") as file:
            file.write(MODEL)

    def check(self, text):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(text)
        return run("task", "check", self.file, "--steps", "100", "--picture", os.path.join(self.folder, "start.png"))

    def expect(self, name, edit, code, words, line=None):
        text = edit(TASK)
        with self.subTest(name):
            self.assertNotEqual(text, TASK)
            result = self.check(text)
            said = result.stdout + result.stderr
            self.assertEqual(result.returncode, code, said[-2000:])
            self.assertIn(words, said)
            if line is not None:
                self.assertIn(f"{self.file}:{line}:", said)

    def test_the_task_passes_before_it_is_edited(self):
        result = self.check(TASK)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("All numbers were finite", result.stdout)

    def test_what_cannot_be_meant_is_refused_with_its_line(self):
        for name, edit, words, line in REFUSED:
            self.expect(name, edit, 2, words, line)

    def test_what_is_not_finite_is_found_by_playing(self):
        for name, edit, words in FOUND:
            self.expect(name, edit, 1, words)

    def test_what_may_be_meant_is_reported_as_a_number(self):
        for name, edit, words in REPORTED:
            self.expect(name, edit, 0, words)

    def test_the_table_has_no_edit_twice(self):
        names = [row[0] for row in REFUSED + FOUND + REPORTED]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 70)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
