#!/usr/bin/env python3
"""Checks the commands of every page as far as that is possible without running them, and tests the means: pages.py, small_datacom.py, PageRun.

usage: pages_test.py BIN [unittest arguments]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import commands_test
import pages
import small_datacom

BIN = os.path.abspath(sys.argv.pop(1))
HELP = {"": "Subcommands:\n  train     Trains\n  task      Makes a task\n  eval      Plays\n",
        "train": "Options:\n  -h,--help\n  --steps UINT   exact number; see --seeds\n  --seeds TEXT\n  --set TEXT ...\n",
        "task": "Usage: datacom task [OPTIONS] SUBCOMMAND\nSubcommands:\n  new    Makes a folder\n", "task new": "Options:\n  --model TEXT\n",
        "eval": "Options:\n  --episodes UINT\n"}


def fence(info, code):
    return f"text\n\n```{info}\n{code}\n```\n"


class Blocks(unittest.TestCase):
    def test_a_block_has_its_language_its_marks_and_the_number_of_its_line(self):
        text = "# title\n\n```sh needs=slurm,gpu exit=2\nsbatch x\n```\n\n* item\n\n  ````python\n  a = 1\n    b\n  ```\n  ````\n\n```text\n"
        with self.assertRaisesRegex(pages.Mistake, "a_page:15: this fence does not end"):
            pages.blocks_of(text, "a_page")
        first, second, third = pages.blocks_of(text + "out\n```\n", "a_page")
        self.assertEqual((first.language, first.marks, first.line, first.code), ("sh", {"needs": "slurm,gpu", "exit": "2"}, 4, "sbatch x\n"))
        self.assertEqual((second.language, second.line, second.code), ("python", 10, "a = 1\n  b\n```\n"))
        self.assertEqual([first.runs, second.runs, third.runs], [False, True, False])

    def test_the_commands_of_a_script_are_found_in_loops_pipes_and_continued_lines(self):
        script = ("A=1 datacom eval a \\\n  --episodes 2 | tail -1 >out.txt 2>&1   # a comment\n"
                  "for i in 1 2; do\n  datacom status \"runs/$i\"\ndone\n"
                  "cat >arm.xml <<'XML'\n<mujoco/>\ndatacom no command\nXML\n"
                  "if cd x && ls; then echo '; kubectl'; fi\n")
        self.assertEqual(pages.commands_of(script), [
            (0, ["datacom", "eval", "a", "--episodes", "2"]), (0, ["tail", "-1"]), (3, ["datacom", "status", "runs/$i"]), (5, ["cat"]),
            (9, ["cd", "x"]), (9, ["ls"]), (9, ["echo", "; kubectl"])])

    def test_an_indented_command_is_found_and_prose_is_not(self):
        text = ("prose\n\n    datacom list\n\n    some output\n    python3 x.py\n\n"
                "* a long item\n    git is named in its second line\n\n```text\n\n    datacom list\n```\n\n    $ ls\n")
        self.assertEqual(pages.unfenced_commands(text), [3, 6, 16])


class Checks(unittest.TestCase):
    def setUp(self):
        self.checker = pages.Checker(commands_test.ROOT, lambda words: HELP[" ".join(words)], ["hyper.tau", "sweep.set"].__contains__)

    def expect(self, text, *wrong):
        """Expects mistakes that contain these parts, in this order, and no other."""
        found = self.checker.check_page(text, "a_page")
        self.assertEqual(len(found), len(wrong), found)
        for line, part in zip(found, wrong):
            self.assertIn(part, line)

    def test_right_commands_pass(self):
        self.expect(fence("sh", "datacom train cartpole/datacom --steps 10 --set=hyper.cost_budget=-1\n"
                                "cd runs && python3 -m x | head -2\nA=1 ./run.sh"))
        self.expect(fence("sh needs=kubernetes", "kubectl apply -k deploy/kubernetes/overlays/plain\nkubectl get $X/deploy/none deploy/{a,b} runs/x"))
        self.expect(fence("python", "a = 1"))
        self.expect(fence("sh", "./datacom build asan deploy_test\n./datacom test --preset tsan -R x -j2\n./datacom test -L '^cluster$'\n"
                                "./datacom fuzz 60 ring && ./datacom new task x --like cartpole\n"
                                "./datacom format --check\n./datacom lint all\n./datacom setup && ./datacom bench peers --any"))
        self.assertEqual(self.checker.count, 17)

    def test_a_wrong_verb_option_or_experiment_fails_also_in_a_marked_block(self):
        for info in ("sh", "sh needs=hours"):
            self.expect(fence(info, "true\ndatacom train x --step 3"), "a_page:5: datacom train --step: unknown option")
            self.expect(fence(info, "datacom trian x"), "a_page:4: datacom trian: unknown verb")
            self.expect(fence(info, "datacom task new x --steps 3\ndatacom task old"), "datacom task new --steps", "datacom task old: unknown verb")
            self.expect(fence(info, "datacom train cartpole/nothing"), "deploy/experiments has no such file")
            self.expect(fence(info, "datacom build"), "datacom build: unknown verb")

    def test_wrong_arguments_of_a_developers_verb_fail(self):
        for command in ("build relase", "test --preset none", "test asan", "fuzz ring", "fuzz 5 rings", "format --chek", "lint a b", "python nothing",
                        "new task x", "new robot x --like sac"):
            self.expect(fence("sh", "./datacom " + command), "not as `./datacom help` says")

    def test_what_may_not_run_needs_a_mark(self):
        self.expect(fence("sh", "ls | kubectl apply -f -"), "a_page:4: kubectl: may not run here")
        self.expect(fence("sh needs=moon", "x"), "needs=moon: use docker, gpu")
        self.expect(fence("sh slow", "ls"), "unknown mark slow")

    def test_pip_installs_only_into_a_virtual_environment(self):
        install = fence("sh needs=network", "pip install ./x.whl && python3 -m pip install y")
        self.expect(install, "a_page:4: pip install before a virtual environment", "a_page:4: pip install before")
        for making in ("python3 -m venv x && . x/bin/activate", "./datacom python hub,film"):
            self.expect(fence("sh needs=network", making) + install)

    def test_a_table_that_a_blank_line_cuts_fails(self):
        table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
        self.expect(f"{table}\n| 3 | 4 |\n", "a_page:5: a blank line cuts the table above")
        self.expect(f"{table}\n{table}\n" + fence("text", "| 1 |\n\n| 2 |"))

    def test_a_setting_that_there_is_not_fails(self):
        self.expect("`hyper.tau`, `hyper.tau=0.1` of `sweep.sbatch`, run.x\n`sweep.set`")
        self.expect("a\n`hyper.tua=1`, `task_file.cots`", "a_page:2: `datacom explain hyper.tua` knows no such setting", "task_file.cots")

    def test_a_path_that_does_not_exist_fails(self):
        self.expect(fence("sh needs=docker", "docker compose -f deploy/compose/compose.yml up"),
                    "a_page:4: deploy/compose/compose.yml does not exist")

    def test_commands_outside_of_fences_for_them_fail(self):
        self.expect("text\n\n    datacom list\n", "a_page:3: a command in an indented block")
        self.expect(fence("text", "$ datacom list"), "a_page:4: a command in a block of another language")
        self.expect(fence("bash", "datacom list"), "```bash: use sh")
        self.expect(fence("", "datacom list"), "a fence without an info string")
        self.expect(fence("python needs=network", "a = "), "a_page:4: Python: ")


class Small(unittest.TestCase):
    PRINTED = ("name: \"x\"\nrun {\n  env_steps: 1000000\n  steps_per_epoch: 10000\n  eval_episodes: 1\n}\nreplay {\n  min_size: 0\n}\n"
               "network {\n  actor_hidden: 128\n  actor_hidden: 128\n}\n")

    def train(self, *words):
        return " ".join(small_datacom.small_train(["train", *words], lambda _: small_datacom.settings_of(self.PRINTED)))

    def test_the_settings_of_a_printed_experiment_are_read(self):
        self.assertEqual(small_datacom.settings_of(self.PRINTED), {
            "name": '"x"', "run.env_steps": "1000000", "run.steps_per_epoch": "10000", "run.eval_episodes": "1", "replay.min_size": "0",
            "network.actor_hidden": "128,128"})

    def test_a_training_becomes_small_where_the_experiment_is_large(self):
        self.assertEqual(self.train("x", "--seeds", "0-24", "--steps", "5000000", "--set", "hyper.tau=1", "--set", "run.steps_per_epoch=5"),
                         "train x --seeds 0,1,2,3,4 --set hyper.tau=1 --set run.env_steps=2000 --set run.steps_per_epoch=1000 "
                         "--set task_options.horizon=200 --set network.actor_hidden=[16,16]")
        self.assertEqual(self.train("--resume", "--steps", "14000"), "train --resume --steps 4000")
        self.assertEqual(self.train("--resume", "--run-dir", "x"), "train --resume --run-dir x")

    def test_a_command_that_the_program_refuses_stays(self):
        words = ["train", "x", "--set", "hyper.a=1", "--steps", "7"]
        self.assertEqual(small_datacom.small_train(words, lambda _: None), words)

    def test_pictures_maps_and_seeds_become_small(self):
        self.assertEqual(small_datacom.small_render(["render", "r", "--width", "900", "--out=x.png"]),
                         ["render", "r", "--out=x.png", "--width", "160", "--height", "96"])
        self.assertEqual(small_datacom.small_render(["render", "r", "--out", "x.mp4"])[-2:], ["--max-frames", "10"])
        self.assertEqual(small_datacom.small_render(["render", "r", "--out", "x.html"]), ["render", "r", "--out", "x.html", "--max-frames", "10"])
        self.assertEqual(small_datacom.small_render(["render", "r", "--map"]), ["render", "r", "--map", "--resolution", "8"])
        self.assertEqual(small_datacom.seeds_of("0,2,5-7,1"), "0,2,5,6,7")

    def test_a_violation_that_the_run_does_not_have_becomes_its_first(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "ledger"))
            with open(os.path.join(folder, "ledger", "violations.csv"), "w", encoding="utf-8") as file:
                file.write("id,member\n4,0\n9,0\n")
            for number, wanted in (("9", "9"), ("17", "4")):
                self.assertEqual(small_datacom.small_violation(["replay-violation", folder, number, "--out", "a.mp4"]),
                                 ["replay-violation", folder, wanted, "--out", "a.png"])


class Runs(unittest.TestCase):
    """Pages that only need bash and Python."""

    def run_page(self, text):
        folder = tempfile.TemporaryDirectory(prefix="datacom-docs-")
        self.addCleanup(folder.cleanup)
        checkout = os.path.join(folder.name, "checkout")
        os.makedirs(os.path.join(checkout, "docs"))
        run = commands_test.PageRun("a_page", checkout, folder.name, dict(os.environ))
        run.run(text)
        return run

    def expect(self, text, *parts):
        failures = self.run_page(text).failures
        self.assertEqual(len(failures), len(parts), failures)
        for failure, part in zip(failures, parts):
            self.assertIn(part, failure)

    def test_folder_variables_and_names_last_from_block_to_block(self):
        run = self.run_page(fence("sh", "X=5; cd docs") + fence("python", "import os\na = os.path.basename(os.getcwd())\nopen('made', 'w').close()") +
                            fence("sh", "ls made && test $X = 5") + fence("python", "assert a == 'docs'") + fence("sh needs=hours", "exit 1; exit 2"))
        self.assertEqual((run.failures, run.executed, run.checked), ([], 5, 2))

    def test_a_failure_has_line_command_code_and_the_last_lines_of_its_output(self):
        self.expect(fence("sh", "echo before\nls /nonexistent 2>&1 | cat\n(exit 7)\ntrue"),
                    "a_page:5: ls /nonexistent 2>&1 | cat\n  exit code 2\n  | ls: cannot access '/nonexistent'", "a_page:6: (exit 7)\n  exit code 7")
        self.expect(fence("python", "def f():\n    return 1 / 0\n\n\nf()"), "a_page:5: return 1 / 0\n  exit code 1\n  | Traceback")
        self.expect(fence("python", "a = = 1"), "a_page:4: a = = 1")

    def test_the_end_of_the_shell_is_a_failure(self):
        self.expect(fence("sh", "true\nexit 0") + fence("sh", "false"), "a_page:5: exit 0\n  exit code 0: the session ended here")

    def test_a_block_that_shows_refusals_must_be_refused(self):
        self.expect(fence("sh exit=2", "(exit 2)\n(exit 2)"))
        self.expect(fence("sh exit=2", "(exit 2)\ntrue\n(exit 3)"), "a_page:6: (exit 3)\n  exit code 3", "a_page:5: ends with 0 and not with 2")

    def test_a_fence_in_a_list_runs_and_output_does_not(self):
        self.expect("* item\n\n  ```sh\n  false\n  ```\n\n" + fence("text", "false"), "a_page:4: false\n  exit code 1")


class Pages(unittest.TestCase):
    def test_the_commands_of_every_page_are_right_as_far_as_they_can_be_checked(self):
        known = {}

        def help_of(words):
            words = tuple(words)
            if words not in known:
                known[words] = subprocess.run([os.path.join(BIN, "datacom"), *words, "--help"], capture_output=True, text=True, check=False).stdout
            return known[words]

        settings = {}

        def knows(setting):
            if setting not in settings:
                settings[setting] = subprocess.run([os.path.join(BIN, "datacom"), "explain", setting], capture_output=True, check=False).returncode == 0
            return settings[setting]

        checker = pages.Checker(commands_test.ROOT, help_of, knows)
        names = pages.pages_of(commands_test.ROOT)
        self.assertIn("README.md", names)
        wrong = []
        for name in names:
            with open(os.path.join(commands_test.ROOT, name), encoding="utf-8") as file:
                wrong += checker.check_page(file.read(), name)
        self.assertFalse(wrong, "\n" + "\n".join(wrong))
        self.assertGreater(checker.count, 50)
        self.assertGreater(len(settings), 50)


class Facts(unittest.TestCase):
    def test_pages_count_the_functions_of_the_c_library(self):
        header = pathlib.Path(commands_test.ROOT, "deploy/robot/datacom_policy.h").read_text(encoding="utf-8")
        words = ["six", "seven", "eight", "nine", "ten"]
        right = words[len(re.findall(r"^[a-z].*\bdatacom_policy_\w+\(", header, re.M)) - 6]
        said = [word for page in pathlib.Path(commands_test.ROOT, "docs").glob("*.md")
                for word in re.findall(rf"\b({'|'.join(words)}) (?:C )?functions\b", page.read_text(encoding="utf-8"))]
        self.assertGreater(len(said), 1)
        self.assertEqual(set(said), {right})


class Hints(unittest.TestCase):
    def test_what_the_code_says_to_install_is_on_pypi(self):
        """datacom itself is not."""
        named = set()
        for path in pathlib.Path(commands_test.ROOT, "deploy").rglob("*.py"):
            named |= set(re.findall(r'pip install "?([\w-]+)', path.read_text(encoding="utf-8")))
        self.assertLessEqual(named, {"gymnasium", "lerobot", "matplotlib", "safety-gymnasium", "stable-baselines3"})


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
