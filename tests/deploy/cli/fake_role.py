"""Fake of a role binary for the tests of `datacom train`: reports addresses, waits, and ends as configured.

The folder in DATACOM_FAKE controls it. `<process>.exit` holds a code to exit with at once, after a line in the log. When the
lock on `incomplete` is released, the learner writes its records and exits with 0. `<process>.stubborn` makes it ignore SIGTERM.
In the run folder a replay writes a ring's file; a learner that exits with 0 writes records and a checkpoint. `starts` gets a
line per start (process, pid, listen address), `commands` too (process, arguments), and `stops` a line per SIGTERM (process).
"""
import fcntl
import os
import signal
import sys
import threading

HEADER = ("member,seed,epoch,env_steps,updates,wall_seconds,eval_episodes,eval_discounted_return,eval_return,"
          "eval_max_violation,eval_sum_cost,eval_mean_cost,eval_success_rate,train_episodes,train_return,"
          "train_max_violation,train_sum_cost,delta,alpha,policy_loss,critic_loss,constraint_loss,constraint_mean,"
          "entropy,policy_lag,samples_per_insert,status")
PORTS = {"replay": 20001, "learner": 20002, "actor-0": 20003, "evaluator-0": 20004}


def value(flag, default=""):
    return sys.argv[sys.argv.index(flag) + 1] if flag in sys.argv else default


def append(path, line):
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def complete(control):
    with open(os.path.join(control, "incomplete"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
    os.makedirs(os.path.join(value("--run-dir"), "checkpoints", "1000"), exist_ok=True)
    with open(os.path.join(value("--run-dir"), "episodes.csv"), "w", encoding="utf-8") as file:
        file.write("member,env_steps\n")
    with open(os.path.join(value("--run-dir"), "progress.csv"), "w", encoding="utf-8") as file:
        file.write(HEADER + "\n0,7,0,0,0,0,25,1.5,10,0.2,40,0.1,0,,,,,6,1,,,,,,,,ok\n")
        file.write("0,7,1,3000,1000,12.5,25,2.5,20,0.1,30,0.1,0.5,4,18,0.3,35,5.5,0.9,1,2,3,-1,0.5,3,1,ok\n")
    os._exit(0)


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    role = os.path.basename(sys.argv[0]).replace("datacom-", "")
    process = value("--name", role)
    control = os.environ["DATACOM_FAKE"]

    append(os.path.join(control, "commands"), " ".join([process, *sys.argv[1:]]))
    append(os.path.join(control, "starts"), f"{process} {os.getpid()} {value('--listen')} {'--die-with-parent' in sys.argv}")
    exit_file = os.path.join(control, process + ".exit")
    if os.path.exists(exit_file):
        print(process, "explains why it cannot continue", flush=True)
        with open(exit_file, encoding="utf-8") as file:
            sys.exit(int(file.read()))
    if role == "replay":
        append(os.path.join(value("--dir"), "member_0.rows"), "")
    port = PORTS.get(process, 20010)
    for flag, at in (("--address-file", port), ("--metrics-address-file", port + 1000)):
        with open(value(flag) + ".new", "w", encoding="utf-8") as file:
            file.write(f"127.0.0.1:{at}")
        os.rename(value(flag) + ".new", value(flag))
    if role == "learner":
        threading.Thread(target=complete, args=[control], daemon=True).start()
    while True:
        signal.sigwait([signal.SIGTERM])
        append(os.path.join(control, "stops"), process)
        if not os.path.exists(os.path.join(control, process + ".stubborn")):
            os._exit(75)


main()
# SPDX-License-Identifier: Apache-2.0
