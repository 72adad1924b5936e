"""A run whose roles are on hosts of their own, which the switch of tests/testing/hosts.py connects."""
import os
import re
import signal
import subprocess

from running import BIN, PATIENCE, SOURCE, TINY, RunFolder, run
from watching import Watch
from hosts import Network

ROLES = ("replay", "learner", "actor-0", "actor-1", "evaluator-0")


class RunOnHosts(RunFolder):
    """The roles of a run, started one by one as on several machines that share only the network (and, here, the disk)."""

    def __init__(self, test, link, seed=0):
        super().__init__(test, "a")
        network = Network(len(ROLES), link, seed)
        test.addCleanup(network.close)
        self.network = network
        self.hosts = dict(zip(ROLES, network.hosts))
        self.processes = {}
        self.addresses = {role: f"{host.address}:7000" for role, host in self.hosts.items()}
        os.makedirs(os.path.join(self.folder, "logs"))

    def start(self, steps, *settings, base=TINY, experiment="cartpole/datacom"):
        overrides = [*base, f"run.env_steps={steps}", *settings]
        resolved = os.path.join(self.folder, "experiment.textproto")
        with open(resolved, "w", encoding="utf-8") as file:
            file.write(run("config", experiment, *(word for item in overrides for word in ("--set", item))).stdout)
            file.write("members { seed: 1 }\n")
        self.start_role("replay", "datacom-replay", "--experiment", resolved, "--dir", os.path.join(self.folder, "replay"))
        self.start_role("learner", "datacom-learner", "--experiment", resolved, "--run-dir", self.folder, "--replay",
                        self.addresses["replay"])
        for role in ("actor-0", "actor-1"):
            self.start_role(role, "datacom-actor", "run", "--replay", self.addresses["replay"], "--learner", self.addresses["learner"],
                            "--name", role)
        self.start_role("evaluator-0", "datacom-actor", "evaluate", "--learner", self.addresses["learner"], "--name", "evaluator-0")

    def start_role(self, role, binary, *arguments):
        command = [os.path.join(BIN, binary), *arguments, "--run-id", "a", "--listen", self.addresses[role], "--die-with-parent"]
        with open(os.path.join(self.folder, "logs", role + ".log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(self.hosts[role].command(*command), stdout=log, stderr=subprocess.STDOUT, cwd=SOURCE)
        self.processes[role] = process
        self.test.addCleanup(process.wait)
        self.test.addCleanup(process.kill)

    def ended(self, roles=ROLES):
        return [role for role in roles if self.processes[role].poll() is not None]

    def wait(self, condition, seconds=PATIENCE, running=ROLES):
        """True when the condition became true in time; if one of the roles `running` exits before that, the test fails."""
        with Watch(self.folder) as watch:
            in_time = watch.wait(lambda: self.ended(running) or condition(), seconds, *(self.processes[role].pid for role in running))
        self.test.assertEqual(self.ended(running), [], self.logs())
        return in_time

    def wait_for_episodes(self, count):
        self.test.assertTrue(self.wait(lambda: len(self.rows("episodes.csv")) >= count), f"no episode {count}" + self.logs())

    def cut(self, some, others):
        """Cuts two sets of roles apart."""
        self.network.cut([self.hosts[role] for role in some], [self.hosts[role] for role in others])

    def check_end(self, steps):
        """Waits for the end; checks that it is exact and that every row came once. Ends the replay."""
        for role in ROLES[1:]:
            self.finish(role)
        self.check_complete(seeds=[0, 1], steps=steps, epochs=steps // 1000)
        end = self.status("learner")
        self.test.assertEqual(end["inserted"], [steps, steps])
        self.test.assertEqual(end["outstanding"], [0, 0])
        kept = self.check_rows(self.addresses["replay"], lambda words: self.hosts["learner"].command(*words))
        self.test.assertEqual(sum(kept.values()), 2 * steps)
        self.processes["replay"].send_signal(signal.SIGTERM)
        self.finish("replay")
        verified = run("verify", self.folder)
        self.test.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        return kept

    def finish(self, role, code=0):
        self.test.assertEqual(self.processes[role].wait(timeout=PATIENCE), code, role + self.logs())

    def told(self, role, asking):
        """What `datacom status` prints on a host about a role."""
        answer = subprocess.run(self.hosts[asking].command(os.path.join(BIN, "datacom"), "status", self.addresses[role]),
                                capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.test.assertEqual(answer.returncode, 0, answer.stderr + self.logs())
        return answer.stdout

    def status(self, asking):
        """The replay's answer to a host, by member and by session."""
        answer = self.told("replay", asking)
        members = re.findall(r"^ +\d+ +\d+ +([\d,]+) +([\d,]+) +([\d,]+) +[\d,]+ +[\d,]+ +[\d,]+ +[\d,]+ +[\d.]+$", answer, re.M)
        numbers = [[int(number.replace(",", "")) for number in member] for member in members]
        self.test.assertEqual(len(numbers), 2, answer)
        return {"inserted": [member[0] for member in numbers], "allowed": [member[1] for member in numbers],
                "outstanding": [member[2] for member in numbers],
                "sessions": re.findall(r"^session (\d+): (\S+), .*, (\w+)$", answer, re.M)}

    def sockets(self, role):
        """The number of open connections of a role's process."""
        folder = f"/proc/{self.processes[role].pid}/fd"
        count = 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(os.path.join(folder, name)).startswith("socket:")
            except FileNotFoundError:  # closed after it was listed
                pass
        return count
# SPDX-License-Identifier: Apache-2.0
