#!/usr/bin/env python3
"""What `datacom` and `./datacom` are while the commands of a page run: makes a command small, then runs the built program.

  small_datacom.py BIN NAME ARGUMENTS...   BIN: folder of the built programs; NAME: datacom or ./datacom

| verb | what becomes of it |
|---|---|
| train | SMALL, where the experiment has more; the first SEEDS seeds; with --resume twice the steps; no film |
| sweep | trains SWEEP, or is only planned when it has many populations; backends for clusters write their files as they are |
| eval | EPISODES episodes |
| render | few frames of few pixels; maps of few points |
| replay-violation | the first violation, where the run has none with the number; a picture instead of a film |
| watch, demo | on a free port; asked once, then stopped |
| bench | not run: pages.py has checked its options |
| ./datacom build, test, fuzz, format, new, lint, setup, help, bench | not run: pages.py has checked their arguments |

A value that the command itself names stays when it is smaller.
"""
import csv
import os
import re
import signal
import subprocess
import sys
import urllib.request

STEPS, SEEDS, EPISODES = 2000, 5, 2
SMALL = {"run.env_steps": STEPS, "run.steps_per_epoch": 1000, "run.eval_episodes": EPISODES, "replay.min_size": 500, "pretrain.updates": 50,
         "planning.random_rows": 500, "task_options.horizon": 200}
SMALL_TEXT = {"network.actor_hidden": "[16,16]", "network.critic_hidden": "[16,16]", "network.constraint_hidden": "[16,16]",
              "planning.hidden": "[16,16]"}
SWEEP = ["--steps", "3000", "--set", "run.steps_per_epoch=1000", "--set", f"run.eval_episodes={EPISODES}",
         "--set", "network.actor_hidden=[16,16]", "--set", "network.critic_hidden=[16,16]"]
POPULATIONS = 2  # a sweep with more is only planned
PICTURE = {"--width": "160", "--height": "96"}
PAGE, MAP = {"--max-frames": "10"}, {"--resolution": "8"}
FILM = {**PICTURE, **PAGE}
DEVELOPER = ("build", "test", "fuzz", "format", "new", "lint", "setup", "help", "bench")


def take(words, option):
    """The values of an option, and the words without it."""
    values, rest, words = [], [], list(words)
    while words:
        word = words.pop(0)
        if word == option and words:
            values.append(words.pop(0))
        elif word.startswith(option + "="):
            values.append(word.split("=", 1)[1])
        else:
            rest.append(word)
    return values, rest


def settings_of(text):
    """The scalar settings of a printed experiment: {"run.env_steps": "1000", ...}; of a list all values, joined."""
    settings, path = {}, []
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            path.append(line[:-1].strip())
        elif line == "}":
            path.pop()
        elif ": " in line:
            key, value = line.split(": ", 1)
            key = ".".join([*path, key])
            settings[key] = f"{settings[key]},{value}" if key in settings else value
    return settings


def seeds_of(text):
    """The first SEEDS of a list such as 0-4 or 0,2,5-7."""
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), min(int(last or first), int(first) + SEEDS) + 1)
    return ",".join(map(str, seeds[:SEEDS]))


def small_train(words, experiment):
    """The words of a `train`. `experiment` returns the settings of a list of words, or None when these are refused."""
    typed, words = take(words, "--steps")
    if "--resume" in words:
        return [*words, "--steps", str(min([2 * STEPS, *map(int, typed)]))] if typed else words
    assigned, words = take(words, "--set")
    seeds, words = take(words, "--seeds")
    if seeds:
        words += ["--seeds", seeds_of(seeds[-1])]
    kept = [word for assignment in assigned for word in ("--set", assignment)]
    steps = ["--steps", typed[-1]] if typed else []
    settings = experiment([*words, *kept, *steps])
    if settings is None:  # the program itself says why
        return [*words, *kept, *steps]
    for path, most in SMALL.items():
        absent = most + 1 if path == "task_options.horizon" else 0  # the task's own
        if float(settings.get(path, absent)) > most:
            assigned = [assignment for assignment in assigned if assignment.split("=")[0] != path] + [f"{path}={most}"]
    for path, value in SMALL_TEXT.items():
        if path in settings:
            assigned = [assignment for assignment in assigned if assignment.split("=")[0] != path] + [f"{path}={value}"]
    return [*words, *(word for assignment in assigned for word in ("--set", assignment))]


def small_render(words):
    out = take(words, "--out")[0]
    ending = os.path.splitext(out[0])[1] if out else ""
    for option, value in (MAP if "--map" in words else {".mp4": FILM, ".html": PAGE}.get(ending, PICTURE)).items():
        words = [*take(words, option)[1], option, value]
    return words


def small_violation(words):
    """The words of a `replay-violation`, with the number of a violation that the run has."""
    words = [re.sub(r"\.mp4$", ".png", word) for word in words]
    try:
        with open(os.path.join(words[1], "ledger", "violations.csv"), encoding="utf-8") as file:
            ids = [row["id"] for row in csv.DictReader(file)]
    except (IndexError, FileNotFoundError):
        return words
    return [*words[:2], *(ids[0] if word.isdigit() and ids and word not in ids else word for word in words[2:3]), *words[3:]]


def watch(program, words):
    """Runs `datacom watch` or `datacom demo` until it has answered once."""
    words = [*take(words, "--listen")[1], "--listen", "127.0.0.1:0"] if words[0] == "watch" else ["demo", "--no-browser"]
    with subprocess.Popen([program, *words], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            match = re.match(r"(?:watch|demo): (http\S+)", line)
            if match:
                with urllib.request.urlopen(match[1], timeout=60) as answer:
                    assert answer.status == 200 and b"<html" in answer.read()
                process.send_signal(signal.SIGINT)
    return process.returncode


def main(folder, name, *words):
    words, program = list(words), os.path.join(folder, "datacom")
    verb = words[0] if words else ""

    def ask(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def experiment(arguments):
        options = [word for option in ("--algorithm", "--seeds", "--steps", "--set")
                   for value in take(arguments, option)[0] for word in (option, value)]
        task = [f"python:{task}" for task in take(arguments, "--python")[0]] or arguments[1:2]
        done = ask("config", *task, *options)
        return settings_of(done.stdout) if done.returncode == 0 else None

    if verb == "bench" or name == "./datacom" and verb in DEVELOPER:
        return 0
    if verb == "train" and "--help" not in words and take(words, "--backend")[0] != ["slurm"]:
        words = [*small_train([word for word in words if word != "--no-film"], experiment), "--no-film"]
    elif verb == "sweep" and not {"--help", "--status", "--render-only"} & set(words) and take(words, "--backend")[0] in ([], ["local"]):
        words = [*take(words, "--steps")[1], *SWEEP]
        seeds, words = take(words, "--seeds")
        words += ["--seeds", seeds_of(seeds[-1]) if seeds else "0"]
        plan = ask(*words, "--render-only")
        populations = re.search(r": (\d+) population", plan.stdout)
        words += ["--render-only"] if populations and int(populations[1]) > POPULATIONS else []
    elif verb == "eval" and "--help" not in words:
        words = [*take(words, "--episodes")[1], "--episodes", str(EPISODES)]
    elif verb == "render" and "--help" not in words:
        words = small_render(words)
    elif verb == "replay-violation":
        words = small_violation(words)
    elif verb in ("watch", "demo") and "--help" not in words:
        return watch(program, words)
    if words != list(sys.argv[3:]):
        print("small:", *words, file=sys.stderr)
        sys.stderr.flush()
    os.execv(program, [program, *words])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
# SPDX-License-Identifier: Apache-2.0
