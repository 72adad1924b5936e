"""How long the entries of entries.csv take, from the records of those that were trained. Standard library only."""
import math
import os
import re

from results import ROOT, folders, members


def read_sweep(name):
    """The experiments of a sweep and the number of its points."""
    with open(os.path.join(ROOT, "deploy", "sweeps", *name.split("/")) + ".textproto", encoding="utf-8") as file:
        text = file.read()
    axes = re.split(r"^axes \{$", text, flags=re.M)[1:]
    points = math.prod(len(re.findall(r"^  points \{", axis, re.M)) for axis in axes)
    return re.findall(r'^experiments: "(.*?)"', text, re.M), points


def seed_count(seeds):
    return sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in seeds.split(","))


def measured(entry, root):
    """Steps of all members and seconds of the entry's records below a root."""
    steps, seconds = 0, 0.0
    for run in folders(entry, root):
        own = [member.rows[-1] for member in members(run) if member.rows]
        steps += sum(int(row["env_steps"]) for row in own)
        seconds += max((float(row["wall_seconds"]) for row in own), default=0)  # the members of a population train together
    return steps, seconds


class TrainingTimes:
    def __init__(self, listed, roots):
        self.rates = {}  # (task, method) -> (steps of all members per second, entry's name), of its longest training
        longest = {}
        for entry in listed:
            for root in roots:
                steps, seconds = measured(entry, root)
                if seconds <= 0:
                    continue
                for kind in self.kinds(entry):
                    if seconds > longest.get(kind, 0):
                        longest[kind] = seconds
                        self.rates[kind] = steps / seconds, entry.name

    @staticmethod
    def kinds(entry):
        """(task, method) of each experiment that the entry trains."""
        names = [entry.name] if entry.verb == "train" else read_sweep(entry.name)[0]
        return [tuple(name.split("/")) for name in names]

    @staticmethod
    def members(entry):
        if entry.verb == "train":
            return seed_count(entry.seeds)
        experiments, points = read_sweep(entry.name)
        return seed_count(entry.seeds) * len(experiments) * points

    def rate(self, entry):
        """(steps of all members per second or None, what it was measured with)."""
        task, method = self.kinds(entry)[0]
        if (task, method) in self.rates:
            rate, name = self.rates[task, method]
            return rate, "measured" if name == entry.name else f"as {name}"
        others = [found for (_, other), found in self.rates.items() if other == method]
        others = others or [found for (other, kind), found in self.rates.items() if other == task and kind == "datacom"]
        if not others:
            return None, "nothing like it was trained"
        rate, name = min(others)
        return rate, f"as {name}"
# SPDX-License-Identifier: Apache-2.0
