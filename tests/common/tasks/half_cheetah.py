"""Plays actions in Gymnasium's HalfCheetah-v5: half_cheetah.py ACTIONS OUT POSITION... VELOCITY...

Writes one line per step: the observation, the reward, the speed. velocity_test.py runs this in a virtual environment.
"""
import csv
import sys

import gymnasium
import numpy


def main():
    state = numpy.array([float(value) for value in sys.argv[3:]])
    environment = gymnasium.make("HalfCheetah-v5").unwrapped
    environment.reset(seed=0)
    environment.set_state(state[:9], state[9:])
    with open(sys.argv[1], encoding="utf-8") as actions, open(sys.argv[2], "w", encoding="utf-8") as out:
        for row in csv.DictReader(actions):
            observation, reward, _, _, facts = environment.step(numpy.array([float(value) for value in row.values()]))
            out.write(",".join(repr(float(value)) for value in [*observation, reward, facts["x_velocity"]]) + "\n")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0
