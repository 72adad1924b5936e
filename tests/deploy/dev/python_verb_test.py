#!/usr/bin/env python3
"""Runs `./datacom python`, and what ./datacom refuses or passes on, in a folder with fakes of the programs that it calls: nothing is installed or
compiled."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
FAKES = {
    "dpkg-query": 'for package; do echo "installed $package"; done',
    "cmake": "true",
    "ninja": "echo ninja: no work to do.",
    # Makes an environment whose Python is this fake.
    "python3": 'echo "$0 $*" >>"$CALLS"\nif [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$FAKES/python3" "$3/bin/python"; fi',
}


class PythonVerb(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-python-")
        self.addCleanup(folder.cleanup)
        self.root, fakes, self.calls = (pathlib.Path(folder.name).resolve() / name for name in ("tree", "fakes", "calls"))
        fakes.mkdir()
        for name, text in FAKES.items():
            (fakes / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (fakes / name).chmod(0o755)
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/build.ninja").touch()
        for name in ("datacom", "CMakePresets.json"):
            shutil.copy(SOURCE / name, self.root)
        self.environment = {"PATH": f"{fakes}:{os.environ['PATH']}", "FAKES": str(fakes), "CALLS": str(self.calls), "DATACOM_MUJOCO": "system"}

    def wrapper(self, *arguments, **environment):
        return subprocess.run([self.root / "datacom", *arguments], env={**self.environment, **environment}, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run_it(self, *arguments, **environment):
        """The exit code, what was said, and the calls of Python that make an environment or install into one."""
        done = self.wrapper("python", *arguments, **environment)
        calls = self.calls.read_text().splitlines() if self.calls.is_file() else []
        return done.returncode, done.stdout, [line for line in calls if " venv " in line or " install " in line]

    def test_the_package_goes_into_an_environment_with_the_programs_that_are_built(self):
        code, said, calls = self.run_it()
        self.assertEqual(code, 0, said)
        environment = self.root / "build/venv"
        self.assertTrue(calls[0].endswith(f"python3 -m venv {environment}"), calls)
        self.assertEqual(calls[1:], [f"{environment}/bin/python -m pip install --quiet --disable-pip-version-check {self.root}[gymnasium,records] "
                                     f"--config-settings build-dir={self.root}/build/python "
                                     f"--config-settings cmake.define.DATACOM_BUILT={self.root}/build/release"])
        self.assertIn(f". {environment}/bin/activate\n", said)

    def test_an_active_environment_is_used_and_extras_are_those_that_were_typed(self):
        mine = self.root / "mine"
        (mine / "bin").mkdir(parents=True)
        shutil.copy(pathlib.Path(self.environment["FAKES"]) / "python3", mine / "bin/python")
        code, said, calls = self.run_it("hub,film", VIRTUAL_ENV=str(mine))
        self.assertEqual((code, len(calls)), (0, 1), said)
        self.assertIn(f"{mine}/bin/python -m pip install", calls[0])
        self.assertIn(f"{self.root}[hub,film] ", calls[0])

    def test_what_is_no_list_of_names_is_refused(self):
        code, said, calls = self.run_it("../x")
        self.assertEqual((code, calls), (2, []))
        self.assertIn('"../x" is no list of extras', said)

    def test_an_unknown_preset_and_an_argument_too_many_are_refused(self):
        for arguments, words in ((("test", "--preset"), 'unknown preset ""; use release, dev, '), (("test", "--preset=non"), 'unknown preset "non"; use '),
                                 (("build", ".*"), 'unknown preset ".*"; use '), (("python", "hub", "film"), 'python: "film" is one argument too many'),
                                 (("lint", "all", "x"), 'lint: "x" is one argument too many'), (("setup", "x"), 'setup: "x" is one argument too many')):
            done = self.wrapper(*arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("datacom: " + words, done.stdout)

    def test_new_passes_its_arguments_to_its_script(self):
        script = self.root / "deploy/dev/new"
        script.parent.mkdir(parents=True)
        script.write_text('#!/bin/sh\necho "new: $*"\nexit 2\n', encoding="utf-8")
        script.chmod(0o755)
        done = self.wrapper("new", "task", "a b", "--like", "cartpole")
        self.assertEqual((done.returncode, done.stdout), (2, "new: task a b --like cartpole\n"))

    def test_help_of_a_verb_of_the_built_command_is_its_own(self):
        built = self.root / "build/release/bin/datacom"
        built.parent.mkdir()
        built.write_text('#!/bin/sh\necho "built: $*"\n', encoding="utf-8")
        built.chmod(0o755)
        self.assertEqual(self.wrapper("help", "train").stdout, "built: help train\n")
        for arguments in ((), ("help",), ("help", "build"), ("help", "new")):
            self.assertIn("\ndeveloper verbs ", self.wrapper(*arguments).stdout)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
