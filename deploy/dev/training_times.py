"""How long the entries of entries.csv take, from the records of those that were trained. Standard library only."""
import math
import os
import re

from results import ROOT, folders, members, seed_count, trained_name


# Microseconds of one core for a row of a member: an update, of safe_loop a planned decision of five iterations (docs/benchmarks.md, one
# machine). Used only as ratios to D-ATACOM's, for a method that was never trained in its task.
MICROSECONDS = {"datacom": 412, "iqn_datacom": 3159, "sac": 241, "atacom_fi": 237, "atacom_nfi": 232, "lag_sac": 316, "wcsac": 375,
                "cbf_sac": 285, "safe_layer_td3": 173, "safe_loop": 129_500}


def read_sweep(name):
    """The experiments of a sweep and the number of its points; no experiments when it is not in deploy/sweeps."""
    try:
        with open(os.path.join(ROOT, "deploy", "sweeps", *name.split("/")) + ".textproto", encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return [], 1
    axes = re.split(r"^axes \{$", text, flags=re.M)[1:]
    points = math.prod(len(re.findall(r"^  points \{", axis, re.M)) for axis in axes)
    return re.findall(r'^experiments: "(.*?)"', text, re.M), points


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
        self.own = {}    # name of an experiment or a sweep -> steps of all members per second, of its longest training
        self.rates = {}  # (task, method) -> (steps of all members per second, entry's name), of its longest training
        longest = {}
        for entry in listed:
            for root in roots:
                steps, seconds = measured(entry, root)
                if seconds <= 0:
                    continue
                if seconds > longest.get(trained_name(entry), 0):
                    longest[trained_name(entry)] = seconds
                    self.own[trained_name(entry)] = steps / seconds
                for kind in self.kinds(entry):
                    if seconds > longest.get(kind, 0):
                        longest[kind] = seconds
                        self.rates[kind] = steps / seconds, entry.name

    @staticmethod
    def kinds(entry):
        """(task, method) of each experiment that the entry trains."""
        names = [trained_name(entry)] if entry.verb == "train" else read_sweep(trained_name(entry))[0]
        return [tuple(name.split("/")) for name in names]

    @staticmethod
    def members(entry):
        if entry.verb == "train":
            return seed_count(entry.seeds)
        experiments, points = read_sweep(trained_name(entry))
        return seed_count(entry.seeds) * len(experiments) * points

    def rate(self, entry):
        """(steps of all members per second or None, what it was measured with)."""
        if trained_name(entry) in self.own:
            return self.own[trained_name(entry)], "measured"
        kinds = self.kinds(entry)
        if not kinds:
            return None, "the sweep is not in deploy/sweeps"
        task, method = kinds[0]
        if (task, method) in self.rates:
            rate, name = self.rates[task, method]
            return rate, f"as {name}"
        base = self.rates.get((task, "datacom"))
        if base is None or method not in MICROSECONDS:
            return None, "nothing like it was trained"
        return base[0] * MICROSECONDS["datacom"] / MICROSECONDS[method], f"from {base[1]} by the cost of an update"
# SPDX-License-Identifier: Apache-2.0
