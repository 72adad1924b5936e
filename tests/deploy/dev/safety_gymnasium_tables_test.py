"""Tests deploy/dev/safety_gymnasium_tables against numbers computed by hand, and that --check detects a difference."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first

SCRIPT = os.path.join(SOURCE, "deploy", "dev", "safety_gymnasium_tables")
PAGE = "Before.\n\n<!-- tables: written by deploy/dev/safety_gymnasium_tables -->\n<!-- end of the tables -->\nAfter.\n"
FILES = {
    "entries.csv": "verb,name,seeds,steps,title\ntrain,hopper/ppo_lag,0-1,200000,PPOLag\ntrain,hopper/rcpo,0-1,200000,RCPO\n"
                   "train,swimmer/datacom,0-1,200000,D-ATACOM\n",
    "published.csv": "task,method,steps,return,return_deviation,cost,cost_deviation,source\n"
                     "hopper,PPOLag,10000000,1234.50,7.00,1.50,0.25,on-policy\n",
}
MEMBERS = "members {\n  seed: 0\n}\nmembers {\n  seed: 1\n}\n"
HEAD = "member,env_steps,wall_seconds,eval_episodes,eval_return,eval_sum_cost,train_episodes,train_sum_cost"
COUNTED = HEAD + ",eval_violating_steps,train_violating_steps"


class SafetyGymnasiumTablesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-tables-")
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in FILES.items():
            self.write(os.path.join("results", name), text)
        self.page = os.path.join(self.folder, "page")
        self.write(self.page, PAGE)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def record(self, name, lines):
        self.write(os.path.join("results", name, "experiment.textproto"), MEMBERS)
        self.write(os.path.join("results", name, "progress.csv"), "\n".join(lines) + "\n")

    def tables(self, *arguments, code=0):
        result = subprocess.run([sys.executable, SCRIPT, "--results", os.path.join(self.folder, "results"), "--page", self.page, *arguments],
                                capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        with open(self.page, encoding="utf-8") as file:
            return file.read()

    def test_published_and_own_rows_stand_side_by_side(self):
        # Seed 0 ends with returns 10 and 20, costs 2 and 4, and has 3 + 2 * 5 + 1 * 4 violating steps; seed 1 has 25, 9 and 6.
        self.record("hopper/ppo_lag", [HEAD, "0,0,0,1,999,999,0,", "1,0,0,1,999,999,0,",
                                       "0,100000,900,1,999,999,1,3", "1,100000,900,1,999,999,1,1",
                                       "0,150000,1800,1,10,2,2,5", "1,150000,1800,1,25,9,2,1",
                                       "0,200000,3600,1,20,4,1,4", "1,200000,3600,1,25,9,1,3"])
        page = self.tables()
        self.assertIn("| OmniSafe PPOLag | 10,000,000 | 5 | 1,234.5 ± 7.00 | 1.50 ± 0.25 | - |", page)
        # 15 and 25: mean 20, deviation 7.07; 3 and 9: mean 6, deviation 4.24; 17 and 6: mean 11.5, deviation 7.78.
        self.assertIn("| **PPOLag** | 200,000 | 2 | 20 ± 7 | 6.0 ± 4.2 | 12 ± 8 |", page)
        self.assertIn("Not yet run here: RCPO.", page)
        self.assertIn("Not yet run here: all methods.", page)
        self.assertTrue(page.startswith("Before.") and page.endswith("After.\n"))

    def test_violating_steps_in_training_are_counted_up_to_the_same_steps(self):
        self.record("hopper/ppo_lag", [HEAD, "0,200000,3600,1,20,4,2,4", "1,200000,3600,1,25,9,1,3"])
        self.record("hopper/rcpo", [HEAD, "0,200000,3600,1,20,4,1,5", "1,200000,3600,1,25,9,1,5", "0,400000,3600,1,20,4,9,9", "1,400000,3600,1,25,9,9,9"])
        page = self.tables()
        self.assertIn("| in training to 200,000, a seed |", page)
        self.assertIn("| **RCPO** | 400,000 | 2 | 22 ± 4 | 6.5 ± 3.5 | 5 ± 0 |", page)

    def test_seeds_whose_critic_ran_away_are_counted(self):
        self.record("hopper/ppo_lag", [HEAD + ",status", "0,200000,3600,1,20,4,1,4,ok", "1,150000,1800,1,25,9,1,3,runaway", "1,200000,3600,1,25,9,1,3,ok"])
        self.assertIn("| **PPOLag** | 200,000 | 2 (1 runaway) |", self.tables())

    def test_a_signed_cost_is_no_number_of_steps_unless_steps_were_counted(self):
        lines = ["0,200000,360,10,4,0.5,1,0.25", "1,200000,360,10,6,0.5,1,0.25"]
        self.record("swimmer/datacom", [HEAD, *lines])
        self.assertIn("| **D-ATACOM** | 200,000 | 2 | 5.0 ± 1.4 | not counted | not counted |", self.tables())
        self.record("swimmer/datacom", [COUNTED, lines[0] + ",12,30", lines[1] + ",14,50"])
        self.assertIn("| **D-ATACOM** | 200,000 | 2 | 5.0 ± 1.4 | 13.0 ± 1.4 | 40 ± 14 |", self.tables())

    def test_check_fails_where_the_page_differs_from_the_records(self):
        self.tables("--check", code=1)
        self.tables()
        self.tables("--check")
        with open(self.page, "r+", encoding="utf-8") as file:
            changed = file.read().replace("1.50 ± 0.25", "0.50 ± 0.25")
            file.seek(0)
            file.write(changed)
        self.tables("--check", code=1)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
