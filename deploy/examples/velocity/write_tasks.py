#!/usr/bin/env python3
"""Writes Safety-Gymnasium's velocity tasks with the models of the installed Gymnasium: write_tasks.py FOLDER [NAME...]

FOLDER/NAME/ then has model.xml, task.textproto, whose cost is the package's 0 or 1, and signed.textproto, whose cost is
speed / limit - 1, for methods that learn from the size of a cost. The names are those of the folder `tasks`. The experiments of the
folder `experiments` lie beside them.

The models belong to Gymnasium (any version from 0.28 on) and are not in this tree. In the copy
* actuators without a name get their joint's,
* places in the world (coordinate="global", which MuJoCo dropped in 2.3.4) are those in the parent's frame,
* geoms that never collide (collision="predefined", dropped as well) say so themselves,
* the floor has no contact margin: newer versions of MuJoCo add the margins of two geoms, older ones took the larger.
The physics stays that of the original (tests/common/tasks/safety_gymnasium_test.py).
"""
import argparse
import importlib.util
import os
import sys
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS, EXPERIMENTS = os.path.join(HERE, "tasks"), os.path.join(HERE, "experiments")
NAMES = sorted(name.removesuffix(".textproto") for name in os.listdir(TASKS))
INDICATOR, SIGNED = ' > limit"', ' / limit - 1"'


def numbers(text):
    return [float(number) for number in text.split()]


def to_parents_frames(body, origin):
    """Replaces places in the world, in bodies that are not turned, by places in the parent's frame."""
    for element in body:
        if element.tag == "body" and set(element.attrib) & {"quat", "euler", "axisangle", "xyaxes", "zaxis"}:
            raise ValueError(f"body {element.get('name')} is turned")
        place = numbers(element.get("pos", "0 0 0"))
        for name in ("pos", "fromto"):
            if name in element.attrib:
                places = numbers(element.get(name))
                element.set(name, " ".join(repr(value - origin[i % 3]) for i, value in enumerate(places)))
        if element.tag == "body":
            to_parents_frames(element, place)


def model(source):
    """The copy of a model."""
    tree = xml.parse(source)
    root = tree.getroot()
    compiler = root.find("compiler")
    if compiler.attrib.pop("coordinate", "local") == "global":
        to_parents_frames(root.find("worldbody"), [0, 0, 0])
    if root.find("option").attrib.pop("collision", "all") == "predefined":
        for geom in root.iter("geom"):
            geom.attrib.update(contype="0", conaffinity="0")
    for geom in root.iter("geom"):
        if geom.get("type") == "plane":
            geom.set("margin", "0")
    for actuator in root.find("actuator"):
        actuator.attrib.setdefault("name", actuator.get("joint"))
    return tree


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(assets, folder, name):
    text = read(os.path.join(TASKS, name + ".textproto"))
    tree = model(os.path.join(assets, name + ".xml"))
    entropy = str(-len(tree.getroot().find("actuator")))  # -1 for each action
    files = {"task": text, "signed": text.replace(INDICATOR, SIGNED)}
    for experiment in os.listdir(EXPERIMENTS):
        content = read(os.path.join(EXPERIMENTS, experiment))
        files[experiment.removesuffix(".textproto")] = content.replace("TASK", name).replace("ENTROPY", entropy)
    os.makedirs(folder, exist_ok=True)
    tree.write(os.path.join(folder, "model.xml"))
    for file, content in files.items():
        with open(os.path.join(folder, file + ".textproto"), "w", encoding="utf-8") as out:
            out.write(content)


def main():
    about, details = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(description=about.split(": ")[0], epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (all)")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"unknown task {', '.join(sorted(unknown))}; the tasks are: {', '.join(NAMES)}")
    package = importlib.util.find_spec("gymnasium")
    if package is None:
        parser.error("Gymnasium, which has the models, is not installed: python3 -m pip install gymnasium")
    assets = os.path.join(os.path.dirname(package.origin), "envs", "mujoco", "assets")
    for name in options.names or NAMES:
        write(assets, os.path.join(options.folder, name), name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0
