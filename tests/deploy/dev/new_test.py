#!/usr/bin/env python3
"""Tests deploy/dev/new on copies of the tree: what it makes, what it changes and what it refuses. Nothing is compiled."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
NEEDED = (".ci/run", ".githooks/pre-commit", "actor", "common", "deploy/dev/new", "deploy/experiments", "deploy/python/datacom/__init__.py",
          "deploy/sweeps", "docs/developing.md", "learner", "proto", "replay", "tests/**/CMakeLists.txt", "tests/**/*.h", "tests/golden/experiments",
          "tests/structure_test.py")
STRUCTURE = ("folder_includes_only", "no_task_includes", "core_knows_neither", "globbed_only", "guarded", "files_stay_short", "functions_stay_short",
             "source_ends_with", "experiment_folder")  # of structure_test.py, what the new files can break


class New(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-new-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patterns = [f":(glob){name}" for path in NEEDED for name in (path, path + "/**")]
        listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=SOURCE, check=True, capture_output=True, text=True).stdout
        for name in listed.split("\0")[:-1]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, self.root / name)
        self.before = self.files()

    def files(self):
        """When each file was written."""
        return {str(path.relative_to(self.root)): path.stat().st_mtime_ns for path in self.root.rglob("*") if path.is_file()}

    def new(self, *arguments):
        """The paths that it says are made, and those that are changed; they are the ones that are."""
        done = self.run_it(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        made, changed = (set(re.findall(rf"^{word} +(\S+)$", done.stdout, re.M)) for word in ("new", "changed"))
        after = self.files()
        self.assertEqual(after.keys() - self.before.keys(), made)
        self.assertEqual({path for path, written in self.before.items() if after[path] != written}, changed)
        return made, changed

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, "-B", self.root / "deploy/dev/new", *arguments], capture_output=True, text=True, check=False)

    def refused(self, *arguments):
        before, done = self.files(), self.run_it(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(self.files(), before)
        return done.stderr

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def added(self, path):
        """The words of a changed file that it did not have, in its order."""
        old = (SOURCE / path).read_text(encoding="utf-8").split()
        return [word for word in self.read(path).split() if word not in old]

    def check_structure(self):
        done = subprocess.run([sys.executable, "-B", self.root / "tests/structure_test.py", self.root, *(f"-k{name}" for name in STRUCTURE)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"Ran {len(STRUCTURE)} tests", done.stderr)

    def test_a_task_is_a_copy_with_its_own_name_in_every_place(self):
        made, changed = self.new("task", "sliding_mass_2", "--like", "cartpole")
        self.assertEqual(made, {*(f"common/tasks/sliding_mass_2/{name}" for name in ("dynamics.cc", "dynamics.h", "model.xml", "task.cc")),
                                "deploy/experiments/sliding_mass_2/datacom.textproto", "tests/golden/experiments/sliding_mass_2.txt"})
        self.assertEqual(changed, {"common/tasks/CMakeLists.txt", "deploy/python/datacom/__init__.py"})
        for name in ("dynamics.cc", "dynamics.h", "model.xml", "task.cc"):
            text, old = self.read(f"common/tasks/sliding_mass_2/{name}"), self.read(f"common/tasks/cartpole/{name}")
            self.assertNotRegex(text.replace("docs/cartpole.md", ""), "(?i)cartpole")
            for mine, other in (("sliding_mass_2", "cartpole"), ("SLIDING_MASS_2", "CARTPOLE"), ("SlidingMass2", "CartPole")):
                text = text.replace(mine, other)
            self.assertEqual(text, old)
        self.assertIn('const RegisterTask kRegistered("sliding_mass_2", &MakeTask);', self.read("common/tasks/sliding_mass_2/task.cc"))
        self.assertEqual(self.added("common/tasks/CMakeLists.txt"), ["sliding_mass_2/dynamics.cc", "sliding_mass_2/task.cc"])
        self.assertEqual(self.added("deploy/python/datacom/__init__.py"), ['"Navigation",', '"SlidingMass2"]:'])
        self.assertIn('name: "sliding_mass_2/datacom"\ndescription: "Begun with the settings of cartpole/datacom"\ntask: "sliding_mass_2"\n'
                      'algorithm: "datacom"\n', self.read("deploy/experiments/sliding_mass_2/datacom.textproto"))
        head, section = self.read("tests/golden/experiments/cartpole.txt").split("\n\n")[:2]
        self.assertEqual(self.read("tests/golden/experiments/sliding_mass_2.txt"), f"{head}\n\n{section}\n".replace("cartpole", "sliding_mass_2"))
        self.check_structure()

    def test_a_task_of_many_sources_has_a_line_for_each(self):
        self.new("task", "crossing", "--like", "navigation")
        listed = re.findall(r"\bcrossing/(\w+\.cc)", self.read("common/tasks/CMakeLists.txt"))
        self.assertEqual(sorted(listed), sorted(path.name for path in (self.root / "common/tasks/navigation").glob("*.cc")))
        self.assertNotRegex(self.read("common/tasks/crossing/task.cc"), r"(?i)(?<!docs/)navigation")

    def test_an_algorithm_has_the_facts_of_its_base_and_the_next_number(self):
        made, changed = self.new("algorithm", "calm_rcpo", "--like", "rcpo")
        self.assertEqual(made, {"learner/algorithms/calm_rcpo.cc", "deploy/experiments/cartpole/calm_rcpo.textproto"})
        self.assertEqual(changed, {"proto/datacom/v1/algorithm.proto", "tests/golden/experiments/cartpole.txt", "tests/golden/experiments/sweeps.txt",
                                   "deploy/sweeps/cartpole/methods.textproto"})
        entry = re.compile(r'  (\w+) = (\d+) \[\(algorithm\) = \{\n    name: .*\n    summary: .*\n((?:    .*\n)+)  \}\];\n')
        proto = self.read("proto/datacom/v1/algorithm.proto")
        facts = {name: (int(number), rest) for name, number, rest in entry.findall(proto)}
        number, rest = facts.pop("CALM_RCPO")
        self.assertEqual(number, 1 + max(other for other, _ in facts.values() if other < 100))
        self.assertEqual(rest, facts["RCPO"][1].replace('"normalised_gaussian"', '"normalised_gaussian" extends: "rcpo"'))
        self.assertEqual(entry.sub(lambda one: "" if one[1] == "CALM_RCPO" else one[0], proto),
                         (SOURCE / "proto/datacom/v1/algorithm.proto").read_text(encoding="utf-8"))
        colours = re.findall(r'colour: "(#\w+)"', proto)
        self.assertEqual(len(set(colours)), len(colours))
        self.assertIn('class CalmRcpo : public Rcpo {\n public:\n  using Rcpo::Rcpo;\n};\n\n'
                      'const RegisterAlgorithm<CalmRcpo> kRegistered("calm_rcpo");\n', self.read("learner/algorithms/calm_rcpo.cc"))
        golden, section = (re.search(rf"^cartpole/{name}\n(?:  .*\n)+", self.read("tests/golden/experiments/cartpole.txt"), re.M)[0]
                           for name in ("rcpo", "calm_rcpo"))
        self.assertEqual(section.replace("calm_rcpo", "rcpo"), golden)
        names = re.findall(r"^(cartpole/\w+)$", self.read("tests/golden/experiments/cartpole.txt"), re.M)
        self.assertEqual(names, sorted(f"cartpole/{path.stem}" for path in (self.root / "deploy/experiments/cartpole").iterdir()))
        experiments = self.read("deploy/sweeps/cartpole/methods.textproto").count("\nexperiments: ")
        self.assertIn(f"\ncartpole/methods {experiments} {25 * experiments}\n", self.read("tests/golden/experiments/sweeps.txt"))
        self.check_structure()

    def test_a_second_algorithm_has_another_number_and_another_colour(self):
        for base in ("sac", "datacom"):
            self.assertEqual(self.run_it("algorithm", f"calm_{base}", "--like", base).returncode, 0)
        for field in (r"^  \w+ = (\d+) \[\(algorithm\)", r'colour: "(#\w+)"'):
            values = re.findall(field, self.read("proto/datacom/v1/algorithm.proto"), re.M)
            self.assertEqual(len(set(values)), len(values))

    def test_a_dry_run_says_the_same_and_writes_nothing(self):
        for arguments in (("task", "sliding_mass", "--like", "cartpole"), ("algorithm", "calm", "--like", "sac")):
            said = self.run_it(*arguments, "--dry-run").stdout
            self.assertEqual(self.files(), self.before)
            self.assertEqual(self.run_it(*arguments).stdout, said)
            self.before = self.files()

    def test_a_name_that_is_taken_is_refused(self):
        self.new("task", "sliding_mass", "--like", "cartpole")
        self.assertEqual(self.run_it("algorithm", "calm", "--like", "sac").returncode, 0)
        for arguments, place in ((("task", "sliding_mass", "--like", "cartpole"), "common/tasks/sliding_mass/dynamics.cc"),
                                 (("task", "cart_pole", "--like", "navigation"), "deploy/python/datacom/__init__.py"),
                                 (("task", "testing", "--like", "cartpole"), ".h"),
                                 (("task", "double", "--like", "cartpole"), "common/tasks/cartpole/dynamics.cc"),
                                 (("algorithm", "calm", "--like", "datacom"), "learner/algorithms/calm.cc"),
                                 (("algorithm", "toy", "--like", "sac"), "proto/datacom/v1/algorithm.proto")):
            self.assertRegex(self.refused(*arguments), rf'"{arguments[1]}" is taken: see \S*{re.escape(place)};')

    def test_what_cannot_be_a_name_is_refused(self):
        for name in ("Mass", "sliding-mass", "a.b", "../a", "2d", "mass2", "mass_", "a_b", "switch", "über", "", "fast_torch", "a_known_mass"):
            self.assertIn(f'"{name}" cannot be a name', self.refused("task", name, "--like", "cartpole"))

    def test_what_cannot_be_begun_with_is_refused_with_a_list_of_what_can(self):
        for like in ("air_hockey", "moon"):  # hockey_rules.h has a part of air_hockey
            self.assertIn(f'no task "{like}" has all of its code in its own folder; these have: air_hockey_7dof, cartpole, navigation\n',
                          self.refused("task", "sliding_mass", "--like", like))
        for like in ("lag_sac", "toy", "moon"):
            self.assertIn(f'no algorithm "{like}" has a header to derive from; these have: datacom, ppo_lag, rcpo, sac\n',
                          self.refused("algorithm", "calm", "--like", like))
        self.assertIn("invalid choice: 'robot'", self.refused("robot", "arm", "--like", "sac"))

    def test_nothing_is_written_in_a_tree_that_it_does_not_know(self):
        path = self.root / "tests/golden/experiments/sweeps.txt"
        path.write_text(self.read(path).replace("cartpole/methods", "cartpole/all"), encoding="utf-8")
        self.assertIn("the tree has changed: no text matches", self.refused("algorithm", "calm", "--like", "sac"))


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
