"""Reads the entries to reproduce (deploy/results/entries.csv) and the progress of a folder with records.

A folder is a run folder (runs/) or a copy of its records (deploy/results/). Both hold experiment.textproto and
progress.csv, a copy compressed as progress.csv.gz. Standard library only.
"""
import collections
import csv
import gzip
import io
import lzma
import math
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "deploy", "results")
POPULATIONS = "populations.txt"  # in the folder of a sweep: its run folders, one per line

# verb: train or sweep; name: of the experiment or the sweep; steps: of each member; title: its name in tables.
Entry = collections.namedtuple("Entry", "verb name seeds steps title")
Member = collections.namedtuple("Member", "label rows")  # rows of progress.csv, as dictionaries


def entries(results=RESULTS):
    """The rows of entries.csv in the results' folder, ordered by priority."""
    with open(os.path.join(results, "entries.csv"), encoding="utf-8", newline="") as file:
        return [Entry(row["verb"], row["name"], row["seeds"], int(row["steps"]), row["title"]) for row in csv.DictReader(file)]


def planned_looks(results=RESULTS):
    """{claim: the seeds of each group at its planned second look}, which `reproduce --until-decided` writes before it trains."""
    return {row["claim"]: int(row["seeds"]) for row in rows(read(results, "looks.csv"))}


def read(folder, name):
    """The text of a file, or of NAME.xz or NAME.gz; "" when none exists."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        pass
    for suffix, module in ((".xz", lzma), (".gz", gzip)):
        try:
            with module.open(os.path.join(folder, name + suffix), "rt", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            pass
    return ""


def rows(text):
    """The complete lines of a CSV file as dictionaries. Drops a last line that a running learner has not finished."""
    return list(csv.DictReader(io.StringIO(text[:text.rfind("\n") + 1])))


def by_member(found):
    """{member: its rows}, in the order of the members."""
    own = {}
    for row in found:
        own.setdefault(int(row["member"]), []).append(row)
    return dict(sorted(own.items()))


def members(folder):
    """Every member in the folder's experiment, with its rows so far."""
    experiment = read(folder, "experiment.textproto")
    blocks = re.findall(r"^members \{\n(.*?)^\}", experiment, re.M | re.S)
    labels = [re.search(r'^  label: "(.*)"$', block, re.M) for block in blocks]
    # The text format writes ' as \'.
    found = [Member(re.sub(r"\\(.)", r"\1", label.group(1)) if label else "", []) for label in labels]
    for row in rows(read(folder, "progress.csv")):
        found[int(row["member"])].rows.append(row)
    return found


# Steps of an episode that nothing ends early, of the tasks in which only a collision does (docs/tasks.md).
HORIZONS = {"navigation": 500}


def collisions(task, experiment, progress, episodes):
    """(env_steps at the end, collided) of each episode of a member; None when the records do not tell.

    Nothing but a collision ends an episode of such a task before the horizon. The first episode of a lane does not count:
    it ends after a random length. It is the member's first one, and one that does not begin where the episode before it
    ended: its lane replaced another, whose last episode was abandoned. A collision in the very last step is not seen.
    """
    merged = any(int(row["episodes"]) > 1 for row in episodes)
    if task not in HORIZONS or merged or any(int(row.get("lanes") or 0) > 1 for row in progress) or \
            re.search(r"^  horizon: ", experiment, re.M):
        return None
    repeat = re.search(r"^  action_repeat: (\d+)", experiment, re.M)
    decisions = math.ceil(HORIZONS[task] / (int(repeat[1]) if repeat else 1))
    found, before = [], None
    for row in episodes:
        end, length = int(row["env_steps"]), int(row["length"])
        if end - length == before:
            found.append((end, length < decisions))
        before = end
    return found


# The result of a training, at its end or at an earlier number of steps, is the mean of the evaluations in the last WINDOW of these steps, or in
# the last third of them if that is shorter.
WINDOW = 100_000


def share_collided(collided, steps):
    """Of the episodes that ended in the last WINDOW up to this number of steps. collided: see collisions. None where there are none."""
    late = [own for end, own in collided or () if steps - WINDOW < end <= steps]
    return sum(late) / len(late) if late else None


def evaluated(progress):
    return [row for row in progress if int(row["eval_episodes"] or 0) > 0]


def result_at(found, column, steps=None):
    """The result in a column, of the evaluations `found`, after a number of steps (default: all); None without any that has it."""
    if steps is None:
        steps = max((int(row["env_steps"]) for row in found), default=0)
    first = steps - min(WINDOW, steps // 3)
    values = [float(row[column]) for row in found if first < int(row["env_steps"]) <= steps and row.get(column)]
    return sum(values) / len(values) if values else None


def ran_away(progress):
    """Whether a member's critic ran away at any time: by its status, or by the temperature's rule (learner/member_watch.h), which older records lack."""
    least = None
    for row in progress:
        if row.get("status") == "runaway":
            return True
        alpha = float(row.get("alpha") or "nan")
        if not alpha > 0:
            continue
        if least is not None and alpha > 0.1 and alpha > 30 * least:
            return True
        least = alpha if least is None else min(least, alpha)
    return False


def runaways(results=RESULTS):
    """(members whose critic ran away, all members) of a results' folder."""
    found = [ran_away(member.rows) for entry in entries(results) for copy in folders(entry, results) for member in members(copy) if member.rows]
    return sum(found), len(found)


def steps_made(folder):
    """The fewest environment steps that any member of the folder has made."""
    return min((int(member.rows[-1]["env_steps"]) if member.rows else 0 for member in members(folder)), default=0)


def parts(entry):
    """The trainings of an entry with seeds like "0-4,5-6": a part for each range, since later seeds are added when the first ones are trained. The
    first part has the entry's name, and so its folder; the others are NAME+RANGE."""
    first, *later = entry.seeds.split(",")
    return [entry._replace(seeds=first), *(entry._replace(name=f"{entry.name}+{seeds}", seeds=seeds) for seeds in later)]


def trained_name(entry):
    """The name of the experiment or the sweep that an entry or a part of one trains."""
    return entry.name.partition("+")[0]


def folders(entry, root):
    """The folders below a root that hold the entry's records: one for a training, one per population for a sweep."""
    found = []
    for part in parts(entry):
        folder = os.path.join(root, *part.name.split("/"))
        names = [""] if entry.verb == "train" else read(folder, POPULATIONS).split()
        found += [os.path.join(folder, name) if name else folder for name in names]
    return found


def seed_count(seeds):
    return sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in seeds.split(","))


def has_seeds(entry, copy):
    """Whether a copy has as many seeds as the entry, whose seeds may have been changed since. A population of a sweep has some of them."""
    return entry.verb != "train" or len(members(copy)) == seed_count(entry.seeds)


def is_copied(entry, steps, results=RESULTS):
    """True when the results hold every population of the entry with at least `steps` steps."""
    copies = [(part, folders(part, results)) for part in parts(entry)]
    return all(own and all(steps_made(copy) >= steps and has_seeds(part, copy) for copy in own) for part, own in copies)
# SPDX-License-Identifier: Apache-2.0
