"""A run with each role on its own host, connected by a slow network that fails for 20 s and recovers."""
import os
import re
import signal
import subprocess
import time
import unittest

from running import BIN, PATIENCE, SOURCE, TINY, RunFolder, RunTest, run
from watching import Watch
from hosts import Network, unavailable

ONE_WAY_SECONDS = 0.005
PARTITION_SECONDS = 20  # longer than a connection with unacknowledged data survives, shorter than a session's lease
STEPS = 30000
ROLES = ("replay", "learner", "actor-0", "actor-1", "evaluator-0")


class Hosts(RunFolder):
    """The roles of a run, started one by one as on several machines that share only the network (and, here, the disk)."""

    def __init__(self, test):
        super().__init__(test, "a")
        network = Network(len(ROLES), ONE_WAY_SECONDS)
        test.addCleanup(network.close)
        self.network = network
        self.hosts = dict(zip(ROLES, network.hosts))
        self.processes = {}
        self.addresses = {role: f"{host.address}:7000" for role, host in self.hosts.items()}
        os.makedirs(os.path.join(self.folder, "logs"))

    def start(self):
        overrides = [*TINY, f"run.env_steps={STEPS}", "run.checkpoint_updates=5000"]
        experiment = os.path.join(self.folder, "experiment.textproto")
        with open(experiment, "w", encoding="utf-8") as file:
            file.write(run("config", "cartpole/datacom", *(word for item in overrides for word in ("--set", item))).stdout)
            file.write("members { seed: 1 }\n")
        self.start_role("replay", "datacom-replay", "--experiment", experiment, "--dir", os.path.join(self.folder, "replay"))
        self.start_role("learner", "datacom-learner", "--experiment", experiment, "--run-dir", self.folder, "--replay",
                        self.addresses["replay"])
        for role in ("actor-0", "actor-1"):
            self.start_role(role, "datacom-actor", "run", "--replay", self.addresses["replay"], "--learner", self.addresses["learner"],
                            "--name", role)
        self.start_role("evaluator-0", "datacom-actor", "evaluate", "--learner", self.addresses["learner"])

    def start_role(self, role, binary, *arguments):
        command = [os.path.join(BIN, binary), *arguments, "--run-id", "a", "--listen", self.addresses[role], "--die-with-parent"]
        with open(os.path.join(self.folder, "logs", role + ".log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(self.hosts[role].command(*command), stdout=log, stderr=subprocess.STDOUT, cwd=SOURCE)
        self.processes[role] = process
        self.test.addCleanup(process.wait)
        self.test.addCleanup(process.kill)

    def ended(self):
        return [role for role, process in self.processes.items() if process.poll() is not None]

    def wait(self, condition, seconds=PATIENCE):
        """True when the condition became true in time; a role that exits before that fails the test."""
        with Watch(self.folder) as watch:
            in_time = watch.wait(lambda: self.ended() or condition(), seconds, *(process.pid for process in self.processes.values()))
        self.test.assertEqual(self.ended(), [], self.logs())
        return in_time

    def wait_for_episodes(self, count):
        self.test.assertTrue(self.wait(lambda: len(self.rows("episodes.csv")) >= count), f"no episode {count}" + self.logs())

    def finish(self, role, code=0):
        self.test.assertEqual(self.processes[role].wait(timeout=PATIENCE), code, role + self.logs())

    def status(self, asking):
        """The replay's answer to a host, by member and by session."""
        answer = subprocess.run(self.hosts[asking].command(os.path.join(BIN, "datacom"), "status", self.addresses["replay"]),
                                capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.test.assertEqual(answer.returncode, 0, answer.stderr + self.logs())
        members = re.findall(r"^ +\d+ +\d+ +([\d,]+) +([\d,]+) +([\d,]+) +[\d,]+ +[\d,]+ +[\d,]+ +[\d,]+ +[\d.]+$", answer.stdout, re.M)
        numbers = [[int(number.replace(",", "")) for number in member] for member in members]
        self.test.assertEqual(len(numbers), 2, answer.stdout)
        return {"inserted": [member[0] for member in numbers], "allowed": [member[1] for member in numbers],
                "outstanding": [member[2] for member in numbers],
                "sessions": re.findall(r"^session (\d+): (\S+), .*, (\w+)$", answer.stdout, re.M)}

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


@unittest.skipIf(unavailable(), unavailable())
class HostsTest(RunTest):
    def partition(self, run_, some, others, asking, stands_still):
        """Cuts two sets of roles apart for 20 s. The value that `stands_still` names in the status must not change in this time;
        afterwards the same sessions continue and hold no more credit than allowed."""
        before, sockets = run_.status(asking), run_.sockets("replay")
        dropped = run_.network.dropped
        run_.network.cut([run_.hosts[role] for role in some], [run_.hosts[role] for role in others])
        cut = run_.status(asking)
        self.assertFalse(run_.wait(lambda: False, PARTITION_SECONDS))
        late = run_.status(asking)
        self.assertEqual(late[stands_still], cut[stands_still])
        self.assertGreater(run_.network.dropped, dropped, "nothing was cut")
        episodes = len(run_.rows("episodes.csv"))
        run_.network.heal()
        healed = time.monotonic()
        run_.wait_for_episodes(episodes + 20)
        print(f"{some} and {others} apart for {PARTITION_SECONDS} s: training continues {time.monotonic() - healed:.1f} s after healing")
        run_.wait(lambda: run_.status(asking)["sessions"] == before["sessions"])  # one actor may reconnect before the other
        after = run_.status(asking)
        self.assertEqual(after["sessions"], before["sessions"])
        self.assertEqual([state for _, _, state in after["sessions"]], ["connected", "connected"])
        for inserted, allowed, outstanding in zip(after["inserted"], after["allowed"], after["outstanding"]):
            self.assertLessEqual(inserted + outstanding, allowed)
        # Dead connections are closed on both sides.
        self.assertTrue(run_.wait(lambda: run_.sockets("replay") <= sockets), f"{run_.sockets('replay')} sockets, {sockets} before")

    def test_a_failing_network_costs_time_but_no_transition(self):
        run_ = Hosts(self)
        run_.start()
        run_.wait_for_episodes(100)
        self.partition(run_, ["actor-0", "actor-1"], ["replay"], asking="learner", stands_still="inserted")
        self.partition(run_, ["learner"], ["replay"], asking="actor-0", stands_still="allowed")
        for role in ("learner", "actor-0", "actor-1", "evaluator-0"):
            run_.finish(role)
        run_.check_complete(seeds=[0, 1], steps=STEPS, epochs=STEPS // 1000)
        end = run_.status("learner")
        self.assertEqual(end["inserted"], [STEPS, STEPS])
        self.assertEqual(end["outstanding"], [0, 0])
        kept = run_.check_rows(run_.addresses["replay"], lambda words: run_.hosts["learner"].command(*words))
        self.assertEqual(sorted(kept), ["1", "2"])  # no session was lost
        self.assertEqual(sum(kept.values()), 2 * STEPS)
        run_.processes["replay"].send_signal(signal.SIGTERM)
        run_.finish("replay")


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
