"""Checks that a completed run lost nothing and has nothing twice: its step files, ledger and records must agree."""
import collections
import csv
import os
import struct

STEP_HEADER = 296  # bytes; then records of a task with one action: session, environment, episode, step, cost, check, action, checksum
STEP = "<4IfIfI"


def require(condition, *what):
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def table(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
        text = file.read()
    require(text.endswith("\n"), name, "ends within a line")
    return list(csv.DictReader(text.splitlines()))


def steps_of(folder, member):
    with open(os.path.join(folder, "ledger", f"member_{member}.steps"), "rb") as file:
        return list(struct.iter_unpack(STEP, file.read()[STEP_HEADER:]))


def check_order(steps, member):
    """Each environment of a session counts its episodes up and the steps of each episode from 0, without gaps."""
    last = {}
    for number, (session, environment, episode, step, *_) in enumerate(steps, start=1):
        before = last.get((session, environment))
        follows = before is not None and (episode, step) == (before[0], before[1] + 1)
        begins = step == 0 and (before is None or episode > before[0])
        require(follows or begins, f"member {member}, transition {number}: episode {episode} step {step} after {before} in",
                f"session {session}, environment {environment}")
        last[session, environment] = (episode, step)


def check_violations(rows, member, steps):
    mine = {int(row["env_steps"]): row for row in rows if int(row["member"]) == member}
    costly = {number for number, step in enumerate(steps, start=1) if step[4] > 0}
    require(set(mine) == costly, f"member {member}: violations.csv and the steps differ in", sorted(set(mine) ^ costly)[:5])
    for number, row in mine.items():
        session, environment, episode, step, cost, _, action, _ = steps[number - 1]
        require([int(row[name]) for name in ("session", "environment", "episode", "step")] == [session, environment, episode, step], row)
        for name, value in (("cost", cost), ("executed_action0", action)):
            require(struct.pack("<f", float(row[name])) == struct.pack("<f", value), "violation", row, name, value)


def check_episodes(rows, member, steps):
    """Each row of episodes.csv has its transitions, and each episode that another one follows has its row."""
    lengths, sums, largest, last = collections.Counter(), collections.Counter(), collections.Counter(), {}
    followed = set()
    for number, (session, environment, episode, _, cost, *_) in enumerate(steps, start=1):
        key = (session, environment, episode)
        lengths[key] += 1
        sums[key] += max(cost, 0.0)
        largest[key] = max(largest[key], cost)
        last[key] = number
        if (session, environment, episode - 1) in lengths:
            followed.add((session, environment, episode - 1))
    recorded = set()
    for row in rows:
        if int(row["member"]) != member:
            continue
        key = tuple(int(row[name]) for name in ("session", "environment", "episode"))
        require(key not in recorded, f"member {member}: episode {key} has two rows")
        recorded.add(key)
        found = (lengths[key], last.get(key), sums[key], largest[key])
        wanted = (int(row["length"]), int(row["env_steps"]), float(row["sum_cost"]), float(row["max_violation"]))
        require(found == wanted, f"member {member}: episode {key} has", wanted, "in episodes.csv and", found, "in the step file")
    require(followed <= recorded, f"member {member}: episodes without a row:", sorted(followed - recorded)[:5])


def check_run(folder, members, env_steps, steps_per_epoch):
    violations, episodes, progress = (table(folder, name) for name in ("ledger/violations.csv", "episodes.csv", "progress.csv"))
    require([int(row["id"]) for row in violations] == list(range(1, len(violations) + 1)), "the ids of violations.csv have a gap")
    for member in range(members):
        steps = steps_of(folder, member)
        require(len(steps) == env_steps, f"member {member}: the step file has {len(steps)} of {env_steps} transitions")
        check_order(steps, member)
        check_violations(violations, member, steps)
        check_episodes(episodes, member, steps)
    epochs = -(-env_steps // steps_per_epoch)
    require(sorted((int(row["epoch"]), int(row["member"])) for row in progress) ==
            [(epoch, member) for epoch in range(epochs + 1) for member in range(members)], "progress.csv has other epochs")
    for row in progress:
        require(int(row["env_steps"]) == min(env_steps, steps_per_epoch * int(row["epoch"])), row)
        require(row["status"] != "diverged", row)


def lockstep_records(folder, members):
    """What equal lockstep runs have in common."""
    progress = [{key: value for key, value in row.items() if key != "wall_seconds"} for row in table(folder, "progress.csv")]
    records = {"progress.csv": progress}
    checkpoints = os.path.join(folder, "checkpoints")
    newest = max((name for name in os.listdir(checkpoints) if name.isdigit()), key=int)
    names = ["episodes.csv", "ledger/violations.csv", *(f"ledger/member_{member}.steps" for member in range(members))]
    for name in [*names, f"checkpoints/{newest}/state.sha256"]:
        with open(os.path.join(folder, name), "rb") as file:
            records[name] = file.read()[STEP_HEADER if name.endswith(".steps") else 0:]  # the header has the run's id
    return records
# SPDX-License-Identifier: Apache-2.0
