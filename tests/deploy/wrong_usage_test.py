"""Tests the answers of the built commands to wrong usage: the exit code and the words of the message."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "testing"))
from watching import Watch  # noqa: E402  the path comes first

BIN = os.path.abspath(sys.argv.pop(1))


class WrongUsageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-usage-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.run_dir = os.path.join(self.folder, "run")
        os.makedirs(self.run_dir)
        self.experiment = os.path.join(self.run_dir, "experiment.textproto")
        with open(self.experiment, "w", encoding="utf-8") as file:
            file.write(self.run_it("datacom", "config", "cartpole/datacom").stdout)

    def run_it(self, program, *arguments):
        return subprocess.run([os.path.join(BIN, program), *arguments], capture_output=True, text=True, timeout=60, check=False,
                              cwd=self.folder)

    def expect(self, *arguments, words, code=2, program="datacom"):
        """Expects all the words on standard error, and no log line unless a role answers."""
        with self.subTest(arguments):
            result = self.run_it(program, *arguments)
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
            for word in words:
                self.assertIn(word, result.stderr)
            if program == "datacom":
                self.assertNotRegex(result.stderr, r"(?m)^\d{4}-\d\d-\d\d")

    def test_help_states_the_rule_of_the_best_epoch(self):
        for verb, program in ((("eval",), "datacom"), (("render",), "datacom"), (("export",), "datacom"), (("report",), "datacom"),
                              (("eval",), "datacom-actor"), (("export",), "datacom-actor"), ((), "datacom-render")):
            text = self.run_it(program, *verb, "--help").stdout
            self.assertIn("--epoch best, for each member: of the evaluated epochs whose mean cost sum is within hyper.cost_budget", text)
        self.expect("report", self.run_dir, "--epoch", "3", "--out", "x.html", words=["--epoch", "best"])

    def test_a_number_below_its_range_is_named_with_the_range(self):
        for arguments in (("eval", self.run_dir, "--seed", "-1"), ("eval", self.run_dir, "--member", "-1"),
                          ("render", self.run_dir, "--out", "x.png", "--seed", "-1"),
                          ("render", self.run_dir, "--out", "x.png", "--episode", "-1"),
                          ("export", self.run_dir, "--out", "x", "--member", "-1"), ("replay-violation", self.run_dir, "--", "-1")):
            self.expect(*arguments, words=["must be a whole number from 0 to ", "not -1"])
        for flag, most in (("--seed", 2**64 - 1), ("--member", 2**32 - 1)):
            self.expect("eval", self.run_dir, flag, str(most + 1), words=[f"{flag}: must be a whole number from 0 to {most}, not {most + 1}"])
        self.expect("eval", self.run_dir, "--episodes", "abc", words=["--episodes: must be a whole number from 1 to 4294967295, not abc"])
        self.expect("render", self.run_dir, "--out", "x.png", "--frames", "0", words=["--frames: must be", "from 1 to 2147483647, not 0"])
        self.expect("sweep", "cartpole/cost_budgets", "--steps", "-1", words=["--steps: must be", "from 1 to", "not -1"])

    def test_a_folder_without_an_experiment_is_refused(self):
        for arguments in (("eval", "nosuch"), ("export", "nosuch", "--out", "x"), ("replay-violation", "nosuch", "1"),
                          ("export-dataset", "nosuch", "--out", "x"), ("report", "nosuch", "--out", "x.html")):
            self.expect(*arguments, words=["nosuch is no", "run folder: it has no experiment.textproto"])
        self.expect("rollout", "cartpole", "--actions", "nosuch.csv", words=["datacom-actor: open nosuch.csv"])

    def test_playing_a_run_can_set_only_task_options(self):
        for verb in (("eval",), ("render", "--out", "x.png"), ("render", "--out", "x.png", "--map")):
            self.expect(*verb, self.run_dir, "--set", "run.eval_episodes=3",
                        words=["--set run.eval_episodes=3: only task_options."])

    def test_a_missing_file_or_folder_is_wrong_usage(self):
        self.expect("report", self.run_dir, "--out", "/nonexistent/r.html",
                    words=["--out /nonexistent/r.html: there is no folder /nonexistent"])
        for program, more in (("datacom-replay", ("--dir", "rings")), ("datacom-learner", ("--run-dir", "r", "--replay", "x:1"))):
            self.expect("--experiment", "/nonexistent/e", "--run-id", "x", *more, program=program, words=["--experiment", "/nonexistent/e"])

    def test_an_unknown_verb_is_named_and_the_verbs_listed(self):
        self.expect("frobnicate", words=['unknown verb "frobnicate"; the verbs are: train, sweep, status,'])
        self.expect(words=["name a verb; the verbs are: train, sweep, status,"])

    def test_an_invalid_address_is_named_with_the_expected_form(self):
        roles = {"datacom-replay": ("--listen", "--metrics-listen", "--health-listen", "--healthcheck"),
                 "datacom-learner": ("--listen", "--metrics-listen", "--health-listen", "--healthcheck", "--replay"),
                 "datacom-actor": ("--listen", "--metrics-listen", "--healthcheck", "--replay", "--learner")}
        for program, flags in roles.items():
            for flag in flags:
                self.expect(flag, "foo", program=program, words=[flag + ": must be an address HOST:PORT", "not foo"])
        for address in ("foo:bar", "127.0.0.1:99999", ":7000"):
            self.expect("--listen", address, program="datacom-replay", words=["--listen: must be an address HOST:PORT", "not " + address])
        for address in ("127.0.0.1:99999", "foo:bar", "foo", "foo:0"):
            self.expect("status", address, words=["must be an address HOST:PORT with a port from 1 to 65535, not " + address])

    def test_a_port_in_use_is_reported_in_one_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for flag in ("--listen", "--metrics-listen"):
                result = self.run_it("datacom-replay", "--experiment", self.experiment, "--run-id", "x", "--dir", "rings", flag, address)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stderr, rf"\Adatacom-replay: .*cannot listen on {address}: the port is in use or .*\n\Z")

    def test_status_refuses_the_answer_of_another_run(self):
        address = os.path.join(self.run_dir, "cluster", "replay.address")
        os.makedirs(os.path.dirname(address))
        with open(os.path.join(self.run_dir, "run_id"), "w", encoding="utf-8") as file:
            file.write("mine-1\n")
        with Watch(self.folder) as watch, open(os.path.join(self.folder, "replay.log"), "w", encoding="utf-8") as log:
            replay = subprocess.Popen([os.path.join(BIN, "datacom-replay"), "--experiment", self.experiment, "--run-id", "other-2",
                                       "--dir", os.path.join(self.folder, "rings"), "--address-file", address], stderr=log)
            self.addCleanup(replay.wait)
            self.addCleanup(replay.kill)
            self.assertTrue(watch.wait(lambda: os.path.exists(address) or replay.poll() is not None, 60, replay.pid))
        self.expect("status", self.run_dir, words=["is run mine-1", "belongs to run other-2"])
        with open(os.path.join(self.run_dir, "run_id"), "w", encoding="utf-8") as file:
            file.write("other-2\n")
        self.assertIn("samples/insert", self.run_it("datacom", "status", self.run_dir).stdout)

    def test_wrong_images_or_an_option_of_the_other_backend_are_refused_before_writing(self):
        sweep = ("sweep", "cartpole/cost_budgets", "--seeds", "0", "--dir", "swept", "--backend", "kubernetes")
        self.expect(*sweep, "--images", "http://x y", words=["--images http://x y: write it as registry"])
        self.expect(*sweep, "--jobs", "2", words=["--jobs needs --backend local"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "swept")))

    def test_config_makes_one_member_per_seed(self):
        self.assertEqual(self.run_it("datacom", "config", "cartpole/datacom", "--seeds", "3-5").stdout.count("members {"), 3)
        self.expect("config", "cartpole/datacom", "--seeds", "5-", words=["--seeds", "5-"])

    def test_help_requires_the_run_folder_once(self):
        self.assertEqual(self.run_it("datacom-actor", "eval", "--help").stdout.count("REQUIRED"), 1)


if __name__ == "__main__":
    unittest.main()
