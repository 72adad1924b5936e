#!/usr/bin/env python3
"""Makes the task `velocity` in a folder: copies the task file beside this script and half_cheetah.xml of an installed Gymnasium.

    python3 -m pip install gymnasium
    python3 deploy/examples/velocity/copy_model.py FOLDER [half_cheetah.xml]

Without a second argument it takes the model of the Gymnasium that this Python finds.
"""
import importlib.util
import os
import shutil
import sys


def installed_model():
    package = importlib.util.find_spec("gymnasium")  # does not import it
    if package is None:
        sys.exit("copy_model.py: this Python has no gymnasium; install it, or name the model file")
    return os.path.join(os.path.dirname(package.origin), "envs", "mujoco", "assets", "half_cheetah.xml")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder, model = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else installed_model()
    if not os.path.isfile(model):
        sys.exit(f"copy_model.py: there is no file {model}")
    os.makedirs(folder, exist_ok=True)
    shutil.copyfile(model, os.path.join(folder, "half_cheetah.xml"))
    here = os.path.dirname(os.path.abspath(__file__))
    shutil.copyfile(os.path.join(here, "velocity.textproto"), os.path.join(folder, "task.textproto"))
    print(os.path.join(folder, "task.textproto"))


if __name__ == "__main__":
    main()
