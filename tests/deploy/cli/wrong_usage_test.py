"""Tests the answers of the built commands to wrong usage: the exit code and the words of the message."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first
from watching import Watch  # noqa: E402

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
        return subprocess.run([os.path.join(BIN, program), *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False,
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

    def sections(self, verb):
        """The parts of a verb's help by their headings."""
        parts = re.split(r"(?m)^([A-Z][-a-z ]*):\n", self.run_it("datacom", verb, "--help").stdout.split("\nExample:")[0])
        return dict(zip(parts[1::2], parts[2::2]))

    def test_all_verbs_have_the_same_options_of_a_run(self):
        train, sweep, config = (self.sections(verb) for verb in ("train", "sweep", "config"))
        shared = {"Options of the experiment": ["--seeds", "--steps", "--set", "--lockstep", "--device"],
                  "Options of the processes": ["--actors", "--envs", "--run-dir", "--max-hours", "--stall-minutes", "--tls", "--quiet",
                                               "--json"]}
        for heading, flags in shared.items():
            self.assertEqual(re.findall(r"(?m)^  (--[a-z-]+)", train[heading]), flags)
            self.assertEqual(train[heading].strip(), sweep[heading].strip())
        self.assertEqual(train["Options of the other backends"].strip(), sweep["Options of the other backends"].strip())
        self.assertEqual(train["Options of the experiment"].strip(), config["Options of the experiment"].strip())
        self.assertNotIn("Options of the processes", config)
        self.assertEqual(re.findall(r"--[a-z-]+", train["Options"]), ["--help", "--algorithm", "--python", "--resume", "--archive", "--no-film", "--host", "--backend"])

    def test_an_option_of_another_verb_is_refused_with_what_to_type_instead(self):
        for verb, flags, reason in (
                ("sweep", ("--resume",), "a sweep resumes by itself; run the same command again without --resume"),
                ("train", ("--jobs", "--max-members"), "train runs one population and does not split it; use `datacom sweep FILE` for several"),
                ("train", ("--render-only",), "train has no plan to print; use `datacom config EXPERIMENT`"),
                ("config", ("--actors", "--envs", "--run-dir", "--max-hours", "--stall-minutes", "--tls", "--quiet", "--json", "--resume"),
                 "config starts no process; give this option to `datacom train`")):
            for flag in flags:
                self.expect(verb, "cartpole/datacom", flag, words=[f"datacom {verb}: {flag}: {reason}\n"])
                self.expect(verb, "cartpole/datacom", flag, "2", words=[f"datacom {verb}: {flag}: {reason}\n"])

    def test_every_verb_shows_itself_in_its_usage(self):
        overview = self.run_it("datacom", "help").stdout
        self.assertEqual(overview, self.run_it("datacom", "--help").stdout)
        verbs = re.findall(r"(?m)^  ([a-z-]+) ", overview.split("Subcommands:\n")[1].split("\n\n")[0])
        self.assertEqual(len(verbs), 21)
        for verb in verbs:
            with self.subTest(verb):
                text = self.run_it("datacom", verb, "--help").stdout
                self.assertRegex(re.search("(?m)^Usage: .*", text).group(), f"^Usage: datacom {verb} ")
                self.assertIn(f"Example: datacom {verb} ", text)
                self.assertEqual("Subcommands:" in text, verb == "task")
        for program in ("datacom-actor", "datacom-replay", "datacom-tools"):
            self.assertIn(f"Usage: {program} [OPTIONS]", self.run_it(program, "--help").stdout)
        self.assertRegex(self.run_it("datacom-tools", "--help").stdout, "(?m)^  replay-violation ")

    def test_a_wrong_option_is_answered_with_an_example_and_the_help(self):
        for arguments, wrong, example in (
                (("train", "cartpole/datacom", "--colour"), "The following argument was not expected: --colour",
                 "datacom train cartpole/datacom --seeds 0-4 --steps 200000 --run-dir runs/five"),
                (("train", "cartpole/datacom", "--device", "gpu"), "--device: gpu not in {cpu,cuda}",
                 "datacom train cartpole/datacom --seeds 0-4 --steps 200000 --run-dir runs/five"),
                (("sweep",), "file is required", "datacom sweep cartpole/cost_budgets --seeds 0-2 --steps 200000"),
                (("config",), "experiment is required", "datacom config cartpole/datacom --set hyper.cost_budget=10"),
                (("status",), "target is required", "datacom status runs/five"),
                (("list", "colours"), "kind: colours not in {tasks,algorithms,experiments,sweeps}", "datacom list algorithms"),
                (("bench", "colours"), "what: colours not in {safety,actor,replay,learner,all}", "datacom bench learner --json bench.json")):
            self.expect(*arguments, words=[f"datacom {arguments[0]}: {wrong}\nExample: {example}\n"
                                           f"`datacom {arguments[0]} --help` lists the options\n"])
        self.expect("--colour", words=["datacom: A subcommand is required; `datacom --help` lists the verbs\n"])

    def test_a_refusal_says_what_to_type_instead(self):
        tasks = [line.split()[0] for line in self.run_it("datacom", "list", "tasks").stdout.splitlines()]
        os.makedirs(os.path.join(self.folder, "robot"))
        with open(os.path.join(self.folder, "robot", "task.textproto"), "w", encoding="utf-8") as file:
            file.write('model: "robot.xml"\n')
        self.assertIn("cartpole", tasks)
        for arguments, words in (
                (("train",), "name an experiment, e.g. datacom train cartpole/datacom; list them with `datacom list experiments`"),
                (("train", "cartpole/datacom", "--resume"),
                 "no run to resume: there is no runs/cartpole-datacom-1; name the folder with --run-dir, or start a run without --resume"),
                (("train", "cartpole", "--algorithm", "datacom", "--resume"),
                 "no run to resume: there is no runs/cartpole-datacom-1; name the folder with --run-dir, or start a run without --resume"),
                (("train", "cartpole/datacom", "--lockstep", "--envs", "3"), "--envs 3: lockstep steps one environment per member, here 1; leave out --envs"),
                (("train", "air_hockey_7dof/datacom", "--set", "learner.batch_size=65536", "--set", "replay.min_size=70000"),
                 "a member's draw of 65542 rows (learner.batch_size + learner.failure_batch_size)"),
                (("train", "moon/datacom"), "cartpole/datacom, "),
                (("train", "run"), "run is a run folder; resume the run with: datacom train --run-dir run --resume"),
                (("report", "run", "--out", "r.pdf"), "--out: r.pdf: a report is a page, FILE.html, or a figure, FILE.svg"),
                (("train", "cartpole"), '"cartpole" is a task; its experiments are: cartpole/datacom, '),
                (("train", "robot"), "robot/task.textproto is a task; name an algorithm too, e.g. robot/task.textproto --algorithm datacom"),
                (("train", "robot", "--algorithm", "sac"), '"robot" is a folder; name its task: robot/task.textproto'),
                (("eval", "robot", "--policy", "zeros"), '"robot" is a folder; name its task: robot/task.textproto'),
                (("report", "x", "y"), "--out is required: it names the file for several runs"),
                (("report", "x"), "x"),
                (("train", "cartpole/datacom", "--set", "task=moon"), ", ".join(tasks)),
                (("train", "cartpole/datacom", "--set", "algorithm=moon"), "datacom, "),
                (("train", "cartpole/dataco"), 'unknown experiment "cartpole/dataco"; did you mean cartpole/datacom? `datacom list experiments` names all'),
                (("train", "cartpole", "--algorithm", "datcom"), "; did you mean datacom?"),
                (("train", "cartpol", "--algorithm", "datacom"), "; did you mean cartpole?"),
                (("eval", "shipped:cartpole/from_scrach"), "; did you mean cartpole/from_scratch?"),
                (("trian", "cartpole"), "; did you mean train?"),
                (("train", "cartpole/datacom", "--stpes", "5"), "not expected: 5 --stpes; did you mean --steps?"),
                (("eval", self.run_dir, "--episode", "5"), "; did you mean --episodes?\n`datacom eval --help` lists the options\n"),
                (("eval", self.run_dir, "--", "--csv"), "not expected: --csv\n`datacom eval"),
                (("task", "check", "--step", "5"), "datacom task check: The following argument was not expected: --step; did you mean --steps?\n"
                 "`datacom task check --help` lists the options\n"),
                (("train", "cartpole/datacom", "--run-dir=", "--quiet"), "--run-dir=: there is no value after ="),
                (("export", self.run_dir, "--out=", "--noise"), "--out=: there is no value after ="),
                (("export", self.run_dir, "--out", "x", "--pairs", "3"), "--pairs: only a graph has recorded pairs beside it; use --format onnx"),
                (("export", self.run_dir, "--out", "x", "--largest", "3"), "--largest: only --format violations keeps violations"),
                (("export-dataset", self.run_dir, "--out", "x", "--member", "0,0"), "datacom: --member: 0 appears twice in 0,0"),
                (("train", "--python", "--seeds", "0"), "--python: name MODULE:CALLABLE of an environment"),
                (("train", "cartpole/datacom", "--archive", ""), "--archive: must not be empty"),
                (("sweep", "cartpole/cost_budgets", "--archive", ""), "--archive: must not be empty"),
                (("train", "cartpole/datacom", "--run-dir", ""), "--run-dir: must not be empty"),
                (("train", "cartpole/datacom", "--tls", ""), "--tls: must not be empty"),
                (("train", "cartpole/datacom", "--host", ""), "--host: must not be empty"),
                (("config", "cartpole/datacom", "--seeds", ""), "--seeds: must not be empty"),
                (("status", self.run_dir, "--tls", ""), "--tls: must not be empty"),
                (("join", self.run_dir, "--tls", ""), "--tls: must not be empty"),
                (("watch", self.run_dir, "--tls", ""), "--tls: must not be empty"),
                (("monitor", self.run_dir, "--listen", ""), "--listen: must not be empty"),
                (("eval", self.run_dir, "--policy", ""), "--policy: must not be empty"),
                (("render", self.run_dir, "--map", "--epoch", "", "--out", "x.png"), "--epoch: must not be empty"),
                (("train", "cartpole/datacom", "--backend", "kubernetes", "--tls-secret", ""), "--tls-secret: must not be empty"),
                (("train", "cartpole/datacom", "--host", "0.0.0.0"), "--host 0.0.0.0 is no address that another machine can name"),
                (("train", "cartpole/datacom", "--host", "::"), "--host :: is no address that another machine can name"),
                (("rollout", "cartpole", "--policy", "zeros", "--init", "x=0,x=1"), "--init: two values of x"),
                (("render", self.run_dir, "--out", "x.png", "--map", "--frames", "3"), "--frames"),
                (("render", "cartpole", "--out", "x.png", "--resolution", "3"), "--resolution requires --map"),
                (("render", "cartpole", "--out", "x.png", "--fps", "5"), "--fps: only for a film, FILE.html or FILE.mp4; --frames sets how many"),
                (("render", "cartpole", "--out", "x.png", "--max-frames", "5"), "--max-frames: only for a film"),
                (("replay-violation", self.run_dir, "1", "--width", "300"), "--width requires --out"),
                (("copy", self.run_dir, "--own"), "--own requires to"),
                (("copy", self.run_dir, "a", "--own"), f"--own: {self.run_dir} is a run folder; name the place of an archive"),
                (("copy", self.folder, "a", "--check"), "is not a run folder"),
                (("copy", self.run_dir, "a", "--json"), "--json"),
                (("sweep", "moon"), 'unknown sweep "moon"; those in '),
                (("sweep", "cartpole/cost_budgets", "--backend", "moon"), "--backend moon: unknown backend; use local, slurm, list or kubernetes"),
                (("sweep", "cartpole/cost_budgets", "--images", "x"),
                 "--images: --backend local uses no images; use --backend kubernetes"),
                (("sweep", "cartpole/cost_budgets", "--backend", "kubernetes", "--max-hours", "1"),
                 "stop it with kubectl delete -k, or use --backend local"),
                (("sweep", "cartpole/cost_budgets", "--backend", "kubernetes", "--tls", self.folder), "name it with --tls-secret"),
                (("train", "cartpole/datacom", "--images", "x"), "--images: --backend local uses no images; use --backend kubernetes"),
                (("train", "cartpole/datacom", "--backend", "kubernetes", "--archive", "x"), "--archive x: a pod keeps nothing on its node"),
                (("sweep", "cartpole/cost_budgets", "--backend", "kubernetes", "--archive", "file:///x"), "--archive file:///x: a pod keeps nothing"),
                (("train", "cartpole/datacom", "--backend", "kubernetes", "--archive", ":s3,secret_access_key=x:b/c"), "its manifest names no secret"),
                (("train", "cartpole/datacom", "--backend", "kubernetes", "--archive", "store:b/c"),
                 "name a Secret with variables such as RCLONE_CONFIG_STORE_TYPE by --archive-secret"),
                (("train", "cartpole/datacom", "--backend", "kubernetes", "--archive", "s3://b/c", "--tls-secret", "x"), "share a pod and use no network"),
                (("train", "cartpole/datacom", "--backend", "kubernetes", "--archive", "s3://b/c", "--archive-secret", "X"),
                 "--archive-secret X is no name of a Secret"),
                (("train", "cartpole/datacom", "--archive", "s3://b/c", "--archive-secret", "x"), "use it with --archive and --backend kubernetes"),
                (("train", "cartpole/datacom", "--backend", "kubernetes", "--archive", "s3://b/c", "--device", "cuda"), "has no LibTorch for a GPU"),
                (("status", "nosuch/run"), "nosuch/run is neither a folder nor an address HOST:PORT with a port from 1 to 65535; "
                                           "e.g. datacom status runs/first, or datacom status 127.0.0.1:7000"),
                (("status", self.folder), "is not a run folder: it has no experiment.textproto; name the --run-dir of a run, e.g. "
                                          "runs/cartpole-datacom-1"),
                (("report", self.run_dir, "--out", "/nonexistent/r.html"), "; make it with: mkdir -p /nonexistent"),
                (("config", "cartpole/datacom", "--set", "hyper.cost_budget=1", "hyper.delta_lr=2"),
                 "hyper.delta_lr=2: each assignment needs a --set of its own: --set hyper.cost_budget=1 --set hyper.delta_lr=2"),
                (("train", "--python", "module:Env", "--set=run.env_steps=1", "members[0].seed=2"),
                 "members[0].seed=2: each assignment needs a --set of its own: --set run.env_steps=1 --set members[0].seed=2"),
                (("eval", "cartpole", "--policy", "zeros", "--set", "task_options.horizon=5", "task_options.action_repeat=2"),
                 "task_options.action_repeat=2: each assignment needs a --set of its own"),
                (("train", "cartpole/from_scratch", "--algorithm", "sac"),
                 "cartpole/from_scratch is an experiment; its task is cartpole. Leave out --algorithm, or name the task with it"),
                (("config", self.experiment, "--algorithm", "sac"), f"{self.experiment} is an experiment; its task is cartpole"),
                (("eval", "cartpole/datacom", "--policy", "zeros"), "cartpole/datacom is an experiment; its task is cartpole"),
                (("rollout", "cartpole/datacom", "--policy", "zeros"), "cartpole/datacom is an experiment; its task is cartpole"),
                (("render", "cartpole/datacom", "--out", "x.png"), "cartpole/datacom is an experiment; its task is cartpole"),
                (("frobnicate",), 'unknown verb "frobnicate"; the verbs are: train, sweep, join, status,')):
            self.expect(*arguments, words=[words])
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{closed.getsockname()[1]}"
            self.expect("status", address, code=1, words=[f"neither a replay nor a learner answers at {address}; RUN_DIR/cluster/replay.address "
                                                          f"has the address of a run on this machine; a run with --tls needs: datacom status "
                                                          f"{address} --tls FOLDER"])

    def test_a_program_without_its_experiments_says_where_it_looked(self):
        for arguments, words in ((("list",), "there is no experiment in /none; DATACOM_EXPERIMENTS names the folder of the experiments"),
                                 (("train", "cartpole/datacom"), 'unknown experiment "cartpole/datacom"; there is none in /none; DATACOM_EXPERIMENTS ')):
            result = subprocess.run([os.path.join(BIN, "datacom"), *arguments], env={**os.environ, "DATACOM_EXPERIMENTS": "/none"}, cwd=self.folder,
                                    capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)

    def test_an_empty_variable_is_as_one_that_is_not_set(self):
        names = ("DATACOM_BIN", "DATACOM_EXPERIMENTS", "DATACOM_LOG", "DATACOM_PLUGINS", "DATACOM_PYTHON", "DATACOM_RESULTS")
        result = subprocess.run([os.path.join(BIN, "datacom"), "config", "cartpole/datacom"], env={**os.environ, **dict.fromkeys(names, "")},
                                cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_benchmark_that_is_not_built_is_named_with_what_builds_it(self):
        result = subprocess.run([os.path.join(BIN, "datacom"), "bench", "actor"], env={**os.environ, "DATACOM_BIN": self.folder}, capture_output=True,
                                text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{self.folder}/datacom-bench-actor is not built; ./datacom bench of a checkout builds and runs it\n", result.stderr)

    def test_the_script_that_makes_certificates_says_why_it_makes_none(self):
        script, broken = os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), os.path.join(self.folder, "tls")
        os.mkdir(broken)
        for name in ("ca.key", "ca.crt"):
            with open(os.path.join(broken, name), "w", encoding="utf-8") as file:
                file.write("no key\n")
        for words, environment, said in (([broken, "abc"], {}, 'make_tls.sh: "abc" is no number of days\n'),
                                         ([broken], {"PATH": self.folder}, "make_tls.sh: openssl is not installed (Debian: openssl)\n"),
                                         ([broken], {}, "make_tls.sh: ")):
            done = subprocess.run([script, *words], env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
            self.assertGreater(len(done.stderr), len("make_tls.sh: \n"))

    def test_help_of_a_verb_is_the_verbs_help(self):
        for verb in ("train", "eval", "join"):
            self.assertEqual(self.run_it("datacom", "help", verb).stdout, self.run_it("datacom", verb, "--help").stdout)
        self.assertEqual(self.run_it("datacom", "help", "train", "--run-dir").stdout, self.run_it("datacom", "train", "--help").stdout)
        self.assertIn("Usage: datacom task check ", self.run_it("datacom", "help", "task", "check").stdout)
        self.expect("help", "trian", words=["; did you mean train?"])

    def test_a_time_that_is_no_number_is_refused_by_a_role(self):
        for value in ("nan", "inf", "0"):
            self.expect("--stall-minutes", value, program="datacom-replay", words=[f"--stall-minutes: must be a number above 0, not {value}"])

    def test_a_role_does_not_take_an_empty_folder_for_no_tls(self):
        for program in ("datacom-replay", "datacom-learner", "datacom-actor"):
            self.expect("--tls", "", program=program, words=["--tls: must not be empty"])

    def test_prometheus_is_told_the_name_of_a_folder_and_no_pattern(self):
        strange = os.path.join(self.folder, "run[1]? it's")
        shutil.copytree(self.run_dir, strange)
        environment = {**os.environ, "PATH": self.folder}  # without Prometheus
        subprocess.run([os.path.join(BIN, "datacom"), "monitor", strange, "--data", "monitor"], cwd=self.folder, env=environment,
                       capture_output=True, timeout=PATIENCE, check=False)
        with open(os.path.join(self.folder, "monitor", "prometheus.yml"), encoding="utf-8") as file:
            self.assertIn(r"/run\[1]\? it''s/targets.json'", file.read())
        star = os.path.join(self.folder, "a*")
        shutil.copytree(self.run_dir, star)
        self.expect("monitor", star, words=["a*: Prometheus takes * in a folder's name for a pattern"])

    def test_help_states_the_rule_of_the_best_epoch(self):
        for verb, program in ((("eval",), "datacom"), (("render",), "datacom"), (("export",), "datacom"), (("report",), "datacom"),
                              (("eval",), "datacom-tools")):
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
        self.expect("render", "cartpole", "--out", "x.html", "--fps", "1e-300", words=["--fps: 1e-300 is not within 0.001 to 1000"])
        self.expect("sweep", "cartpole/cost_budgets", "--steps", "-1", words=["--steps: must be", "from 1 to", "not -1"])

    def test_a_folder_without_an_experiment_is_refused(self):
        for arguments in (("eval", "nosuch"), ("export", "nosuch", "--out", "x"), ("replay-violation", "nosuch", "1"),
                          ("export-dataset", "nosuch", "--out", "x"), ("verify", "nosuch"), ("report", "nosuch", "--out", "x.html")):
            self.expect(*arguments, words=["nosuch is no", "run folder: it has no experiment.textproto"])
        nameless = os.path.join(self.folder, "nameless")
        os.makedirs(nameless)
        with open(os.path.join(nameless, "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write('task: "cartpole"\nalgorithm: "sac"\nnonsense: 1\n')
        self.assertIn("damage: experiment.textproto: 3:9: no field", self.run_it("datacom", "verify", "nameless").stdout)
        with open(os.path.join(nameless, "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write('task: "cartpole"\nalgorithm: "sac"\n')
        self.expect("export-dataset", "nameless", "--out", "x", words=["nameless/experiment.textproto: name: must be set"])
        os.makedirs(os.path.join(self.folder, "kept", "cuts"))
        for verb in ("eval", "status", "verify"):
            self.expect(verb, "kept", words=["kept is not a run folder, but a copy of one; copy it back first: datacom copy kept RUN_DIR"])
        os.makedirs(os.path.join(self.folder, "swept"))
        with open(os.path.join(self.folder, "swept", "populations.txt"), "w", encoding="utf-8") as file:
            file.write("one\n")
        os.makedirs(os.path.join(self.folder, "mine"))
        with open(os.path.join(self.folder, "mine", "task.textproto"), "w", encoding="utf-8") as file:
            file.write('model: "arm.xml"\n')
        for verb in (("eval",), ("verify",), ("render", "--out", "x.png")):
            self.expect(*verb, "swept", words=["swept is not a run folder, but that of a sweep; name one of its runs, which swept/popul"])
            self.expect(*verb, "mine", words=["mine is not a run folder, but that of a task, mine/task.textproto; name that, or a run"])
        self.expect("rollout", "cartpole", "--actions", "nosuch.csv", words=["datacom: open nosuch.csv"])

    def test_playing_a_run_can_set_only_task_options(self):
        for verb in (("eval",), ("render", "--out", "x.png"), ("render", "--out", "x.png", "--map")):
            self.expect(*verb, self.run_dir, "--set", "run.eval_episodes=3",
                        words=["--set run.eval_episodes=3: only task_options."])

    def test_a_missing_file_or_folder_is_wrong_usage(self):
        self.expect("report", self.run_dir, "--out", "/nonexistent/r.html",
                    words=["--out /nonexistent/r.html: there is no folder /nonexistent"])
        task = os.path.join(SOURCE, "deploy", "examples", "cartpole", "task.textproto")
        self.expect("task", "check", task, "--picture", "/nonexistent/p.png", words=["--picture /nonexistent/p.png: there is no folder /nonexistent"])
        self.expect("report", self.run_dir, "--baseline", "/nonexistent/b.csv", words=["--baseline: there is no file /nonexistent/b.csv"])
        self.expect("train", "cartpole/sac", "--backend", "kubernetes", "--images", "x/y:1", "--pods", "/nonexistent/p.yaml", "--run-dir", "new",
                    words=["--pods: there is no file /nonexistent/p.yaml"])
        for program, more in (("datacom-replay", ("--dir", "rings")), ("datacom-learner", ("--run-dir", "r", "--replay", "x:1"))):
            self.expect("--experiment", "/nonexistent/e", "--run-id", "x", *more, program=program, words=["--experiment", "/nonexistent/e"])

    def test_an_unknown_verb_is_named_and_the_verbs_listed(self):
        self.expect("frobnicate", words=['unknown verb "frobnicate"; the verbs are: train, sweep, join, status,'])
        self.expect(words=["name a verb; the verbs are: train, sweep, join, status,"])

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
            self.expect("status", address, words=[address + " is neither a folder nor an address HOST:PORT with a port from 1 to 65535"])

    def test_a_port_in_use_is_reported_in_one_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for flag, cause in (("--listen", "the port is in use or "), ("--metrics-listen", "Address already in use")):
                result = self.run_it("datacom-replay", "--experiment", self.experiment, "--run-id", "x", "--dir", "rings", flag, address)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stderr, rf"\A.* error replay UNAVAILABLE: .*cannot listen on {address}: {cause}.*\n\Z")

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
            self.assertTrue(watch.wait(lambda: os.path.exists(address) or replay.poll() is not None, PATIENCE, replay.pid))
        self.expect("status", self.run_dir, words=["is run mine-1", "belongs to run other-2"])
        with open(os.path.join(self.run_dir, "run_id"), "w", encoding="utf-8") as file:
            file.write("other-2\n")
        self.assertIn("samples/insert", self.run_it("datacom", "status", self.run_dir).stdout)

    def test_join_names_the_replay_that_does_not_answer(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{closed.getsockname()[1]}"
            for name, text in (("run_id", "mine-1"), ("cluster/replay.address", address), ("cluster/learner.address", address)):
                path = os.path.join(self.run_dir, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            join = subprocess.Popen([os.path.join(BIN, "datacom"), "join", "run"], cwd=self.folder, stdout=subprocess.PIPE, text=True)
            self.addCleanup(join.stdout.close)
            self.addCleanup(join.wait)
            self.addCleanup(join.kill)
            self.assertEqual(join.stdout.readline(), f"waiting: no run of run trains now; no replay of run answers at {address} "
                                                     "(that of a run with --tls answers only with --tls FOLDER)\n")
            join.send_signal(signal.SIGINT)
            self.assertEqual(join.wait(PATIENCE), 75)

    def test_wrong_images_or_an_option_of_the_other_backend_are_refused_before_writing(self):
        sweep = ("sweep", "cartpole/cost_budgets", "--seeds", "0", "--run-dir", "swept", "--backend", "kubernetes")
        self.expect(*sweep, "--images", "http://x y", words=["--images http://x y: write it as registry"])
        self.expect(*sweep, "--jobs", "2", words=["--jobs: the cluster decides how many populations run; set the quota in ",
                                                  "/kubernetes/overlays/sweep/quota.yaml, or use --backend local"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "swept")))

    def test_config_makes_one_member_per_seed(self):
        self.assertEqual(self.run_it("datacom", "config", "cartpole/datacom", "--seeds", "3-5").stdout.count("members {"), 3)
        self.expect("config", "cartpole/datacom", "--seeds", "5-", words=["--seeds", "5-"])

    def test_config_of_a_run_folder_prints_the_runs_experiment(self):
        with open(self.experiment, encoding="utf-8") as file:
            self.assertEqual(self.run_it("datacom", "config", "run").stdout, file.read())
        self.assertIn("  cost_budget: 3\n", self.run_it("datacom", "config", "run/", "--set", "hyper.cost_budget=3").stdout)
        shipped = self.run_it("datacom", "config", "cartpole/sac").stdout
        shutil.copytree(self.run_dir, os.path.join(self.folder, "cartpole", "sac"))
        self.assertEqual(self.run_it("datacom", "config", "cartpole/sac").stdout, shipped, "as train takes it")

    def test_help_requires_the_run_folder_once(self):
        self.assertEqual(self.run_it("datacom", "eval", "--help").stdout.count("REQUIRED"), 1)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
