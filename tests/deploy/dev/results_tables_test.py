"""Tests deploy/dev/results_tables against numbers computed by hand, and that --check detects any difference."""
import csv
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first

SCRIPT = os.path.join(SOURCE, "deploy", "dev", "results_tables")
PAGE = "Text before.\n\n<!-- tables: written by deploy/dev/results_tables -->\n<!-- end of the tables -->\nText after.\n"
ENTRIES = """verb,name,seeds,steps,title
train,air_hockey/one,0-2,7000,One
train,air_hockey/two,0,7000,Two
sweep,air_hockey/three,0-1,7000,Three
train,cartpole/one,0-2,7000,One
"""
PROGRESS = ("member,seed,epoch,env_steps,wall_seconds,eval_episodes,eval_discounted_return,eval_max_violation,eval_sum_cost,"
            "eval_success_rate,status\n")
EPISODES = "member,episodes,env_steps,length,discounted_return,return,max_violation,sum_cost,policy_version\n"


class ResultsTablesTest(unittest.TestCase):
    def setUp(self):
        self.results = tempfile.mkdtemp(prefix="datacom-results-")
        self.addCleanup(shutil.rmtree, self.results)
        self.write("README.md", PAGE)
        self.write("entries.csv", ENTRIES)

    def write(self, name, text):
        path = os.path.join(self.results, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with (lzma.open if name.endswith(".xz") else open)(path, "wt", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.results, name), encoding="utf-8") as file:
            return file.read()

    def tables(self, *arguments, code=0):
        result = subprocess.run([sys.executable, SCRIPT, "--results", self.results, *arguments], capture_output=True, text=True,
                                timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr

    def leave(self, name, returns, labels=(), status="ok"):
        """Seven epochs per member. `returns` are those of the last five; the first two must not count."""
        self.write(name + "/experiment.textproto", "".join(
            "members {\n  seed: 0\n" + (f'  label: "{labels[member]}"\n' if labels else "") + "}\n" for member in range(len(returns))))
        self.write(name + "/build.txt", "version 1\nrevision abc\nmachine a 486, 1 processors\nstarted 1994-05-06\n")
        self.write(name + "/progress.csv", PROGRESS + "".join(
            f"{member},0,{epoch},{1000 * epoch + 1000},{3600 * epoch + 3600},{25},{([99, 99] + own)[epoch]},0.5,{10 * member},1,{status}\n"
            for epoch in range(7) for member, own in enumerate(returns)))
        self.write(name + "/episodes.csv.xz", EPISODES + "".join(
            f"{member},2,3000,300,0,0,{0.25 * (member + 1)},{1000 * member},0\n{member},1,3300,300,0,0,0.125,100,0\n"
            for member in range(len(returns))))

    def lines(self):
        return self.read("README.md").splitlines()

    def test_a_row_has_means_of_the_last_five_epochs_and_intervals_over_members(self):
        # Members' means 1, 2, 3: mean 2, deviation 1, half width 4.303 / sqrt(3) = 2.484. Cost sums 0, 10, 20: 10 and 24.84.
        # In training 100, 1100, 2100: 1100 and 2484; largest 0.25, 0.5, 0.75: 0.5 and 0.621.
        self.leave("air_hockey/one", [[0, 1, 1, 1, 2], [2] * 5, [3, 3, 3, 1, 5]])
        self.tables()
        self.assertIn("| One | 7,000 | 3 | 2.0 ± 2.5 | 0.50 ± 0.00 | 10 ± 25 | 1.00 ± 0.00 | 1,100 ± 2,484 | 0.50 ± 0.62 |", self.lines())
        self.assertIn("| `air_hockey/one` | a 486, 1 processors | 1994-05-06 | abc | 7.0 |", self.lines())

    def test_one_member_has_no_interval_and_a_diverged_one_is_counted(self):
        self.leave("air_hockey/two", [[-1.25] * 5], status="diverged")
        self.tables()
        self.assertIn("| Two | 7,000 | 1 (1 diverged) | -1.25 | 0.500 | 0.000 | 1.00 | 100 | 0.250 |", self.lines())

    def test_a_sweep_has_one_row_per_setting_over_all_populations(self):
        self.write("air_hockey/three/populations.txt", "a\nb\n")
        self.leave("air_hockey/three/a", [[1] * 5, [4] * 5], labels=["low", "high"])
        self.leave("air_hockey/three/b", [[3] * 5], labels=["low"])
        self.tables()
        lines = self.lines()
        self.assertIn("**Three**", lines)
        self.assertTrue(any(line.startswith("| low | 7,000 | 2 | 2 ± 13 |") for line in lines), lines)
        self.assertTrue(any(line.startswith("| high | 7,000 | 1 | 4.00 |") for line in lines), lines)

    def test_the_page_lists_the_missing_entries(self):
        self.leave("air_hockey/one", [[1] * 5] * 3)
        self.tables()
        page = self.read("README.md")
        self.assertTrue(page.startswith("Text before.\n") and page.endswith("-->\nText after.\n"), page)
        self.assertIn("## CartPole\n\nNo method has been trained yet.\n", page)
        self.assertEqual(page[page.index("## Still to come"):].split("\n\n")[1].splitlines(), [
            "- `air_hockey/two` (Two): seeds 0, 7,000 steps", "- `air_hockey/three` (Three): seeds 0-1, 7,000 steps",
            "- `cartpole/one` (One): seeds 0-2, 7,000 steps"])

    def test_a_shorter_training_is_shown_and_listed_as_missing(self):
        self.write("entries.csv", ENTRIES.replace("one,0-2,7000", "one,0-2,1000000"))
        self.leave("air_hockey/one", [[1] * 5] * 3)
        self.tables()
        self.assertTrue(any(line.startswith("| One | 7,000 | 3 |") for line in self.lines()))
        self.assertIn("- `air_hockey/one` (One): seeds 0-2, 1,000,000 steps", self.lines())

    def test_check_fails_when_page_and_records_differ_and_changes_nothing(self):
        self.assertIn("+No method has been trained yet.", self.tables("--check", code=1))
        self.assertEqual(self.read("README.md"), PAGE)
        self.leave("air_hockey/one", [[1] * 5] * 3)
        self.tables()
        self.tables("--check")
        written = self.read("README.md")
        self.write("README.md", written.replace("7,000 | 3 | 1", "7,000 | 3 | 2"))
        self.assertIn("the page differs from the records", self.tables("--check", code=1))
        self.write("README.md", written)
        self.leave("air_hockey/one", [[1.5] * 5] * 3)
        self.tables("--check", code=1)

    def test_a_page_without_its_markers_is_refused(self):
        self.write("README.md", "Text.\n")
        self.assertIn("end of the tables", self.tables(code=1))


class EntriesTest(unittest.TestCase):
    def test_every_entry_is_a_shipped_experiment_or_sweep_of_full_length(self):
        with open(os.path.join(SOURCE, "deploy", "results", "entries.csv"), encoding="utf-8") as file:
            listed = list(csv.DictReader(file))
        self.assertEqual([row["name"] for row in listed[:3]], ["air_hockey/datacom", "cartpole/datacom", "navigation/datacom"])
        self.assertEqual(len({row["name"] for row in listed}), len(listed))
        for row in listed:
            folder = {"train": "experiments", "sweep": "sweeps"}[row["verb"]]
            self.assertTrue(os.path.exists(os.path.join(SOURCE, "deploy", folder, row["name"] + ".textproto")), row)
            steps = {"rcpo": "2000000", "ppo_lag": "2000000", "safe_loop": "100000"}.get(os.path.basename(row["name"]), "1000000")
            self.assertEqual(row["steps"], steps, row)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
