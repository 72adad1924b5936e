"""What the reproduction trains (deploy/results/entries.csv) and how far a folder with its records is.

A folder is that of a run (runs/) or the copy of its records (deploy/results/): both hold experiment.textproto and
progress.csv; a copy may hold progress.csv.xz instead. Standard library only.
"""
import collections
import csv
import io
import lzma
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "deploy", "results")
POPULATIONS = "populations.txt"  # in the folder of a sweep: its run folders, one a line

# verb: train or sweep; name: of the experiment or the sweep; steps: of each member; title: what tables call it.
Entry = collections.namedtuple("Entry", "verb name seeds steps title")
Member = collections.namedtuple("Member", "label rows")  # rows of progress.csv, as dictionaries


def entries(results=RESULTS):
    """In the order of their priority: entries.csv of the results' folder."""
    with open(os.path.join(results, "entries.csv"), encoding="utf-8", newline="") as file:
        return [Entry(row["verb"], row["name"], row["seeds"], int(row["steps"]), row["title"]) for row in csv.DictReader(file)]


def read(folder, name):
    """A file's text, also of one stored as NAME.xz; "" where there is none."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        pass
    try:
        with lzma.open(os.path.join(folder, name + ".xz"), "rt", encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def rows(text):
    """The complete lines of a CSV file as dictionaries: a running learner may have written half a line."""
    return list(csv.DictReader(io.StringIO(text[:text.rfind("\n") + 1])))


def members(folder):
    """Every member that the folder's experiment names, with its rows so far."""
    experiment = read(folder, "experiment.textproto")
    blocks = re.findall(r"^members \{\n(.*?)^\}", experiment, re.M | re.S)
    labels = [re.search(r'^  label: "(.*)"$', block, re.M) for block in blocks]
    found = [Member(label.group(1) if label else "", []) for label in labels]
    for row in rows(read(folder, "progress.csv")):
        found[int(row["member"])].rows.append(row)
    return found


def steps_made(folder):
    """The fewest environment steps that any member of the folder has made."""
    return min((int(member.rows[-1]["env_steps"]) if member.rows else 0 for member in members(folder)), default=0)


def folders(entry, root):
    """The folders with the entry's records below a root: one of a training, one a population of a sweep."""
    folder = os.path.join(root, *entry.name.split("/"))
    if entry.verb == "train":
        return [folder]
    return [os.path.join(folder, name) for name in read(folder, POPULATIONS).split()]


def is_copied(entry, steps, results=RESULTS):
    """Whether the results hold every population of the entry with at least so many steps."""
    copies = folders(entry, results)
    return bool(copies) and all(steps_made(copy) >= steps for copy in copies)
