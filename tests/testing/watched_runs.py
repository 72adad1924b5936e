"""Helpers of the tests of `datacom watch`: the command, its stream of events, and run folders whose files a test writes."""
import http.client
import json
import os
import re
import signal
import subprocess

from patience import PATIENCE


class Watching:
    """One `datacom watch`. Use as a context manager."""

    def __init__(self, datacom, *arguments):
        self._process = subprocess.Popen([datacom, "watch", *arguments], stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        found = re.fullmatch(r"watch: http://(\S+:\d+)/ shows the runs until Ctrl-C\n", line)
        if not found:
            self.__exit__()
            raise RuntimeError(f"the command says {line!r}")
        self.address = found.group(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def end(self, number=signal.SIGTERM):
        """Sends a signal; returns the exit code."""
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)

    def threads(self):
        return len(os.listdir(f"/proc/{self._process.pid}/task"))


class Stream:
    """The events of a `datacom watch`, and the state that they lead to. Use as a context manager."""

    def __init__(self, address):
        self._connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        self._connection.request("GET", "/events")
        self._answer = self._connection.getresponse()
        if self._answer.status != 200:
            raise RuntimeError(f"status {self._answer.status}")
        self.names, self.state = [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._answer.close()
        self._connection.close()

    @staticmethod
    def apply(document, operations):
        """Changes a document by the operations add, remove and replace of a JSON patch (RFC 6902)."""
        for operation in operations:
            keys = [key.replace("~1", "/").replace("~0", "~") for key in operation["path"].split("/")[1:]]
            node = document
            for key in keys[:-1]:
                node = node[int(key) if isinstance(node, list) else key]
            key = keys[-1]
            if isinstance(node, list):
                key = len(node) if key == "-" else int(key)
            if operation["op"] == "remove":
                del node[key]
            elif operation["op"] == "add" and isinstance(node, list):
                node.insert(key, operation["value"])
            else:
                node[key] = operation["value"]

    def _next(self):
        name = data = ""
        while True:
            line = self._answer.readline().decode()
            if not line.endswith("\n"):
                raise RuntimeError("the stream has ended")
            if line.startswith("event: "):
                name = line[7:-1]
            elif line.startswith("data: "):
                data = line[6:-1]
            elif line == "\n" and name:
                return name, json.loads(data)

    def wait(self, condition):
        """Reads events until the condition holds for the state; returns the state."""
        while self.state is None or not condition(self.state):
            name, value = self._next()
            self.names.append(name)
            if name == "state":
                self.state = value
            else:
                self.apply(self.state, value)
        return self.state


class WrittenRun:
    """A run folder that looks as if a training of two members wrote it."""

    COLUMNS = "member,seed,epoch,env_steps,updates,wall_seconds,eval_return,eval_success_rate,eval_sum_cost,status,abandoned_reason\n"
    VIOLATION = "id,member,seed,actor,session,environment,episode,step,env_steps,policy_version,delta,cvar,slack,cost,raw_action0,executed_action0\n"

    def __init__(self, datacom, folder, *arguments):
        self.folder, self.progress = folder, os.path.join(folder, "progress.csv")
        self.violations = os.path.join(folder, "ledger", "violations.csv")
        os.makedirs(os.path.dirname(self.violations))
        command = [datacom, "config", "cartpole/datacom", "--seeds", "0-1", "--steps", "10000", *arguments]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name, content in (("experiment.textproto", text), ("progress.csv", self.COLUMNS), ("ledger/violations.csv", self.VIOLATION)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)

    def add_epoch(self, epoch, returns=(1, 2), cost=0.5, statuses=("ok", "ok")):
        reason = {"abandoned": "in step 21 the reward is not finite"}
        with open(self.progress, "a", encoding="utf-8") as file:
            file.write("".join(f"{member},{member},{epoch},{1000 * epoch},{500 * epoch},{epoch},{value},1,{cost},{statuses[member]},"
                               f"{reason.get(statuses[member], '')}\n"
                               for member, value in enumerate(returns)))

    def add_episodes(self, member, costs):
        """Training episodes of a member with these cost sums, 100 steps each; once for a member."""
        path = os.path.join(self.folder, "episodes.csv")
        header = "" if os.path.exists(path) else "member,env_steps,sum_cost,max_violation,violating_steps\n"
        with open(path, "a", encoding="utf-8") as file:
            file.write(header + "".join(f"{member},{100 * (i + 1)},{cost},{cost / 4},{4 if cost else 0}\n" for i, cost in enumerate(costs)))

    def add_violations(self, first, last):
        with open(self.violations, "a", encoding="utf-8") as file:
            file.write("".join(f"{number},1,1,actor-0,4,5,2,7,{10 * number},3,,1.25,,0.5,0,0\n" for number in range(first, last + 1)))
# SPDX-License-Identifier: Apache-2.0
