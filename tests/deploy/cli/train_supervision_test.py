"""Tests `datacom train` and `datacom sweep` with fake role binaries: start, restart, drain, refuse."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first
from watching import Watch  # noqa: E402

DATACOM = os.path.abspath(sys.argv.pop(1))
FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_role.py")


class TrainSupervisionTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-train-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.control = os.path.join(self.folder, "control")
        self.bin = os.path.join(self.folder, "bin")
        self.run_dir = os.path.join(self.folder, "run")
        os.makedirs(self.control)
        os.makedirs(self.bin)
        for role in ("replay", "learner", "actor"):
            path = os.path.join(self.bin, "datacom-" + role)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!{sys.executable} -SE\n")
                with open(FAKE, encoding="utf-8") as source:
                    file.write(source.read())
            os.chmod(path, 0o755)
        self.watch = Watch(self.folder)
        self.addCleanup(self.watch.close)
        self.incomplete = open(os.path.join(self.control, "incomplete"), "w", encoding="utf-8")
        self.addCleanup(self.incomplete.close)
        fcntl.flock(self.incomplete, fcntl.LOCK_EX)
        self.environment = dict(os.environ, DATACOM_BIN=self.bin, DATACOM_FAKE=self.control)

    def train(self, *arguments, experiment=("cartpole/datacom",)):
        defaults = {"--seeds": "7", "--steps": "3000", "--run-dir": self.run_dir}
        given = [word for flag, word in defaults.items() if flag not in arguments for word in (flag, word)]
        process = subprocess.Popen([DATACOM, "train", "--no-film", *experiment, *given, *arguments], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def start_sweep(self, *arguments, axes=""):
        """Starts a sweep in the folder `swept`: without axes one population with one member."""
        file = os.path.join(self.folder, "one.textproto")
        with open(file, "w", encoding="utf-8") as text:
            text.write('name: "one"\nexperiments: "cartpole/datacom"\nseeds: "7"\nset: "run.env_steps=3000"\n' + axes)
        folder = [] if "--run-dir" in arguments else ["--run-dir", os.path.join(self.folder, "swept")]
        process = subprocess.Popen([DATACOM, "sweep", file, *folder, *arguments], env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def sweep(self, *arguments):
        return self.finish(self.start_sweep(*arguments))

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def tell(self, name, content=""):
        with open(os.path.join(self.control, name), "w", encoding="utf-8") as file:
            file.write(content)

    def lines(self, name):
        try:
            with open(os.path.join(self.control, name), encoding="utf-8") as file:
                return [line.split() for line in file.read().splitlines()]
        except FileNotFoundError:
            return []

    def starts(self, process):
        return [line for line in self.lines("starts") if line[0] == process]

    def complete(self):
        """Lets the learner finish, now and at later starts."""
        fcntl.flock(self.incomplete, fcntl.LOCK_UN)

    def wait(self, condition, what, *processes):
        self.assertTrue(self.watch.wait(condition, PATIENCE, *processes), "no " + what)

    def wait_for_the_end_of(self, name):
        self.wait(lambda: not self.alive(name), "end of " + name, int(self.starts(name)[-1][1]))

    def wait_until_all_run(self):
        def reported():
            return all(os.path.exists(os.path.join(self.run_dir, "cluster", name + ".metrics"))
                       for name in ("replay", "learner", "actor-0", "evaluator-0"))
        self.wait(reported, "address of every role")

    def targets(self, run_dir=None):
        with open(os.path.join(run_dir or self.run_dir, "targets.json"), encoding="utf-8") as file:
            return file.read()

    def finish(self, process):
        output, errors = process.communicate(timeout=PATIENCE)
        return process.returncode, output, errors

    def kill(self, process_name):
        os.kill(int(self.starts(process_name)[-1][1]), signal.SIGKILL)

    def test_a_run_is_complete_when_the_learner_exits_with_0(self):
        process = self.train()
        self.wait_until_all_run()
        self.wait(lambda: '"evaluator"' in self.targets(), "targets")
        self.assertNotIn("__scheme__", self.targets())
        tls = os.path.join(self.folder, "tls")
        subprocess.run([os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), tls], check=True)
        asked = subprocess.run([DATACOM, "status", self.run_dir, "--tls", tls], capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual((asked.returncode, asked.stderr), (2, f"datacom: {self.run_dir} trains without TLS: leave out --tls\n"))
        self.complete()
        code, output, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        self.assertIn("eval J", output)
        self.assertIn("2.500", output)
        self.assertTrue(os.path.exists(os.path.join(self.run_dir, "report.html")))
        self.assertEqual(json.loads(self.targets()), [])
        self.assertTrue(all(start[3] == "True" for start in self.lines("starts")))
        self.assertEqual(sorted(stop[0] for stop in self.lines("stops")), ["actor-0", "evaluator-0", "replay"])

    def test_killed_roles_restart_at_their_addresses(self):
        process = self.train()
        self.wait_until_all_run()
        self.wait(lambda: all(f'"{role}"' in self.targets() for role in ("actor", "replay", "learner", "evaluator")), "targets")
        for name, port in (("actor-0", 20003), ("replay", 20001), ("learner", 20002), ("evaluator-0", 20004)):
            self.kill(name)
            self.wait(lambda name=name: len(self.starts(name)) == 2, "restart of " + name)
            self.assertEqual(self.starts(name)[1][2], f"127.0.0.1:{port}")
        self.complete()
        code, output, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        self.assertIn("actor-0 ended (killed by signal 9); restarting", output)

    def test_a_finished_actor_is_not_restarted_until_a_service_restarts(self):
        self.tell("actor-0.exit", "0")
        process = self.train()
        self.wait(lambda: len(self.starts("evaluator-0")) == 1 and len(self.starts("actor-0")) == 1, "start")
        self.wait(lambda: os.path.exists(os.path.join(self.run_dir, "cluster", "evaluator-0.address")), "evaluator")
        self.wait_for_the_end_of("actor-0")
        self.assertEqual(len(self.starts("actor-0")), 1)
        # train may see the first death of the learner before the end of the actor, but not the second one.
        for starts in (2, 3):
            self.kill("learner")
            self.wait(lambda starts=starts: len(self.starts("learner")) == starts, "start of the learner")
        self.wait(lambda: len(self.starts("actor-0")) >= 2, "second start of the actor")
        self.complete()
        self.assertEqual(self.finish(process)[0], 0)

    def test_a_role_that_refuses_its_configuration_ends_the_run_with_2_at_once(self):
        self.tell("learner.exit", "2")
        code, _, errors = self.finish(self.train())
        self.assertEqual(code, 2)
        self.assertIn("learner refuses to go on", errors)
        self.assertIn("learner explains why it cannot continue", errors)
        self.assertEqual(len(self.starts("learner")), 1)
        self.assertFalse(os.path.exists(self.run_dir), "a start that stored nothing leaves no files")
        os.unlink(os.path.join(self.control, "learner.exit"))
        self.complete()
        self.assertEqual(self.finish(self.train())[0], 0, "the corrected command can use the folder")

    def test_a_resumed_run_keeps_its_folder_when_a_role_refuses_its_configuration(self):
        self.complete()
        self.assertEqual(self.finish(self.train())[0], 0)
        self.tell("learner.exit", "2")
        self.assertEqual(self.finish(self.train("--resume"))[0], 2)
        self.assertTrue(os.path.exists(os.path.join(self.run_dir, "progress.csv")))

    def test_a_resume_without_its_rows_or_checkpoints_is_refused_naming_them(self):
        self.complete()
        self.assertEqual(self.finish(self.train())[0], 0)
        starts = len(self.lines("starts"))
        for lost, word in (("replay", "replay/member_0.rows"), ("checkpoints/1000", "every checkpoint"),
                           ("episodes.csv", "episodes.csv")):
            with self.subTest(lost):
                kept = os.path.join(self.run_dir, "kept")
                os.rename(os.path.join(self.run_dir, lost), kept)
                code, _, errors = self.finish(self.train("--resume"))
                self.assertEqual(code, 2, errors)
                self.assertIn("has lost " + word, errors)
                os.rename(kept, os.path.join(self.run_dir, lost))
        self.assertEqual(len(self.lines("starts")), starts)
        self.assertEqual(self.finish(self.train("--resume"))[0], 0)

    def test_a_role_that_dies_more_than_5_times_in_a_minute_ends_the_run_with_1(self):
        self.tell("replay.exit", "3")
        code, _, errors = self.finish(self.train())
        self.assertEqual(code, 1)
        self.assertIn("replay died again (exit code 3) after 5 restarts within 60 s", errors)
        self.assertIn("replay explains why it cannot continue", errors)
        self.assertIn("--resume", errors)
        self.assertEqual(len(self.starts("replay")), 6)

    def test_a_signal_drains_actors_then_learner_then_replay_and_exits_75(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                process = self.train(*(["--resume"] if number == signal.SIGINT else []))
                self.wait_until_all_run()
                runs = 1 if number == signal.SIGTERM else 2
                self.wait(lambda: all(len(self.starts(role)) == runs for role in ("actor-0", "evaluator-0")), "start")
                process.send_signal(number)
                code, output, errors = self.finish(process)
                self.assertEqual(code, 75, errors)
                self.assertIn(f"resume with: datacom train --run-dir {self.run_dir} --resume\n", output)
                stops = [stop[0] for stop in self.lines("stops")][-4:]
                self.assertEqual(sorted(stops[:2]) + stops[2:], ["actor-0", "evaluator-0", "learner", "replay"])

    def test_a_second_ctrl_c_ends_the_command_and_all_roles_at_once(self):
        self.tell("actor-0.stubborn")
        process = self.train()
        self.wait_until_all_run()
        process.send_signal(signal.SIGINT)
        self.wait(lambda: ["actor-0"] in self.lines("stops"), "drain")
        process.send_signal(signal.SIGTERM)  # changes nothing: the drain has begun
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process)[0], 75)
        self.wait_for_the_end_of("actor-0")

    def alive(self, name):
        try:
            with open(f"/proc/{self.starts(name)[-1][1]}/stat", encoding="utf-8") as file:
                return file.read().split()[2] != "Z"
        except FileNotFoundError:
            return False

    def test_a_killed_train_leaves_no_process_and_can_be_resumed(self):
        process = self.train()
        self.wait_until_all_run()
        with open(os.path.join(self.run_dir, "run_id"), encoding="utf-8") as file:
            run_id = file.read()
        process.kill()
        for name in ("replay", "learner", "actor-0", "evaluator-0"):
            self.wait_for_the_end_of(name)
        process.wait()  # roles end with the thread that started them; the folder's lock ends with the whole process
        self.complete()
        code, _, errors = self.finish(self.train("--resume"))
        self.assertEqual(code, 0, errors)
        with open(os.path.join(self.run_dir, "run_id"), encoding="utf-8") as file:
            self.assertEqual(file.read(), run_id)

    def test_a_run_whose_folder_is_moved_ends_and_goes_on_where_the_folder_is(self):
        process = self.train()
        self.wait_until_all_run()
        moved = os.path.join(self.folder, "moved")
        os.rename(self.run_dir, moved)
        code, _, errors = self.finish(process)
        self.assertEqual(code, 1)
        self.assertIn(f"{self.run_dir}: the run folder was moved or removed", errors)
        self.assertFalse(os.path.exists(self.run_dir))
        self.complete()
        code, _, errors = self.finish(self.train("--run-dir", moved, "--resume"))
        self.assertEqual(code, 0, errors)

    def test_two_trains_in_one_folder_are_refused(self):
        process = self.train()
        self.wait_until_all_run()
        for arguments in ((), ("--resume",)):
            code, _, errors = self.finish(self.train(*arguments))
            self.assertEqual(code, 2)
            self.assertIn("is in use by another `datacom train`; watch it with: datacom status " + self.run_dir, errors)
        self.assertIsNone(process.poll())

    def test_a_folder_with_content_needs_resume_and_resume_needs_a_run(self):
        os.makedirs(self.run_dir)
        code, _, errors = self.finish(self.train("--resume"))
        self.assertEqual(code, 2)
        self.assertIn("nothing to resume", errors)
        with open(os.path.join(self.run_dir, "mine.txt"), "w", encoding="utf-8"):
            pass
        code, _, errors = self.finish(self.train())
        self.assertEqual(code, 2)
        self.assertIn("is not empty and holds no run; name a new folder", errors)
        self.assertEqual(os.listdir(self.run_dir), ["mine.txt"])

    def test_a_folder_that_was_left_before_its_experiment_was_written_can_be_used(self):
        for folder in ("cluster", "logs", "replay", "checkpoints", "policies"):
            os.makedirs(os.path.join(self.run_dir, folder))
        for file in ("cluster/train.lock", "cluster/roles.lock", "run_id.tmp", "experiment.textproto.tmp"):
            with open(os.path.join(self.run_dir, file), "w", encoding="utf-8"):
                pass
        self.complete()
        code, _, errors = self.finish(self.train())
        self.assertEqual(code, 0, errors)

    def test_resume_may_change_few_settings_and_names_any_other_difference(self):
        self.complete()
        self.assertEqual(self.finish(self.train())[0], 0)
        code, _, errors = self.finish(self.train("--resume", "--set", "hyper.cost_budget=11"))
        self.assertEqual(code, 2)
        self.assertIn("--resume may change only run.env_steps, learner.device, learner.kernels, learner.precision, learner.threads and learner.pin_threads. The difference: ", errors)
        self.assertIn("hyper.cost_budget", errors)
        self.assertTrue(errors.endswith(f"\nresume the run as it is with: datacom train --run-dir {self.run_dir} --resume, or start a new "
                                        "run in another --run-dir\n"), errors)
        code, _, errors = self.finish(self.train("--resume", experiment=("cartpole/sac",)))
        self.assertEqual(code, 2)
        self.assertIn("--resume: this is a run of experiment cartpole/datacom, not cartpole/sac; resume it with: datacom train --run-dir "
                      f"{self.run_dir} --resume", errors)
        code, _, errors = self.finish(self.train("--resume", "--seeds", "8"))
        self.assertEqual(code, 2)
        self.assertIn("seed", errors)
        code, _, errors = self.finish(self.train("--resume", "--steps", "2500"))
        self.assertEqual(code, 2)
        self.assertIn("--steps 2500: member 0 has already made 3000 steps; use --steps 3000 or more", errors)
        code, _, errors = self.finish(self.train("--resume", "--steps", "4000", experiment=()))
        self.assertEqual(code, 0, errors)
        with open(os.path.join(self.run_dir, "experiment.textproto"), encoding="utf-8") as file:
            self.assertIn("env_steps: 4000", file.read())

    def test_wrong_usage_exits_2_and_names_the_error(self):
        for arguments, experiment, word in (
                ((), ("cartpole/datacon",), "cartpole/datacon"),
                (("--set", "hyper.cost_bugdet=1"), ("cartpole/datacom",), "cost_bugdet"),
                (("--set", "hyper.accepted_risk=2"), ("cartpole/datacom",), "accepted_risk"),
                (("--seeds", "4-"), ("cartpole/datacom",), "4-"),
                (("--unknown",), ("cartpole/datacom",), "--unknown"),
                (("--steps", "-5"), ("cartpole/datacom",), "--steps: must be a whole number from 1 to 18446744073709551615, not -5"),
                (("--steps", "2.5"), ("cartpole/datacom",), "--steps: must be a whole number from 1 to 18446744073709551615, not 2.5"),
                (("--max-hours", "-1"), ("cartpole/datacom",), "--max-hours: must be a number above 0, not -1"),
                (("--actors", "2", "--lockstep"), ("cartpole/datacom",), "lockstep"),
                ((), (), "experiment")):
            with self.subTest(arguments):
                code, _, errors = self.finish(self.train(*arguments, experiment=experiment))
                self.assertEqual(code, 2, errors)
                self.assertIn(word, errors)
                self.assertFalse(os.path.exists(self.run_dir))

    def test_a_run_that_does_not_fit_on_the_disk_states_its_needs(self):
        code, _, errors = self.finish(self.train("--set", "replay.capacity=10000000000", "--steps", "1000000000000"))
        self.assertEqual(code, 1)
        self.assertIn("not enough disk space", errors)
        self.assertIn("replay rings", errors)
        self.assertIn("are free", errors)
        self.assertEqual(self.lines("starts"), [])

    def test_a_missing_role_binary_is_named(self):
        os.unlink(os.path.join(self.bin, "datacom-learner"))
        code, _, errors = self.finish(self.train())
        self.assertEqual(code, 1)
        self.assertIn("datacom-learner", errors)
        self.assertFalse(os.path.exists(self.run_dir))

    def test_a_run_without_progress_ends_with_1_and_the_reason(self):
        code, _, errors = self.finish(self.train("--stall-minutes", "0.02"))  # fake roles never answer
        self.assertEqual(code, 1)
        self.assertIn("no row, update or evaluation for 0.02 minutes; learner: no answer; replay: no answer", errors)
        self.assertIn("--resume", errors)

    def test_max_hours_drains_and_exits_75(self):
        code, output, _ = self.finish(self.train("--max-hours", "0.00001"))
        self.assertEqual(code, 75)
        self.assertIn("--max-hours", output)

    def test_a_sweep_passes_actors_environments_and_tls_to_its_runs(self):
        tls = os.path.join(self.folder, "tls")
        subprocess.run([os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), tls], check=True)
        process = self.start_sweep("--actors", "2", "--envs", "3", "--tls", tls)
        run = os.path.join(self.folder, "swept", "cartpole-datacom")
        self.wait(lambda: len(self.lines("commands")) == 5 and '"evaluator"' in self.targets(run), "start of every role")
        for target in json.loads(self.targets(run)):
            self.assertEqual(target["labels"]["__scheme__"], "https")
        wrong = f"{run} trains with TLS: its processes answer only with --tls FOLDER, the one that `datacom train` was given"
        asked = [subprocess.run([DATACOM, "status", run, *more], capture_output=True, text=True, check=False, timeout=PATIENCE)
                 for more in ((), ("--json",), ("--tls", tls))]
        self.assertEqual([status.returncode for status in asked], [2, 2, 2])
        self.assertEqual(asked[0].stderr, f"datacom: {wrong}\n")
        self.assertEqual(json.loads(asked[1].stdout), {"error": wrong, "code": 2})
        self.assertEqual(asked[2].stderr, f"datacom: {run} trains with TLS: its processes do not answer with the files of this --tls\n")
        self.complete()
        code, output, errors = self.finish(process)
        self.assertEqual(code, 0, output + errors)
        commands = {line[0]: line for line in self.lines("commands")}
        self.assertEqual(set(commands), {"replay", "learner", "actor-0", "actor-1", "evaluator-0"})
        for actor in ("actor-0", "actor-1"):
            self.assertEqual(commands[actor][commands[actor].index("--envs") + 1], "3")
        for words in commands.values():
            self.assertEqual(words[words.index("--tls") + 1], tls)
        with open(os.path.join(self.folder, "swept", "cartpole-datacom", "cluster", "layout"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "actors 2\nenvironments 3\n")

    def test_a_sweep_checks_the_folder_of_tls_before_it_writes(self):
        code, _, errors = self.sweep("--tls", os.path.join(self.folder, "none"))
        self.assertNotEqual(code, 0)
        self.assertIn(os.path.join(self.folder, "none"), errors)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "swept")))

    def test_a_sweep_drains_after_max_hours_and_can_be_resumed(self):
        code, output, errors = self.sweep("--max-hours", "0.00001")
        self.assertEqual(code, 75, output + errors)
        self.assertIn("--max-hours 1e-05 reached: draining\n", output)
        self.assertIn("run the same command again to resume\n", output)
        self.complete()
        code, output, errors = self.sweep("--max-hours", "1")
        self.assertEqual(code, 0, output + errors)

    def test_a_sweep_that_is_stopped_when_its_first_population_ends_exits_75(self):
        self.tell("evaluator-0.stubborn")
        points = "".join(f'points {{ label: "{horizon}" set: "task_options.horizon={horizon}" }} ' for horizon in (50, 40))
        process = self.start_sweep(axes=f'axes {{ name: "H" {points}}}\n')
        self.wait(lambda: len(self.starts("evaluator-0")) == 1, "start of the evaluator")
        self.complete()
        self.wait(lambda: ["evaluator-0"] in self.lines("stops"), "end of the training")
        process.send_signal(signal.SIGTERM)
        self.assertTrue(any("draining" in line for line in process.stdout))
        self.kill("evaluator-0")
        code, output, errors = self.finish(process)
        self.assertEqual(code, 75, output + errors)
        self.assertIn("run the same command again to resume\n", output)
        self.assertEqual(len(self.starts("learner")), 1)

    def test_a_sweep_in_lockstep_has_one_actor(self):
        code, output, errors = self.sweep("--lockstep", "--render-only")
        self.assertEqual(code, 0, output + errors)
        with open(os.path.join(self.folder, "swept", "cartpole-datacom", "experiment.textproto"), encoding="utf-8") as file:
            self.assertIn("  lockstep: true\n", file.read())
        code, _, errors = self.sweep("--lockstep", "--actors", "2")
        self.assertEqual(code, 2)
        self.assertIn("--actors 2: lockstep runs one actor; leave out --actors", errors)

    def test_a_folder_of_another_kind_is_refused_with_the_command_to_type(self):
        self.assertEqual(self.sweep("--render-only")[0], 0)
        swept = os.path.join(self.folder, "swept")
        held = os.path.join(swept, "cartpole-datacom")
        other, sweep = "or choose another --run-dir", "is the folder of a sweep; resume it with its `datacom sweep` command"
        for arguments, words in ((("--run-dir", held), f"--run-dir {held} holds a run; resume it with: datacom train --run-dir {held} --resume, {other}"),
                                 (("--run-dir", swept), f"--run-dir {swept} {sweep}, or name one of the runs in it"),
                                 (("--run-dir", swept, "--resume"), f"--run-dir {swept} {sweep}"),
                                 (("--run-dir", self.bin), f"--run-dir {self.bin} is not empty and holds no run; name a new folder, "
                                                           f"e.g. --run-dir {self.bin}/run"),
                                 (("--run-dir", FAKE), f"--run-dir {FAKE} is a file; name a folder, e.g. --run-dir runs/first"),
                                 (("--run-dir", self.bin, "--resume"),
                                  f"nothing to resume in {self.bin}: it has no experiment.textproto; start a run there with: "
                                  f"datacom train EXPERIMENT --run-dir {self.bin}")):
            with self.subTest(arguments):
                code, _, errors = self.finish(self.train(*arguments))
                self.assertEqual(code, 2, errors)
                self.assertIn(words, errors)
        code, _, errors = self.sweep("--run-dir", held)
        self.assertEqual(code, 2)
        self.assertIn(f"--run-dir {held} is the folder of a run, not of a sweep; choose another --run-dir", errors)
        code, _, errors = self.sweep("--set", "hyper.cost_budget=3")
        self.assertEqual(code, 2)
        self.assertIn("\nrepeat the options of the sweep's first command, " + other + "\n", errors)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
