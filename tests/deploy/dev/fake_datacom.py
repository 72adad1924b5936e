"""Fake of `datacom train` and `datacom sweep` for the tests of deploy/dev/reproduce.

The folder in DATACOM_FAKE controls it. `exit` holds an entry's name and its exit code. While `wait` exists it writes half a
run (of a sweep the first population and half of the second), waits for SIGTERM and exits with 75. While `eval fails` exists, `eval` does. It adds a line to `starts`:
its arguments, its niceness, its autogroup's niceness ("none" without an autogroup) and whether it leads a session. Each
member gets two rows of progress and four episodes. Its return is that of `returns`, a dictionary by name, less its number / 1000.
"""
import json
import os
import signal
import sys

PROGRESS = "member,seed,epoch,env_steps,wall_seconds,eval_episodes,eval_discounted_return,status"
EPISODES = ("member,session,environment,episode,env_steps,length,discounted_return,return,max_violation,sum_cost,"
            "violating_steps,policy_version")


def value(flag):
    return sys.argv[sys.argv.index(flag) + 1]


def write(folder, name, lines):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def leave_experiment(folder):
    first, last = map(int, value("--seeds").split("-"))
    algorithm = "datacom" if sys.argv[2].endswith("datacom") else "sac"
    write(folder, "experiment.textproto", [f'algorithm: "{algorithm}"', *(f"members {{\n  seed: {seed}\n}}" for seed in range(first, last + 1))])


def leave_run(folder, steps, whole):
    first, last = map(int, value("--seeds").split("-"))
    members = range(last - first + 1)
    leave_experiment(folder)
    try:
        with open(os.path.join(os.environ["DATACOM_FAKE"], "returns"), encoding="utf-8") as file:
            returns = json.load(file)
        returns = [returns[sys.argv[2]] - member / 1000 if sys.argv[2] in returns else 0 for member in members]
    except FileNotFoundError:
        returns = [0.123456789 for _ in members]
    write(folder, "build.txt", ["revision 123", "machine a 486, 1 processors", "started 1994-05-06"])
    write(folder, "progress.csv", [PROGRESS] + [f"{member},{member},{epoch},{made},{made / 1000},25,{returns[member]},ok"
                                                for epoch, made in enumerate([steps // 2, steps][:1 + whole]) for member in members])
    write(folder, "episodes.csv", [EPISODES] + [f"{member},1,0,{i},{100 * i + 100},100,{0.5 + i},2.000001,{i}.5,{10 + i},{i},7"
                                                for i in range(4) for member in members])
    if whole:
        write(folder, "report.html", [])


def autogroup():
    """The file is empty for a process in no autogroup: the kernel could not make one for its session, or they were off."""
    try:
        with open("/proc/self/autogroup", encoding="ascii") as file:
            return (file.read().split() or ["none"])[-1]
    except OSError:
        return "none"


def main():
    if sys.argv[1] == "report":
        return write(os.path.dirname(value("--out")), "report.html", [])
    if sys.argv[1] == "eval" and os.path.exists(os.path.join(os.environ["DATACOM_FAKE"], "eval fails")):
        sys.exit(1)
    if sys.argv[1] == "eval" and "--shield" in sys.argv:
        # Member 0 has two episodes with shield (one abandoned) and two without, member 1 one each.
        print("member,discounted_return,sum_cost,violating_steps,success,abandoned,shield,shield_share")
        return print("0,3,0.5,2,1,0,1,0.25\n0,9,99,99,0,1,1,1\n0,2,4,6,1,0,0,0.5\n0,4,5,9,0,0,0,0.75\n1,1,0,0,0,0,1,0\n1,1,0,0,0,0,0,0.00000000123456789")
    if sys.argv[1] == "eval":
        return print("member,discounted_return\n0,1.23456789\n1," + value("--set").split("=")[1].replace("original", "2").replace("adjusted", "3"))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    control = os.environ["DATACOM_FAKE"]
    with open(os.path.join(control, "starts"), "a", encoding="utf-8") as file:
        file.write(json.dumps([sys.argv[1:], os.nice(0), autogroup(), os.getsid(0) == os.getpid()]) + "\n")
    if os.path.exists(os.path.join(control, "exit")):
        with open(os.path.join(control, "exit"), encoding="utf-8") as file:
            name, code = file.read().split()
        if sys.argv[2] == name:
            sys.exit(int(code))
    waits = os.path.exists(os.path.join(control, "wait"))
    runs = [value("--run-dir")]
    if sys.argv[1] == "sweep":
        runs = [os.path.join(value("--run-dir"), name) for name in ("first", "second")]
        write(value("--run-dir"), "populations.txt", ["first", "second"])
        if "--render-only" in sys.argv:
            return [leave_experiment(run) for run in runs]
        runs = [run for run in runs if not os.path.exists(os.path.join(run, "report.html"))]
    for run in runs:
        leave_run(run, int(value("--steps")), not waits or run != runs[-1])
    if waits:
        signal.sigwait([signal.SIGTERM])
        write(control, "drained", [])
        sys.exit(75)
    return None


main()
# SPDX-License-Identifier: Apache-2.0
