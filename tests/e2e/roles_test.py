"""Starts the roles one by one on several hosts, like containers: without names and without `datacom train`."""
import os
import re
import signal
import subprocess
import unittest

from running import BIN, PATIENCE, TINY, RunTest, run
from watching import Watch


def other_host():
    """The first words of a command that gives a process its own host name, or None."""
    for words in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        try:
            if subprocess.run([*words, "hostname", "datacom-test"], capture_output=True, check=False).returncode == 0:
                return words
        except FileNotFoundError:
            return None
    return None


@unittest.skipUnless(other_host(), "this machine cannot give a process its own host name (unshare --uts)")
class RolesTest(RunTest):
    def file(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        try:
            with open(self.file(name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def start(self, host, binary, *arguments, log=None):
        """Starts a role on a host; its log is named after the host, or `log`."""
        command = ["sh", "-c", 'hostname "$0" && exec "$@"', host, os.path.join(BIN, binary), *arguments, "--run-id", "by-hand"]
        with open(self.file((log or host) + ".log"), "w", encoding="utf-8") as out:
            process = subprocess.Popen([*other_host(), *command], stderr=out, stdout=out, cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait(self, condition, *processes):
        with Watch(self.folder) as watch:
            pids = [process.pid for process in processes]
            watch.wait(lambda: condition() or any(process.poll() is not None for process in processes), PATIENCE, *pids)
        logs = "".join(f"--- {name}\n{self.read(name)}" for name in sorted(os.listdir(self.folder)) if name.endswith(".log"))
        self.assertTrue(condition(), logs)

    def service(self, name, *arguments):
        process = self.start(name, "datacom-" + name, "--experiment", self.file("given.textproto"), "--address-file", self.file(name), *arguments)
        self.wait(lambda: self.read(name) != "", process)
        return process, self.read(name).strip()

    def test_actors_are_named_after_their_hosts_and_the_learners_folder_has_all_records(self):
        settings = [*TINY, "run.env_steps=3000", "schedule.tolerance_steps=500"]
        config = run("config", "cartpole/datacom", *(word for item in settings for word in ("--set", item)))
        with open(self.file("given.textproto"), "w", encoding="utf-8") as file:
            file.write(config.stdout)
        replay, replay_address = self.service("replay", "--dir", self.file("rings"))
        learner, learner_address = self.service("learner", "--run-dir", self.file("kept"), "--replay", replay_address)
        learner.send_signal(signal.SIGSTOP)  # no actor can finish before both have registered
        peers = ["--learner", learner_address, "--envs", "4"]
        acting = ["datacom-actor", "run", "--replay", replay_address, *peers]
        actors = [self.start(host, *acting) for host in ("host-a", "host-b")]
        registered = lambda: sorted(re.findall(r"actor registered actor=(\S+) session=", self.read("replay.log")))  # noqa: E731
        self.wait(lambda: len(registered()) >= 2, replay, *actors)
        twin = self.start("host-a", *acting, log="twin")  # the same host name
        self.wait(lambda: "another process acts as host-a and is connected" in self.read("twin.log"), twin, *actors)
        actors[0].kill()
        actors[0].wait()
        self.wait(lambda: registered().count("host-a") == 2, twin, actors[1])
        actors[0] = twin
        learner.send_signal(signal.SIGCONT)
        evaluator = self.start("host-c", "datacom-actor", "evaluate", *peers)
        self.wait(lambda: learner.poll() is not None, learner)
        self.assertEqual(learner.returncode, 0, self.read("learner.log"))
        self.assertEqual([process.wait(PATIENCE) for process in (*actors, evaluator)], [0, 0, 0])
        replay.send_signal(signal.SIGTERM)
        self.assertEqual(replay.wait(PATIENCE), 0, self.read("replay.log"))
        self.assertEqual(registered(), ["host-a", "host-a", "host-b"], "the twin acts once the first is gone")

        os.rename(self.file("given.textproto"), self.file("gone"))
        page = self.file("page.html")
        report = run("report", self.file("kept"), "--out", page)
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertGreater(os.path.getsize(page), 10000)
        played = run("eval", self.file("kept"), "--member", "0", "--epoch", "last", "--episodes", "1")
        self.assertEqual(played.returncode, 0, played.stderr)

    def test_an_actor_that_stays_is_healthy_after_the_end_and_leaves_at_a_signal(self):
        settings = [*TINY, "run.env_steps=1000"]
        config = run("config", "cartpole/datacom", *(word for item in settings for word in ("--set", item)))
        with open(self.file("given.textproto"), "w", encoding="utf-8") as file:
            file.write(config.stdout)
        replay, replay_address = self.service("replay", "--dir", self.file("rings"))
        learner, learner_address = self.service("learner", "--run-dir", self.file("kept"), "--replay", replay_address)
        peers = ["--learner", learner_address, "--envs", "4"]
        stays = self.start("host-a", "datacom-actor", "run", "--replay", replay_address, *peers, "--stay", "--address-file", self.file("health"))
        evaluator = self.start("host-c", "datacom-actor", "evaluate", *peers)
        self.wait(lambda: learner.poll() is not None, learner)
        self.assertEqual([learner.returncode, evaluator.wait(PATIENCE)], [0, 0], self.read("learner.log"))
        self.wait(lambda: "the run has all its rows; waiting" in self.read("host-a.log"), stays)
        late = self.start("host-b", "datacom-actor", "run", "--replay", replay_address, *peers)  # without --stay it ends at once
        self.assertEqual(late.wait(PATIENCE), 0, self.read("host-b.log"))
        asked = subprocess.run([os.path.join(BIN, "datacom-actor"), "--healthcheck", self.read("health").strip()], capture_output=True,
                               text=True, timeout=PATIENCE, check=False)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertIsNone(stays.poll())
        self.assertIn("left session=", self.read("host-a.log"))
        stays.send_signal(signal.SIGTERM)
        self.assertEqual(stays.wait(PATIENCE), 75, self.read("host-a.log"))


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
