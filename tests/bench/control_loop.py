#!/usr/bin/env python3
"""How long a decision of `datacom.Policy` takes in a control loop, and how late the loop wakes up. Prints as datacom-bench-control-loop does for C.

  PYTHONPATH=deploy/python python3 tests/bench/control_loop.py RUN_OR_FILE HERTZ SECONDS
"""

import sys
import time

import datacom
import numpy as np


def main(source, hertz, seconds):
    policy = datacom.Policy.load(source, epoch="last")
    ticks, period = int(hertz * seconds), 1 / hertz
    decision, late = np.empty(ticks), np.empty(ticks)
    observations = np.sin(0.01 * np.arange(ticks)[:, None] + np.arange(policy.observation_dim))
    start = time.perf_counter()
    for i in range(ticks):
        tick = start + (i + 1) * period
        time.sleep(max(0.0, tick - time.perf_counter()))
        woken = time.perf_counter()
        policy.act(observations[i])
        decision[i], late[i] = time.perf_counter() - woken, woken - tick
    print(f"{policy.experiment}, {hertz:.0f} Hz, {ticks} decisions")
    for name, values in (("decision", decision), ("late", late)):
        median, high, higher, worst = 1e6 * np.quantile(values, [0.5, 0.99, 0.999, 1])
        print(f"{name:9} median {median:8.1f} us   99 % {high:8.1f}   99.9 % {higher:8.1f}   worst {worst:8.1f}")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
# SPDX-License-Identifier: Apache-2.0
